"""The expected time of a run, from earlier runs per case; unknown without a comparable run."""

from dataclasses import replace

import pytest

from vlprobe.views.progress import Duration, expected, in_words
from vlprobe.views.records import RunRow

FIRST = RunRow(
    key="k", case_key="c", model="a", model_digest="d", dataset="demo", dataset_digest="e", probe="lgip", limit=0,
    seed=42, options="", n_items=500, n_units=500, n_cases=6000, spread=0.1, seconds=100.0,
    finished="2026-01-01T00:00:00", older="", note="",
)  # fmt: skip
SLOW = replace(FIRST, key="l", model="b", seconds=300.0)
PART = replace(FIRST, key="m", model="c", seconds=10.0, limit=50, n_items=50)


def test_a_model_with_earlier_runs_takes_as_long_as_its_newest_run():
    runs = [replace(FIRST, seconds=120.0), FIRST, SLOW]
    assert expected(runs, ["a"], "demo", "lgip") == Duration(120, 120)
    assert expected(runs, ["a", "b"], "demo", "lgip") == Duration(420, 420)


def test_a_new_model_takes_between_the_quickest_and_the_slowest():
    assert expected([FIRST, SLOW], ["new"], "demo", "lgip") == Duration(100, 300)
    assert expected([FIRST, SLOW], ["new", "a"], "demo", "lgip") == Duration(200, 400)


def test_part_of_the_pictures_takes_part_of_the_time():
    assert expected([FIRST], ["a"], "demo", "lgip", limit=50) == Duration(10, 10, is_scaled=True)
    assert expected([FIRST], ["a"], "demo", "lgip", limit=5000) == Duration(100, 100)
    assert expected([PART], ["c"], "demo", "lgip", limit=100) == Duration(20, 20, is_scaled=True)


def test_the_time_is_unknown_without_a_comparable_run():
    assert not expected([FIRST], ["a"], "demo", "prsm").is_known
    assert not expected([FIRST], ["a"], "coco:x", "lgip").is_known
    # the size of the whole dataset is unknown
    assert not expected([PART], ["c"], "demo", "lgip").is_known
    assert not (expected([], ["a"], "demo", "lgip") + Duration(1, 1)).is_known


@pytest.mark.parametrize(
    ("low", "high", "text"),
    [
        (0, 44, "Less than a minute"),
        (46, 46, "About 1 minute"),
        (46, 61, "About 1 minute"),
        (61, 170, "About 1 to 3 minutes"),
        (3540, 3540, "About 59 minutes"),
        (3600, 3600, "About 60 minutes"),
        (5400, 5400, "About 1.5 hours"),
        (1800, 7200, "About 0.5 to 2 hours"),
    ],
)
def test_a_time_is_stated_in_minutes_or_hours(low: float, high: float, text: str):
    assert in_words(Duration(low, high)) == text
