"""PRSM's measures against scipy, sets and hand-made rankings."""

import math
from itertools import combinations

import numpy as np
import pytest
from scipy import stats

from vlprobe.metrics import ranking


def versions(seed: int, n: int = 300, values: int = 0) -> np.ndarray:
    """Three versions of similarities to n candidates; with `values` only that many different ones, so that many tie."""
    rng = np.random.default_rng(seed)
    made = rng.normal(size=n) + 0.5 * rng.normal(size=(3, n))
    return np.round(made * values) if values else made


@pytest.mark.parametrize("values", [0, 2])
def test_average_ranks_are_scipys(values: int):
    made = versions(1, values=values)
    assert (ranking.average_ranks(made) == stats.rankdata(-made, axis=1)).all()


@pytest.mark.parametrize("values", [0, 2])
def test_rank_correlation_is_the_mean_of_scipys_spearman(values: int):
    made = versions(2, values=values)
    expected = np.mean([stats.spearmanr(made[i], made[j]).statistic for i, j in combinations(range(3), 2)])
    assert ranking.rank_correlation(ranking.average_ranks(made)) == pytest.approx(expected, abs=1e-12)


def test_the_same_ranking_is_exactly_one_and_the_reverse_minus_one():
    values = np.array([[0.1, 0.5, 0.9], [1.0, 2.0, 3.0]])
    assert ranking.rank_correlation(ranking.average_ranks(values)) == pytest.approx(1, abs=1e-15)
    assert ranking.rank_correlation(ranking.average_ranks(values * [[1], [-1]])) == pytest.approx(-1, abs=1e-15)


def test_a_model_that_cannot_tell_candidates_apart_has_no_correlation_and_chance_overlap():
    same = np.ones((2, 50))
    assert math.isnan(ranking.rank_correlation(ranking.average_ranks(same)))
    assert math.isnan(ranking.list_correlation(same))
    assert ranking.top_overlap(same, 10) == pytest.approx(10 / 50)


def test_top_overlap_is_that_of_plain_sets():
    made = versions(3)
    tops = [set(np.argsort(-row)[:20].tolist()) for row in made]
    expected = np.mean([len(tops[i] & tops[j]) / 20 for i, j in combinations(range(3), 2)])
    assert ranking.top_overlap(made, 20) == pytest.approx(expected)


def test_a_tie_at_the_border_counts_as_a_random_order_of_it_would():
    made = np.array([[3.0, 2.0, 2.0, 2.0, 1.0], [5.0, 4.0, 3.0, 2.0, 1.0]])
    rng = np.random.default_rng(4)
    drawn = []
    for _ in range(4000):
        shuffled = rng.permutation(5)
        tops = [set(sorted(range(5), key=lambda c, row=row: (-row[c], shuffled[c]))[:2]) for row in made]
        drawn.append(len(tops[0] & tops[1]) / 2)
    assert ranking.top_overlap(made, 2) == pytest.approx(np.mean(drawn), abs=0.02)


def test_the_top_of_more_than_there_is_is_unknown():
    assert math.isnan(ranking.top_overlap(versions(5, n=50), 50))


def test_one_version_has_nothing_to_be_compared_with():
    assert math.isnan(ranking.rank_correlation(ranking.average_ranks(versions(6)[:1])))
    assert math.isnan(ranking.top_overlap(versions(6)[:1], 10))


def test_the_id_list_reading_is_near_zero_where_the_ranking_is_stable():
    made = versions(7, n=5000)
    assert ranking.rank_correlation(ranking.average_ranks(made)) > 0.7
    assert abs(ranking.list_correlation(made)) < 0.05
