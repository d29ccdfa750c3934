"""Incomplete characters (lone surrogates): a one-line error in new input; replaced where an older version stored
one."""

import json
import tarfile
from dataclasses import asdict, replace
from io import BytesIO
from pathlib import Path

import pytest
from PIL import Image

from tests.conftest import call, make_tiny, tiers
from tests.dashboard.test_pages import bodies, open_page
from tests.hostile.test_hostile_datasets import refusal
from vlprobe.errors import InvalidInput
from vlprobe.models.doctor import examine
from vlprobe.runs.request import Request
from vlprobe.runs.run import execute
from vlprobe.storage import entry, files
from vlprobe.storage.store import Store

HALF = "x\ud800"
PLACES = {
    "caption": {"image": "a.png", "caption": HALF},
    "several captions": {"image": "a.png", "caption": ["fine", HALF]},
    "tag": {"image": "a.png", "caption": "x", "color": HALF},
    "id": {"id": HALF, "image": "a.png", "caption": "x"},
    "image": {"image": HALF, "caption": "x"},
    "key": {"image": "a.png", "caption": "x", HALF: "y"},
    "key of a value that is skipped": {"image": "a.png", "caption": "x", HALF: {"y": {}}},
    "field": {"image": "a.png", "caption": "x", "by": {HALF: "y"}},
}


@pytest.mark.parametrize("kind", ["json", "jsonl"])
@pytest.mark.parametrize("place", PLACES)
def test_a_lone_surrogate_in_a_table_is_refused_with_its_row_and_column(
    tmp_path: Path, place: str, kind: str
):
    Image.new("RGB", (4, 4)).save(tmp_path / "a.png")
    rows = [{"image": "a.png", "caption": "A dog."}, PLACES[place]]
    text = json.dumps(rows) if kind == "json" else "\n".join(map(json.dumps, rows))
    (tmp_path / f"a.{kind}").write_text(text)
    message = refusal(f"table:{tmp_path / 'a'}.{kind}", tmp_path / "cache")
    assert "incomplete character" in message and "column '" in message
    assert ("row 2, column '" in message) == (not place.startswith(("key", "field")))


def test_a_lone_surrogate_in_a_tar_is_refused_in_one_line(tmp_path: Path):
    image = BytesIO()
    Image.new("RGB", (4, 4)).save(image, "PNG")
    members = {"0.png": image.getvalue(), "0.json": rb'{"caption": "x \udfff"}'}
    with tarfile.open(tmp_path / "a.tar", "w") as tar:
        for name, content in members.items():
            info = tarfile.TarInfo(name)
            info.size = len(content)
            tar.addfile(info, BytesIO(content))
    assert "incomplete character (a lone surrogate" in refusal(
        f"table:{tmp_path / 'a.tar'}", tmp_path / "cache"
    )


def test_a_tar_member_name_that_is_not_utf8_is_refused_in_one_line(tmp_path: Path):
    image = BytesIO()
    Image.new("RGB", (4, 4)).save(image, "PNG")
    with tarfile.open(tmp_path / "a.tar", "w") as tar:
        for name, content in {"\udcff.png": image.getvalue(), "\udcff.txt": b"A dog."}.items():
            info = tarfile.TarInfo(name)
            info.size = len(content)
            tar.addfile(info, BytesIO(content))
    assert "incomplete character (a lone surrogate" in refusal(
        f"table:{tmp_path / 'a.tar'}", tmp_path / "cache"
    )


@pytest.mark.parametrize("value", [HALF, [HALF], {HALF: 1}, {"a": [{"b": HALF}]}])
def test_a_lone_surrogate_is_never_written(tmp_path: Path, value: object):
    for write in (files.write_json, files.append_json):
        with pytest.raises(InvalidInput, match=r"has a lone surrogate") as error:
            write(tmp_path / "a.json", value)
        assert str(error.value).isprintable() and not (tmp_path / "a.json").exists()
    files.write_json(tmp_path / "a.json", {"a": "\U0001f680 \\ud800"})
    assert json.loads((tmp_path / "a.json").read_text()) == {"a": "\U0001f680 \\ud800"}


@pytest.fixture
def older(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Store:
    """Return a store whose only run has a note with a lone surrogate, which the answer of a server can contain."""
    store = Store(tmp_path / "cache")
    request = Request(("control:random",), make_tiny(tmp_path / "tiny"), "lgip")
    (manifest,) = execute(request, store)
    path = store.run(manifest["key"]).folder / "manifest.json"
    fields = json.loads(path.read_text())
    fields["note"] = f"asked at https://a.example.com: '{HALF}'"
    fields["sha256"] = entry._seal(fields)
    path.write_text(json.dumps(fields))
    monkeypatch.setenv("VLPROBE_SHIPPED", "")
    return store


@pytest.mark.parametrize("page", tiers(["home", "explore", "models", "compare"], ["explore"]))
def test_a_page_is_drawn_for_a_store_with_a_lone_surrogate(
    page: str, older: Store, monkeypatch: pytest.MonkeyPatch
):
    at = open_page(monkeypatch, older, page)
    assert not at.exception and not at.error
    bodies(at).encode()


def test_commands_succeed_on_a_store_with_a_lone_surrogate(older: Store, tmp_path: Path):
    for words in (
        ["show"],
        ["report", str(tmp_path / "report.html")],
        ["export", str(tmp_path / "csv"), "--format", "csv"],
        ["export", str(tmp_path / "x.duckdb")],
    ):
        ended = call(older.root, *words)
        ended.output.encode()
    assert "�" in (tmp_path / "report.html").read_text()


def test_a_stored_examination_with_a_lone_surrogate_is_read(tmp_path: Path):
    passport = {"answered by": HALF}
    examination = examine.Examination("m", "d", "x", "y", passport, (), (), "2026-01-01")
    fields = {"schema": examine.SCHEMA, **asdict(examination)}
    (tmp_path / "a.json").write_text(json.dumps(fields))
    assert examine.read(tmp_path / "a.json") == replace(
        examination, passport={"answered by": "x\ufffd"}
    )
