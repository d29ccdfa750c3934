import json
from collections.abc import Callable
from pathlib import Path

import pytest
from PIL import Image

from vlprobe import registry
from vlprobe.datasets import coco, validation
from vlprobe.errors import InvalidInput
from vlprobe.types import Item, Picture

IMAGES = [
    {"id": 9, "file_name": "000000000009.jpg", "width": 64, "height": 48},
    {"id": 3, "file_name": "000000000003.jpg", "width": 40, "height": 40},
    {"id": 25, "file_name": "000000000025.jpg", "width": 30, "height": 60},
]
ANNOTATIONS = [
    {"id": 12, "image_id": 9, "caption": "Second of nine."},
    {"id": 4, "image_id": 9, "caption": " First of nine.\n"},
    {"id": 7, "image_id": 3, "caption": "A square."},
    {"id": 8, "image_id": 25, "caption": "A tall one."},
]


@pytest.fixture
def make(tmp_path: Path) -> Callable[..., Path]:
    def make(
        images: object = IMAGES,
        annotations: object = ANNOTATIONS,
        pictures: str = "val2017",
        drop: int = 0,
    ) -> Path:
        root = tmp_path / "coco"
        (root / pictures).mkdir(parents=True, exist_ok=True)
        (root / "annotations").mkdir(exist_ok=True)
        content = {"info": {}, "images": images, "annotations": annotations}
        (root / "annotations" / "captions_val2017.json").write_text(json.dumps(content))
        for image in IMAGES[drop:]:
            size = (image["width"], image["height"])
            Image.new("RGB", size, (image["id"], 0, 0)).save(root / pictures / image["file_name"])
        return root

    return make


def refused(root: Path, tmp_path: Path, what: str) -> None:
    with pytest.raises(InvalidInput, match=what) as error:
        coco.load(f"coco:{root}", tmp_path / "cache")
    assert "\n" not in str(error.value)


def test_images_and_captions_are_ordered_by_their_ids(make: Callable, tmp_path: Path):
    dataset = coco.load(f"coco:{make()}", tmp_path / "cache")
    assert [item.id for item in dataset.items] == [
        "coco-000000000003",
        "coco-000000000009",
        "coco-000000000025",
    ]
    assert dataset.items[1].captions == ("First of nine.", "Second of nine.")
    assert [item.tags["orientation"] for item in dataset.items] == [
        "square",
        "landscape",
        "portrait",
    ]
    assert dataset.items[0].image.path.name == "000000000003.jpg"


@pytest.mark.parametrize("pictures", ["val2017", "images", "."])
def test_the_image_folder_is_found_by_the_files_in_it(
    pictures: str, make: Callable, tmp_path: Path
):
    root = make(pictures=pictures)
    dataset = coco.load(f"coco:{root}", tmp_path / "cache")
    assert all(item.image.path.parent == root / pictures for item in dataset.items)


def test_one_of_several_captions_files_can_be_named(make: Callable, tmp_path: Path):
    root = make()
    (root / "annotations" / "captions_train2017.json").write_text("{}")
    refused(
        root,
        tmp_path,
        r"contains 2 captions files \(captions_train2017.json, captions_val2017.json\)",
    )
    named = coco.load(f"coco:{root}/annotations/captions_val2017.json", tmp_path / "cache")
    assert len(named.items) == 3


def test_missing_coco_files_are_refused_in_one_line(make: Callable, tmp_path: Path):
    refused(tmp_path / "nowhere", tmp_path, r"COCO folder '.*nowhere' does not exist")
    refused(tmp_path / "x.json", tmp_path, r"x.json' does not exist")
    (tmp_path / "annotations").mkdir()
    refused(tmp_path, tmp_path, r"contains 0 captions files \(none\)")
    refused(
        make(drop=2),
        tmp_path,
        r"2 of 3 images in 'coco:.*' are missing \(first: '.*val2017/000000000003.jpg'\)",
    )


@pytest.mark.parametrize(
    ("images", "annotations", "what"),
    [
        ([], [], "has no items"),
        ([*IMAGES, IMAGES[0]], ANNOTATIONS, r"has 1 duplicate ids \(first: 'coco-000000000009'\)"),
        (IMAGES, ANNOTATIONS[:3], "Item 'coco-000000000025' in '.*' has no caption"),
        (
            IMAGES,
            [*ANNOTATIONS, {"id": 99, "image_id": 9, "caption": " "}],
            "Caption 3 of item 'coco-000000000009'",
        ),
        (
            IMAGES,
            [*ANNOTATIONS, {"id": 99, "image_id": 77, "caption": "x"}],
            r"has no 77, which is a field or the id of",
        ),
        (IMAGES, [{"id": 1, "image_id": 9, "category_id": 3}], "has no 'caption'"),
        ([{"id": 9, "file_name": "x.jpg"}], ANNOTATIONS[:2], "has no 'width'"),
        (
            [{**IMAGES[0], "id": "nine"}],
            [{**ANNOTATIONS[0], "image_id": "nine"}],
            "is not a COCO captions file",
        ),
        ("many", ANNOTATIONS, "is not a COCO captions file"),
        (IMAGES, [{**ANNOTATIONS[0], "caption": None}], "is not a COCO captions file"),
        (None, ANNOTATIONS, "is not a COCO captions file"),
    ],
)
def test_each_defect_of_the_coco_json_is_reported_in_one_line(
    images: object, annotations: object, what: str, make: Callable, tmp_path: Path
):
    refused(make(images, annotations), tmp_path, what)


def test_broken_json_is_refused_with_its_position(make: Callable, tmp_path: Path):
    root = make()
    (root / "annotations" / "captions_val2017.json").write_text(
        '{"images": [],\n "annotations": [}'
    )
    refused(root, tmp_path, r"is not valid JSON \(line 2, column 18: ")
    (root / "annotations" / "captions_val2017.json").write_bytes(b'{"images": "\xff"}')
    refused(root, tmp_path, r"is not UTF-8 \(byte 12\)")
    (root / "annotations" / "captions_val2017.json").write_text("[]")
    refused(root, tmp_path, "is not a COCO captions file")


def test_the_digest_depends_on_contents_and_not_on_paths(make: Callable, tmp_path: Path):
    root = make()
    first = coco.load(f"coco:{root}", tmp_path / "cache").digest
    assert coco.load(f"coco:{root}", tmp_path / "other-cache").digest == first
    moved = root.rename(tmp_path / "moved")
    assert coco.load(f"coco:{moved}", tmp_path / "cache").digest == first
    Image.new("RGB", (64, 48), (0, 99, 0)).save(moved / "val2017" / "000000000009.jpg")
    assert coco.load(f"coco:{moved}", tmp_path / "cache").digest != first


def test_every_field_of_an_item_that_a_probe_reads_changes_the_digest(tmp_path: Path):
    files = [tmp_path / "a.png", tmp_path / "b.png"]
    for shade, file in enumerate(files):
        Image.new("L", (2, 2), shade).save(file)
    one, two = (Picture(file) for file in files)
    variants = [
        [Item("a", one, ("x", "y"))],
        [Item("b", one, ("x", "y"))],
        [Item("a", two, ("x", "y"))],
        [Item("a", None, ("x", "y"))],
        [Item("a", one, ("x", "y"), foil_image=two)],
        [Item("a", one, ("y", "x"))],
        [Item("a", one, ("xy",))],
        [Item("a", one, ("x",), foils=("y",))],
        [Item("a", one, ("x", "y"), {"t": "1"})],
        [Item("a", one, ("x", "y"), {"t": "2"})],
        [Item("a", one, ("x", "y")), Item("b", two, ("z",))],
        [Item("b", two, ("z",)), Item("a", one, ("x", "y"))],
    ]
    digests = [validation.dataset_digest(items, tmp_path / "cache") for items in variants]
    assert len(set(digests)) == len(variants)
    tagged = (
        [Item("a", one, ("x",), {"s": "1", "t": "2"})],
        [Item("a", one, ("x",), {"t": "2", "s": "1"})],
    )
    assert len({validation.dataset_digest(items, tmp_path / "cache") for items in tagged}) == 1


def test_an_empty_foil_is_refused_with_its_item(tmp_path: Path):
    with pytest.raises(InvalidInput, match="Foil 2 of item 'a' in 'x' is empty"):
        validation.validated("x", [Item("a", None, ("caption",), foils=("foil", ""))], tmp_path)


def test_the_coco_photographs_have_their_published_captions(shared_data: Path, tmp_path: Path):
    dataset = registry.load_dataset(f"coco:{shared_data / 'coco_real'}", tmp_path)
    assert len(dataset.items) == 283
    assert sum(len(item.captions) for item in dataset.items) == 1416
    published = json.loads(
        (shared_data / "coco_real/annotations/captions_val2017.json").read_text()
    )
    for item in dataset.items:
        number = int(item.id.removeprefix("coco-"))
        own = sorted(
            (row["id"], row["caption"].strip())
            for row in published["annotations"]
            if row["image_id"] == number
        )
        assert item.captions == tuple(caption for _, caption in own)
        assert int(item.image.path.stem) == number
