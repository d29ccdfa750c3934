"""Shares of lies that fool models: counts, intervals, p and Holm's p, each checked by a second computation."""

import itertools
import math

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from tests.views.believed_scenes import LIES, cases, counts_of, run_row, scene
from tests.views.conftest import MODELS
from vlprobe import registry, views
from vlprobe.errors import InvalidInput, NotFound
from vlprobe.metrics import estimate
from vlprobe.storage.store import Store
from vlprobe.types.presentation import KindPresentation
from vlprobe.views.paired_tests import (
    MOST_SUBTYPES,
    PairedCells,
    PairedTests,
    compare_models,
    from_cells,
)

PARTED = {
    **{("number", "xoo"): 60, ("number", "oxo"): 20, ("number", "xxx"): 90, ("number", "ooo"): 130},
    **{("object", "oxx"): 40, ("object", "xoo"): 38, ("object", "ooo"): 400, ("object", "=x="): 9},
    **{("color", "ooo"): 300, ("color", "oox"): 4},
}
NAMES = ("demo:softmax", "demo:eqsim", "demo:weak")


def plain_holm(p_values: list[float]) -> list[float]:
    """Apply Holm's method: in rising order, multiply the smallest p by the number of tests, the next by one fewer."""
    raised = {}
    highest = 0.0
    ranked = sorted((p, place) for place, p in enumerate(p_values) if not math.isnan(p))
    for step, (p, place) in enumerate(ranked):
        highest = max(highest, min(1.0, p * (len(ranked) - step)))
        raised[place] = highest
    return [raised.get(place, math.nan) for place in range(len(p_values))]


def exhaustive_p(table: pd.DataFrame, place: int) -> float:
    """Return the share of all 2^n exchanges of two models' answers by picture with a difference at least as large."""
    known = table.dropna(subset=["margin_0", f"margin_{place}"])
    believed = [
        (group["margin_0"].le(0).sum(), group[f"margin_{place}"].le(0).sum())
        for _, group in known.groupby("unit")
    ]
    observed = abs(sum(two - one for one, two in believed))
    ways = [
        abs(sum(sign * (two - one) for sign, (one, two) in zip(signs, believed, strict=True)))
        for signs in itertools.product((1, -1), repeat=len(believed))
    ]
    return sum(way >= observed for way in ways) / len(ways)


def check_by_second_route(
    compared: PairedTests, table: pd.DataFrame, adjusted: list[float] | None = None
) -> None:
    """Check counts by loops, p by scipy's binomial or all exchanges, and Holm's p by loops or `adjusted`."""
    for row in compared.rows:
        place = [contestant.model for contestant in compared.contestants].index(row.model)
        chosen = table if not row.subtype else table[table["subtype"] == row.subtype]
        both = chosen.dropna(subset=["margin_0", f"margin_{place}"])
        one, two = both["margin_0"].le(0), both[f"margin_{place}"].le(0)
        assert row.n_lies == len(both)
        assert (row.only_base, row.only_model) == ((one & ~two).sum(), (two & ~one).sum())
        assert (row.both, row.neither) == ((one & two).sum(), (~one & ~two).sum())
        if len(both):
            assert row.base == pytest.approx(one.mean())
            assert row.value == pytest.approx(two.mean())
            assert row.difference == pytest.approx(two.mean() - one.mean(), abs=1e-12)
        units = both["unit"].nunique()
        assert row.n_pictures == (units if len(both) else 0)
        if units < 2:
            assert math.isnan(row.p)
        elif units == len(both):
            parted = row.only_base + row.only_model
            exact = stats.binomtest(row.only_base, parted).pvalue if parted else 1.0
            assert row.p == pytest.approx(exact)
        elif units <= 12:
            assert row.p == pytest.approx(exhaustive_p(chosen, place), abs=0.015)
    expected = adjusted or plain_holm([row.p for row in compared.rows])
    assert [row.p_holm for row in compared.rows] == pytest.approx(expected, nan_ok=True)
    for row in compared.rows:
        word = "unknown" if math.isnan(row.p_holm) else "tied"
        if row.p_holm < 0.05:
            word = "fewer" if row.value < row.base else "more"
        assert row.verdict == word


@pytest.mark.parametrize("pictures", [0, 8])
def test_every_row_matches_loops_and_scipy(pictures: int):
    check_by_second_route(scene(PARTED, NAMES, pictures=pictures), cases(PARTED, pictures))


def test_all_lies_come_first_and_then_the_type_that_fools_the_baseline_most():
    compared = scene(PARTED, NAMES)
    assert compared.subtypes == ("", "number", "object", "color")
    assert [row.model for row in compared.rows] == list(NAMES[1:]) * 4
    assert compared.row("demo:weak", "color").only_model == 4
    with pytest.raises(KeyError):
        compared.row("demo:softmax")


def test_ties_count_as_fooled_and_missing_answers_are_in_no_share():
    pattern = {("a", "=o"): 6, ("a", "oo"): 10, ("a", "o?"): 5, ("a", "?x"): 2}
    compared = scene(pattern, NAMES[:2])
    row = compared.rows[0]
    assert (row.n_lies, row.n_left_out, row.only_base) == (16, 7, 6)
    assert (compared.baseline.n_tied, compared.baseline.n_lies) == (6, 21)
    assert compared.baseline.share == pytest.approx(6 / 21)
    assert compared.rivals[0].n_lies == 18
    check_by_second_route(compared, cases(pattern))


def test_a_single_type_of_edit_has_no_extra_row_and_of_many_the_largest_are_shown():
    assert scene({("a", "xo"): 9, ("a", "oo"): 9}, NAMES[:2]).subtypes == ("",)
    many = {(f"type {number}", "xo"): 2 + number for number in range(MOST_SUBTYPES + 3)}
    compared = scene(many | {("", "oo"): 40}, NAMES[:2])
    assert len(compared.subtypes) == MOST_SUBTYPES + 1
    assert compared.n_more_subtypes == 3
    assert "type 0" not in compared.subtypes
    assert compared.rows[0].n_lies == 40 + sum(many.values())


@pytest.mark.parametrize(
    ("pattern", "standing"),
    [
        ({("a", "oo"): 300, ("a", "xx"): 60}, "above"),
        ({("a", "oo"): 100, ("a", "xx"): 101}, "guessing"),
        ({("a", "oo"): 30, ("a", "xx"): 200}, "below"),
        ({("a", "ox"): 1}, "unknown"),
    ],
)
def test_a_model_is_above_or_below_guessing_if_its_whole_interval_is(pattern: dict, standing: str):
    compared = scene(pattern, NAMES[:2])
    assert compared.baseline.standing == standing
    n_lies = sum(pattern.values())
    believed = round(compared.baseline.share * n_lies)
    exact = stats.binomtest(believed, n_lies).proportion_ci(0.95)
    if standing == "above":
        assert exact.high < 0.5
    if standing == "below":
        assert exact.low > 0.5


def test_controls_and_models_that_failed_checks_are_marked():
    compared = scene(PARTED, ("demo:weak", "control:random", "mine"), unfit=("mine",))
    assert [one.is_control for one in compared.contestants] == [False, True, False]
    assert [one.is_unfit for one in compared.contestants] == [False, False, True]
    assert [one.is_fit for one in compared.contestants] == [True, False, False]
    assert [one.may_win for one in compared.contestants] == [True, False, False]


def test_movements_are_compared_in_the_chosen_unit():
    table = cases({("a", "xx"): 30}).assign(margin_0=-0.02, margin_1=-0.01)
    moving = KindPresentation(label="Reworded", is_movement=True)
    runs = [run_row("one", 0.1), run_row("two", 0.01)]
    counts = counts_of(table)
    by_cosine = from_cells(PairedCells(counts, runs, moving, "cosine"), "paraphrase", ())
    by_spread = from_cells(PairedCells(counts, runs, moving, "spread"), "paraphrase", ())
    assert by_cosine.rows[0].difference == pytest.approx(-0.01)
    assert by_spread.rows[0].difference == pytest.approx(1.0 - 0.2)
    assert (by_cosine.rows[0].verdict, by_spread.rows[0].verdict) == ("fewer", "more")
    assert by_cosine.baseline.standing == "unknown"
    assert by_cosine.rows[0].only_base == by_cosine.rows[0].both == 0
    without_spread = PairedCells(counts, [runs[0], run_row("two", 0.0)], moving, "spread")
    unknown = from_cells(without_spread, "paraphrase", ())
    assert unknown.rows[0].verdict == "unknown"
    shares = KindPresentation(label="Ranking", is_movement=True, is_share=True)
    of_shares = from_cells(PairedCells(counts, runs, shares, "spread"), "ranking", ())
    assert of_shares.unit == "rate"


def test_counts_of_a_store_match_those_of_loops(filled: Store, key: str, rows: pd.DataFrame):
    question_set = views.runs.question_set(filled, key)
    for kind in ("flip", "combined", "paraphrase"):
        compared = compare_models(question_set, MODELS, kind)
        chosen = rows[rows["kind"] == kind]
        named = {model: f"margin_{place}" for place, model in enumerate(MODELS)}
        numbers = chosen.index
        subtypes = pd.read_parquet(filled.root / "cases" / key / "cases.parquet")["subtype"]
        table = chosen.rename(columns=named).assign(
            unit=pd.factorize(chosen["item"])[0], subtype=subtypes.to_numpy()[numbers]
        )
        if kind == "paraphrase":
            for row in compared.rows:
                place = MODELS.index(row.model)
                chosen = table if not row.subtype else table[table["subtype"] == row.subtype]
                assert row.value == pytest.approx(chosen[f"margin_{place}"].abs().mean(), rel=1e-5)
        else:
            # Two models are ranked: one pair, on all cases and on each type. With the control, there are three pairs.
            of_types = [row.p for row in compared.rows if row.subtype and row.model == MODELS[1]]
            n_known = sum(not math.isnan(p) for p in of_types)
            raised = iter(plain_holm(of_types))
            adjusted = []
            for row in compared.rows:
                p = next(raised) if row.subtype and row.model == MODELS[1] else row.p
                if row.model == MODELS[2]:
                    p = min(1.0, 3 * row.p * (len(of_types) if row.subtype else 1))
                    p = row.p if math.isnan(row.p) else p
                elif row.subtype and not math.isnan(row.p):
                    assert row.n_tests == n_known
                adjusted.append(p)
            check_by_second_route(compared, table, adjusted)


def test_the_interval_is_that_of_resampled_pictures():
    table = cases(PARTED, 40)
    compared = scene(PARTED, NAMES, pictures=40)
    units = [group for _, group in table.groupby("unit")]
    differences = []
    for number in range(estimate.RESAMPLES):
        drawn = np.random.default_rng([40, number]).integers(40, size=40)
        chosen = pd.concat([units[unit] for unit in drawn[:40]]) if number < 60 else None
        if chosen is not None:
            differences.append(chosen["margin_1"].le(0).mean() - chosen["margin_0"].le(0).mean())
    row = compared.row("demo:eqsim")
    inside = np.mean([(row.low <= value <= row.high) for value in differences])
    assert inside == pytest.approx(0.95, abs=0.07)


def test_every_kind_of_every_probe_is_compared(every_probe: Store):
    sets = views.runs.question_sets(every_probe).set_index("probe")["case_key"]
    for probe, key in sets.items():
        question_set = views.runs.question_set(every_probe, key)
        for kind in views.runs.kinds(str(probe)):
            compared = compare_models(question_set, ("control:random", "control:constant"), kind)
            assert compared.rows[0].subtype == ""
            assert len({row.subtype for row in compared.rows}) == len(compared.rows)


def test_the_guessing_level_of_a_kind_is_the_chance_level_of_its_metric():
    rng = np.random.default_rng(0)
    for probe in registry.names("probes"):
        loaded = registry.load_probe(probe)
        for name, presented in loaded.presentation.kinds.items():
            if not math.isnan(presented.guess_held):
                chances = [
                    metric.chance
                    for metric in loaded.metrics
                    if name in metric.kinds and metric.unit == "rate"
                ]
                assert any(presented.guess_held == pytest.approx(chance) for chance in chances)
            else:
                assert presented.is_movement or probe in ("rococo", "series")
    # EqBen's four comparisons, of scores drawn at random
    scores = rng.random((200_000, 4))
    held = (np.minimum(scores[:, 0], scores[:, 3]) > np.maximum(scores[:, 1], scores[:, 2])).mean()
    eqben = registry.load_probe("eqben").presentation
    assert eqben.kind("pair").guess_held == pytest.approx(held, abs=0.005)


def test_two_models_are_needed_and_units_have_names(filled: Store, key: str):
    question_set = views.runs.question_set(filled, key)
    with pytest.raises(InvalidInput, match="two models"):
        compare_models(question_set, MODELS[:1], "flip")
    with pytest.raises(InvalidInput, match="Unknown unit"):
        compare_models(question_set, MODELS, "flip", "inch")
    with pytest.raises(NotFound):
        compare_models(question_set, ("x", *MODELS), "flip")
    nothing = compare_models(question_set, MODELS, "not asked")
    assert {row.verdict for row in nothing.rows} == {"unknown"}
    assert nothing.baseline.n_lies == 0
    assert LIES.guess_held == 0.5
