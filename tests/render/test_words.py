"""Labels of a picker: no two of them are alike."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vlprobe import registry
from vlprobe.render.words import dataset_name, distinct

NAMES = st.text("ab/ ·(", min_size=1, max_size=6)


@given(st.dictionaries(NAMES, st.text("ab· ", max_size=4), max_size=8))
def test_no_two_labels_are_alike_and_a_label_of_its_own_stays(labels: dict[str, str]):
    told_apart = distinct(labels)
    assert list(told_apart) == list(labels)
    assert len(set(told_apart.values())) == len(labels)
    if len(set(labels.values())) == len(labels):
        assert told_apart == labels


def test_twins_are_told_apart_by_the_folders_that_they_are_in():
    stored = {f"coco:/data/{year}/val": "Photographs (val)" for year in ("2014", "2017")}
    assert list(distinct(stored).values()) == [
        "Photographs (val) · 2014/val",
        "Photographs (val) · 2017/val",
    ]


@pytest.mark.parametrize("name", registry.names("datasets"))
def test_every_way_in_for_data_has_a_name_for_people(name: str):
    concrete = (
        name.partition("+")[0].replace("FILE", "/data/mine.json").replace("DIR", "/data/mine")
    )
    for placeholder in ("URL", "TABLE"):
        concrete = concrete.replace(placeholder, "/data/mine.csv")
    said = dataset_name(concrete)
    assert said != concrete and "/" not in said
    names_a_file = ":" in name and not name.startswith("bundled:")
    assert names_a_file == ("(mine" in said)
