"""Two to four models side by side: every number is compared with a plain loop over the Parquet files."""

import math
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from scipy import stats

from tests.conftest import make_tiny
from vlprobe import views
from vlprobe.errors import InvalidInput, NotFound
from vlprobe.metrics import estimate
from vlprobe.models.controls import ControlEncoder
from vlprobe.runs.request import Request
from vlprobe.runs.run import execute
from vlprobe.storage.store import Store
from vlprobe.types import Measure
from vlprobe.views.compare import BUCKETS, bucket, buckets, compare, paired_outcomes, scatter

MODELS = ("dealt:1", "dealt:2", "control:random")  # in the order of the pages


class Dealt(ControlEncoder):
    """Another model that knows nothing: its embeddings are drawn anew."""

    def __init__(self, name: str) -> None:
        super().__init__("random")
        self.name, self.digest, self._salt = name, name, int(name[-1])

    def _vectors(self, named: np.ndarray) -> np.ndarray:
        return super()._vectors(named ^ np.uint8(self._salt))


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Store:
    folder = tmp_path_factory.mktemp("views_compare")
    store = Store(folder / "cache")
    with pytest.MonkeyPatch.context() as patch:
        known = {MODELS[2]: ControlEncoder("random")} | {name: Dealt(name) for name in MODELS[:2]}
        patch.setattr("vlprobe.registry.load_model", lambda name, *given: known[name])
        execute(Request(MODELS, make_tiny(folder / "tiny"), "lgip", examine=False), store)
    return store


@pytest.fixture(scope="module")
def key(filled: Store) -> str:
    return views.runs.question_sets(filled)["case_key"].iloc[0]


@pytest.fixture(scope="module")
def rows(filled: Store, key: str) -> pd.DataFrame:
    """Every model's margins by case, joined without SQL."""
    runs = pd.DataFrame(views.runs.question_set(filled, key).runs).set_index("model")["key"]
    table = pd.read_parquet(filled.root / "cases" / key / "cases.parquet").set_index("case")[["item", "kind"]]
    for model in MODELS:
        scores = pd.read_parquet(filled.root / "runs" / runs[model] / "scores.parquet").set_index("case")
        table[model] = scores["margin"]
    return table.reset_index()


@pytest.mark.parametrize("averaging", ["macro", "micro"])
@pytest.mark.parametrize("unit", ["cosine", "spread"])
def test_the_values_are_those_of_the_overview(filled: Store, key: str, averaging: str, unit: str):
    table = compare(filled, views.runs.question_set(filled, key), MODELS, averaging, unit)
    known = views.estimates.estimates(filled, views.runs.question_set(filled, key), "all", averaging, unit).set_index(
        ["model", "metric"]
    )["value"]
    assert len(table) == 2 * len(views.runs.metrics("lgip"))
    assert set(table["baseline"]) == {MODELS[0]}
    for row in table.itertuples():
        assert row.value == pytest.approx(known[(row.model, row.metric)])
        assert row.base == pytest.approx(known[(MODELS[0], row.metric)])
        assert row.difference == pytest.approx(row.value - row.base)
        assert row.low <= row.difference <= row.high


def test_the_differences_are_those_of_the_cases_themselves(filled: Store, key: str, rows: pd.DataFrame):
    flips = rows[rows["kind"] == "flip"]
    item = pd.factorize(rows["item"])[0][flips.index]
    sides = [Measure((flips[model] > 0).to_numpy(float), np.ones(len(flips)), item) for model in MODELS[1::-1]]
    expected = estimate.differences([tuple(sides)], 6)[0]
    table = compare(filled, views.runs.question_set(filled, key), MODELS, "micro").set_index(["metric", "model"])
    found = table.loc[("positive_rate", MODELS[1])]
    for name in ("low", "high", "p", "n_items"):
        assert found[name] == pytest.approx(getattr(expected, name))
    assert found["difference"] == pytest.approx(expected.value)


def test_p_is_raised_for_all_that_is_shown_and_decides_the_words(filled: Store, key: str):
    table = compare(filled, views.runs.question_set(filled, key), MODELS)
    assert table["p_holm"].to_numpy() == pytest.approx(estimate.holm(table["p"]), nan_ok=True)
    assert set(table["verdict"]) <= {"better", "worse", "tied", ""}
    for row in table.itertuples():
        assert (row.verdict == "tied") == (row.p_holm >= 0.05)
    alone = compare(filled, views.runs.question_set(filled, key), MODELS[:2])
    assert (alone["p_holm"].to_numpy() <= table[table["model"] == MODELS[1]]["p_holm"].to_numpy()).all()


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
def test_a_verdict_minds_which_way_is_better(metric: str, difference: float, p: float, word: str):
    assert views.compare.verdict(views.runs.metrics("lgip")[metric], difference, p) == word


def test_where_no_direction_is_better_models_only_differ():
    neither = views.runs.metrics("prsm")["prsm_global_idlist"]
    assert views.compare.verdict(neither, 0.3, 0.001) == "differs"


def test_what_no_model_has_a_part_in_is_not_compared(every_probe: Store):
    key = views.runs.question_sets(every_probe).set_index("probe")["case_key"]
    models = ("control:random", "control:constant")
    assert "words_t2t_accuracy" not in set(
        compare(every_probe, views.runs.question_set(every_probe, key["visla"]), models)["metric"]
    )
    unknown = (
        compare(every_probe, views.runs.question_set(every_probe, key["eqben"]), models)
        .set_index("metric")
        .loc["matched_both"]
    )
    assert unknown["verdict"] == ""
    assert math.isnan(unknown["p_holm"])
    assert unknown["n_items"] == 0


@pytest.fixture(scope="module")
def partial_answers(filled: Store, key: str, tmp_path_factory: pytest.TempPathFactory) -> Store:
    """The answers of the first model, and the same without two pictures and half of a third."""
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
    tables["sums"] = pa.Table.from_pandas(sums[sums["item_code"] >= 2], tables["sums"].schema, preserve_index=False)
    tables = {
        name: own.drop("run").append_column("run", pa.array(["e" * 16] * len(own))) for name, own in tables.items()
    }
    other = {"key": "e" * 16, "run": facts["run"]["run"] | {"model": "partial"}}
    store.run(other["key"]).finish(tables, facts["run"] | other)
    return store


@pytest.mark.parametrize("averaging", ["macro", "micro"])
def test_a_model_that_leaves_out_pictures_is_tied_with_itself(partial_answers: Store, key: str, averaging: str):
    table = compare(
        partial_answers, views.runs.question_set(partial_answers, key), (MODELS[0], "partial"), averaging
    ).dropna(subset=["difference"])
    assert len(table) == len(views.runs.metrics("lgip"))
    for row in table.itertuples():
        rate = views.runs.metrics("lgip")[row.metric].unit == "rate"  # may differ on pictures other than these three
        most = stats.binomtest(0, 3).proportion_ci(0.95, method="exact").high if rate else 0
        assert (row.difference, row.p, row.verdict) == (0, 1, "tied")
        assert (row.low, row.high) == (pytest.approx(-most), pytest.approx(most))
        assert row.base == row.value
        assert (row.n_items, row.left_out) == (3, 3)


def test_an_answer_of_no_weight_is_an_answer(every_probe: Store):
    key = views.runs.question_sets(every_probe).set_index("probe")["case_key"]["rococo"]
    table = compare(
        every_probe, views.runs.question_set(every_probe, key), ("control:random", "control:constant")
    ).set_index("metric")
    known = views.estimates.estimates(every_probe, views.runs.question_set(every_probe, key)).set_index(
        ["model", "metric"]
    )["value"]
    assert table.loc["i2t_drop_rate", "base"] == pytest.approx(known["control:random", "i2t_drop_rate"], nan_ok=True)
    assert set(table["left_out"]) == {0}


def test_in_spreads_of_nothing_nothing_is_known(every_probe: Store):
    key = views.runs.question_sets(every_probe).set_index("probe")["case_key"]["lgip"]
    table = compare(
        every_probe, views.runs.question_set(every_probe, key), ("control:random", "control:constant"), unit="spread"
    ).set_index("metric")
    assert views.runs.question_set(every_probe, key).run("control:constant").spread == 0
    assert math.isnan(table.loc["sensitivity_gap", "difference"])
    assert table.loc["sensitivity_gap", "verdict"] == ""
    assert not math.isnan(table.loc["positive_rate", "difference"])


@pytest.mark.parametrize("probe", ["rococo", "eqben", "visla", "prsm"])
def test_every_probe_can_be_compared(every_probe: Store, probe: str):
    key = views.runs.question_sets(every_probe).set_index("probe")["case_key"][probe]
    table = compare(every_probe, views.runs.question_set(every_probe, key), ("control:random", "control:constant"))
    known = views.estimates.estimates(every_probe, views.runs.question_set(every_probe, key)).set_index(
        ["model", "metric"]
    )["value"]
    for row in table.itertuples():
        assert row.value == pytest.approx(known[(row.model, row.metric)], nan_ok=True)


def test_two_different_models_are_needed_and_they_must_be_known(filled: Store, key: str):
    with pytest.raises(InvalidInput, match="two models"):
        compare(filled, views.runs.question_set(filled, key), (MODELS[1], MODELS[1]))
    with pytest.raises(NotFound, match="dealt:2"):
        compare(filled, views.runs.question_set(filled, key), (MODELS[0], "dealt 2"))
    with pytest.raises(InvalidInput, match="Unit"):
        compare(filled, views.runs.question_set(filled, key), MODELS, unit="metre")


def loops(rows: pd.DataFrame, first: str, second: str) -> dict[str, int]:
    """The buckets, counted one by one."""
    counts = dict.fromkeys(BUCKETS, 0)
    for one, other in zip(rows[first], rows[second], strict=True):
        names = {(True, True): "both_fooled", (True, False): "only_first", (False, True): "only_second"}
        counts[names.get((one <= 0, other <= 0), "both_held")] += 1
    return counts


@pytest.mark.parametrize("kind", ["flip", "combined"])
def test_who_is_fooled_is_what_a_loop_counts(filled: Store, key: str, rows: pd.DataFrame, kind: str):
    own = rows[rows["kind"] == kind]
    found = paired_outcomes(filled, views.runs.question_set(filled, key), MODELS[0], MODELS[2], kind)
    assert found.counts == loops(own, MODELS[0], MODELS[2])
    assert min(found.counts.values()) > 0
    assert not found.independent
    codes = pd.factorize(own["item"])[0]
    sides = tuple(Measure((own[m] > 0).to_numpy(float), np.ones(len(own)), codes) for m in (MODELS[0], MODELS[2]))
    assert found.p == estimate.differences([sides], codes.max() + 1)[0].p


def test_one_case_a_picture_is_put_to_mcnemars_test(every_probe: Store):
    key = views.runs.question_sets(every_probe).set_index("probe")["case_key"]["eqben"]
    found = paired_outcomes(
        every_probe, views.runs.question_set(every_probe, key), "control:random", "control:constant", "pair"
    )
    assert found.independent
    split = (found.counts["only_first"], found.counts["only_second"])
    assert found.p == pytest.approx(stats.binomtest(split[0], sum(split)).pvalue if sum(split) else 1.0)
    assert found.tied_second == sum(found.counts.values())


@pytest.mark.parametrize("column", ["cluster", "tags"])  # of question sets as they are, and as they once were
def test_triplets_that_share_a_picture_are_not_independent(every_probe: Store, tmp_path: Path, column: str):
    key = views.runs.question_sets(every_probe).set_index("probe")["case_key"]["visla"]
    alone = paired_outcomes(
        every_probe, views.runs.question_set(every_probe, key), "control:random", "control:constant", "t2t"
    )
    assert alone.independent
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
    shared.cases(key).finish({"cases": table}, {k: v for k, v in cases.manifest().items() if k not in keep})
    for run in runs["key"]:
        entry = every_probe.run(run)
        facts = {k: v for k, v in entry.manifest().items() if k not in keep}
        facts["n_units"] = -(-facts["n_items"] // 2)
        shared.run(run).finish({name: entry.table(name) for name in ("scores", "estimates", "sums")}, facts)
    found = paired_outcomes(shared, views.runs.question_set(shared, key), "control:random", "control:constant", "t2t")
    assert not found.independent
    assert found.counts == alone.counts


def test_a_case_of_which_nothing_is_known_is_in_no_bucket(every_probe: Store):
    key = views.runs.question_sets(every_probe).set_index("probe")["case_key"]["prsm"]
    own = pd.DataFrame(views.runs.question_set(every_probe, key).runs).set_index("model")["key"]
    margins = [
        pd.read_parquet(every_probe.root / "runs" / own[model] / "scores.parquet").set_index("case")["margin"]
        for model in ("control:random", "control:constant")
    ]
    unknown = int((margins[0].isna() | margins[1].isna()).sum())
    found = paired_outcomes(
        every_probe, views.runs.question_set(every_probe, key), "control:random", "control:constant", "ranking"
    )
    assert found.unknown == unknown
    assert sum(found.counts.values()) == len(margins[0]) - unknown


def test_a_kind_without_cases_is_unknown(every_probe: Store):
    key = views.runs.question_sets(every_probe).set_index("probe")["case_key"]["eqben"]
    found = paired_outcomes(
        every_probe, views.runs.question_set(every_probe, key), "control:random", "control:constant", "foil"
    )
    assert sum(found.counts.values()) == 0
    assert math.isnan(found.p)


@pytest.mark.parametrize("within", [(), ((-0.05, -0.05), (0.3, -0.05), (0.3, 0.1))])
def test_the_buckets_hold_what_their_filters_pass(filled: Store, key: str, rows: pd.DataFrame, within: tuple):
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


def test_the_scatter_has_every_case_or_the_same_share_of_them_each_time(filled: Store, key: str, rows: pd.DataFrame):
    own = rows[rows["kind"] == "combined"].set_index("case")
    points, total = scatter(filled, views.runs.question_set(filled, key), MODELS[0], MODELS[1], "combined")
    assert total == len(points) == len(own)
    assert points["case"].tolist() == own.index.tolist()
    assert points["margin"].tolist() == own[MODELS[0]].tolist()
    assert points["other_margin"].tolist() == own[MODELS[1]].tolist()
    few, total = scatter(filled, views.runs.question_set(filled, key), MODELS[0], MODELS[1], "combined", 20)
    again, _ = scatter(filled, views.runs.question_set(filled, key), MODELS[0], MODELS[2], "combined", 20)
    assert total == len(own)
    assert few["case"].tolist() == again["case"].tolist()
    assert len(few) == 20
    assert few.merge(points, on=list(points.columns)).shape == few.shape
    assert few["case"].tolist() != own.index[:20].tolist()
