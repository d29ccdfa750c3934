"""The AUC of the model checks and its interval, against independent computations."""

import numpy as np
import pytest
import scipy.stats

from vlprobe.metrics import estimate
from vlprobe.metrics.resampling import resample_counts
from vlprobe.models.doctor import checks


def test_the_auc_equals_the_mann_whitney_statistic_with_ties():
    scores = np.random.default_rng(3).integers(0, 6, (15, 15)).astype(float) + 2 * np.eye(15)
    apart = scores[~np.eye(15, dtype=bool)]
    u = scipy.stats.mannwhitneyu(np.diag(scores), apart).statistic
    assert checks.auc(scores).value == pytest.approx(u / (15 * len(apart)))


def test_the_interval_of_the_auc_equals_pair_counts_over_resampled_items():
    scores = np.round(np.random.default_rng(4).normal(size=(6, 6)), 1) + np.eye(6)
    values = []
    for count in resample_counts(6, 0, estimate.RESAMPLES).astype(int):
        drawn = np.repeat(np.arange(6), count)
        wins = [
            (scores[own, own] > scores[one, other]) + 0.5 * (scores[own, own] == scores[one, other])
            for own in drawn
            for one in drawn
            for other in drawn
            if one != other
        ]
        values += [np.mean(wins)] if wins else []
    expected = np.quantile(values, [0.025, 0.975])
    result = checks.auc(scores)
    np.testing.assert_allclose([result.low, result.high], expected)
