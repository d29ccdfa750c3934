"""Case by case: who is fooled beside whom, the buckets and the scatter, each compared with a plain loop."""

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


def compared(store: Store, key: str, models: tuple[str, str], kind: str) -> PairedTests:
    return compare_models(store, views.runs.question_set(store, key), models, kind)


def counts_of(row: PairedTest) -> dict[str, int]:
    """The buckets of a test."""
    counts = (row.both, row.only_base, row.only_model, row.neither)
    return dict(zip(BUCKETS, counts, strict=True))


def loops(rows: pd.DataFrame, first: str, second: str) -> dict[str, int]:
    """The buckets, counted one by one."""
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
def test_who_is_fooled_is_what_a_loop_counts(
    filled: Store, key: str, rows: pd.DataFrame, kind: str
):
    own = rows[rows["kind"] == kind]
    found = compared(filled, key, (MODELS[0], MODELS[2]), kind).rows[0]
    assert counts_of(found) == loops(own, MODELS[0], MODELS[2])
    assert min(counts_of(found).values()) > 0
    codes = pd.factorize(own["item"])[0]
    sides = tuple(
        Measure((own[m] > 0).to_numpy(float), np.ones(len(own)), codes)
        for m in (MODELS[0], MODELS[2])
    )
    assert found.p == estimate.differences([sides], codes.max() + 1)[0].p


def test_one_case_a_picture_is_put_to_mcnemars_test(every_probe: Store):
    key = case_key_of(every_probe, "eqben")
    tests = compared(every_probe, key, CONTROLS, "pair")
    found = tests.rows[0]
    split = (found.only_base, found.only_model)
    assert found.p == pytest.approx(
        stats.binomtest(split[0], sum(split)).pvalue if sum(split) else 1.0
    )
    assert tests.rivals[0].n_tied == found.n_lies == sum(counts_of(found).values())


@pytest.mark.parametrize(
    "column", ["cluster", "tags"]
)  # of question sets as they are, and as they once were
def test_triplets_that_share_a_picture_are_not_independent(
    every_probe: Store, tmp_path: Path, column: str
):
    key = case_key_of(every_probe, "visla")
    alone = compared(every_probe, key, CONTROLS, "t2t").rows[0]
    assert alone.n_pictures == alone.n_lies
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
    found = compared(shared, key, CONTROLS, "t2t").rows[0]
    assert found.n_pictures == -(-alone.n_pictures // 2)
    assert counts_of(found) == counts_of(alone)


def test_a_case_of_which_nothing_is_known_is_in_no_bucket(every_probe: Store):
    key = case_key_of(every_probe, "prsm")
    own = pd.DataFrame(views.runs.question_set(every_probe, key).runs).set_index("model")["key"]
    margins = [
        pd.read_parquet(every_probe.root / "runs" / own[model] / "scores.parquet").set_index(
            "case"
        )["margin"]
        for model in ("control:random", "control:constant")
    ]
    unknown = int((margins[0].isna() | margins[1].isna()).sum())
    tests = compared(every_probe, key, CONTROLS, "ranking")
    assert tests.n_cases == len(margins[0])
    assert tests.rows[0].n_lies == len(margins[0]) - unknown


def test_a_kind_without_cases_is_unknown(every_probe: Store):
    key = case_key_of(every_probe, "eqben")
    found = compared(every_probe, key, CONTROLS, "foil").rows[0]
    assert sum(counts_of(found).values()) == 0
    assert math.isnan(found.p)


@pytest.mark.parametrize("within", [(), ((-0.05, -0.05), (0.3, -0.05), (0.3, 0.1))])
def test_the_buckets_hold_what_their_filters_pass(
    filled: Store, key: str, rows: pd.DataFrame, within: tuple
):
    chosen = views.filter.Filter(MODELS[0], "flip", outcome="all", other=MODELS[2], within=within)
    counts = buckets(filled, views.runs.question_set(filled, key), chosen)
    if not within:
        own = rows[rows["kind"] == "flip"]
        assert counts == loops(own, MODELS[0], MODELS[2]) | {"all": len(own)}
    assert counts["all"] > 0
    seen: set[int] = set()
    for name, count in counts.items():
        table, total = views.cases.failures(
            filled, views.runs.question_set(filled, key), bucket(chosen, name), 1, 10_000
        )
        assert total == count == len(table)
        if name != "all":
            assert not seen & set(table["case"])
            seen |= set(table["case"])
        if name.startswith("only"):
            assert (table["margin"] <= 0).all()  # of the model that is fooled
    assert len(seen) == counts["all"]
    with pytest.raises(NotFound, match="only_first"):
        bucket(chosen, "only_frist")


def test_the_scatter_has_every_case_or_the_same_share_of_them_each_time(
    filled: Store, key: str, rows: pd.DataFrame
):
    own = rows[rows["kind"] == "combined"].set_index("case")
    points, total = scatter(
        filled, views.runs.question_set(filled, key), MODELS[0], MODELS[1], "combined"
    )
    assert total == len(points) == len(own)
    assert points["case"].tolist() == own.index.tolist()
    assert points["margin"].tolist() == own[MODELS[0]].tolist()
    assert points["other_margin"].tolist() == own[MODELS[1]].tolist()
    few, total = scatter(
        filled, views.runs.question_set(filled, key), MODELS[0], MODELS[1], "combined", 20
    )
    again, _ = scatter(
        filled, views.runs.question_set(filled, key), MODELS[0], MODELS[2], "combined", 20
    )
    assert total == len(own)
    assert few["case"].tolist() == again["case"].tolist()
    assert len(few) == 20
    assert few.merge(points, on=list(points.columns)).shape == few.shape
    assert few["case"].tolist() != own.index[:20].tolist()
