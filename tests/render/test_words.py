"""The labels of a picker are distinct."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vlprobe import registry
from vlprobe.render.words import dataset_name, distinct

NAMES = st.text("ab/ ·(", min_size=1, max_size=6)


@given(st.dictionaries(NAMES, st.text("ab· ", max_size=4), max_size=8))
def test_labels_are_distinct_and_a_unique_label_is_unchanged(labels: dict[str, str]):
    distinct_labels = distinct(labels)
    assert list(distinct_labels) == list(labels)
    assert len(set(distinct_labels.values())) == len(labels)
    if len(set(labels.values())) == len(labels):
        assert distinct_labels == labels


def test_equal_labels_are_distinguished_by_their_folders():
    labels = {f"coco:/data/{year}/val": "Photographs (val)" for year in ("2014", "2017")}
    assert list(distinct(labels).values()) == [
        "Photographs (val) · 2014/val",
        "Photographs (val) · 2017/val",
    ]


@pytest.mark.parametrize("name", registry.names("datasets"))
def test_every_kind_of_dataset_has_a_readable_name(name: str):
    concrete = (
        name.partition("+")[0].replace("FILE", "/data/mine.json").replace("DIR", "/data/mine")
    )
    for placeholder in ("URL", "TABLE"):
        concrete = concrete.replace(placeholder, "/data/mine.csv")
    readable = dataset_name(concrete)
    assert readable != concrete and "/" not in readable
    names_a_file = ":" in name and not name.startswith("bundled:")
    assert names_a_file == ("(mine" in readable)
