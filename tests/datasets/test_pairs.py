import json
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from vlprobe.datasets import pairs
from vlprobe.errors import InvalidInput
from vlprobe.scoring.pictures import open_picture


def picture(file: Path, color: str = "red") -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    Image.new("RGB", (6, 4), color).save(file)


def write(tmp_path: Path, content: object, name: str = "pairs.json") -> str:
    file = tmp_path / name
    file.write_text(content if isinstance(content, str) else json.dumps(content))
    return f"pairs:{file}@{tmp_path}"


def eqben(image: str = "a", **changed) -> dict:
    made = {
        "image0": f"{image}0.png",
        "image1": f"{image}1.png",
        "caption0": "One cat.",
        "caption1": "Two cats.",
    }
    return {**made, **changed}


def valse(votes: int | None = 3, **changed) -> dict:
    made = {
        "dataset": "SWiG",
        "linguistic_phenomena": "actions",
        "image_file": "a0.png",
        "caption": "A man runs.",
        "foil": "A man sleeps.",
        "classes": "runs",
        "mturk": {"foil": 0, "caption": votes, "other": 0},
    }
    return {**made, **changed}


@pytest.fixture
def pictures(tmp_path: Path) -> Path:
    """Write two pictures, a0.png and a1.png, and return their folder."""
    picture(tmp_path / "a0.png", "red")
    picture(tmp_path / "a1.png", "blue")
    return tmp_path


def test_winoground_lines_name_pictures_without_an_extension(tmp_path: Path):
    picture(tmp_path / "ex_3_img_0.png")
    picture(tmp_path / "ex_3_img_1.jpg", "blue")
    line = {
        "id": 3,
        "image_0": "ex_3_img_0",
        "image_1": "ex_3_img_1",
        "caption_0": "an old person kisses a young person",
        "caption_1": "a young person kisses an old person",
        "tag": "Adjective-Age",
        "secondary_tag": "",
        "num_main_preds": 1,
    }
    loaded = pairs.load(write(tmp_path, json.dumps(line) + "\n", "examples.jsonl"), tmp_path)
    (item,) = loaded.items
    assert item.id == "examples/3"
    assert item.captions == ("an old person kisses a young person",)
    assert item.foils == ("a young person kisses an old person",)
    assert (item.image.path.name, item.foil_image.path.name) == ("ex_3_img_0.png", "ex_3_img_1.jpg")
    assert item.tags == {"subset": "examples", "tag": "Adjective-Age", "num_main_preds": "1"}


def test_eqben_pairs_are_read_from_a_list_or_nested_by_video_and_subject(pictures: Path):
    flat = pairs.load(write(pictures, [eqben(), eqben()], "kubric_cnt.json"), pictures)
    by_video = pairs.load(write(pictures, {"video": [eqben()]}, "youcook2.json"), pictures)
    by_subject = pairs.load(
        write(
            pictures,
            {"video": {"man": [eqben(caption0=["One cat.", "A cat."], caption1=["Two cats."])]}},
            "ag.json",
        ),
        pictures,
    )
    assert [item.id for item in flat.items] == ["kubric_cnt/0", "kubric_cnt/1"]
    assert [item.id for item in by_video.items] == ["youcook2/video/0"]
    assert [item.id for item in by_subject.items] == ["ag/video/man/0"]
    for loaded in (flat, by_video, by_subject):
        item = loaded.items[0]
        assert (item.captions, item.foils) == (("One cat.",), ("Two cats.",))
        assert (item.image.path.name, item.foil_image.path.name) == ("a0.png", "a1.png")
        assert item.tags["subset"] == item.id.partition("/")[0]


def test_the_image_folders_of_a_list_are_its_subsets(tmp_path: Path):
    for folder in ("eqbensd", "eqbenag"):
        picture(tmp_path / folder / "v" / "0.png")
        picture(tmp_path / folder / "v" / "1.png", "blue")
    loaded = pairs.load(write(tmp_path, [eqben("eqbensd/v/"), eqben("eqbenag/v/")]), tmp_path)
    assert [item.tags["subset"] for item in loaded.items] == ["eqbensd", "eqbenag"]


def test_many_folders_are_not_subsets(tmp_path: Path):
    for number in range(pairs.MAX_SUBSETS + 1):
        picture(tmp_path / f"{number}" / "0.png")
        picture(tmp_path / f"{number}" / "1.png", "blue")
    rows = [eqben(f"{number}/") for number in range(pairs.MAX_SUBSETS + 1)]
    assert {item.tags["subset"] for item in pairs.load(write(tmp_path, rows), tmp_path).items} == {
        "pairs"
    }


def test_a_foil_of_valse_is_an_item_without_a_second_picture(pictures: Path):
    loaded = pairs.load(
        write(pictures, {"actions_1": valse()}, "action-replacement.json"), pictures
    )
    (item,) = loaded.items
    assert (item.id, item.captions, item.foils) == (
        "action-replacement/actions_1",
        ("A man runs.",),
        ("A man sleeps.",),
    )
    assert item.foil_image is None
    assert item.tags == {"subset": "action-replacement", "phenomenon": "actions", "dataset": "SWiG"}
    assert loaded.notes == ("Columns of action-replacement.json that are not read: classes.",)


def test_unvalidated_foils_are_skipped_unless_requested(pictures: Path):
    rows = {"a": valse(3), "b": valse(2), "c": valse(1), "d": valse(0), "e": valse(mturk=None)}
    name = write(pictures, rows, "v.json")
    loaded = pairs.load(name, pictures)
    assert [item.id for item in loaded.items] == ["v/a", "v/b", "v/e"]
    assert "2 of 5 rows have a foil that fewer than 2 annotators distinguished" in loaded.notes[1]
    assert "(first: v/c)" in loaded.notes[1]
    assert len(pairs.load(f"{name}+unvalidated", pictures).items) == 5


def test_pictures_are_searched_next_to_the_file_if_no_folder_is_named(pictures: Path):
    write(pictures, [eqben()])
    assert (
        pairs.load(f"pairs:{pictures}/pairs.json", pictures).items[0].image.path
        == pictures / "a0.png"
    )


def test_a_row_with_a_missing_picture_is_refused_or_skipped_with_an_option(pictures: Path):
    (pictures / "a1.png").rename(pictures / "b1.png")
    picture(pictures / "b0.png")
    name = write(pictures, [eqben("a"), eqben("b")])
    with pytest.raises(InvalidInput, match=r"1 of 2 rows .*'a1\.png'"):
        pairs.load(name, pictures)
    loaded = pairs.load(f"{name}+available", pictures)
    assert [item.id for item in loaded.items] == ["pairs/1"]
    assert loaded.notes[0].startswith("1 of 2 rows have no picture")


def frames(tmp_path: Path, array: np.ndarray) -> str:
    for name in ("f0.npy", "f1.npy"):
        np.save(tmp_path / name, array)
    return write(tmp_path, [eqben(image0="f0.npy", image1="f1.npy")])


def test_a_frame_is_opened_with_its_channels_in_order(tmp_path: Path):
    array = np.random.default_rng(0).integers(0, 256, (5, 7, 3), dtype=np.uint8)
    name = frames(tmp_path, array)
    loaded = pairs.load(name, tmp_path / "cache")
    blue, green, red = np.moveaxis(array, 2, 0)
    assert np.array_equal(
        np.asarray(open_picture(loaded.items[0].image)), np.stack([red, green, blue], axis=2)
    )
    assert loaded.items[0].image == loaded.items[0].foil_image
    assert len(list((tmp_path / "cache" / "frames").iterdir())) == 1


def test_a_frame_is_written_once_and_a_changed_frame_changes_the_digest(tmp_path: Path):
    name = frames(tmp_path, np.zeros((2, 2, 3), np.uint8))
    first = pairs.load(name, tmp_path / "cache")
    written = first.items[0].image.path.stat().st_mtime_ns
    again = pairs.load(name, tmp_path / "cache")
    assert again.digest == first.digest
    assert again.items[0].image.path.stat().st_mtime_ns == written
    frames(tmp_path, np.ones((3, 2, 3), np.uint8))
    assert pairs.load(name, tmp_path / "cache").digest != first.digest


@pytest.mark.parametrize(
    "array, message",
    [
        (np.zeros((2, 2), np.uint8), r"uint8 values of shape \(2, 2\)"),
        (np.zeros((2, 2, 3), np.float32), "float32 values"),
        (np.array([{"a": 1}], dtype=object), "cannot|not a readable array"),
    ],
)
def test_an_array_that_is_not_a_frame_is_refused(tmp_path: Path, array: np.ndarray, message: str):
    with pytest.raises(InvalidInput, match=message):
        pairs.load(frames(tmp_path, array), tmp_path / "cache")


@pytest.mark.parametrize(
    "content, message",
    [
        ("[", "not valid JSON"),
        ([], "contains no rows"),
        (7, r"1 of 1 rows .*first: the whole file\)"),
        ([{"image": "a.png", "caption": "a"}], r"1 of 1 rows .*first: 0\).*image_0, image_1"),
        ([eqben(), eqben(caption1="")], r"1 of 2 rows .*first: 1\)"),
        ({"v": {"man": [eqben(caption0=[])]}}, r"first: v/man/0\)"),
        ([eqben(caption0=[3])], "1 of 1 rows"),
        ([{**eqben(), "id": 1}, {**eqben(), "id": 1}], "1 duplicate ids"),
        ({"a": valse(foil=None)}, r"first: a\)"),
        ({"a": valse(0)}, r"No items are left in .*\+unvalidated keeps them"),
    ],
)
def test_bad_input_is_counted_and_named_in_one_line(pictures: Path, content: object, message: str):
    with pytest.raises(InvalidInput, match=message) as caught:
        pairs.load(write(pictures, content), pictures)
    assert "\n" not in str(caught.value)


def test_rows_without_a_picture_are_included_with_an_option_and_counted(
    pictures: Path,
):
    rows = [eqben("a"), eqben("b")]
    with pytest.raises(InvalidInput, match=r"1 of 2 rows .*\+available.*\+unpictured"):
        pairs.load(write(pictures, rows), pictures)
    name = f"{write(pictures, rows)}+unpictured"
    loaded = pairs.load(name, pictures)
    assert loaded.notes == (
        (
            f"1 of 2 has a picture here (in {pictures}); the others are shown with their texts "
            "and file names."
        ),
    )
    here, absent = loaded.items
    assert here == pairs.load(write(pictures, rows[:1]), pictures).items[0]
    assert (absent.image.absent, absent.foil_image.absent) == ("b0.png", "b1.png")
    assert absent.image.path == pictures / "b0.png"
    everything = pairs.load(f"{write(pictures, rows[:1])}+unpictured", pictures)
    assert not everything.notes
    assert everything.digest == pairs.load(write(pictures, rows[:1]), pictures).digest


def test_the_digest_of_a_missing_picture_depends_on_its_name_not_its_folder(tmp_path: Path):
    digests = []
    for folder, image in (("a", "x"), ("b", "x"), ("b", "y")):
        (tmp_path / folder).mkdir(exist_ok=True)
        name = f"{write(tmp_path / folder, [eqben(image)])}+unpictured"
        digests.append(pairs.load(name, tmp_path).digest)
    assert digests[0] == digests[1] != digests[2]
    picture(tmp_path / "b" / "y0.png")
    assert pairs.load(name, tmp_path).digest not in digests


def test_rows_with_the_same_missing_coco_picture_are_one_cluster(tmp_path: Path):
    images = ("COCO_val2014_000000000007.jpg", "b.jpg", "000000000007.jpg", "b.jpg")
    rows = {str(number): valse(image_file=image) for number, image in enumerate(images)}
    loaded = pairs.load(f"{write(tmp_path, rows, 'v.json')}+unpictured", tmp_path)
    assert [item.cluster for item in loaded.items] == ["v/0", "v/1", "v/0", "v/1"]


@pytest.mark.parametrize("image", ["/etc/passwd", "../../x.png", "a\0b", "x" * 5000, "\ud800"])
def test_an_unusual_name_of_a_missing_picture_opens_no_file(tmp_path: Path, image: str):
    name = f"{write(tmp_path, {'a': valse(image_file=image)}, 'v.json')}+unpictured"
    try:
        (item,) = pairs.load(name, tmp_path).items
    except InvalidInput as error:
        assert str(error).isprintable()
    else:
        assert item.image.absent in (image, "") and item.image.path.name in image
