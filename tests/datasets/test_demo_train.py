"""The training data shares no scene with the data of the probes."""

import pytest

from tests.conftest import draw_fewer
from tools.world.contrasts import KINDS
from tools.world.scenes import draw, split_of
from vlprobe import registry
from vlprobe.datasets.world import items
from vlprobe.errors import InvalidInput, NotFound


@pytest.fixture
def few(monkeypatch):
    draw_fewer(monkeypatch, 2)


@pytest.mark.parametrize("name", ["demo-train", "demo-train:pairs"])
def test_every_training_scene_is_in_the_train_split(name):
    assert {split_of(scene) for row in items.read(name) for scene in row.scenes} == {"train"}


@pytest.mark.parametrize("name", ["demo-train", "demo-train:pairs"])
def test_every_training_picture_is_drawn_and_the_digest_is_reproducible(name, few, tmp_path):
    dataset = registry.load_dataset(name, tmp_path)
    assert all(item.image.path.is_file() for item in dataset.items)
    assert dataset.digest == registry.load_dataset(name, tmp_path).digest


def test_the_scenes_follow_those_on_which_the_demo_models_were_trained():
    rows = items.read("demo-train")
    assert len(rows) == 3000
    assert [row.scenes for row in rows[:40]] == [
        (draw("train", index),) for index in range(20_000, 20_040)
    ]
    assert {len(set(row.captions)) for row in rows} == {8}


def test_an_item_of_the_training_pairs_has_two_pictures_and_there_are_pairs_of_every_kind(
    few, tmp_path
):
    items = registry.load_dataset("demo-train:pairs", tmp_path).items
    assert [item.tags["subset"] for item in items] == [kind for kind in KINDS for _ in range(2)]
    assert all(
        item.image.path != item.foil_image.path and item.captions != item.foils for item in items
    )
    assert len({item.id for item in items}) == len(items)


def test_the_training_data_is_not_listed_and_other_parts_are_refused(tmp_path):
    assert not any(name.startswith("demo-train") for name in registry.names("datasets"))
    for name in ("demo-train:val", "demo-train:test", "demo-train::3", "demo-train:pairs:"):
        with pytest.raises(NotFound, match="demo-train, demo-train:pairs"):
            registry.load_dataset(name, tmp_path)


def test_a_larger_number_of_pairs_includes_the_smaller_and_invalid_numbers_are_refused(
    monkeypatch, tmp_path
):
    draw_fewer(monkeypatch, 3)
    names = [item.id for item in registry.load_dataset("demo-train:pairs:3", tmp_path).items]
    fewer = [item.id for item in registry.load_dataset("demo-train:pairs:2", tmp_path).items]
    assert len(names) == 3 * len(KINDS)
    assert [name for name in names if not name.endswith("002")] == fewer
    for number in ("0", "2001", "many", "3:4", "-1"):
        with pytest.raises(InvalidInput, match=r"Expected a whole number from 1 to 2,000"):
            registry.load_dataset(f"demo-train:pairs:{number}", tmp_path)


@pytest.mark.parametrize(
    ("name", "count"),
    [
        ("demo-train:pairs", 300),
        pytest.param("demo-train:pairs:2000", 2000, marks=pytest.mark.full),
    ],
)
def test_there_are_300_pairs_of_each_kind_by_default_and_up_to_2000(
    monkeypatch, tmp_path, name: str, count: int
):
    monkeypatch.setattr("vlprobe.datasets.demo.validated", lambda name, items, cache: items)
    monkeypatch.setattr("vlprobe.datasets.demo.draw", lambda scene, path: None)
    family = registry.families("datasets")["demo-train"]
    kinds = [item.tags["subset"] for item in family.load(name, tmp_path)]
    assert {kind: kinds.count(kind) for kind in kinds} == dict.fromkeys(KINDS, count)
