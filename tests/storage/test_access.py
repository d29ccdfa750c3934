"""Visitors of a served dashboard can read only its folders, and change nothing if it is read-only."""

import json
import socket
from pathlib import Path

import numpy as np
import psutil
import pytest
from click.testing import CliRunner

from tests.conftest import call, free_port, make_tiny
from tests.demo_folder import export_local_dir
from vlprobe import registry
from vlprobe.cli import serve
from vlprobe.cli.main import main
from vlprobe.errors import InvalidInput
from vlprobe.models.demo_weights import FOLDER
from vlprobe.runs import jobs
from vlprobe.runs.request import Request
from vlprobe.scoring import pictures
from vlprobe.storage import access, files
from vlprobe.storage.store import Store


@pytest.fixture
def served(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Create a folder that may be read and one that may not, and set the limits."""
    for name in ("open", "closed", "open@closed"):
        make_tiny(tmp_path / name)
    for name, value in access.settings(False, [tmp_path / "open", tmp_path / "cache"]).items():
        monkeypatch.setenv(name, value)
    return tmp_path


def test_without_roots_every_file_can_be_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delenv(access.ROOTS, raising=False)
    assert access.settings(False, []) == {}
    access.refuse_outside(Path("/etc/passwd"))
    assert registry.load_dataset(make_tiny(tmp_path / "tiny"), tmp_path / "cache").items


def test_a_dataset_in_an_allowed_folder_is_read(served: Path):
    dataset = registry.load_dataset(f"csv:{served / 'open' / 'captions.csv'}", served / "cache")
    assert len(dataset.items) == 6


PREFIXES = ("csv", "coco", "folder", "frames", "pairs", "triplets", "queries", "rococo")
TABLE = "/captions.csv"


@pytest.mark.parametrize(
    "name",
    [
        "csv:{root}/closed/captions.csv",
        "csv:{root}/open/../closed/captions.csv",
        "csv:{root}/open/nothing/../../closed/captions.csv",
        "csv:{root}/closed/there-is-no-such-file.csv",
        "csv:~/captions.csv",
        "csv:../captions.csv",
        "coco:/etc",
        "folder:/",
        "rococo:{root}/open/captions.csv@/etc",
        "frames:/etc/passwd@{root}/open",
        "queries:/etc/passwd+p2",
        *(f"{prefix}:{{root}}/open@closed{file}" for prefix in PREFIXES for file in ("", TABLE)),
    ],
)
def test_a_dataset_outside_of_the_roots_is_refused_whether_or_not_it_exists(
    served: Path, name: str
):
    with pytest.raises(InvalidInput, match="outside the folders"):
        registry.load_dataset(name.format(root=served), served / "cache")


@pytest.mark.parametrize(
    "name",
    [
        "openclip:ViT-B-32@/etc/passwd",
        "openclip:local-dir:/etc",
        "hf:/etc",
        "st:../models",
        "openclip:ViT-B-32@~/w.pt",
    ],
)
def test_a_model_outside_of_the_roots_is_refused(served: Path, name: str):
    with pytest.raises(InvalidInput, match="outside the folders"):
        registry.load_model(name)


@pytest.mark.parametrize(
    "name", ["demo:weak@{ck}", "openclip:ViT-B-32/openai@{ck}", "openclip:local-dir:{model}@{ck}"]
)
@pytest.mark.parametrize(
    "file", ["open@closed/w.safetensors", "open/link.safetensors", "open/link/w.safetensors"]
)
def test_weights_outside_of_the_roots_are_refused_when_they_are_opened(
    served: Path, name: str, file: str
):
    """The name is checked at every @, but the file after the first @ is opened."""
    export_local_dir("demo:weak", served / "open" / "model")
    sibling = served / "open@closed"
    (sibling / "w.safetensors").write_bytes((FOLDER / "weak.safetensors").read_bytes())
    (served / "open" / "link.safetensors").symlink_to(sibling / "w.safetensors")
    (served / "open" / "link").symlink_to(sibling)
    with pytest.raises(InvalidInput, match="outside the folders"):
        registry.load_model(name.format(ck=served / file, model=served / "open" / "model"), "cpu")


def test_a_hub_name_is_not_treated_as_a_path_outside_of_the_roots(
    served: Path, monkeypatch: pytest.MonkeyPatch
):
    pytest.importorskip("transformers", reason="needs requirements-models.txt")
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    with pytest.raises(InvalidInput, match="not on this machine"):
        registry.load_model("hf:nobody/nothing", "cpu")


def test_names_of_published_weights_are_not_treated_as_paths(served: Path):
    access.refuse_name("hf:openai/clip-vit-base-patch32")
    access.refuse_name("openclip:ViT-B-32/openai")
    assert registry.load_model("demo:weak").name == "demo:weak"


def test_a_table_cannot_refer_to_a_picture_outside_of_the_roots(served: Path):
    table = served / "open" / "far.csv"
    table.write_text("image,caption\n../closed/0.png,A red dog.\n")
    with pytest.raises(InvalidInput, match="outside the folders"):
        registry.load_dataset(f"csv:{table}", served / "cache")


def test_a_link_that_leaves_the_roots_is_refused(served: Path):
    (served / "open" / "way-out.png").symlink_to(served / "closed" / "0.png")
    with pytest.raises(InvalidInput, match="outside the folders"):
        pictures.read_bytes(served / "open" / "way-out.png")


def test_a_read_only_dashboard_runs_and_writes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    for name, value in access.settings(True, []).items():
        monkeypatch.setenv(name, value)
    store = Store(tmp_path / "cache")
    with pytest.raises(InvalidInput, match="read-only"):
        jobs.start(Request(("demo:weak",), "demo", "lgip"), store)
    with pytest.raises(InvalidInput, match="read-only"):
        files.write_bytes(tmp_path / "anything", b"")
    assert list(tmp_path.iterdir()) == []


def test_a_read_only_dashboard_refuses_names_of_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv(access.READ_ONLY, "1")
    for name in ("openclip:ViT-B-32@/etc/passwd", "hf:/etc", f"openclip:ViT-B-32@{tmp_path}"):
        with pytest.raises(InvalidInput, match="read-only"):
            registry.load_model(name)
    assert registry.load_model("demo:weak").name == "demo:weak"


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ((), {}),
        (("--read-only",), {access.READ_ONLY: "1"}),
        (("--read-only", "--quiz"), {access.READ_ONLY: "1", access.QUIZ: "1"}),
        (("--root", "{root}"), {access.ROOTS: "{root}:{cache}"}),
        (
            ("--remote", "s3://bucket/a", "--remote", "https://x.org"),
            {access.REMOTES: "s3://bucket/a\nhttps://x.org"},
        ),
    ],
)
def test_the_server_gets_the_limits_of_its_options(
    given, expected, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    names = (access.READ_ONLY, access.ROOTS, access.QUIZ, access.REMOTES)
    for name in names:
        monkeypatch.delenv(name, raising=False)
    process_settings = {}
    monkeypatch.setattr(serve.os, "chdir", lambda folder: None)
    monkeypatch.setattr(
        serve.os,
        "execve",
        lambda program, command, env: process_settings.update(env, command=command),
    )
    places = {"root": str(tmp_path), "cache": str(tmp_path / "cache")}
    given = [word.format(**places) for word in given]
    call(places["cache"], "dashboard", *given)
    limits = {name: process_settings[name] for name in names if name in process_settings}
    assert limits == {name: value.format(**places) for name, value in expected.items()}
    settings = json.loads(process_settings["command"][-1])
    assert settings["server.address"] == "127.0.0.1"
    assert settings["server.maxUploadSize"] == (0 if "--read-only" in given else 20)


def served_settings(monkeypatch: pytest.MonkeyPatch, *options: str) -> dict:
    """Return the settings of the server that `vlprobe dashboard` starts."""
    commands = []
    monkeypatch.setattr(serve, "_become", lambda command, *others: commands.append(command))
    answer = CliRunner().invoke(main, ["dashboard", "--port", str(free_port()), *options])
    assert answer.exit_code == 0, answer.output
    return json.loads(commands[0][-1])


def test_a_dashboard_accepts_the_host_names_of_this_machine_and_of_its_options(monkeypatch):
    local = ["localhost", "127.0.0.1", "::1"]
    assert served_settings(monkeypatch)["server.allowedHosts"] == local
    named = served_settings(monkeypatch, "--host", "Probe.example.com", "--host", "*.example.org")
    assert named["server.allowedHosts"] == [*local, "probe.example.com", "*.example.org"]
    assert named["browser.serverAddress"] == "Probe.example.com"
    everywhere = served_settings(monkeypatch, "--address", "0.0.0.0", "--read-only")
    hosts = everywhere["server.allowedHosts"]
    assert hosts[:4] == [*local, "0.0.0.0"] and socket.gethostname().lower() in hosts
    for addresses in psutil.net_if_addrs().values():
        assert {one.address for one in addresses if one.family == socket.AF_INET} <= set(hosts)


BAD_HOSTS = ["https://a.org", "a.org:443", "a b", "", "a.*.org", "*.", "a/b"]
BAD_VISITORS = ["", " ", "@", "ada", "ada@", "a@b.org,*", "*@b.org"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--address", "0.0.0.0"), "--root FOLDER"),  # other machines may connect only with a limit
        (
            ("--address", "203.0.113.9", "--read-only"),
            "cannot listen on port 8501 of '203.0.113.9'",
        ),
        *((("--host", name), "is not a host name") for name in BAD_HOSTS),
        *((("--sign-in", who), "is not valid for sign-in") for who in BAD_VISITORS),
    ],
)
def test_invalid_server_options_are_refused_in_one_line(options, message, tmp_path: Path):
    answer = call(tmp_path, "dashboard", *options, code=1)
    assert answer.stderr.count("\n") == 1
    assert message in answer.stderr


@pytest.mark.parametrize("port", ["99999", "-1", "0"])
def test_a_port_out_of_range_is_refused_in_one_line(port: str):
    answer = CliRunner().invoke(main, ["dashboard", "--port", port])
    assert answer.exit_code == 1
    line = f"Error: Port {port} is out of range. Expected 1 to 65535, such as 8501.\n"
    assert answer.stderr == line


def test_the_error_for_a_port_in_use_names_the_option():
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = str(server.getsockname()[1])
        answer = CliRunner().invoke(main, ["dashboard", "--port", port])
    assert answer.exit_code == 1 and answer.stderr.count("\n") == 1
    assert f"Port {port} is in use" in answer.stderr and "--port" in answer.stderr


def test_an_empty_sign_in_list_admits_no_one(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv(access.SIGN_IN, "")
    assert access.sign_in()
    assert not access.allowed("ada@example.org", True)


def test_a_root_that_contains_the_path_separator_is_refused(tmp_path: Path):
    (tmp_path / "a:b").mkdir()
    with pytest.raises(InvalidInput, match="separates folders"):
        access.settings(False, [tmp_path / "a:b"])


def test_an_array_outside_of_the_roots_is_not_converted_to_a_picture(served: Path):
    np.save(served / "closed" / "a.npy", np.zeros((4, 4, 3), np.uint8))
    row = {f"{what}{place}": f"{what} {place}" for what in ("caption", "image") for place in (0, 1)}
    (served / "open" / "rows.json").write_text(
        json.dumps([row | {"image0": "../closed/a.npy", "image1": "0.png"}])
    )
    # Its digest is cached, because it was read before the limits
    with pytest.MonkeyPatch.context() as before:
        before.delenv(access.ROOTS)
        pictures.file_digests([served / "open" / ".." / "closed" / "a.npy"], served / "cache")
    with pytest.raises(InvalidInput, match="outside the folders"):
        registry.load_dataset(
            f"pairs:{served / 'open' / 'rows.json'}@{served / 'open'}", served / "cache"
        )
    assert not list((served / "cache").rglob("*.bmp"))
