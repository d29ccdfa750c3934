"""Counts of all exchanges of two models' answers, against a loop and by simulation in large families."""

import itertools
import math

import numpy as np
import pytest
from scipy import stats

from vlprobe.metrics import estimate
from vlprobe.types import Measure

N_MODELS = 100
N_PAIRS = N_MODELS * (N_MODELS - 1) // 2


def counts(right: np.ndarray, n_cases: np.ndarray) -> Measure:
    """Return the share of right answers of each item."""
    return Measure(right / n_cases, n_cases.astype(float), np.arange(len(right)))


@pytest.mark.parametrize("scale", [1, 3])
@pytest.mark.parametrize("seed", range(4))
def test_p_is_the_share_of_all_choices_of_signs(seed: int, scale: int):
    differences = scale * np.random.default_rng(seed).integers(-4, 6, 12)
    sums = [abs(differences @ signs) for signs in itertools.product((-1, 1), repeat=12)]
    share = np.mean(np.array(sums) >= abs(differences.sum()))
    assert estimate.exchange_p(differences) == pytest.approx(share, rel=1e-9)


def test_differences_of_one_size_give_mcnemars_test_and_no_difference_gives_1():
    differences = np.repeat([2, -2, 0], [9, 31, 5])
    assert estimate.exchange_p(differences) == pytest.approx(stats.binomtest(9, 40).pvalue)
    assert estimate.exchange_p(np.zeros(7, int)) == estimate.exchange_p(np.zeros(0, int)) == 1


def test_counted_exchanges_agree_with_random_ones():
    rng = np.random.default_rng(5)
    n_cases = rng.integers(1, 9, 90)
    first, second = rng.binomial(n_cases, 0.6), rng.binomial(n_cases, 0.5)
    pair = counts(first, n_cases), counts(second, n_cases)
    assert estimate.differences([pair], 90)[0].p == estimate.exchange_p(first - second)
    shifted = tuple(Measure(side.value * math.pi, side.weight, side.item) for side in pair)
    drawn = estimate.differences([shifted], 90)[0].p  # without whole numbers, exchanges are random
    assert drawn == pytest.approx(estimate.exchange_p(first - second), abs=0.008)


def test_means_of_two_orders_are_counted_in_halves():
    rng = np.random.default_rng(6)
    n_cases = np.full(40, 3)
    halves = rng.integers(0, 7, (2, 40))
    pair = tuple(counts(side / 2, n_cases) for side in halves)
    assert estimate.differences([pair], 40)[0].p == estimate.exchange_p(halves[0] - halves[1])


def test_a_very_clear_difference_has_the_smallest_exact_p():
    clear = np.repeat([1, 2], 60)
    assert estimate.exchange_p(clear) == estimate.LEAST_P > 2.0**-119


def family(rng: np.random.Generator, rates: np.ndarray, n_items: int) -> np.ndarray:
    """Draw right answers of N_MODELS models to four cases per picture; hard pictures are hard for all."""
    hard = rng.normal(0, 0.1, n_items)
    return rng.binomial(4, np.clip(rates[:, None] + hard, 0, 1))


def test_among_100_equal_models_any_significant_difference_is_rare():
    rng = np.random.default_rng(7)
    n_families, n_wrong = 100, 0
    first, second = np.triu_indices(N_MODELS, 1)
    for _ in range(n_families):
        right = family(rng, np.full(N_MODELS, 0.7), 80)
        differences = right[first] - right[second]
        z = np.abs(differences.sum(axis=1)) / np.sqrt((differences**2).sum(axis=1))
        smallest = min(estimate.exchange_p(row) for row in differences[np.argsort(-z)[:3]])
        n_wrong += smallest < 0.05 / N_PAIRS  # the first step of Holm's method
    assert n_wrong <= stats.binom.ppf(0.999, n_families, 0.05)


def test_among_100_models_a_difference_of_eight_points_is_found():
    rng = np.random.default_rng(8)
    rates = np.repeat([0.66, 0.74], N_MODELS // 2)
    right = family(rng, rates, 1500)
    pairs = list(itertools.combinations(range(N_MODELS), 2))[::17]
    p = np.array([estimate.exchange_p(right[one] - right[other]) for one, other in pairs])
    p *= N_PAIRS  # at most the p of Holm's method
    is_apart = np.array([rates[one] != rates[other] for one, other in pairs])
    assert np.mean(p[is_apart] < 0.05) > 0.9
    assert not (p[~is_apart] < 0.05).any()
    assert N_PAIRS / (estimate.EXCHANGES + 1) > 0.05  # random exchanges are too few


def test_among_100_models_differences_of_real_numbers_are_found_by_hoeffdings_bound():
    rng = np.random.default_rng(9)
    values = rng.normal(size=(2, 300))
    first, alike, better = (
        Measure(side, np.ones(300), np.arange(300))
        for side in (values[0], values[1], values[1] + 0.6)
    )
    tied, apart = estimate.differences([(first, alike), (first, better)], 300)
    d = values[0] - values[1] - 0.6
    bound = 2 * math.exp(-(d.sum() ** 2) / (2 * (d**2).sum()))
    assert apart.p == pytest.approx(bound)
    assert apart.p >= 2 * stats.norm.sf(abs(d.sum()) / math.sqrt((d**2).sum()))
    assert estimate.holm([apart.p, *[tied.p] * (N_PAIRS - 1)])[0] < 0.05
    assert tied.p > 0.05
    halved = Measure(better.value, np.full(300, 0.5) + (np.arange(300) < 9), better.item)
    (other,) = estimate.differences([(first, halved)], 300)  # sums without the bound
    assert other.p == 1 / (estimate.EXCHANGES + 1)
