"""Power by simulation: a difference of the stated size is found in four of five samples."""

import math

import numpy as np
import pytest
from scipy import stats

from tests.conftest import question_set_of
from vlprobe import views
from vlprobe.metrics import estimate, power
from vlprobe.storage import shipped
from vlprobe.storage.shipped import StoreAboveShipped
from vlprobe.types import Measure
from vlprobe.views.paired_outcomes import scatter

N_CASES = 5


def answers(rng: np.random.Generator, n_items: int, ahead: float) -> tuple[np.ndarray, np.ndarray]:
    """Draw right answers of two models to the cases of each picture; the second is better by `ahead`, hard pictures are
    hard for both.
    """
    chance = np.clip(rng.normal(0.6, 0.12, n_items), 0.05, 0.9)
    first = rng.binomial(N_CASES, chance)
    return first, rng.binomial(N_CASES, chance + ahead)


def detectable(rng: np.random.Generator, n_items: int, n_tests: int) -> float:
    """Return the detectable difference of a dataset on which the models are equally good."""
    items, weight = np.arange(n_items), np.full(n_items, float(N_CASES))
    sides = answers(rng, n_items, 0.0)
    pair = tuple(Measure(side / N_CASES, weight, items) for side in sides)
    (found,) = estimate.differences([pair], n_items, [True])
    error = power.standard_error(found.low, found.high)
    return power.detectable(error, n_items, n_tests, N_CASES * n_items)


def share_found(rng: np.random.Generator, n_items: int, n_tests: int, ahead: float) -> float:
    """Return the share of samples in which the exact test finds a difference."""
    n_samples, n_found = 400, 0
    for _ in range(n_samples):
        first, second = answers(rng, n_items, ahead)
        n_found += estimate.exchange_p(second - first) < 0.05 / n_tests
    return n_found / n_samples


@pytest.mark.parametrize(("n_items", "n_tests"), [(150, 1), (400, 1), (400, 20)])
def test_the_detectable_difference_is_found_in_four_of_five_samples(n_items: int, n_tests: int):
    rng = np.random.default_rng(n_items + n_tests)
    named = np.median([detectable(rng, n_items, n_tests) for _ in range(5)])
    assert 0.72 <= share_found(rng, n_items, n_tests, named) <= 0.88
    assert share_found(rng, n_items, n_tests, named / 2) < 0.45


def test_the_computed_number_of_pictures_detects_the_difference():
    rng = np.random.default_rng(3)
    items = 150
    first, second = answers(rng, items, 0.0)
    error = (first - second).std() / N_CASES / math.sqrt(items)
    n_pictures = power.pictures_needed(0.04, error, items)
    assert 0.7 <= share_found(rng, n_pictures, 1, 0.04) <= 0.9
    assert power.detectable(error * math.sqrt(items / n_pictures), n_pictures) == pytest.approx(
        0.04, rel=0.01
    )


@pytest.mark.parametrize("n_tests", [1, 7, 4950])
def test_with_few_pictures_a_detectable_difference_needs_enough_differing_pictures(n_tests: int):
    needed = next(n for n in range(1, 40) if 2 / 2**n < 0.05 / n_tests)
    assert power.detectable(0.0, needed - 1, n_tests) == math.inf
    share = power.detectable(0.0, 60, n_tests, 60)
    assert stats.binom.sf(needed - 1, 60, share) == pytest.approx(0.8)
    assert math.isnan(power.detectable(0.0, 60, n_tests))
    n_pictures = power.pictures_needed(share, 0.0, 60, n_tests, 60)
    assert n_pictures == pytest.approx(60, abs=1)
    assert math.isnan(power.detectable(math.nan, 60))


def test_several_answers_per_picture_or_movements_need_a_smaller_difference_than_one_answer():
    one, several = (power.detectable(1e-4, 500, 1, n) for n in (500, 25 * 500))
    assert stats.binom.sf(5, 25 * 500, several) == pytest.approx(0.8)
    assert several == pytest.approx(one / 25, rel=0.02)
    assert power.detectable(1e-4, 500) == pytest.approx(2.8e-4, rel=0.01)


def test_the_detectable_movement_of_bundled_results_follows_from_the_spread_of_their_differences(
    tmp_path,
):
    question_set = question_set_of(StoreAboveShipped(tmp_path, shipped.FOLDER), "prsm", "demo")
    models = question_set.ordered_models
    tests = views.paired_tests.compare_models(question_set, models, "ranking")
    tied = [row for row in tests.rows if row.subtype and row.verdict == "tied"]
    assert len(tied) > 2
    for row in tied:
        scores, _ = scatter(question_set, models[0], row.model, "ranking", 9999)
        scores = scores[scores["subtype"] == row.subtype]
        assert len(scores) == row.n_pictures
        error = stats.sem(scores["margin"] - scores["other_margin"])
        needed = (stats.norm.isf(0.025 / row.n_tests) + stats.norm.ppf(0.8)) * error
        assert row.detectable == pytest.approx(needed, rel=0.1)
