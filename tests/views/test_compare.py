"""Comparisons of two to four models: every number matches a plain loop over the Parquet files."""

import itertools
import math

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from tests.conftest import case_key_of, question_set_of
from tests.views.conftest import MODELS
from vlprobe import views
from vlprobe.errors import InvalidInput, NotFound
from vlprobe.metrics import estimate
from vlprobe.storage import shipped
from vlprobe.storage.store import Store
from vlprobe.types import Measure
from vlprobe.views.paired_tests import compare_metrics
from vlprobe.views.runs import QuestionSet


@pytest.mark.parametrize("averaging", ["macro", "micro"])
@pytest.mark.parametrize("unit", ["cosine", "spread"])
def test_the_values_equal_the_stored_estimates(filled: Store, key: str, averaging: str, unit: str):
    table = compare_metrics(views.runs.question_set(filled, key), MODELS, averaging, unit)
    known = views.estimates.estimates(
        views.runs.question_set(filled, key), "all", averaging, unit
    ).set_index(["model", "metric"])["value"]
    assert len(table) == 2 * len(views.runs.metrics("lgip"))
    assert set(table["baseline"]) == {MODELS[0]}
    for row in table.itertuples():
        assert row.value == pytest.approx(known[(row.model, row.metric)])
        assert row.base == pytest.approx(known[(MODELS[0], row.metric)])
        assert row.difference == pytest.approx(row.value - row.base)
        assert row.low <= row.difference <= row.high


def test_the_differences_are_those_of_the_cases(filled: Store, key: str, rows: pd.DataFrame):
    flips = rows[rows["kind"] == "flip"]
    item = pd.factorize(rows["item"])[0][flips.index]
    sides = [
        Measure((flips[model] > 0).to_numpy(float), np.ones(len(flips)), item)
        for model in MODELS[1::-1]
    ]
    expected = estimate.differences([tuple(sides)], 6)[0]
    table = compare_metrics(views.runs.question_set(filled, key), MODELS, "micro").set_index(
        ["metric", "model"]
    )
    row = table.loc[("positive_rate", MODELS[1])]
    for name in ("low", "high", "p", "n_items"):
        assert row[name] == pytest.approx(getattr(expected, name))
    assert row["difference"] == pytest.approx(expected.value)


def test_p_is_corrected_for_all_shown_rows_and_decides_the_verdicts(filled: Store, key: str):
    table = compare_metrics(views.runs.question_set(filled, key), MODELS)
    assert table["p_holm"].to_numpy() == pytest.approx(estimate.holm(table["p"]), nan_ok=True)
    assert set(table["verdict"]) <= {"better", "worse", "tied", ""}
    for row in table.itertuples():
        assert (row.verdict == "tied") == (row.p_holm >= 0.05)
    pair = compare_metrics(views.runs.question_set(filled, key), MODELS[:2])
    assert (
        pair["p_holm"].to_numpy() <= table[table["model"] == MODELS[1]]["p_holm"].to_numpy()
    ).all()


@pytest.mark.parametrize(
    ("metric", "difference", "p", "word"),
    [
        ("positive_rate", 0.1, 0.01, "better"),
        ("positive_rate", -0.1, 0.01, "worse"),
        ("invariance_error", 0.1, 0.01, "worse"),
        ("invariance_error", -0.1, 0.049, "better"),
        ("positive_rate", 0.1, 0.05, "tied"),
        ("positive_rate", 0.1, math.nan, ""),
    ],
)
def test_a_verdict_depends_on_the_direction(metric: str, difference: float, p: float, word: str):
    assert views.paired_tests.verdict(views.runs.metrics("lgip")[metric], difference, p) == word


def test_models_only_differ_on_a_metric_without_a_better_direction():
    neither = views.runs.metrics("prsm")["prsm_global_idlist"]
    assert views.paired_tests.verdict(neither, 0.3, 0.001) == "differs"


def test_a_metric_that_no_model_can_have_is_not_compared(every_probe: Store):
    key = views.runs.question_sets(every_probe).set_index("probe")["case_key"]
    models = ("control:random", "control:constant")
    assert "words_t2t_accuracy" not in set(
        compare_metrics(views.runs.question_set(every_probe, key["visla"]), models)["metric"]
    )
    unknown = (
        compare_metrics(views.runs.question_set(every_probe, key["eqben"]), models)
        .set_index("metric")
        .loc["matched_both"]
    )
    assert unknown["verdict"] == ""
    assert math.isnan(unknown["p_holm"])
    assert unknown["n_items"] == 0


@pytest.fixture(scope="module")
def partial_answers(filled: Store, key: str, tmp_path_factory: pytest.TempPathFactory) -> Store:
    """Return the answers of the first model, and a copy without two pictures and half of a third."""
    store, first = (
        Store(tmp_path_factory.mktemp("partial") / "cache"),
        pd.DataFrame(views.runs.question_set(filled, key).runs).set_index("model"),
    )
    entries = {"cases": filled.cases(key), "run": filled.run(first.loc[MODELS[0], "key"])}
    facts = {
        name: {k: v for k, v in entry.manifest().items() if k not in ("schema", "files")}
        for name, entry in entries.items()
    }
    store.cases(key).finish({"cases": entries["cases"].table("cases")}, facts["cases"])
    tables = {name: entries["run"].table(name) for name in ("scores", "estimates", "sums")}
    store.run(facts["run"]["key"]).finish(tables, facts["run"])
    sums = tables["sums"].to_pandas()
    sums.loc[(sums["item_code"] == 2) & (sums["averaging"] == "micro"), ["total", "weight"]] /= 2
    tables["sums"] = pa.Table.from_pandas(
        sums[sums["item_code"] >= 2], tables["sums"].schema, preserve_index=False
    )
    tables = {
        name: own.drop("run").append_column("run", pa.array(["e" * 16] * len(own)))
        for name, own in tables.items()
    }
    other = {"key": "e" * 16, "run": facts["run"]["run"] | {"model": "partial"}}
    store.run(other["key"]).finish(tables, facts["run"] | other)
    return store


@pytest.mark.parametrize("averaging", ["macro", "micro"])
def test_a_model_without_answers_to_some_pictures_is_tied_with_itself(
    partial_answers: Store, key: str, averaging: str
):
    table = compare_metrics(
        views.runs.question_set(partial_answers, key), (MODELS[0], "partial"), averaging
    ).dropna(subset=["difference"])
    assert len(table) == len(views.runs.metrics("lgip"))
    for row in table.itertuples():
        assert (row.difference, row.p, row.verdict) == (0, 1, "tied")
        assert math.isnan(row.low) and math.isnan(row.high)  # only three pictures
        assert row.base == row.value
        assert (row.n_items, row.left_out) == (3, 3)


@pytest.mark.parametrize("kind", ["i2t", "t2i"])
def test_drop_rates_are_compared_on_pictures_with_a_clean_hit_of_both_models(kind: str):
    """Check the common pictures; each value once rested on its model's pictures, with the number that both have."""
    store, models = Store(shipped.FOLDER), ("demo:softmax", "demo:sigmoid")
    question_set = question_set_of(store, "rococo")
    row = compare_metrics(question_set, models).set_index("metric").loc[f"{kind}_drop_rate"]
    base, value = (_clean_hits(store, question_set, model, kind) for model in models)
    both, either = base.index.intersection(value.index), base.index.union(value.index)
    assert 100 < len(both) < len(either)
    assert (row["n_items"], row["left_out"]) == (len(both), len(either) - len(both))
    assert row["base"] == pytest.approx(_lost_share(base.loc[both]))
    assert row["value"] == pytest.approx(_lost_share(value.loc[both]))
    table = views.estimates.estimates(question_set).set_index(["metric", "model"])
    assert row["base_alone"] == pytest.approx(_lost_share(base))
    assert row["base_alone"] == pytest.approx(table.loc[(f"{kind}_drop_rate", models[0]), "value"])


def _clean_hits(store: Store, question_set: QuestionSet, model: str, kind: str) -> pd.DataFrame:
    """Return by picture the searches whose right candidate is first in the clean gallery, and how many of
    them are lost.
    """
    scores = store.run(question_set.run(model).key).table("scores").to_pandas()
    cases = store.cases(question_set.key).table("cases").to_pandas()
    hits = (scores["kind"] == kind) & (scores["rank_clean"] == 1)
    lost = (scores["rank"] > 1)[hits].groupby(cases["item"][hits])
    return lost.agg(["sum", "count"])


def _lost_share(hits: pd.DataFrame) -> float:
    return hits["sum"].sum() / hits["count"].sum()


def test_differences_in_spreads_are_unknown_if_a_spread_is_zero(every_probe: Store):
    key = case_key_of(every_probe, "lgip")
    table = compare_metrics(
        views.runs.question_set(every_probe, key),
        ("control:random", "control:constant"),
        unit="spread",
    ).set_index("metric")
    assert views.runs.question_set(every_probe, key).run("control:constant").spread == 0
    assert math.isnan(table.loc["sensitivity_gap", "difference"])
    assert table.loc["sensitivity_gap", "verdict"] == ""
    assert not math.isnan(table.loc["positive_rate", "difference"])


@pytest.mark.parametrize("probe", ["rococo", "eqben", "visla", "prsm"])
def test_every_probe_can_be_compared(every_probe: Store, probe: str):
    key = case_key_of(every_probe, probe)
    table = compare_metrics(
        views.runs.question_set(every_probe, key), ("control:random", "control:constant")
    )
    known = views.estimates.estimates(views.runs.question_set(every_probe, key)).set_index(
        ["model", "metric"]
    )["value"]
    for row in table.itertuples():
        assert row.value == pytest.approx(known[(row.model, row.metric)], nan_ok=True)


def test_two_different_models_are_needed_and_they_must_be_known(filled: Store, key: str):
    with pytest.raises(InvalidInput, match="two models"):
        compare_metrics(views.runs.question_set(filled, key), (MODELS[1], MODELS[1]))
    with pytest.raises(NotFound, match="dealt:2"):
        compare_metrics(views.runs.question_set(filled, key), (MODELS[0], "dealt 2"))
    with pytest.raises(InvalidInput, match="Unknown unit"):
        compare_metrics(views.runs.question_set(filled, key), MODELS, unit="metre")


def test_tie_groups_of_a_metric_follow_from_its_paired_differences(filled: Store, key: str):
    question_set = views.runs.question_set(filled, key)
    fit = sorted(views.paired_tests.fit_models(question_set))
    groups = views.paired_tests.metric_tie_groups(question_set)
    assert {"positive_rate", "invariance_error"} <= set(groups)
    p: dict[str, dict[frozenset[str], float]] = {}
    for one, other in itertools.combinations(fit, 2):
        for row in compare_metrics(question_set, (one, other)).itertuples():
            p.setdefault(row.metric, {})[frozenset((one, other))] = row.p
    for metric, of_metric in groups.items():
        raised = estimate.holm(list(p[metric].values()))
        tied = {pair for pair, value in zip(p[metric], raised, strict=True) if value >= 0.05}
        together = {
            frozenset(pair) for group in of_metric for pair in itertools.combinations(group, 2)
        }
        assert together == tied and {model for group in of_metric for model in group} == set(fit)
