"""Tagged cases can be excluded: the exclusion is part of the key and of the label, and the numbers use only the other
cases.
"""

import numpy as np
import pytest

from tests.conftest import call, estimates_of
from tests.runs.test_run import request
from vlprobe import views
from vlprobe.dashboard.lab.page import _request
from vlprobe.errors import InvalidInput
from vlprobe.runs.run import execute
from vlprobe.storage import annotations
from vlprobe.storage.annotations import Annotation
from vlprobe.types import Run

BAD = "wrong label"


def run_and_tag(tiny, store, count: int = 3) -> tuple[dict, list[str]]:
    """Run all cases and tag some flips. Return the manifest and the ids of the tagged flips."""
    whole = execute(request(tiny), store)[0]
    cases = store.cases(whole["case_key"]).table("cases").to_pylist()
    flips = [case for case in cases if case["kind"] == "flip"][:count]
    for case in flips:
        annotations.write(store, whole["case_key"], Annotation(case["case"], case["id"], (BAD,)))
    return whole, [case["id"] for case in flips]


def test_excluding_tagged_cases_gives_the_positive_rate_of_the_other_cases(tiny, store):
    whole, bad = run_and_tag(tiny, store)
    cleaned = execute(request(tiny, without_tag=(BAD,)), store)[0]
    assert cleaned["key"] != whole["key"]
    assert cleaned["run"]["selection"] == {"without": sorted(bad)}
    ids = {
        key: store.cases(key).table("cases")["id"].to_pylist()
        for key in (whole["case_key"], cleaned["case_key"])
    }
    assert ids[cleaned["case_key"]] == [case for case in ids[whole["case_key"]] if case not in bad]
    assert store.cases(cleaned["case_key"]).manifest()["dropped"]["left out by people"] == 3
    cases = store.cases(whole["case_key"]).table("cases").to_pandas()
    margins = store.run(whole["key"]).table("scores")["margin"].to_numpy()
    kept = (cases["kind"] == "flip").to_numpy() & ~cases["id"].isin(bad).to_numpy()
    rate = estimates_of(store, cleaned, averaging="micro").loc["positive_rate", "value"]
    assert rate == pytest.approx(np.mean(margins[kept] > 0))


def test_excluding_by_id_gives_the_same_key_as_by_tag_and_can_be_repeated(tiny, store):
    _, bad = run_and_tag(tiny, store)
    cleaned = execute(request(tiny, without_tag=(BAD,)), store)[0]
    assert execute(request(tiny, without=tuple(bad[::-1])), store)[0]["key"] == cleaned["key"]
    assert execute(_request(Run(**cleaned["run"])), store)[0]["key"] == cleaned["key"]
    labels = {row.case_key: row.label for row in views.runs.question_set_rows(store)}
    assert " · without " in labels[cleaned["case_key"]]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"without_tag": ("never given",)},
            "No case in this question set has the tag 'never given'. Available tags",
        ),
        ({"without": ("no such case",)}, "1 of 1 cases to exclude are not in"),
    ],
)
def test_excluding_an_unknown_tag_or_case_is_refused_in_one_line(tiny, store, changes, message):
    whole, _ = run_and_tag(tiny, store)
    with pytest.raises(InvalidInput, match=message) as caught:
        execute(request(tiny, **changes), store)
    assert "\n" not in str(caught.value)
    assert [run["key"] for run in store.runs()] == [whole["key"]]


def test_run_and_ask_exclude_cases_by_tag_and_by_id(tiny, store, tmp_path):
    _, bad = run_and_tag(tiny, store)
    words = ["run", "--dataset", tiny, "--model", "control:random", "--no-doctor"]
    for chosen in (["--without-tag", BAD], ["--without", bad[0]]):
        call(store.root, *words, *chosen)
    selections = [run["run"].get("selection", {}).get("without", []) for run in store.runs()]
    assert sorted(bad) in selections and [bad[0]] in selections
    call(store.root, "ask", tiny, str(tmp_path / "out"), "--without-tag", BAD)
