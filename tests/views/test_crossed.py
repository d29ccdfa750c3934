"""The two answers to one triplet, against loops over the stored answers by triplet."""

from itertools import product

import numpy as np
import pandas as pd
import pytest

from vlprobe import views
from vlprobe.errors import InvalidInput, NotFound
from vlprobe.metrics.estimate import rate_interval
from vlprobe.metrics.resampling import RESAMPLES
from vlprobe.storage.store import Store
from vlprobe.views import figures
from vlprobe.views.filter import Filter

RANDOM, CONSTANT = "control:random", "control:constant"


@pytest.fixture
def visla(every_probe: Store) -> views.runs.QuestionSet:
    keys = views.runs.question_sets(every_probe).set_index("probe")["case_key"]
    return views.runs.question_set(every_probe, keys["visla"])


def by_item(store: Store, question_set, model: str) -> dict[str, dict[str, float]]:
    """Return margins by item and kind."""
    cases = store.cases(question_set.key).table("cases").to_pylist()
    answers = store.run(question_set.run(model).key).table("scores").to_pylist()
    margins: dict[str, dict[str, float]] = {}
    for case, answer in zip(cases, answers, strict=True):
        margins.setdefault(case["item"], {})[case["kind"]] = answer["margin"]
    return {item: sides for item, sides in margins.items() if len(sides) == 2}


@pytest.mark.parametrize("model", [RANDOM, CONSTANT])
def test_the_two_by_two_table_counts_each_triplet_once(every_probe: Store, visla, model: str):
    sides = by_item(every_probe, visla, model)
    table = figures.crossed_outcomes(visla).query("model == @model and slice == ''")
    assert len(table) == 4 and table["n_cases"].sum() == len(sides) > 0
    assert table["share"].sum() == pytest.approx(1)
    for row in table.itertuples():
        counted = sum(
            ((margins["t2t"] > 0) == (row.texts == "held"))
            and ((margins["i2t"] > 0) == (row.pictures == "held"))
            for margins in sides.values()
        )
        assert row.n_cases == counted
    if model == CONSTANT:  # ties are failures on both sides
        both_wrong = table[(table["texts"] == "fooled") & (table["pictures"] == "fooled")]
        assert both_wrong["n_cases"].iloc[0] == len(sides)


def test_the_interval_of_a_cell_is_that_of_its_triplets_resampled_by_picture(
    every_probe: Store, visla
):
    cases = every_probe.cases(visla.key).table("cases").to_pandas()
    codes = {
        case: code
        for case, code in zip(cases["id"], pd.factorize(cases["cluster"])[0], strict=True)
    }
    answers = every_probe.run(visla.run(RANDOM).key).table("scores").to_pandas()
    wins = dict(zip(cases["id"], answers["margin"] > 0, strict=True))
    pairs = [(f"{name[:-3]}t2t", name) for name in wins if name.endswith("i2t")]
    n_units = visla.run(RANDOM).n_units
    table = figures.crossed_outcomes(visla).query("model == @RANDOM and slice == ''")
    for row in table.itertuples():
        totals, weights = np.zeros((2, n_units))
        for texts, picture in pairs:
            weights[codes[picture]] += 1
            held = (row.texts == "held", row.pictures == "held")
            totals[codes[picture]] += (wins[texts], wins[picture]) == held
        shares = []
        for number in range(RESAMPLES):
            units = np.random.default_rng([n_units, number]).integers(n_units, size=n_units)
            if weights[units].sum():
                shares.append(totals[units].sum() / weights[units].sum())
        ends = rate_interval(row.share, float(np.var(shares)), row.n_items)
        assert (row.low, row.high) == pytest.approx(ends)
        assert row.low <= row.share <= row.high and row.high > row.low
        assert row.n_items == len({codes[picture] for _, picture in pairs})


@pytest.mark.parametrize(
    ("kind", "outcome", "other"), product(("t2t", "i2t"), ("fooled", "held"), ("fooled", "held"))
)
def test_the_filter_shows_the_cases_of_a_cell(every_probe: Store, visla, kind, outcome, other):
    other_kind = "i2t" if kind == "t2t" else "t2t"
    case_filter = Filter.parse(RANDOM, kind, outcome=outcome, crossed=f"{other_kind}={other}")
    cases, total = views.cases.failures(visla, case_filter, 1, 100)
    expected = {
        item
        for item, margins in by_item(every_probe, visla, RANDOM).items()
        if (margins[kind] > 0) == (outcome == "held")
        and (margins[other_kind] > 0) == (other == "held")
    }
    assert set(cases["item"]) == expected and total == len(expected)
    table = figures.crossed_outcomes(visla)
    sides = (outcome, other) if kind == "t2t" else (other, outcome)
    of_model = table[(table["model"] == RANDOM) & (table["slice"] == "")]
    cell = of_model[(of_model["texts"] == sides[0]) & (of_model["pictures"] == sides[1])]
    assert cell["n_cases"].sum() == total


@pytest.mark.parametrize(
    ("name", "error"), [("t2t", InvalidInput), ("flip=held", InvalidInput), ("t2t=won", NotFound)]
)
def test_an_invalid_answer_is_refused_in_one_line(every_probe: Store, visla, name, error):
    with pytest.raises(error) as refused:
        views.cases.failures(visla, Filter.parse(RANDOM, "i2t", crossed=name))
    assert "\n" not in str(refused.value)


def test_a_set_without_triplets_has_no_table_and_no_members(every_probe: Store):
    keys = views.runs.question_sets(every_probe).set_index("probe")["case_key"]
    lgip = views.runs.question_set(every_probe, keys["lgip"])
    assert figures.crossed_outcomes(lgip).empty
    held = Filter.parse(RANDOM, outcome="all", crossed="t2t=held")
    assert views.cases.failures(lgip, held)[1] == 0
