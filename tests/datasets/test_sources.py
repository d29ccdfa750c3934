import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from vlprobe.datasets import file_formats, sources
from vlprobe.errors import InvalidInput, NotFound
from vlprobe.types import Item

OPTIONS = ["available", "p2"]


def parse(name: str) -> sources.Source:
    return sources.parse_source(name, OPTIONS, [".json", ".tsv"])


def picture(file: Path) -> Path:
    file.parent.mkdir(parents=True, exist_ok=True)
    Image.new("RGB", (4, 4), "red").save(file)
    return file


def test_a_dataset_name_consists_of_a_file_an_image_folder_and_options(tmp_path: Path):
    source = parse(f"x:{tmp_path}/rows.json@{tmp_path}+available+p2")
    assert source.files == (tmp_path / "rows.json",)
    assert source.images == tmp_path
    assert source.options == {"available", "p2"}


def test_an_existing_path_can_contain_the_separators(tmp_path: Path):
    odd = tmp_path / "a@b+p2.json"
    odd.write_text("[]")
    assert parse(f"x:{odd}") == sources.Source(f"x:{odd}", (odd,), None, frozenset())
    assert parse(f"x:{odd}+available").files == (odd,)


@settings(max_examples=60, deadline=None)
@given(
    st.text("abc@+.", min_size=1, max_size=8).filter(lambda name: name.strip(".")),
    st.sets(st.sampled_from(OPTIONS)),
    st.booleans(),
)
def test_every_existing_file_is_found_whatever_its_name(
    tmp_path_factory: pytest.TempPathFactory, stem: str, options: set[str], with_images: bool
):
    folder = tmp_path_factory.mktemp("names")
    file = folder / f"{stem}.json"
    file.write_text("[]")
    images = f"@{folder}" if with_images else ""
    source = parse("x:" + "+".join([f"{file}{images}", *sorted(options)]))
    assert (source.files, source.images, source.options) == (
        (file,),
        folder if with_images else None,
        options,
    )


def test_a_folder_stands_for_its_files_in_the_order_of_their_names(tmp_path: Path):
    for name in ("b.json", "a.tsv", "notes.md"):
        (tmp_path / name).write_text("")
    assert [file.name for file in parse(f"x:{tmp_path}").files] == ["a.tsv", "b.json"]


@pytest.mark.parametrize(
    "name, kind, message",
    [
        ("x:", InvalidInput, "does not contain a file name"),
        ("x:rows.json+avalable", NotFound, "Did you mean 'available'"),
        ("x:rows.json@nowhere", InvalidInput, "Image folder 'nowhere' in"),
    ],
)
def test_an_invalid_dataset_name_is_refused_in_one_line(name: str, kind: type, message: str):
    with pytest.raises(kind, match=message) as caught:
        parse(name)
    assert "\n" not in str(caught.value)


def test_a_folder_without_dataset_files_is_refused(tmp_path: Path):
    with pytest.raises(InvalidInput, match=r"contains no \.json or \.tsv"):
        parse(f"x:{tmp_path}")


def test_json_lines_are_read_and_the_error_names_a_broken_one(tmp_path: Path):
    file = tmp_path / "rows.jsonl"
    file.write_text('{"a": "one\u2028line"}\n\n{"a": 2}\n', encoding="utf-8")
    assert file_formats.read_records(file) == [{"a": "one\u2028line"}, {"a": 2}]
    file.write_text('{"a": 1}\n{"a": \n')
    with pytest.raises(InvalidInput, match="line 2"):
        file_formats.read_records(file)


def test_quotes_are_special_in_a_csv_but_not_in_a_tsv(tmp_path: Path):
    tabs, commas = tmp_path / "t.tsv", tmp_path / "t.csv"
    tabs.write_bytes(b'A\t b \r\nsays "no\tx\r\n\r\nshort\r\n')
    commas.write_text('A,b\n"one, two",x\n')
    assert file_formats.read_table(tabs) == [
        (2, {"a": 'says "no', "b": "x"}),
        (4, {"a": "short", "b": ""}),
    ]
    assert file_formats.read_table(commas) == [(2, {"a": "one, two", "b": "x"})]


@settings(max_examples=40, deadline=None)
@given(st.lists(st.lists(st.text("ab\"', ", max_size=5), min_size=2, max_size=2), max_size=5))
def test_a_tsv_is_read_back_as_written(
    tmp_path_factory: pytest.TempPathFactory, rows: list[list[str]]
):
    file = tmp_path_factory.mktemp("table") / "t.tsv"
    file.write_text("\n".join(["a\tb", *("\t".join(row) for row in rows)]))
    expected = [[field.strip() for field in row] for row in rows if any(map(str.strip, row))]
    assert [list(row.values()) for _, row in file_formats.read_table(file)] == expected


@pytest.mark.parametrize(
    "text, message",
    [
        ("a,b\n1,2,3\n4,5\n", "1 rows in .* more than 2 fields .*line 2"),
        ("a,A\n1,2\n", "duplicate column names"),
        ('a,b\n"1,2\n', "line"),
    ],
)
def test_a_broken_table_is_refused_in_one_line(tmp_path: Path, text: str, message: str):
    file = tmp_path / "t.csv"
    file.write_text(text)
    with pytest.raises(InvalidInput, match=message):
        file_formats.read_table(file)


def attach(tmp_path: Path, names: list[str], option: str = "") -> tuple[list[Item], list[str]]:
    (tmp_path / "rows.json").write_text(json.dumps([]))
    source = parse(f"x:{tmp_path}/rows.json@{tmp_path}{option}")
    return sources.attach_pictures(
        source, [(Item(f"item-{n}", None, ("a",)), [name]) for n, name in enumerate(names)]
    )


def test_a_picture_is_found_without_its_extension_or_in_another_format(tmp_path: Path):
    png, jpg = picture(tmp_path / "ex_0.img.png"), picture(tmp_path / "video" / "frame.jpg")
    items, notes = attach(tmp_path, ["ex_0.img", "video/frame.png"])
    assert [item.image.path for item in items] == [png, jpg]
    assert not notes


def test_a_picture_with_the_same_name_in_another_folder_is_not_used(tmp_path: Path):
    picture(tmp_path / "frame.png")
    with pytest.raises(InvalidInput, match="1 of 1 rows"):
        attach(tmp_path, ["video/frame.png"])


def test_a_coco_picture_is_found_by_its_id_in_any_year_with_a_note(tmp_path: Path):
    file = picture(tmp_path / "000000000139.jpg")
    items, notes = attach(
        tmp_path, ["val2014/COCO_val2014_000000000139.jpg", "COCO_train2014_000000000139.jpg"]
    )
    assert [item.image.path for item in items] == [file, file]
    assert notes == ["2 pictures were found by their COCO id under another file name."]


def test_a_coco_picture_under_its_own_name_adds_no_note(tmp_path: Path):
    file = picture(tmp_path / "COCO_val2014_000000000139.jpg")
    items, notes = attach(tmp_path, ["val2014/COCO_val2014_000000000139.jpg"])
    assert (items[0].image.path, notes) == (file, [])


def test_missing_pictures_are_counted_and_the_error_names_the_option(tmp_path: Path):
    picture(tmp_path / "a.png")
    with pytest.raises(
        InvalidInput, match=r"2 of 3 rows .*first: 'b\.png'.*\+available' to use the 1 rows"
    ):
        attach(tmp_path, ["a.png", "b.png", "c.png"])
    items, notes = attach(tmp_path, ["a.png", "b.png", "c.png"], "+available")
    assert [item.id for item in items] == ["item-0"]
    assert notes == [f"2 of 3 rows have no picture in {tmp_path} and are left out (first: item-1)."]


def test_a_dataset_without_any_picture_is_refused_even_with_available(tmp_path: Path):
    with pytest.raises(InvalidInput, match="1 of 1 rows"):
        attach(tmp_path, ["a.png"], "+available")
