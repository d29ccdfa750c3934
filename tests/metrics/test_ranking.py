"""PRSM's measures against scipy, sets and hand-made rankings."""

import math
from itertools import combinations

import numpy as np
import pytest
from scipy import stats

from vlprobe.metrics import ranking


def versions(seed: int, n: int = 300, values: int = 0) -> np.ndarray:
    """Draw three versions of similarities to n candidates; `values` limits the distinct ones, so that many tie."""
    rng = np.random.default_rng(seed)
    made = rng.normal(size=n) + 0.5 * rng.normal(size=(3, n))
    return np.round(made * values) if values else made


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("values", [0, 2, 60])
def test_average_ranks_match_scipy_and_the_order_matches_a_stable_sort(values: int, dtype: type):
    made = versions(1, values=values).astype(dtype)
    found = ranking.ranked(made)
    assert (found.centered + (300 + 1) / 2 == stats.rankdata(-made, axis=1)).all()
    assert (found.order == np.argsort(-made, axis=1, kind="stable")).all()


def test_rankings_match_for_other_numbers_of_versions_and_another_gallery():
    for made in (
        versions(10),
        versions(11)[:2],
        np.tile(versions(12), (2, 1)),
        versions(13, n=40),
        versions(14, n=50),
    ):
        made = made.astype(np.float32)
        found = ranking.ranked(made)
        assert (found.order == np.argsort(-made, axis=1, kind="stable")).all()
        assert (found.centered + (made.shape[1] + 1) / 2 == stats.rankdata(-made, axis=1)).all()


def test_both_zeros_tie_and_extreme_numbers_keep_their_order():
    made = np.float32([[0.0, -0.0, 1e-45, -1e-45, 3e38, -3e38, 0.0]])
    found = ranking.ranked(made)
    assert found.order.tolist() == [[4, 2, 0, 1, 6, 3, 5]]
    assert (found.centered[0] + 4).tolist() == [4, 4, 2, 6, 1, 7, 4]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("values", [0, 2])
def test_rank_correlation_is_the_mean_of_scipys_spearman(values: int, dtype: type):
    made = versions(2, values=values).astype(dtype)
    expected = np.mean(
        [stats.spearmanr(made[i], made[j]).statistic for i, j in combinations(range(3), 2)]
    )
    assert ranking.rank_correlation(ranking.ranked(made)) == pytest.approx(expected, abs=1e-12)


def test_equal_rankings_correlate_with_1_and_reversed_ones_with_minus_1():
    values = np.array([[0.1, 0.5, 0.9], [1.0, 2.0, 3.0]])
    assert ranking.rank_correlation(ranking.ranked(values)) == pytest.approx(1, abs=1e-15)
    assert ranking.rank_correlation(ranking.ranked(values * [[1], [-1]])) == pytest.approx(
        -1, abs=1e-15
    )


def test_a_constant_model_has_no_correlation_and_the_overlap_of_chance():
    same = np.ones((2, 50))
    assert math.isnan(ranking.rank_correlation(ranking.ranked(same)))
    assert math.isnan(ranking.list_correlations(ranking.ranked(same)).mean())
    assert ranking.top_overlaps(ranking.ranked(same), 10).mean() == pytest.approx(10 / 50)


def test_the_id_list_measure_correlates_the_lists_as_numbers():
    made = versions(8, values=2).astype(np.float32)
    lists = np.argsort(-made, axis=1, kind="stable")
    expected = np.mean(
        [np.corrcoef(lists[i], lists[j])[0, 1] for i, j in combinations(range(3), 2)]
    )
    assert ranking.list_correlations(ranking.ranked(made)).mean() == pytest.approx(
        expected, abs=1e-12
    )


def test_top_overlap_matches_plain_sets():
    made = versions(3)
    tops = [set(np.argsort(-row)[:20].tolist()) for row in made]
    expected = np.mean([len(tops[i] & tops[j]) / 20 for i, j in combinations(range(3), 2)])
    assert ranking.top_overlaps(ranking.ranked(made), 20).mean() == pytest.approx(expected)


def test_a_tie_at_the_border_counts_as_a_random_order():
    made = np.array([[3.0, 2.0, 2.0, 2.0, 1.0], [5.0, 4.0, 3.0, 2.0, 1.0]])
    rng = np.random.default_rng(4)
    drawn = []
    for _ in range(4000):
        shuffled = rng.permutation(5)
        tops = [
            set(sorted(range(5), key=lambda c, row=row: (-row[c], shuffled[c]))[:2]) for row in made
        ]
        drawn.append(len(tops[0] & tops[1]) / 2)
    assert ranking.top_overlaps(ranking.ranked(made), 2).mean() == pytest.approx(
        np.mean(drawn), abs=0.02
    )


@pytest.mark.parametrize("k", [1, 10, 100, 299])
def test_top_overlap_with_many_ties_is_the_product_of_inclusion_probabilities(k: int):
    made = versions(9, values=2)
    border = -np.sort(-made, axis=1)[:, k - 1, None]
    above, level = (made > border).astype(float), (made == border).astype(float)
    inside = above + level * (k - above.sum(axis=1, keepdims=True)) / level.sum(
        axis=1, keepdims=True
    )
    expected = np.mean([(inside[i] * inside[j]).sum() / k for i, j in combinations(range(3), 2)])
    assert ranking.top_overlaps(ranking.ranked(made), k).mean() == pytest.approx(
        expected, abs=1e-12
    )


def test_an_overlap_deeper_than_the_gallery_is_unknown():
    assert math.isnan(ranking.top_overlaps(ranking.ranked(versions(5, n=50)), 50).mean())


def test_a_single_version_has_no_correlation_and_no_overlap():
    assert math.isnan(ranking.rank_correlation(ranking.ranked(versions(6)[:1])))
    assert not len(ranking.top_overlaps(ranking.ranked(versions(6)[:1]), 10))


def test_the_id_list_measure_is_near_zero_although_the_ranking_is_stable():
    made = versions(7, n=5000)
    assert ranking.rank_correlation(ranking.ranked(made)) > 0.7
    assert abs(ranking.list_correlations(ranking.ranked(made)).mean()) < 0.05
