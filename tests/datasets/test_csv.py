import re
from pathlib import Path

import pytest
from PIL import Image

from vlprobe import registry
from vlprobe.datasets import csv
from vlprobe.datasets import table as tables
from vlprobe.errors import InvalidInput


@pytest.fixture
def table(tmp_path: Path) -> Path:
    """Return the path for a table; a.png and b.png are in the same folder."""
    for shade, name in enumerate(("a.png", "b.png")):
        Image.new("L", (4, 4), shade).save(tmp_path / name)
    return tmp_path / "table.csv"


def load(table: Path, content: str, encoding: str = "utf-8") -> tuple:
    table.write_bytes(content.encode(encoding))
    return csv.load(f"csv:{table}", table.parent / "cache").items


def refused(table: Path, content: str, what: str) -> None:
    with pytest.raises(InvalidInput, match=what) as error:
        load(table, content)
    assert "\n" not in str(error.value)


def test_rows_of_one_image_are_one_item_and_additional_columns_are_tags(table: Path):
    first, second = load(
        table, "image,Split,caption\nb.png,x,One.\na.png,,Three.\nb.png,x, Two. \n"
    )
    assert (first.id, first.captions, dict(first.tags)) == (
        "b.png",
        ("One.", "Two."),
        {"split": "x"},
    )
    assert (second.id, second.captions, dict(second.tags)) == ("a.png", ("Three.",), {})
    assert second.image.path == table.parent / "a.png"


@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
@pytest.mark.parametrize("line_end", ["\n", "\r\n"])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig"])
def test_the_separator_line_end_and_byte_order_mark_are_recognized(
    delimiter: str, line_end: str, encoding: str, table: Path
):
    rows = [
        ("image", "caption"),
        ("a.png", f'"Café{delimiter} at ""night""."'),
        ("b.png", "Plain; simple"),
    ]
    if delimiter == ";":
        rows[2] = ("b.png", '"Plain; simple"')
    content = line_end.join(delimiter.join(row) for row in rows) + line_end
    first, second = load(table, content, encoding)
    assert first.captions == (f'Café{delimiter} at "night".',)
    assert second.captions == ("Plain; simple",)


def test_a_caption_may_span_lines_and_empty_lines_are_skipped(table: Path):
    (item,) = load(table, 'image,caption\n\na.png,"two\nlines"\n\n')
    assert item.captions == ("two\nlines",)


def test_an_absolute_path_is_used_unchanged(table: Path):
    (item,) = load(table, f"image,caption\n{table.parent / 'a.png'},x\n")
    assert item.image.path == table.parent / "a.png"


@pytest.mark.parametrize(
    ("content", "what"),
    [
        ("", "has no columns"),
        ("image,caption\n", "has no items"),
        ("file,text\na.png,x\n", "has the columns file, text. Expected .*'image' and 'caption'"),
        ("image,caption,caption\na.png,x,y\n", "Expected unique names"),
        ("image,caption,\na.png,x,y\n", "Expected unique names"),
        (
            "image,caption\na.png,A cat, and a dog.\n",
            "line 2, has 3 fields, but the table has 2 columns. Put captions",
        ),
        ("image,caption\na.png,x\nb.png\n", "line 3, has 1 fields, but the table has 2 columns"),
        ('image,caption\na.png,"x" y\n', "line 2: .* check the quotes"),
        ('image,caption\na.png,"x\n', "unexpected end of data"),
        ("image,caption\n,x\n", "line 2: the image column is empty"),
        ("image,caption\na.png,x\na.png, \n", "Caption 2 of item 'a.png' in 'csv:.*' is empty"),
        (
            "image,caption\na.png,x\nc.png,y\nd.png,z\n",
            r"2 of 3 images in 'csv:.*' are missing \(first: '.*c.png'\)",
        ),
        (
            "image,caption,t\na.png,x,1\na.png,y,2\n",
            "line 3: 'a.png' has t '2' here but '1' on an earlier line",
        ),
    ],
)
def test_each_defect_of_a_csv_is_reported_in_one_line(content: str, what: str, table: Path):
    refused(table, content, what)


def test_a_csv_in_another_encoding_is_refused_with_the_byte(table: Path):
    table.write_bytes("image,caption\na.png,Café\n".encode("latin-1"))
    with pytest.raises(InvalidInput, match=r"table.csv' is not UTF-8 \(byte 23\)"):
        csv.load(f"csv:{table}", table.parent / "cache")


def test_a_missing_table_or_a_folder_is_refused_in_one_line(tmp_path: Path):
    with pytest.raises(InvalidInput, match=r"none.csv' does not exist"):
        csv.load(f"csv:{tmp_path / 'none.csv'}", tmp_path)
    with pytest.raises(InvalidInput, match="cannot be read"):
        csv.load(f"csv:{tmp_path}", tmp_path)


def test_the_registry_finds_the_csv_family(tiny: str, tmp_path: Path):
    dataset = registry.load_dataset(tiny, tmp_path / "cache")
    assert dataset.name == tiny
    assert [len(item.captions) for item in dataset.items] == [2] * 6


def test_a_column_of_foils_is_a_tag_and_a_note_shows_how_to_read_it(table: Path):
    table.write_text("image,caption,negative\na.png,A dog.,A cat.\n")
    loaded = csv.load(f"csv:{table}", table.parent / "cache")
    assert loaded.items[0].tags == {"negative": "A cat."}
    assert loaded.notes == (
        f"Column 'negative' is a tag here; table:{table} reads it as captions that do not fit.",
    )


@pytest.mark.parametrize("false_row", ["a.png,A cat.,0", "b.png,A cat.,0"])
def test_captions_labeled_false_are_refused_with_the_options_to_use(false_row: str, tmp_path: Path):
    """An earlier version read the label as a tag and the false caption as a true one."""
    for name in ("a.png", "b.png"):
        Image.new("RGB", (32, 32), "red").save(tmp_path / name)
    file = tmp_path / "mine.csv"
    file.write_text(f"image,caption,Label\na.png,A dog.,1\n{false_row}\n")
    with pytest.raises(InvalidInput, match="1 of 2 captions have the label '0'") as caught:
        csv.load(f"csv:{file}", tmp_path / "cache")
    way_out = re.findall(rf"table:{file}\S+\w", str(caught.value))
    assert way_out == [f"table:{file}+label=1", f"table:{file}+subset=label"]
    kept, every = (tables.load(name, tmp_path / "cache").items for name in way_out)
    assert [caption for item in kept for caption in item.captions] == ["A dog."]
    assert [caption for item in every for caption in item.captions] == ["A dog.", "A cat."]
