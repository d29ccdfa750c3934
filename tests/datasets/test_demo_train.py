"""What is trained on is nothing that a probe asks about."""

import pytest

from vlprobe import registry
from vlprobe.datasets import demo_train
from vlprobe.datasets.world.contrasts import KINDS
from vlprobe.datasets.world.scene import draw, split_of
from vlprobe.errors import InvalidInput, NotFound


@pytest.fixture
def few(monkeypatch):
    monkeypatch.setattr(demo_train, "SCENES", 4)
    monkeypatch.setattr(demo_train, "PAIRS", 2)
    shown = []
    picture = demo_train.demo_pairs.picture
    monkeypatch.setattr(
        demo_train.demo_pairs,
        "picture",
        lambda scene, folder: shown.append(scene) or picture(scene, folder),
    )
    return shown


@pytest.mark.parametrize("name", ["demo-train", "demo-train:pairs"])
def test_every_scene_is_of_the_split_that_no_probe_asks_about(name, few, tmp_path):
    found = registry.load_dataset(name, tmp_path)
    assert {split_of(scene) for scene in few} == {"train"}
    assert all(item.image.path.is_file() for item in found.items)
    assert found.digest == registry.load_dataset(name, tmp_path).digest


def test_scenes_are_behind_those_that_the_shipped_models_were_trained_on(few, tmp_path):
    items = demo_train.load("demo-train", tmp_path).items
    assert few == [draw("train", index) for index in range(20_000, 20_004)]
    assert [len(set(item.captions)) for item in items] == [8] * 4


def test_pairs_are_two_pictures_an_item_of_every_kind(few, tmp_path):
    items = demo_train.load("demo-train:pairs", tmp_path).items
    assert [item.tags["subset"] for item in items] == [kind for kind in KINDS for _ in range(2)]
    assert all(
        item.image.path != item.foil_image.path and item.captions != item.foils for item in items
    )
    assert len({item.id for item in items}) == len(items)


def test_it_is_not_offered_to_the_probes_and_other_parts_are_unknown(tmp_path):
    assert not any(name.startswith("demo-train") for name in registry.names("datasets"))
    with pytest.raises(NotFound, match="demo-train, demo-train:pairs"):
        demo_train.load("demo-train:val", tmp_path)


def test_more_pairs_begin_with_those_of_fewer_and_no_number_is_refused_in_one_line(few, tmp_path):
    names = [item.id for item in demo_train.load("demo-train:pairs:3", tmp_path).items]
    fewer = [item.id for item in demo_train.load("demo-train:pairs", tmp_path).items]
    assert len(names) == 3 * len(KINDS)
    assert [name for name in names if not name.endswith("002")] == fewer
    for number in ("0", "2001", "many", "3:4", "-1"):
        with pytest.raises(InvalidInput, match=r"Expected a whole number from 1 to 2,000"):
            demo_train.load(f"demo-train:pairs:{number}", tmp_path)
    with pytest.raises(NotFound):
        demo_train.load("demo-train:pairs:", tmp_path)
