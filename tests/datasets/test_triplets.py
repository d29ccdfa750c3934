import json
from pathlib import Path

import pytest
from PIL import Image

from vlprobe.datasets import triplets
from vlprobe.errors import InvalidInput

GENERIC = "filename\tcaption\tsecond positive\tnegative_caption\r\n"
SPATIAL = "image\tsent1\tsent2\tBest reference (Semantically close)\tReference-2 (Completely irrelevant)\r\n"


def row(number: int, **changed) -> dict:
    made = {
        "id": number,
        "filename": f"{number:012}.jpg",
        "caption": f"A dog and {number} cats.",
        "caption2": f"{number} cats with a dog.",
        "negative_caption": f"A cat and {number} dogs.",
    }
    return {key: value for key, value in {**made, **changed}.items() if value is not None}


def write(tmp_path: Path, content: object, name: str = "swap.json") -> str:
    file = tmp_path / name
    file.write_bytes(content.encode() if isinstance(content, str) else json.dumps(content).encode())
    return f"triplets:{file}"


def test_a_row_of_sugarcrepe_plus_plus_has_two_captions_and_a_foil(tmp_path: Path):
    loaded = triplets.load(write(tmp_path, [row(7), row(9)]), tmp_path)
    assert [item.id for item in loaded.items] == ["swap/7", "swap/9"]
    item = loaded.items[0]
    assert item.captions == ("A dog and 7 cats.", "7 cats with a dog.")
    assert item.foils == ("A cat and 7 dogs.",)
    assert (item.tags, item.cluster) == ({"subset": "swap"}, "000000000007")
    assert (item.image, item.foil_image, loaded.notes) == (None, None, ())


def test_a_row_of_sugarcrepe_has_one_caption(tmp_path: Path):
    loaded = triplets.load(write(tmp_path, {"0": row(0, id=None, caption2=None)}), tmp_path)
    assert loaded.items[0].captions == ("A dog and 0 cats.",)
    assert loaded.items[0].id == "swap/0"


def test_both_headers_of_visla_are_read_and_the_unused_distractor_is_noted(tmp_path: Path):
    generic = GENERIC + '1.jpg\tA "big dog.\tThe dog is big.\tThe dog is small.\r\n'
    spatial = SPATIAL + "2.jpg\tA cat in a bag.\tThe bag holds a cat.\tA bag in a cat.\tAn oven\r\n"
    first = triplets.load(write(tmp_path, generic, "Generic.tsv"), tmp_path)
    second = triplets.load(write(tmp_path, spatial, "Spatial.tsv"), tmp_path)
    assert first.items[0].captions == ('A "big dog.', "The dog is big.")
    assert first.items[0].id == "Generic/2"
    assert second.items[0].foils == ("A bag in a cat.",)
    assert second.notes == (
        "Columns of Spatial.tsv that are not read: reference-2 (completely irrelevant).",
    )


def test_rows_without_a_negative_are_skipped_and_counted(tmp_path: Path):
    text = (
        SPATIAL
        + "2.jpg\tA cat.\tOne cat.\t\tAn oven\r\n3.jpg\tA cat.\tOne cat.\tA dog.\tAn oven\r\n4.jpg\tA\tB\r\n"
    )
    loaded = triplets.load(write(tmp_path, text, "Spatial.tsv"), tmp_path)
    assert [item.id for item in loaded.items] == ["Spatial/3"]
    assert "2 of 3 rows have no negative and are left out (first: Spatial/2)." in loaded.notes


def test_a_json_row_without_a_negative_is_skipped_too(tmp_path: Path):
    rows = [row(0), row(1, negative_caption=None), row(2, negative_caption=" ")]
    loaded = triplets.load(write(tmp_path, rows), tmp_path)
    assert len(loaded.items) == 1
    assert loaded.notes == ("2 of 3 rows have no negative and are left out (first: swap/1).",)


def test_rows_with_identical_texts_are_included_and_counted(tmp_path: Path):
    rows = [
        row(0),
        row(1, negative_caption="A dog and 1 cats."),
        row(2, caption2="A dog and 2 cats."),
    ]
    loaded = triplets.load(write(tmp_path, rows), tmp_path)
    assert len(loaded.items) == 3
    assert loaded.notes == (
        (
            "1 of 3 rows have identical caption and negative, so no model can be right "
            "(first: swap/1)."
        ),
        "1 of 3 rows have two identical captions (first: swap/2).",
    )


def test_a_folder_stands_for_its_files_with_their_names_as_subsets(tmp_path: Path):
    write(tmp_path, [row(0)], "swap_obj.json")
    write(tmp_path, [row(0), row(1)], "replace_att.json")
    loaded = triplets.load(f"triplets:{tmp_path}", tmp_path)
    assert [item.tags["subset"] for item in loaded.items] == [
        "replace_att",
        "replace_att",
        "swap_obj",
    ]


def test_pictures_are_attached_and_change_the_digest(tmp_path: Path):
    Image.new("RGB", (4, 4), "red").save(tmp_path / "000000000001.jpg")
    name = write(tmp_path, [row(1)])
    with_pictures = triplets.load(f"{name}@{tmp_path}", tmp_path / "cache")
    assert with_pictures.items[0].image.path == tmp_path / "000000000001.jpg"
    assert with_pictures.digest != triplets.load(name, tmp_path / "cache").digest


def test_unknown_columns_are_named_in_a_note(tmp_path: Path):
    loaded = triplets.load(write(tmp_path, [row(0, source="x"), row(1, author="y")]), tmp_path)
    assert loaded.notes == ("Columns of swap.json that are not read: author, source.",)


@pytest.mark.parametrize(
    "content, message",
    [
        ("{not json", "not valid JSON"),
        ("3", "neither a list nor an object"),
        ([], "has the columns none"),
        ([row(0), 5, "x"], r"2 of 3 rows .*first: 1\)"),
        ([{"caption": "a", "foil": "b"}], "has the columns caption, foil"),
        ([row(0), row(1, caption2=None)], r"1 of 2 rows .*first: 1\)"),
        ([row(0, caption="  ")], r"1 of 1 rows .*first: 0\)"),
        ([row(0, caption=["a"])], "1 of 1 rows"),
        ([row(0, negative_caption=["a"])], "1 of 1 rows"),
        ([row(0), row(0)], "1 duplicate ids"),
        ([row(0, negative_caption="")], "No items are left in .*1 of 1 rows have no negative"),
    ],
)
def test_bad_input_is_counted_and_named_in_one_line(tmp_path: Path, content: object, message: str):
    with pytest.raises(InvalidInput, match=message) as caught:
        triplets.load(write(tmp_path, content), tmp_path)
    assert "\n" not in str(caught.value)


@pytest.mark.full  # real data, seconds
def test_the_released_files_have_the_sizes_of_the_papers(shared_data: Path, tmp_path: Path):
    plus = triplets.load(f"triplets:{shared_data}/scpp/data", tmp_path)
    first = triplets.load(f"triplets:{shared_data}/sugarcrepe/data", tmp_path)
    assert (len(plus.items), len(first.items)) == (4757, 7511)
    assert {len(item.captions) for item in plus.items} == {2}
    assert {len(item.captions) for item in first.items} == {1}
    assert first.notes == ()
    assert plus.notes == (
        (
            "2 of 4757 rows have identical caption and negative, so no model can be right "
            "(first: swap_obj/2)."
        ),
        "1 of 4757 rows have two identical captions (first: replace_att/14).",
    )


def test_the_coco_pictures_of_sugarcrepe_plus_plus_are_found(shared_data: Path, tmp_path: Path):
    images = shared_data / "coco_real" / "val2017"
    loaded = triplets.load(f"triplets:{shared_data}/scpp/data@{images}+available", tmp_path)
    assert {item.cluster for item in loaded.items} == {
        item.image.path.stem for item in loaded.items
    }
    assert len({item.image.path for item in loaded.items}) == 88


def test_rows_without_pictures_have_the_picture_names_without_an_image_folder(tmp_path: Path):
    Image.new("RGB", (4, 4)).save(tmp_path / f"{7:012}.jpg")
    loaded = triplets.load(f"{write(tmp_path, [row(7), row(9)])}+unpictured", tmp_path)
    here, missing = (item.image for item in loaded.items)
    assert here and not here.absent and here.path == tmp_path / f"{7:012}.jpg"
    assert missing and missing.absent == f"{9:012}"
