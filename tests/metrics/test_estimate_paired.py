"""Differences between two models on the same cases, against scipy, plain loops and examples by hand."""

import itertools
import math

import numpy as np
import pytest
from scipy import stats

from vlprobe.metrics import estimate
from vlprobe.types import Measure


def measure(value, item=None, weight=None) -> Measure:
    value = np.asarray(value, float)
    item = np.arange(len(value)) if item is None else np.asarray(item, int)
    return Measure(
        value, np.ones(len(value)) if weight is None else np.asarray(weight, float), item
    )


def difference(first, second, n_items: int | None = None) -> estimate.Difference:
    pair = tuple(one if isinstance(one, Measure) else measure(one) for one in (first, second))
    return estimate.differences([pair], n_items or len(pair[0].value))[0]


def test_a_difference_is_one_weighted_mean_minus_the_other():
    rng = np.random.default_rng(0)
    values, weights, item = rng.normal(size=(2, 90)), rng.random((2, 90)), rng.integers(0, 12, 90)
    means = [
        sum(v * w for v, w in zip(*side, strict=True)) / sum(side[1])
        for side in zip(values, weights, strict=True)
    ]
    sides = [measure(value, item, weight) for value, weight in zip(values, weights, strict=True)]
    found = difference(*sides, n_items=12)
    assert found.value == pytest.approx(means[0] - means[1])
    assert found.n_items == 12


def test_the_interval_agrees_with_scipys_paired_bootstrap():
    rng = np.random.default_rng(1)
    shared = rng.normal(size=300)
    first, second = shared + rng.exponential(size=300), shared + rng.exponential(size=300)
    found = difference(first, second)
    statistic = lambda one, other, axis: one.mean(axis=axis) - other.mean(axis=axis)  # noqa: E731
    other = stats.bootstrap(
        (first, second), statistic, paired=True, method="percentile", n_resamples=4000, rng=2
    )
    assert found.low == pytest.approx(other.confidence_interval.low, abs=0.02)
    assert found.high == pytest.approx(other.confidence_interval.high, abs=0.02)


def test_p_agrees_with_scipys_count_of_all_exchanges():
    rng = np.random.default_rng(3)
    first, second = rng.normal(0.4, 1, 12), rng.normal(size=12)
    statistic = lambda one, other, axis: one.mean(axis=axis) - other.mean(axis=axis)  # noqa: E731
    every = stats.permutation_test(
        (first, second), statistic, permutation_type="samples", n_resamples=np.inf
    )
    assert difference(first, second).p == pytest.approx(every.pvalue, abs=0.012)


def test_p_agrees_with_all_exchanges_if_the_models_answered_different_cases():
    rng = np.random.default_rng(4)
    totals, weights = rng.normal(0.5, 1, (2, 8)), rng.integers(1, 5, (2, 8)).astype(float)
    totals[0] += 0.8 * weights[0]
    seen = totals[0].sum() / weights[0].sum() - totals[1].sum() / weights[1].sum()
    large = 0
    for exchanged in itertools.product((0, 1), repeat=8):
        rows, other = np.array(exchanged), 1 - np.array(exchanged)
        places = np.arange(8)
        mean_of = totals[rows, places].sum() / weights[rows, places].sum()
        large += (
            abs(mean_of - totals[other, places].sum() / weights[other, places].sum())
            >= abs(seen) - 1e-12
        )
    sides = [
        measure(total / weight, weight=weight)
        for total, weight in zip(totals, weights, strict=True)
    ]
    assert difference(*sides).p == pytest.approx(large / 2**8, abs=0.012)


def test_one_right_or_wrong_answer_per_item_gives_mcnemars_test():
    first, second = np.ones(40), np.ones(40)
    second[:9], first[9:11] = (0, 0)  # 9 items fool only the second, 2 only the first model
    exact = stats.binomtest(2, 11).pvalue
    assert estimate.mcnemar(2, 9) == pytest.approx(exact)
    assert difference(first, second).p == pytest.approx(exact, abs=0.008)


@pytest.mark.parametrize(
    "counts", [(0, 0), (1, 0), (3, 3), (0, 5), (10, 31), (480, 520), (2000, 2101)]
)
def test_mcnemar_is_twice_the_tail_of_a_binomial(counts: tuple[int, int]):
    expected = stats.binomtest(counts[0], sum(counts)).pvalue if sum(counts) else 1.0
    assert estimate.mcnemar(*counts) == pytest.approx(expected, rel=1e-9)
    assert estimate.mcnemar(*counts[::-1]) == estimate.mcnemar(*counts)


@pytest.mark.parametrize("n_items", [30, 5000])
def test_five_items_for_one_model_and_none_for_the_other_are_not_significant(n_items: int):
    second = np.ones(n_items)
    second[:: n_items // 5] = 0
    assert (second == 0).sum() == 5
    assert difference(np.ones(n_items), second).p == pytest.approx(2 / 2**5, abs=0.008)


def test_models_with_equal_answers_have_a_difference_of_exactly_zero():
    value = np.random.default_rng(5).normal(size=50)
    found = difference(value, value)
    assert (found.value, found.low, found.high, found.p) == (0, 0, 0, 1)


def test_repeating_every_case_changes_neither_p_nor_the_interval():
    rng = np.random.default_rng(6)
    first, second = rng.normal(0.4, 1, 40), rng.normal(size=40)
    once = difference(first, second)
    item = np.repeat(np.arange(40), 3)
    thrice = difference(measure(np.repeat(first, 3), item), measure(np.repeat(second, 3), item), 40)
    assert thrice.p == once.p
    assert (thrice.low, thrice.high) == (pytest.approx(once.low), pytest.approx(once.high))


def test_swapping_the_models_changes_only_the_sign():
    rng = np.random.default_rng(7)
    first, second = rng.normal(0.3, 1, 60), rng.normal(size=60)
    one, other = difference(first, second), difference(second, first)
    assert (one.value, one.low, one.high, one.p) == (-other.value, -other.high, -other.low, other.p)


def test_equal_models_differ_significantly_in_one_of_twenty_samples_and_intervals_cover_the_truth():
    rng = np.random.default_rng(8)
    n_items, item = 60, np.repeat(np.arange(60), 4)
    pairs = []
    for _ in range(400):  # four correlated cases per item; hard items are hard for both models
        hard, apart = rng.normal(size=60)[item], rng.normal(size=(2, 60))[:, item]
        pairs.append(tuple(measure(hard + side + rng.normal(size=240), item) for side in apart))
    found = estimate.differences(pairs, n_items)
    assert 0.02 <= np.mean([one.p < 0.05 for one in found]) <= 0.08
    assert 0.91 <= np.mean([one.low <= 0 <= one.high for one in found]) <= 0.98


def test_the_error_of_many_items_in_groups_matches_the_formula_for_single_items():
    rng = np.random.default_rng(9)
    pairs = [
        (measure(rng.exponential(size=6000)), measure(rng.exponential(size=6000)))
        for _ in range(60)
    ]
    found = estimate.differences(pairs, 6000)
    ratios = []
    for (first, second), one in zip(pairs, found, strict=True):
        error = (first.value - second.value).std(ddof=1) / math.sqrt(6000)
        ratios.append((one.high - one.low) / (2 * stats.norm.ppf(0.975) * error))
        assert one.p == pytest.approx(2 * stats.norm.sf(abs(one.value) / error), abs=0.06)
    assert np.mean(ratios) == pytest.approx(1, abs=0.02)
    assert max(abs(np.array(ratios) - 1)) < 0.15


def test_the_order_of_sorted_items_does_not_narrow_the_interval():
    # groups with one item of each kind would all be equal
    value = np.repeat([0.0, 1.0, 2.0, 5.0], 1024)
    found = difference(value, np.zeros(4096))
    expected = 2 * 1.96 * value.std() / math.sqrt(4096)
    assert found.high - found.low == pytest.approx(expected, rel=0.12)


def test_a_difference_without_common_items_is_unknown_and_one_item_has_no_p():
    nothing = measure([])
    pairs = [(nothing, measure([1.0, 2.0])), (measure([1.0, 2.0]), measure([0.0, 0.0]))]
    unknown, known = estimate.differences(pairs, 4)
    assert unknown.n_items == 0
    assert all(
        math.isnan(number) for number in (unknown.value, unknown.low, unknown.high, unknown.p)
    )
    assert (known.value, known.n_items) == (1.5, 2)
    single = difference(measure([3.0], [2]), measure([1.0], [2]), 4)
    assert (single.value, single.n_items) == (2.0, 1)
    assert math.isnan(single.p)
    assert math.isnan(single.low)
    assert estimate.differences([], 3) == []


@pytest.mark.parametrize("is_rate", [True, False])
def test_a_difference_on_fewer_than_five_pictures_has_a_p_and_no_interval(is_rate: bool):
    for n_items in range(2, 7):
        pair = measure(np.ones(n_items)), measure(np.zeros(n_items))
        (found,) = estimate.differences([pair], n_items, [is_rate])
        assert math.isnan(found.low) == math.isnan(found.high) == (n_items < 5)
        assert found.p == pytest.approx(2 / 2**n_items, abs=0.01)  # all exchanges, with both signs


def test_items_that_only_one_model_answered_are_ignored():
    value = np.repeat([1.0, 0.0], 50)
    easy = measure(value[:50])
    found = difference(easy, measure(value), n_items=100)
    assert (found.value, found.low, found.high, found.p, found.n_items) == (0, 0, 0, 1, 50)


def test_holm_matches_an_example_by_hand():
    # .01 x 4 = .04; .02 x 3 = .06; .03 x 2 = .06; .5 x 1
    assert estimate.holm([0.03, 0.01, 0.5, 0.02]) == pytest.approx([0.06, 0.04, 0.5, 0.06])
    assert estimate.holm([0.9, 0.6]) == pytest.approx([1, 1])
    raised = estimate.holm([math.nan, 0.02, 0.01])
    assert math.isnan(raised[0])
    assert raised[1:] == pytest.approx([0.02, 0.02])
    assert len(estimate.holm([])) == 0


def test_holm_rejects_the_same_tests_as_stepping_down():
    rng = np.random.default_rng(10)
    for _ in range(50):
        p = rng.random(12) ** 4
        rejected, order = np.zeros(12, bool), np.argsort(p)
        for step, place in enumerate(order):
            if p[place] >= 0.05 / (12 - step):
                break
            rejected[place] = True
        assert ((estimate.holm(p) < 0.05) == rejected).all()


def test_a_clear_difference_is_significant_in_a_large_family():
    clear = estimate.differences([(measure(np.ones(30)), measure(np.zeros(30)))], 30)[0].p
    assert estimate.holm([clear] * 100)[0] < 0.05


def test_the_interval_of_a_difference_of_rates_allows_for_unseen_items():
    right, wrong = np.ones(12), np.zeros(12)
    alike, apart = estimate.differences(
        [(measure(right), measure(right)), (measure(right), measure(wrong))], 12, [True, True]
    )
    # the models agree on all twelve items: the share on which they differ is below Wilson's bound of 0 of 12
    bound = stats.binomtest(0, 12).proportion_ci(0.95, method="wilson").high
    assert (alike.value, alike.low, alike.high, alike.p) == (
        0,
        pytest.approx(-bound),
        pytest.approx(bound),
        1,
    )
    # they differ on all twelve: at worst the difference is reversed on unseen items
    share = stats.binomtest(12, 12).proportion_ci(0.95, method="wilson").low
    assert (apart.value, apart.low, apart.high) == (1, pytest.approx(share - (1 - share)), 1)
    cosines = difference(right, right)
    assert (cosines.low, cosines.high) == (0, 0)


def test_samples_without_a_difference_have_an_interval_that_contains_a_rare_one():
    rng = np.random.default_rng(11)
    pairs = []
    for _ in range(200):  # the first is right on five in a hundred items that fool the second
        second = (rng.random(25) < 0.5).astype(float)
        pairs.append((measure(np.where(rng.random(25) < 0.05, 1.0, second)), measure(second)))
    found = [one for one in estimate.differences(pairs, 25, [True] * 200) if one.value == 0]
    assert len(found) > 30
    assert all(one.low < 0.025 < one.high for one in found)
