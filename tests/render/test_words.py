"""The labels of a picker are distinct, and a type of edit has one name."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vlprobe import registry
from vlprobe.render.sentences import SKILLS
from vlprobe.render.words import WRONG_SUBTYPES, dataset_name, distinct, value_label, wrong

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


@pytest.mark.parametrize("subtype", WRONG_SUBTYPES)
def test_a_type_of_edit_has_the_same_name_as_a_label_and_in_a_sentence(subtype: str):
    label = set(value_label(subtype).lower().split()) - {"a", "an", "changes"}
    assert label <= set(wrong(subtype).split())
    nouns, _ = SKILLS.get(subtype, (wrong(subtype), ""))
    assert any(word.startswith(tuple(label)) for word in nouns.split())


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
