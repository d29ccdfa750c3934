"""Labels of a picker: no two of them are alike."""

from hypothesis import given
from hypothesis import strategies as st

from vlprobe.render.words import distinct

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
