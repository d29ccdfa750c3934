import json
from pathlib import Path

import pytest
from PIL import Image

from vlprobe.datasets import csv, folder
from vlprobe.errors import InvalidInput


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """Return a folder with a.png and b.JPG and no captions."""
    place = tmp_path / "own"
    place.mkdir()
    Image.new("L", (4, 4), 1).save(place / "a.png")
    Image.new("L", (4, 4), 2).save(place / "b.JPG")
    return place


def load(place: Path) -> list[tuple[str, tuple[str, ...]]]:
    return [
        (item.id, item.captions)
        for item in folder.load(f"folder:{place}", place.parent / "cache").items
    ]


def refused(place: Path, what: str) -> None:
    with pytest.raises(InvalidInput, match=what) as error:
        load(place)
    assert "\n" not in str(error.value)


def test_captions_are_read_from_a_text_file_next_to_the_picture(place: Path):
    (place / "a.txt").write_text("One.\n\n Two. \n")
    (place / "b.txt").write_text("Three.", encoding="utf-8-sig")
    assert load(place) == [("a.png", ("One.", "Two.")), ("b.JPG", ("Three.",))]


def test_captions_are_read_from_one_json_or_one_table(place: Path):
    expected = [("a.png", ("One.", "Two.")), ("b.JPG", ("Three.",))]
    (place / "captions.json").write_text(
        json.dumps({"b.JPG": ["Three."], "a.png": ["One.", " Two."]})
    )
    assert load(place) == expected
    (place / "captions.json").unlink()
    (place / "captions.csv").write_text(
        "image;caption;kind\nb.JPG;Three.;x\na.png;One.;y\na.png;Two.;y\n"
    )
    assert load(place) == expected
    assert folder.load(f"folder:{place}", place.parent).items[0].tags == {"kind": "y"}


def test_the_same_captions_in_another_format_have_the_same_digest(place: Path, tmp_path: Path):
    (place / "captions.json").write_text(json.dumps({"a.png": ["One."], "b.JPG": ["Three."]}))
    from_json = folder.load(f"folder:{place}", tmp_path / "cache").digest
    (place / "captions.json").unlink()
    (place / "captions.csv").write_text("image,caption\na.png,One.\nb.JPG,Three.\n")
    assert folder.load(f"folder:{place}", tmp_path / "cache").digest == from_json
    assert csv.load(f"csv:{place / 'captions.csv'}", tmp_path / "cache").digest == from_json


def test_each_defect_of_a_folder_is_reported_in_one_line(place: Path):
    refused(place.parent / "nowhere", "Folder '.*nowhere' does not exist")
    refused(place, r"2 of 2 pictures in '.*' have no caption \(first: 'a.png'\)")
    (place / "a.txt").write_text("One.")
    refused(place, r"1 of 2 pictures in '.*' have no caption \(first: 'b.JPG'\)")
    (place / "b.txt").write_text("\n \n")
    refused(place, "Item 'b.JPG' in 'folder:.*' has no caption")
    (place / "b.txt").write_text("Three.")
    (place / "c.txt").write_text("Lost.")
    refused(place, r"1 text files in '.*' have no picture with the same name \(first: 'c.txt'\)")


@pytest.mark.parametrize(
    ("content", "what"),
    [
        (
            '{"a.png": ["x"], "b.JPG": ["y"], "c.png": ["z"]}',
            r"1 of 3 images in .* are missing \(first: '.*c.png'\)",
        ),
        ('{"a.png": ["x"]}', r"1 of 2 pictures in '.*' have no caption \(first: 'b.JPG'\)"),
        ('{"a.png": ["x"], "b.JPG": [""]}', "Caption 1 of item 'b.JPG' in .* is empty"),
        ('{"a.png": ["x"], "b.JPG": "y"}', "captions.json' does not have the expected layout"),
        ('{"a.png": ["x"], "b.JPG": [1]}', "captions.json' does not have the expected layout"),
        ('["a.png"]', "captions.json' does not have the expected layout"),
        ('{"a.png": ["x"],}', r"captions.json' is not valid JSON \(line 1, column "),
    ],
)
def test_each_defect_of_a_captions_json_is_reported_in_one_line(
    content: str, what: str, place: Path
):
    (place / "captions.json").write_text(content)
    refused(place, what)


def test_two_lists_of_captions_are_refused(place: Path):
    (place / "captions.json").write_text("{}")
    (place / "captions.csv").write_text("")
    refused(place, r"contains both captions.csv and captions.json")


def test_an_empty_folder_has_no_items(tmp_path: Path):
    (tmp_path / "empty").mkdir()
    refused(tmp_path / "empty", "has no items")
