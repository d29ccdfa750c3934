"""Means and intervals, against plain loops and scipy."""

import math

import numpy as np
import pytest
from scipy import stats

from vlprobe.metrics import estimate
from vlprobe.metrics.resampling import resample_counts
from vlprobe.types import Measure


def measure(value, weight, item) -> Measure:
    return Measure(np.asarray(value, float), np.asarray(weight, float), np.asarray(item, int))


def test_macro_averages_within_a_group_before_it_averages_groups():
    # group 0: (1 + 3) / 2 = 2; group 1: 10; the mean of both is 6, where pooling gives 14 / 3
    value, ones = np.array([1.0, 3.0, 10.0]), np.ones(3)
    macro = estimate.macro(value, ones, np.array([0, 0, 1]), np.array([0, 0, 1]))
    micro = estimate.micro(value, ones, np.array([0, 0, 1]))
    assert estimate.estimates([macro], 2)[0].value == 6
    assert estimate.estimates([micro], 2)[0].value == pytest.approx(14 / 3)


def test_a_value_that_does_not_apply_counts_neither_for_the_mean_nor_for_the_items():
    macro = estimate.macro(
        np.array([1.0, np.nan, np.nan]), np.ones(3), np.array([0, 0, 1]), np.array([0, 0, 1])
    )
    found = estimate.estimates([macro], 5)[0]
    assert (found.value, found.n_items) == (1.0, 1)
    assert math.isnan(found.low)


def test_an_empty_measure_is_unknown_and_not_zero():
    found = estimate.estimates([measure([], [], [])], 3)[0]
    assert math.isnan(found.value)
    assert math.isnan(found.low)
    assert found.n_items == 0


def test_a_weighted_mean_matches_a_plain_loop():
    rng = np.random.default_rng(0)
    value, weight, item = rng.normal(size=200), rng.random(200), rng.integers(0, 20, 200)
    expected = sum(v * w for v, w in zip(value, weight, strict=True)) / sum(weight)
    assert estimate.estimates([measure(value, weight, item)], 20)[0].value == pytest.approx(
        expected
    )


def test_repeating_every_case_does_not_narrow_the_interval():
    rng = np.random.default_rng(1)
    value, item = rng.normal(size=60), np.arange(60)
    once = estimate.estimates([measure(value, np.ones(60), item)], 60)[0]
    thrice = estimate.estimates(
        [measure(np.repeat(value, 3), np.ones(180), np.repeat(item, 3))], 60
    )[0]
    assert thrice.low == pytest.approx(once.low)
    assert thrice.high == pytest.approx(once.high)


def test_the_interval_agrees_with_scipys_bootstrap():
    rng = np.random.default_rng(2)
    value = rng.exponential(size=300)
    found = estimate.estimates([measure(value, np.ones(300), np.arange(300))], 300)[0]
    other = stats.bootstrap(
        (value,), np.mean, method="percentile", n_resamples=4000, rng=3
    ).confidence_interval
    assert found.low == pytest.approx(other.low, abs=0.02)
    assert found.high == pytest.approx(other.high, abs=0.02)


def test_the_interval_covers_the_truth_in_about_nineteen_of_twenty_samples():
    rng = np.random.default_rng(4)
    samples = [measure(rng.normal(size=80), np.ones(80), np.arange(80)) for _ in range(300)]
    covered = np.mean([e.low <= 0 <= e.high for e in estimate.estimates(samples, 80)])
    assert 0.90 <= covered <= 0.98


def test_two_models_on_the_same_items_use_the_same_resamples():
    first = resample_counts(10, 0, 4)
    again = np.concatenate([resample_counts(10, 0, 2), resample_counts(10, 2, 4)])
    assert (first == again).all()
    assert (first.sum(axis=1) == 10).all()


def test_the_order_of_items_in_the_rows_does_not_matter():
    value, item = np.array([1.0, 2.0, 4.0, 8.0]), np.array([0, 1, 2, 3])
    turned = np.array([2, 0, 3, 1])
    one, other = estimate.estimates(
        [measure(value, np.ones(4), item), measure(value[turned], np.ones(4), item[turned])], 4
    )
    assert one == other


def rate(answers: np.ndarray) -> estimate.Estimate:
    """Return the estimate of right or wrong answers of shape (pictures, cases)."""
    n_items, n_cases = answers.shape
    item = np.repeat(np.arange(n_items), n_cases)
    return estimate.estimates(
        [measure(answers.ravel(), np.ones(answers.size), item)], n_items, True
    )[0]


@pytest.mark.parametrize("n_items", [5, 10, 200])
@pytest.mark.parametrize("value", [0, 1])
def test_a_rate_that_all_items_agree_on_has_wilsons_interval(n_items: int, value: int):
    found = rate(np.full((n_items, 3), float(value)))  # three cases per item are one observation
    other = stats.binomtest(value * n_items, n_items).proportion_ci(0.95, method="wilson")
    assert (found.value, found.n_items) == (value, n_items)
    assert (found.low, found.high) == (
        pytest.approx(other.low, abs=1e-9),
        pytest.approx(other.high, abs=1e-9),
    )


@pytest.mark.parametrize("n_items", [10, 40, 300])
def test_one_right_or_wrong_answer_per_item_has_wilsons_interval(n_items: int):
    for count in range(n_items + 1):
        found = rate((np.arange(n_items) < count).astype(float)[:, None])
        other = stats.binomtest(count, n_items).proportion_ci(0.95, method="wilson")
        width = other.high - other.low  # the variance is from 1,000 resamples: 2 % of the width
        assert found.low == pytest.approx(other.low, abs=0.05 * width)
        assert found.high == pytest.approx(other.high, abs=0.05 * width)


@pytest.mark.parametrize("n_cases", [1, 5, 20])
@pytest.mark.parametrize("n_items", [5, 8, 40])
def test_one_more_error_never_lowers_the_upper_bound(n_items: int, n_cases: int):
    """Add errors picture by picture, or one per picture until half of them have one; from there
    on the pictures become more similar, and the interval narrower.
    """
    by_picture = [(number // n_cases, number % n_cases) for number in range(n_items * n_cases // 2)]
    one_each = [(number, 0) for number in range(n_items // 2)]
    for errors in (by_picture, one_each):
        answers = np.zeros((n_items, n_cases))
        highs = [rate(answers).high]
        for error in errors:
            answers[error] = 1
            highs.append(rate(answers).high)
        assert (np.diff(highs[:6]) > 0).all()
        assert (np.diff(highs) > -0.004).all()  # the noise of 1,000 resamples


def clustered_answers(
    rng: np.random.Generator, true_rate: float, shape: tuple[int, int], agreement: float
) -> np.ndarray:
    """Draw right or wrong answers of shape (pictures, cases), beta-binomial with this intraclass correlation."""
    size = 1 / agreement - 1
    rates = rng.beta(true_rate * size, (1 - true_rate) * size, (shape[0], 1))
    return (rng.random(shape) < rates).astype(float)


@pytest.mark.parametrize(
    ("true_rate", "shape", "agreement"),
    [(0.05, (10, 20), 0.5), (0.03, (20, 20), 0.5), (0.1, (10, 5), 0.3), (0.03, (40, 5), 0.3)],
)
def test_the_interval_of_a_rare_error_covers_the_truth_unlike_percentiles(
    true_rate: float, shape: tuple[int, int], agreement: float
):
    """Check the coverage; docs/numbers/index.md has the table."""
    rng = np.random.default_rng(12)
    counts = resample_counts(shape[0], 0, estimate.RESAMPLES).astype(float)
    covered = np.zeros(2)
    for _ in range(600):
        answers = clustered_answers(rng, true_rate, shape, agreement)
        found = rate(answers)
        means = counts @ answers.mean(axis=1) / shape[0]
        low, high = np.quantile(means, [0.025, 0.975])
        if high - low < 1e-9:  # as in earlier versions: Clopper and Pearson if all items agree
            exact = stats.binomtest(round(answers.mean() * shape[0]), shape[0])
            low, high = exact.proportion_ci(0.95, method="exact")
        covered += found.low <= true_rate <= found.high, low <= true_rate <= high
    assert covered[0] / 600 >= 0.95
    assert covered[1] / 600 <= 0.92


def test_with_many_pictures_the_interval_matches_resampling():
    rng = np.random.default_rng(13)
    answers = clustered_answers(rng, 0.2, (300, 8), 0.2)
    found = rate(answers)
    other = stats.bootstrap(
        (answers.mean(axis=1),), np.mean, method="percentile", n_resamples=4000, rng=14
    ).confidence_interval
    assert found.low == pytest.approx(other.low, abs=0.003)
    assert found.high == pytest.approx(other.high, abs=0.003)


def test_a_rare_failure_is_inside_the_interval_of_a_rate_of_one():
    rng = np.random.default_rng(5)
    samples = [measure(rng.random(20) < 0.93, np.ones(20), np.arange(20)) for _ in range(400)]
    found = [e for e in estimate.estimates(samples, 20, True) if e.value == 1]
    assert len(found) > 60  # a quarter of 400, all with a resampled interval of 1 to 1
    assert all(e.low < 0.93 <= e.high for e in found)


def test_a_metric_that_is_not_a_rate_has_the_resampled_interval():
    cosine = measure(np.ones(5), np.ones(5), np.arange(5))
    assert estimate.estimates([cosine], 5)[0] == estimate.Estimate(1.0, 1.0, 1.0, 5)


@pytest.mark.parametrize("is_rate", [True, False])
def test_fewer_than_five_pictures_have_a_value_and_no_interval(is_rate: bool):
    for n_items in range(1, 7):
        answers = measure(np.arange(n_items) % 2, np.ones(n_items), np.arange(n_items))
        (found,) = estimate.estimates([answers], 20, is_rate)
        assert (found.value, found.n_items) == (np.mean(answers.value), n_items)
        assert math.isnan(found.low) == math.isnan(found.high) == (n_items < 5)
