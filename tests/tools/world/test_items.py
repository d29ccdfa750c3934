"""The bundled items equal those that the maker generates."""

import pytest

from tools.world import items as maker
from vlprobe.datasets.world import items

FEW = 8


def assert_read(dataset: str, made: list[items.DrawnItem]) -> None:
    """Check that the file has the generated items."""
    read = {row.id: row for row in items.read(dataset)}
    assert [read[row.id] for row in made] == made


@pytest.mark.parametrize("split", ["test", "val"])
def test_the_first_items_of_each_split_equal_those_of_the_maker(split, monkeypatch):
    few = {subset: dict.fromkeys(sizes, FEW) for subset, sizes in maker.TRIPLETS.items()}
    monkeypatch.setattr(maker, "TRIPLETS", few)
    part = "" if split == "test" else ":val"
    assert items.read(f"demo{part}") == maker.scenes(split)
    assert items.read(f"demo-series{part}") == maker.series(split)
    assert_read(f"demo-triplets{part}", maker.triplets(split))
    assert_read(f"demo-pairs{part}", maker.pairs("demo-pairs", split, split, FEW))


@pytest.mark.full  # 3 s
def test_the_first_training_and_printed_items_equal_those_of_the_maker(monkeypatch):
    monkeypatch.setattr(maker, "TRAINING_SCENES", maker.TRAINING_SCENES[:40])
    assert_read("demo-train", maker.training_scenes())
    assert_read("demo-train:pairs", maker.pairs("demo-train", "pairs", "train", FEW))
    assert_read("demo-pairs:printed", maker.pairs("demo-pairs", "printed", "test", FEW))


@pytest.mark.full
def test_all_items_equal_those_of_the_maker():
    made = dict(maker.datasets())
    assert len(made) == 11
    assert all(items.read(dataset) == rows for dataset, rows in made.items())
