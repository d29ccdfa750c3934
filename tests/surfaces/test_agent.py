"""`vlprobe mcp`, called by the client of the package `mcp`: it returns the commands' numbers and writes nothing."""

import asyncio
import base64
import io
import json
import sys
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

import vlprobe
from tests.cli.test_main import rows_of
from tests.conftest import call, make_tiny
from vlprobe.surfaces import agent

MODELS = ["control:random", "control:constant"]
READING = {"question_sets", "models", "numbers", "failures", "compare", "query", "link"}


@pytest.fixture(scope="module", autouse=True)
def package() -> None:
    """Skip without `mcp`. Functions import it, because only one of all collecting processes needs its 2 s."""
    pytest.importorskip("mcp")


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a cache with results of both controls on six pictures."""
    folder = tmp_path_factory.mktemp("agent")
    vlprobe.run(MODELS, make_tiny(folder / "tiny"), cache=folder / "cache", examine=False)
    return folder / "cache"


def ask(server: object, use: Callable[[Any], Awaitable[Any]]) -> Any:
    """Return a client's answer from a server."""

    import mcp

    async def connect() -> Any:
        async with mcp.Client(server) as client:
            return await use(client)

    with ThreadPoolExecutor(
        1
    ) as pool:  # a browser test in the same process keeps its event loop running
        return pool.submit(asyncio.run, connect()).result()


def answer(cache: Path, tool: str, allow_run: bool = False, **arguments: object) -> Any:
    server = agent.server(str(cache), allow_run)
    return ask(server, lambda client: client.call_tool(tool, arguments))


def test_tools_are_typed_documented_and_read_only(cache):
    tools = ask(agent.server(str(cache)), lambda client: client.list_tools()).tools
    assert {tool.name for tool in tools} == READING
    for tool in tools:
        assert tool.description and tool.input_schema["type"] == "object"
        assert tool.annotations.read_only_hint is True
        assert "self" not in tool.input_schema.get("properties", {})
    allowed = ask(agent.server(str(cache), True), lambda client: client.list_tools()).tools
    (run,) = (tool for tool in allowed if tool.name not in READING)
    assert run.name == "run" and run.annotations.read_only_hint is False
    assert set(run.input_schema["required"]) == {"model", "dataset"}


def test_numbers_match_those_of_show(cache):
    (key, *_) = [row["key"] for row in answer(cache, "models").structured_content["result"]]
    shown = rows_of(cache, "show", key)
    assert answer(cache, "numbers", key=key).structured_content["result"] == shown
    (row,) = answer(cache, "question_sets").structured_content["result"]
    assert set(row["models"]) == set(MODELS)


def test_failures_match_those_of_the_command_and_have_pictures(cache):
    model = "control:random"
    words = ("failures", model, "--size", "3", "--format", "json")
    listed = json.loads(call(cache, *words).stdout)
    content = answer(cache, "failures", key=model, size=3).content
    texts = [json.loads(block.text) for block in content if block.type == "text"]
    assert texts[1:] == listed and texts[0]["page"] == 1
    pictures = [block for block in content if block.type == "image"]
    assert len(pictures) == 3 and {picture.mime_type for picture in pictures} == {"image/webp"}
    with Image.open(io.BytesIO(base64.b64decode(pictures[0].data))) as image:
        assert image.format == "WEBP" and min(image.size) > 0


def test_comparisons_queries_and_links_match_those_of_the_commands(cache):
    compared = answer(cache, "compare", models=MODELS).structured_content
    printed = call(cache, "compare", *MODELS, "--by", "edit", "--format", "json")
    assert compared["rows"] == json.loads(printed.stdout)
    assert compared["finding"].split(". ")[0] in printed.stderr
    rows = answer(cache, "query", sql="SELECT model FROM runs ORDER BY 1").structured_content
    assert [row["model"] for row in rows["result"]] == sorted(MODELS)
    address = answer(cache, "link", key="control:random").structured_content["result"]
    assert address.startswith(f"{agent.DASHBOARD}/explore?set=") and "control%3Arandom" in address


def test_a_comparison_in_a_slice_matches_that_of_the_command(cache):
    call(cache, "slice", "save", "Colors", MODELS[0], "--subtype", "color")
    within = ("--slice", "Colors", "--by", "edit", "--format", "json")
    printed = call(cache, "compare", *MODELS, *within)
    compared = answer(cache, "compare", models=MODELS, named_slice="Colors").structured_content
    whole = answer(cache, "compare", models=MODELS).structured_content
    call(cache, "slice", "remove", "Colors")
    assert compared["rows"] == json.loads(printed.stdout)
    assert compared["rows"][0]["n_cases"] < whole["rows"][0]["n_cases"]


@pytest.mark.parametrize(
    ("tool", "arguments", "said"),
    [
        ("numbers", {"key": "control:randon"}, "No stored run or model"),
        ("failures", {"key": "control:random", "size": 1000}, "size must be from 1 to 20"),
        ("failures", {"key": "control:random", "subtype": "nonsense"}, "nonsense"),
        ("compare", {"models": ["control:random"]}, "Expected 2 to 8 models"),
        ("compare", {"models": MODELS, "named_slice": "Colours"}, "No slice named 'Colours'"),
        ("query", {"sql": "DROP VIEW runs"}, "read-only"),
        ("query", {"sql": "SELECT * FROM read_text('/etc/passwd')"}, "disabled"),
        ("run", {"model": "control:random", "dataset": "demo"}, "run"),
    ],
)
def test_an_invalid_call_is_an_error_in_one_line(cache, tool, arguments, said):
    import mcp

    try:
        result = answer(cache, tool, **arguments)
    except mcp.MCPError as error:  # the tool does not exist
        assert said in str(error)
        return
    assert result.is_error
    (block,) = result.content
    assert said in block.text and "Traceback" not in block.text and "\n" not in block.text


def test_the_tool_run_needs_permission_and_refuses_plug_ins_and_endpoints(cache, tmp_path):
    tiny = make_tiny(tmp_path / "more")
    words = {"model": "control:random", "dataset": tiny, "limit": 2}
    (row,) = answer(cache, "run", True, **words).structured_content["result"]
    assert row["model"] == "control:random" and row["n_items"] == 2
    code = tmp_path / "mine.py"
    code.write_text(f"open({str(tmp_path / 'ran')!r}, 'w')\n")
    refused = answer(cache, "run", True, model=f"py:{code}", dataset=tiny)
    assert refused.is_error and not (tmp_path / "ran").exists()
    server = answer(cache, "run", True, model="http:http://127.0.0.1:9/v1#m", dataset=tiny)
    assert server.is_error


@pytest.mark.full
def test_the_command_serves_over_stdin_and_stdout(cache):
    import mcp

    parameters = mcp.StdioServerParameters(
        command=sys.executable, args=["-m", "vlprobe", "--cache", str(cache), "mcp"]
    )
    result = ask(parameters, lambda client: client.call_tool("models", {}))
    assert {row["model"] for row in result.structured_content["result"]} >= set(MODELS)


def test_without_the_package_one_line_names_the_extra_to_install(cache, monkeypatch):
    monkeypatch.setattr(agent, "find_spec", lambda name: None)
    line = call(cache, "mcp", code=1).stderr
    assert "pip install 'vlprobe[agents]'" in line and len(line.splitlines()) == 1
