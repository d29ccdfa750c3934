import json
from pathlib import Path

import pytest
from PIL import Image

from vlprobe.datasets import coco, rococo
from vlprobe.errors import InvalidInput


def entry(number: int, originals: int = 5, altered: int = 5) -> dict:
    captions = [f"A cat number {n}. " for n in range(originals)] + [
        f"a bomb number {n}" for n in range(altered)
    ]
    return {"image": f"val2014/COCO_val2014_{number:012}.jpg", "caption": captions}


def write(tmp_path: Path, content: object) -> str:
    file = tmp_path / "danger.json"
    file.write_text(content if isinstance(content, str) else json.dumps(content))
    return f"rococo:{file}"


def test_the_last_five_captions_of_an_entry_are_the_altered_ones(tmp_path: Path):
    loaded = rococo.load(write(tmp_path, [entry(1), entry(2, originals=6)]), tmp_path)
    assert [(len(item.captions), len(item.foils)) for item in loaded.items] == [(5, 5), (6, 5)]
    for item in loaded.items:
        assert [text[-1] for text in item.foils] == [text[-2] for text in item.captions[:5]]
    assert loaded.items[0].id == "coco-000000000001"
    assert loaded.items[0].tags == {"subset": "danger"}
    assert loaded.items[0].captions[0] == "A cat number 0."


def test_the_original_split_has_no_altered_captions(tmp_path: Path):
    loaded = rococo.load(
        write(tmp_path, [entry(1, altered=0), entry(2, originals=7, altered=0)]), tmp_path
    )
    assert [(len(item.captions), len(item.foils)) for item in loaded.items] == [(5, 0), (7, 0)]
    assert loaded.notes == ("danger.json holds no altered captions.",)


def test_the_id_of_a_picture_outside_of_coco_is_its_name(tmp_path: Path):
    Image.new("RGB", (4, 4)).save(tmp_path / "mine.png")
    name = write(tmp_path, [{**entry(1), "image": "mine.png"}])
    assert rococo.load(f"{name}@{tmp_path}", tmp_path / "cache").items[0].id == "mine.png"


@pytest.mark.parametrize(
    "content, message",
    [
        ("[", "not valid JSON"),
        ({"image": "a"}, "is not a list"),
        ([entry(1), entry(2, altered=4)], r"1 of 2 rows .*first: entry 1\)"),
        ([entry(1), entry(2, altered=0)], "in all entries alike"),
        ([entry(1), {"image": "a.jpg"}, 7], r"2 of 3 rows .*first: entry 1\)"),
        ([{**entry(1), "caption": [1] * 10}], "1 of 1 rows"),
        ([{**entry(1), "caption": [" "] * 10}], "empty"),
        ([entry(1), entry(1)], "1 duplicate ids"),
        ([], "no items"),
    ],
)
def test_bad_input_is_counted_and_named_in_one_line(tmp_path: Path, content: object, message: str):
    with pytest.raises(InvalidInput, match=message) as caught:
        rococo.load(write(tmp_path, content), tmp_path)
    assert "\n" not in str(caught.value)


def test_a_folder_of_several_files_is_refused(tmp_path: Path):
    for name in ("danger.json", "rand_voca.json"):
        (tmp_path / name).write_text("[]")
    with pytest.raises(InvalidInput, match="contains 2 files"):
        rococo.load(f"rococo:{tmp_path}", tmp_path)


@pytest.mark.full  # real data, seconds
def test_the_released_files_have_25010_originals_and_25000_altered_captions(
    shared_data: Path, tmp_path: Path
):
    originals = rococo.load(f"rococo:{shared_data}/rococo/coco_karpathy_test.json", tmp_path).items
    for kind in ("danger", "same_concept"):
        items = rococo.load(f"rococo:{shared_data}/rococo/{kind}.json", tmp_path).items
        assert sum(len(item.captions) for item in items) == 25_010
        assert sum(len(item.foils) for item in items) == 25_000
        assert [(item.id, item.captions) for item in items] == [
            (item.id, item.captions) for item in originals
        ]


@pytest.mark.full  # real data, seconds
def test_an_altered_caption_is_most_similar_to_the_original_with_its_number(
    shared_data: Path, tmp_path: Path
):
    items = rococo.load(f"rococo:{shared_data}/rococo/diff_concept.json", tmp_path).items[:300]
    nearest = []
    for item in items:
        for number, foil in enumerate(item.foils):
            words = set(foil.lower().split())
            shared = [
                len(words & set(caption.lower().replace(".", "").split()))
                for caption in item.captions
            ]
            nearest.append(shared[number] == max(shared))
    assert sum(nearest) / len(nearest) > 0.99


def test_a_coco_id_refers_to_the_same_picture_in_2014_and_2017(shared_data: Path, tmp_path: Path):
    """Pictures found by id have the captions that COCO 2017 gives them."""
    images = shared_data / "coco_real" / "val2017"
    dataset = rococo.load(f"rococo:{shared_data}/rococo/danger.json@{images}+available", tmp_path)
    known = {item.id: item for item in coco.load(f"coco:{shared_data}/coco_real", tmp_path).items}
    assert len(dataset.items) == 33
    for item in dataset.items:
        assert item.image == known[item.id].image
        assert set(item.captions) == set(known[item.id].captions)
