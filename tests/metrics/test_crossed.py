"""Means of votes, against Cameron, Gelbach and Miller's variance and known truths."""

import math

import numpy as np
import pytest
from scipy import stats

from vlprobe.metrics.crossed import CrossedMean, crossed_means
from vlprobe.metrics.estimate import without_spread

Votes = tuple[np.ndarray, np.ndarray, np.ndarray]  # values, people, pictures


def votes(
    seed: int, n_people: int, n_pictures: int, share: float = 1.0, spread: float = 0.8
) -> Votes:
    """Draw votes of different people on different pictures; each person answers a share of them."""
    generator = np.random.default_rng(seed)
    skill = generator.normal(0, spread, n_people)[:, None]
    ease = generator.normal(0, spread, n_pictures)[None]
    rights = generator.random((n_people, n_pictures)) < 1 / (1 + np.exp(-(1 + skill + ease)))
    people, pictures = np.nonzero(generator.random((n_people, n_pictures)) < share)
    return (
        rights[people, pictures].astype(np.float64),
        np.unique(people, return_inverse=True)[1],
        np.unique(pictures, return_inverse=True)[1],
    )


def two_way_error(values: np.ndarray, people: np.ndarray, pictures: np.ndarray) -> float:
    """Return the standard error of a mean by Cameron, Gelbach and Miller 2011, equation 2.11 with their
    correction for few clusters, by loops over clusters."""

    def one_way(codes: np.ndarray) -> float:
        n = len(np.unique(codes))
        sums = [(values[codes == code] - values.mean()).sum() for code in np.unique(codes)]
        return n / (n - 1) * float(np.square(sums).sum()) / len(values) ** 2

    both = people * (pictures.max() + 1) + pictures
    return math.sqrt(one_way(people) + one_way(pictures) - one_way(both))


def mean(*given: np.ndarray, lowest: float = 0.0) -> CrossedMean:
    return crossed_means([given[0]], given[1], given[2], lowest)[0]


@pytest.mark.parametrize(("n_people", "n_pictures", "share"), [(40, 30, 1.0), (25, 60, 0.5)])
def test_the_interval_matches_two_way_clustered_errors(n_people, n_pictures, share):
    values, people, pictures = votes(1, n_people, n_pictures, share)
    estimate = mean(values, people, pictures)
    error = two_way_error(values, people, pictures)
    width = 2 * float(stats.t.ppf(0.975, min(n_people, n_pictures) - 1)) * error
    assert estimate.value == values.mean()
    assert estimate.low < estimate.value < estimate.high
    # Pigeonhole resampling counts the answers' own noise up to three times, the formula once.
    assert 0.9 * width < estimate.high - estimate.low < 1.4 * width


def test_the_interval_is_wider_than_that_of_independent_votes():
    values, people, pictures = votes(2, 40, 12, spread=1.5)
    estimate = mean(values, people, pictures)
    independent = 2 * 1.96 * values.std() / math.sqrt(len(values))
    assert estimate.high - estimate.low > 2 * independent


@pytest.mark.full
def test_the_interval_contains_the_truth_in_nineteen_of_twenty_samples():
    truth = np.mean([votes(seed, 200, 200)[0].mean() for seed in range(40)])
    inside = 0
    for seed in range(200):
        estimate = mean(*votes(1000 + seed, 30, 40))
        inside += estimate.low <= truth <= estimate.high
    assert 0.92 <= inside / 200 <= 0.99


def test_a_zero_difference_is_not_significant_and_a_large_one_is():
    values, people, pictures = votes(3, 30, 30)
    coin = np.random.default_rng(0).random(len(values)) < values.mean()
    fair = mean(values - coin, people, pictures, lowest=-1.0)
    assert fair.low < 0 < fair.high and fair.p > 0.05
    worse = mean(values - (np.random.default_rng(0).random(len(values)) < 0.1), people, pictures)
    assert worse.low > 0 and worse.p < 0.01


def test_if_all_agree_the_interval_is_the_exact_bound_for_the_smaller_dimension():
    people, pictures = (codes.ravel() for codes in np.indices((5, 8)))
    estimate = mean(np.ones(40), people, pictures)
    assert (estimate.low, estimate.high) == without_spread(1.0, 5)
    no_difference = mean(np.zeros(40), people, pictures, lowest=-1.0)
    assert no_difference.low < 0 < no_difference.high and no_difference.p == 1.0


def test_a_single_person_is_not_resampled_and_a_single_vote_has_no_interval():
    values, _, pictures = votes(4, 1, 40)
    of_person = mean(values, np.zeros(len(values), dtype=np.int64), pictures)
    error = float(values.std(ddof=1) / math.sqrt(len(values)))
    assert of_person.high - of_person.low == pytest.approx(2 * 1.96 * error, rel=0.15)
    single = mean(np.ones(1), np.zeros(1, dtype=np.int64), np.zeros(1, dtype=np.int64))
    assert single.value == 1.0 and math.isnan(single.low) and math.isnan(single.p)
    (nothing,) = crossed_means([np.empty(0)], np.empty(0, int), np.empty(0, int), 0.0)
    assert math.isnan(nothing.value) and math.isnan(nothing.low)


def test_the_order_of_votes_does_not_matter():
    values, people, pictures = votes(5, 10, 10)
    order = np.random.default_rng(0).permutation(len(values))
    assert mean(values, people, pictures) == mean(values[order], people[order], pictures[order])
