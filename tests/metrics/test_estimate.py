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


def test_nothing_measured_is_unknown_and_not_zero():
    found = estimate.estimates([measure([], [], [])], 3)[0]
    assert math.isnan(found.value)
    assert math.isnan(found.low)
    assert found.n_items == 0


def test_weights_are_those_of_a_plain_loop():
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


def test_the_interval_covers_the_truth_about_nineteen_times_in_twenty():
    rng = np.random.default_rng(4)
    samples = [measure(rng.normal(size=80), np.ones(80), np.arange(80)) for _ in range(300)]
    covered = np.mean([e.low <= 0 <= e.high for e in estimate.estimates(samples, 80)])
    assert 0.90 <= covered <= 0.98


def test_two_models_on_the_same_items_are_resampled_alike():
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


@pytest.mark.parametrize("n_items", [2, 3, 10, 200])
@pytest.mark.parametrize("rate", [0, 1])
def test_a_rate_that_all_items_agree_on_has_the_exact_binomial_interval(n_items: int, rate: int):
    item = np.repeat(np.arange(n_items), 3)  # three cases an item are one observation
    found = estimate.estimates(
        [measure(np.full(3 * n_items, rate), np.ones(3 * n_items), item)], n_items, True
    )[0]
    exact = stats.binomtest(rate * n_items, n_items).proportion_ci(0.95, method="exact")
    assert (found.value, found.n_items) == (rate, n_items)
    assert (found.low, found.high) == (
        pytest.approx(exact.low, abs=1e-9),
        pytest.approx(exact.high, abs=1e-9),
    )


def test_a_rare_failure_is_inside_the_interval_of_a_rate_of_one():
    rng = np.random.default_rng(5)
    samples = [measure(rng.random(20) < 0.93, np.ones(20), np.arange(20)) for _ in range(400)]
    found = [e for e in estimate.estimates(samples, 20, True) if e.value == 1]
    assert len(found) > 60  # of 400, a quarter: the resampled interval of all of them was 1 to 1
    assert all(e.low < 0.93 <= e.high for e in found)


def test_what_is_no_rate_and_what_items_differ_in_keep_the_resampled_interval():
    cosine = measure(np.ones(5), np.ones(5), np.arange(5))
    assert estimate.estimates([cosine], 5)[0] == estimate.Estimate(1.0, 1.0, 1.0, 5)
    mixed = measure([0, 1, 1, 1, 0], np.ones(5), np.arange(5))
    assert estimate.estimates([mixed], 5, True) == estimate.estimates([mixed], 5)
    single = estimate.estimates([measure([1.0], [1.0], [2])], 5, True)[0]
    assert math.isnan(single.low) and single.n_items == 1
