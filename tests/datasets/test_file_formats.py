"""Invalid names are refused before loading, and valid names are accepted."""

import json
import os
from pathlib import Path

import pytest

from tests.probes.test_common import PROBES, make
from vlprobe import registry
from vlprobe.datasets import file_formats
from vlprobe.errors import InvalidInput, VlprobeError
from vlprobe.storage import access

LONG = [
    {"caption": f"A picture of {number} \\ \u00e9\u4e00 words.", "id": number}
    for number in range(4)
]


def write_file(path: Path, content: bytes | str) -> Path:
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


@pytest.mark.parametrize("probe", PROBES)
def test_the_name_of_a_dataset_that_loads_passes_the_check(probe: str, tmp_path: Path):
    name = make(probe, tmp_path / "data", 3)
    registry.check_name("datasets", name)
    assert registry.load_dataset(name, tmp_path / "cache").items


@pytest.mark.parametrize(
    "form", ["coco", "csv", "folder", "pairs", "triplets", "rococo", "queries"]
)
def test_a_missing_path_is_refused_before_loading(form: str, tmp_path: Path):
    with pytest.raises(VlprobeError, match=r"does not exist|contains 0 captions files") as caught:
        registry.check_name("datasets", f"{form}:{tmp_path / 'nope'}")
    assert str(tmp_path / "nope") in str(caught.value)


@pytest.mark.parametrize("form", ["coco", "pairs", "triplets", "rococo"])
@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("not JSON", "line 1, column 1"),
        ('[{"a": 1,}' + " " * file_formats.HEAD_BYTES, "line 1, column 10"),
        (b"[\xff" + b" " * file_formats.HEAD_BYTES, "not UTF-8"),
        ("[" * (file_formats.HEAD_BYTES + 1), "nested too deeply"),
        ('{"a": 1', "line 1, column 8"),
    ],
)
def test_a_file_with_an_invalid_beginning_is_refused_before_loading(
    form: str, content: bytes | str, message: str, tmp_path: Path
):
    file = write_file(tmp_path / "a.json", content)
    with pytest.raises(InvalidInput, match=message):
        registry.check_name("datasets", f"{form}:{file}")


def test_a_valid_file_passes_wherever_the_checked_head_ends(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    escaped = json.dumps([*LONG, True, None, -1.5e-3, "\u4e00"], indent=1)
    file = write_file(
        tmp_path / "a.json", f"[{escaped}, {json.dumps(LONG[0], ensure_ascii=False)}]"
    )
    assert json.loads(file.read_bytes())
    for size in range(1, file.stat().st_size):
        monkeypatch.setattr(file_formats, "HEAD_BYTES", size)
        file_formats.check_json_head(file)


def test_tables_and_json_lines_are_checked_by_their_first_line(tmp_path: Path):
    with pytest.raises(InvalidInput, match="columns picture, caption"):
        registry.check_name("datasets", f"csv:{write_file(tmp_path / 'a.csv', 'picture,caption')}")
    with pytest.raises(InvalidInput, match="line 1, is not valid JSON"):
        registry.check_name(
            "datasets", f"pairs:{write_file(tmp_path / 'a.jsonl', '{no' + chr(10))}"
        )
    rows = "image,caption\n" + "a.png,a caption\n" * 10_000
    registry.check_name("datasets", f"csv:{write_file(tmp_path / 'b.csv', rows)}")


@pytest.mark.parametrize(
    "name", ["demo:tset", "demo-pairs:x", "demo-triplets:x", "demoo", "nope:/etc"]
)
def test_an_unknown_dataset_is_refused_before_loading(name: str):
    with pytest.raises(VlprobeError, match=f"No dataset named '{name}'"):
        registry.check_name("datasets", name)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("control:rondom", "Did you mean 'control:random'"),
        ("demo:sofmax", "No model named"),
        ("demo:softmax@/nope.safetensors", "nope.safetensors"),
        ("openclip:ViT-B-32@/nope.pt", "'/nope.pt' does not exist"),
        ("openclip:local-dir:/nope", "open_clip_config.json"),
        ("hf:/nope", "folder '/nope' does not exist"),
        ("st:/nope", "folder '/nope' does not exist"),
        ("hf-itm:a b", "folder 'a b' does not exist"),
        ("lgip:clip", "No model named 'lgip:clip'"),
        ("opnclip:x", "No model named"),
    ],
)
def test_an_unknown_model_or_missing_file_is_refused_without_loading_a_model(
    name: str, message: str, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(registry, "load_model", None)
    with pytest.raises(VlprobeError, match=message):
        registry.check_name("models", name)


@pytest.mark.parametrize(
    "name",
    ["control:random", "demo:weak", "openclip:ViT-B-32/openai", "hf:a/b", "lgip:siglip-base-224"],
)
def test_a_name_that_may_be_valid_is_accepted_without_a_download(name: str):
    registry.check_name("models", name)


@pytest.mark.parametrize("folder", ["datasets", "models"])
def test_a_name_check_reveals_no_file_outside_of_the_allowed_folders(
    folder: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    (tmp_path / "root").mkdir()
    monkeypatch.setenv(access.ROOTS, str(tmp_path / "root"))
    write_file(tmp_path / "there.json", "{}")
    forms = (
        ["coco:", "csv:", "pairs:", "folder:"]
        if folder == "datasets"
        else ["demo:softmax@", "openclip:ViT-B-32@", "hf:"]
    )
    for form in forms:
        message = set()
        for file in ("there.json", "gone.json"):
            with pytest.raises(InvalidInput, match="outside the folders") as caught:
                registry.check_name(folder, f"{form}{tmp_path / file}")
            message.add(str(caught.value).replace(file, ""))
        assert len(message) == 1


def test_a_pipe_is_refused_without_blocking(tmp_path: Path):
    os.mkfifo(tmp_path / "a.json")
    with pytest.raises(InvalidInput, match="Not a regular file"):
        registry.check_name("datasets", f"coco:{tmp_path / 'a.json'}")
