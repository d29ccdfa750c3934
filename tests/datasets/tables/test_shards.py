import json
from pathlib import Path

import pytest

from tests.storage.test_containers import png, write_tar
from vlprobe.datasets import audit, table
from vlprobe.datasets.tables import reader
from vlprobe.errors import InvalidInput
from vlprobe.scoring import pictures


def load(file: Path, options: str = "") -> tuple:
    return table.load(f"table:{file}{options}", file.parent / "cache").items


def test_tar_members_with_one_name_are_a_row_and_nothing_is_unpacked(tmp_path: Path):
    fields = json.dumps({"caption": "not this", "source": "web", "width": 8}).encode()
    members = {
        "000.jpg": png("red"),
        "000.txt": b" A red square. ",
        "000.json": fields,
        "sub/001.PNG": png("blue"),
        "sub/001.json": json.dumps({"caption": "A blue square.", "source": "web"}).encode(),
        "__header__": b"x",
        "002.txt": b"No picture.",
    }
    first, second = load(write_tar(tmp_path / "a.tar", members))
    assert (first.id, first.captions, first.tags["source"]) == ("a/000", ("A red square.",), "web")
    assert second.captions == ("A blue square.",)
    assert pictures.open_picture(second.image).getpixel((0, 0)) == (0, 0, 255)
    assert {path.name for path in tmp_path.iterdir()} == {"a.tar", "cache"}
    findings = audit.check([first, second], tmp_path / "cache")
    assert {finding.name for finding in findings} >= {"shared_image", "repeated_caption"}


def test_a_negative_in_the_json_of_a_tar_is_a_foil(tmp_path: Path):
    members = {
        "0.png": png(),
        "0.json": json.dumps({"caption": "A dog.", "negative": "A cat."}).encode(),
    }
    (item,) = load(write_tar(tmp_path / "a.tar", members))
    assert (item.captions, item.foils) == (("A dog.",), ("A cat.",))


@pytest.mark.parametrize(
    ("members", "reason"),
    [
        ({"0.txt": b"x"}, "has no pictures. Expected members such as"),
        ({"0.png": png(), "0.txt": b"\xff"}, r"'0.txt' in .* cannot be read .*UTF-8"),
        ({"0.png": png(), "0.json": b"[1]"}, r"'0.json' in .* cannot be read .*object"),
        ({"0.png": png(), "0.json": b"{"}, r"'0.json' in .* cannot be read"),
        ({"0.png": png()}, r"does not match any layout. It has the columns __key__, image"),
    ],
)
def test_each_defect_of_a_tar_is_reported_in_one_line(members: dict, reason: str, tmp_path: Path):
    file = write_tar(tmp_path / "a.tar", members)
    with pytest.raises(InvalidInput, match=reason) as refusal:
        load(file)
    assert "\n" not in str(refusal.value)


def test_a_text_that_is_too_long_is_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    file = write_tar(tmp_path / "a.tar", {"0.png": png(), "0.txt": b"xx"})
    monkeypatch.setattr(reader, "MOST_TEXT_BYTES", 1)
    with pytest.raises(InvalidInput, match=r"has 2 bytes. Expected a text of at most 1"):
        load(file)
