"""Outcomes by case: the fooled models, the buckets and the scatter, each compared with a plain loop."""

import math
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from scipy import stats

from tests.conftest import case_key_of
from tests.views.conftest import MODELS
from vlprobe import views
from vlprobe.errors import NotFound
from vlprobe.metrics import estimate
from vlprobe.storage.store import Store
from vlprobe.types import Measure
from vlprobe.views.paired_outcomes import BUCKETS, bucket, buckets, scatter
from vlprobe.views.paired_tests import PairedTest, PairedTests, compare_models

CONTROLS = ("control:random", "control:constant")


def compare(store: Store, key: str, models: tuple[str, str], kind: str) -> PairedTests:
    return compare_models(views.runs.question_set(store, key), models, kind)


def counts_of(row: PairedTest) -> dict[str, int]:
    """Return the buckets of a test."""
    counts = (row.both, row.only_base, row.only_model, row.neither)
    return dict(zip(BUCKETS, counts, strict=True))


def count_by_loop(rows: pd.DataFrame, first: str, second: str) -> dict[str, int]:
    """Count the buckets case by case."""
    counts = dict.fromkeys(BUCKETS, 0)
    for one, other in zip(rows[first], rows[second], strict=True):
        names = {
            (True, True): "both_fooled",
            (True, False): "only_first",
            (False, True): "only_second",
        }
        counts[names.get((one <= 0, other <= 0), "both_held")] += 1
    return counts


@pytest.mark.parametrize("kind", ["flip", "combined"])
def test_fooled_models_are_counted_as_in_a_loop(
    filled: Store, key: str, rows: pd.DataFrame, kind: str
):
    of_kind = rows[rows["kind"] == kind]
    test = compare(filled, key, (MODELS[0], MODELS[2]), kind).rows[0]
    assert counts_of(test) == count_by_loop(of_kind, MODELS[0], MODELS[2])
    assert min(counts_of(test).values()) > 0
    codes = pd.factorize(of_kind["item"])[0]
    sides = tuple(
        Measure((of_kind[m] > 0).to_numpy(float), np.ones(len(of_kind)), codes)
        for m in (MODELS[0], MODELS[2])
    )
    assert test.p == estimate.differences([sides], codes.max() + 1)[0].p


def test_with_one_case_per_picture_p_is_that_of_mcnemars_test(every_probe: Store):
    key = case_key_of(every_probe, "eqben")
    tests = compare(every_probe, key, CONTROLS, "pair")
    row = tests.rows[0]
    split = (row.only_base, row.only_model)
    assert row.p == pytest.approx(
        stats.binomtest(split[0], sum(split)).pvalue if sum(split) else 1.0
    )
    assert tests.rivals[0].n_tied == row.n_lies == sum(counts_of(row).values())


@pytest.mark.parametrize(
    "column", ["cluster", "tags"]
)  # for current question sets, and for those of older versions
def test_triplets_that_share_a_picture_are_not_independent(
    every_probe: Store, tmp_path: Path, column: str
):
    key = case_key_of(every_probe, "visla")
    unshared = compare(every_probe, key, CONTROLS, "t2t").rows[0]
    assert unshared.n_pictures == unshared.n_lies
    runs = pd.DataFrame(views.runs.question_set(every_probe, key).runs)
    shared = Store(tmp_path / "cache")
    cases = every_probe.cases(key)
    table = cases.table("cases")
    clusters = [str(code // 2) for code in table["item_code"].to_pylist()]
    if column == "tags":
        clusters, table = [[("picture", name)] for name in clusters], table.drop("cluster")
    place, type_ = table.column_names.index(column), table.schema.field(column).type
    table = table.set_column(place, column, pa.array(clusters, type=type_))
    keep = ("schema", "files")
    shared.cases(key).finish(
        {"cases": table}, {k: v for k, v in cases.manifest().items() if k not in keep}
    )
    for run in runs["key"]:
        entry = every_probe.run(run)
        facts = {k: v for k, v in entry.manifest().items() if k not in keep}
        facts["n_units"] = -(-facts["n_items"] // 2)
        shared.run(run).finish(
            {name: entry.table(name) for name in ("scores", "estimates", "sums")}, facts
        )
    row = compare(shared, key, CONTROLS, "t2t").rows[0]
    assert row.n_pictures == -(-unshared.n_pictures // 2)
    assert counts_of(row) == counts_of(unshared)


def test_a_case_with_an_unknown_answer_is_in_no_bucket(every_probe: Store):
    key = case_key_of(every_probe, "prsm")
    keys = pd.DataFrame(views.runs.question_set(every_probe, key).runs).set_index("model")["key"]
    margins = [
        pd.read_parquet(every_probe.root / "runs" / keys[model] / "scores.parquet").set_index(
            "case"
        )["margin"]
        for model in ("control:random", "control:constant")
    ]
    unknown = int((margins[0].isna() | margins[1].isna()).sum())
    tests = compare(every_probe, key, CONTROLS, "ranking")
    assert tests.n_cases == len(margins[0])
    assert tests.rows[0].n_lies == len(margins[0]) - unknown


def test_a_kind_without_cases_is_unknown(every_probe: Store):
    key = case_key_of(every_probe, "eqben")
    row = compare(every_probe, key, CONTROLS, "foil").rows[0]
    assert sum(counts_of(row).values()) == 0
    assert math.isnan(row.p)


@pytest.mark.parametrize("within", [(), ((-0.05, -0.05), (0.3, -0.05), (0.3, 0.1))])
def test_each_bucket_counts_the_cases_that_its_filter_passes(
    filled: Store, key: str, rows: pd.DataFrame, within: tuple
):
    chosen = views.filter.Filter(MODELS[0], "flip", outcome="all", other=MODELS[2], within=within)
    counts = buckets(views.runs.question_set(filled, key), chosen)
    if not within:
        of_kind = rows[rows["kind"] == "flip"]
        assert counts == count_by_loop(of_kind, MODELS[0], MODELS[2]) | {"all": len(of_kind)}
    assert counts["all"] > 0
    seen: set[int] = set()
    for name, count in counts.items():
        table, total = views.cases.failures(
            views.runs.question_set(filled, key), bucket(chosen, name), 1, 10_000
        )
        assert total == count == len(table)
        if name != "all":
            assert not seen & set(table["case"])
            seen |= set(table["case"])
        if name.startswith("only"):
            assert (table["margin"] <= 0).all()  # the margin of the fooled model
    assert len(seen) == counts["all"]
    with pytest.raises(NotFound, match="only_first"):
        bucket(chosen, "only_frist")


def test_the_scatter_has_every_case_or_a_fixed_sample(filled: Store, key: str, rows: pd.DataFrame):
    of_kind = rows[rows["kind"] == "combined"].set_index("case")
    points, total = scatter(views.runs.question_set(filled, key), MODELS[0], MODELS[1], "combined")
    assert total == len(points) == len(of_kind)
    assert points["case"].tolist() == of_kind.index.tolist()
    assert points["margin"].tolist() == of_kind[MODELS[0]].tolist()
    assert points["other_margin"].tolist() == of_kind[MODELS[1]].tolist()
    few, total = scatter(views.runs.question_set(filled, key), MODELS[0], MODELS[1], "combined", 20)
    again, _ = scatter(views.runs.question_set(filled, key), MODELS[0], MODELS[2], "combined", 20)
    assert total == len(of_kind)
    assert few["case"].tolist() == again["case"].tolist()
    assert len(few) == 20
    assert few.merge(points, on=list(points.columns)).shape == few.shape
    assert few["case"].tolist() != of_kind.index[:20].tolist()
