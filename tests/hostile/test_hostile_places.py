"""Unusual paths and folders: the command works or prints a one-line error, never a traceback."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from PIL import Image

from tests.conftest import make_tiny
from vlprobe import registry, views
from vlprobe.cli.main import main
from vlprobe.errors import InvalidInput, VlprobeError
from vlprobe.runs import run as runs_run
from vlprobe.runs import verify
from vlprobe.runs.request import Request
from vlprobe.runs.run import execute
from vlprobe.storage.store import Store

BYTE = os.fsdecode(b"\xff")  # a byte that is not valid UTF-8, as Python represents it


def call(*arguments: str) -> Result:
    return CliRunner().invoke(main, list(arguments))


def refused(*arguments: str) -> str:
    """Return the one-line error of a command that is refused."""
    result = call(*arguments)
    assert isinstance(result.exception, SystemExit), result.exception
    assert result.exit_code == 1
    (line,) = [line for line in result.stderr.splitlines() if line.startswith("Error: ")]
    return line


def red(folder: Path, name: str = "a") -> str:
    """Create a folder with one picture and its caption, and return the name of the dataset."""
    folder.mkdir(exist_ok=True)
    Image.new("RGB", (8, 8), "red").save(folder / f"{name}.png")
    (folder / f"{name}.txt").write_text("A red dog sits on a couch.")
    return f"folder:{folder}"


def request(dataset: str) -> Request:
    return Request(("control:random",), dataset, "lgip", examine=False)


def test_a_file_name_that_is_not_utf8_is_refused_in_one_line(tmp_path):
    assert "incomplete character (a lone surrogate" in refused(
        "check", red(tmp_path / "data", f"a{BYTE}")
    )


def test_a_dataset_in_a_folder_whose_name_is_not_utf8_is_refused_in_one_line(tmp_path, monkeypatch):
    dataset = red(tmp_path / f"data{BYTE}")
    assert "is not valid UTF-8" in refused(
        "--cache", str(tmp_path / "c"), "run", "--model", "control:random", "--dataset", dataset
    )
    monkeypatch.chdir(tmp_path / f"data{BYTE}")
    Path("rows.csv").write_text("image,caption\na.png,A red dog\n")
    assert "The path of a picture" in refused(
        "--cache", str(tmp_path / "c"), "check", "csv:rows.csv"
    )


@pytest.mark.parametrize("half", ["\\udcff", "\\ud800"])
def test_a_lone_surrogate_in_a_path_in_json_is_refused_in_one_line(tmp_path, half):
    red(tmp_path / "data")
    (tmp_path / "data" / "captions.json").write_text(f'{{"a{half}.png": ["A red dog"]}}')
    with pytest.raises(InvalidInput):
        registry.load_dataset(f"coco:{tmp_path / 'data' / 'captions.json'}", tmp_path)
    with pytest.raises(InvalidInput, match=r"have no caption|incomplete character|not UTF-8"):
        registry.load_dataset(f"folder:{tmp_path / 'data'}", tmp_path)


@pytest.mark.parametrize(
    "arguments",
    [
        ("--cache", f"c{BYTE}", "show"),
        ("run", "--model", f"hf:m{BYTE}"),
        ("run", "--model", "control:random", "--option", f"edits=e{BYTE}"),
        ("show", f"k{BYTE}"),
        ("check", f"csv:rows{BYTE}.csv"),
    ],
)
def test_non_utf8_arguments_on_the_command_line_are_refused_in_one_line(
    arguments, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    (tmp_path / f"e{BYTE}").write_text("")
    assert "\n" not in refused(*arguments)


def test_a_tilde_in_the_cache_path_is_the_home_folder(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    assert Store("~/c").root == tmp_path / "c"
    with pytest.raises(VlprobeError):
        Store("~nobody-of-this-name/c")


def test_a_deleted_working_folder_is_reported_in_one_line(tmp_path):
    gone = tmp_path / "gone"
    gone.mkdir()
    commands = [["show"], ["run", "--model", "control:random"], ["check", "csv:rows.csv"]]
    code = f"""
import os
os.rmdir({str(gone)!r})
from vlprobe.cli.main import main
for words in {commands}:
    try:
        main(words)
    except SystemExit as ended:
        print(ended.code)
"""
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).resolve().parents[2])}
    del environment["VLPROBE_CACHE"]  # so that the default cache, in the working folder, is used
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=gone, env=environment, capture_output=True, text=True
    )
    lines = done.stderr.splitlines()
    assert (done.returncode, done.stdout) == (0, "1\n1\n1\n"), done.stderr
    assert len(lines) == len(commands)
    assert all("working folder that no longer exists" in line for line in lines)


def test_perturb_into_a_missing_folder_is_refused_in_one_line(tiny, tmp_path):
    assert "Check that the folder exists and is writable" in refused(
        "perturb", tiny, "--output", str(tmp_path / "no" / "x")
    )


@pytest.mark.parametrize("unreadable", ["iterdir", "is_file"])
def test_a_folder_without_read_permission_is_reported_in_one_line(
    tmp_path, monkeypatch, unreadable
):
    dataset = red(tmp_path / "data")

    def denied(path: Path) -> bool:
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(Path, unreadable, denied)
    with pytest.raises(InvalidInput, match=r"cannot be read \(Permission denied\)"):
        registry.load_dataset(dataset, tmp_path)


@pytest.mark.parametrize("name", ["{key} (copy)", "copy of {key}", "{key}copy"])
def test_a_copied_run_folder_is_not_listed_as_a_run_and_verify_reports_it(tiny, store, name):
    (manifest,) = execute(request(tiny), store)
    folder = store.root / "runs"
    copy = folder / name.format(key=manifest["key"])
    shutil.copytree(folder / manifest["key"], copy)
    assert [run["key"] for run in store.runs()] == [manifest["key"]]
    assert len(views.runs.runs(store)) == 1
    (damage,) = verify.damages(store)
    assert damage.path == copy / "manifest.json"


def coco(folder: Path, ids: list[object]) -> str:
    folder.mkdir()
    Image.new("RGB", (8, 8), "red").save(folder / "x.png")
    images = [{"id": key, "file_name": "x.png", "width": 8, "height": 8} for key in ids]
    rows = [{"id": f"c{key}", "image_id": key, "caption": f"A red dog, {key}"} for key in ids]
    (folder / "captions_x.json").write_text(json.dumps({"images": images, "annotations": rows}))
    return f"coco:{folder / 'captions_x.json'}"


@pytest.mark.parametrize("keys", [["b", "a"], ["b", 7], [None], [1.5], [True]])
def test_coco_ids_that_are_not_integers_are_refused_in_one_line(tmp_path, keys):
    with pytest.raises(InvalidInput, match=r"is not a COCO captions file .*not an integer"):
        registry.load_dataset(coco(tmp_path / "a", keys), tmp_path)


def test_a_cache_that_cannot_be_written_still_returns_its_stored_runs(tmp_path, store, monkeypatch):
    dataset = make_tiny(tmp_path / "data")
    (made,) = execute(request(dataset), store)

    def full(folder: object) -> None:
        raise InvalidInput("Cannot write to the cache.")

    def untouched(*arguments: object, **more: object) -> None:
        raise AssertionError("a read-only cache is written to")

    monkeypatch.setattr(Store, "require_writable", full)
    for name in ("lock", "write_bytes"):
        monkeypatch.setattr(runs_run.files, name, untouched)
    assert execute(request(dataset), store) == [made]
    with pytest.raises(InvalidInput, match="Cannot write to the cache"):
        execute(Request(("control:constant",), dataset, "lgip", examine=False), store)
    with pytest.raises(InvalidInput, match="Cannot write to the cache"):
        execute(request(dataset), Store(tmp_path / "empty"))
