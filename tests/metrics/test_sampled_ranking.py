"""Overlaps by counts of candidates, against whole rankings, and estimates from a sample of candidates."""

import numpy as np
import pytest
from scipy import stats

from vlprobe.metrics import ranking
from vlprobe.scoring import gallery
from vlprobe.scoring.gallery import Gallery
from vlprobe.scoring.retrieval import best_columns

WIDTH, DEPTHS = 5, (3, 10, 40)


@pytest.mark.parametrize("draw", range(1, 8))
def test_overlaps_by_counts_match_those_of_whole_rankings_with_any_ties(monkeypatch, draw: int):
    monkeypatch.setattr(gallery, "PRODUCT_BYTES", 4 * WIDTH * 11)
    for seed in range(3):
        rng = np.random.default_rng([draw, seed])
        vectors = rng.integers(-2, 3, (90, WIDTH)).astype(np.float32)
        vectors[rng.integers(0, 90, 30)] = vectors[0]  # equal candidates in many products
        versions = rng.integers(-1, 2, (7, WIDTH)).astype(np.float32)
        versions[4] = 0  # ties with all candidates
        whole = versions @ vectors.T
        scores = np.concatenate([rows for _, rows in Gallery(vectors).similarities(versions)])
        assert (scores == whole).all()
        for rows in (slice(0, 2), slice(2, 5), slice(5, 7)):
            rankings = ranking.ranked(whole[rows])
            assert (best_columns(scores[rows], 5) == rankings.order[:, :5]).all()
            for depth in DEPTHS:
                expected = ranking.top_overlaps(rankings, depth)
                shares = ranking.counted_overlaps(scores[rows], depth)
                np.testing.assert_allclose(shares, expected, atol=1e-12)


def test_a_sample_estimates_the_full_correlation_within_its_standard_error():
    rng = np.random.default_rng(0)
    shared = rng.normal(size=20_000)
    values = np.stack([shared + 0.7 * rng.normal(size=20_000) for _ in range(2)]).astype(np.float32)
    rho = stats.spearmanr(*values).statistic
    estimates = []
    for query in range(300):
        numbers = ranking.sampled_numbers(7, f"query {query}", 20_000, 400)
        assert len(np.unique(numbers)) == 400
        estimates.append(ranking.rank_correlation(ranking.ranked(values[:, numbers])))
    expected = np.sqrt((1 + rho**2 / 2) / 397)
    assert np.mean(estimates) == pytest.approx(rho, abs=4 * expected / np.sqrt(300))
    assert 0.4 * expected < np.std(estimates) < 1.3 * expected


def test_a_sample_depends_only_on_seed_and_case():
    drawn = ranking.sampled_numbers(1, "a", 1000, 100)
    assert (drawn == ranking.sampled_numbers(1, "a", 1000, 100)).all()
    assert (drawn != ranking.sampled_numbers(1, "b", 1000, 100)).any()
    assert (drawn != ranking.sampled_numbers(2, "a", 1000, 100)).any()
    assert ranking.sampled_numbers(1, "a", 50, 100).tolist() == list(range(50))
