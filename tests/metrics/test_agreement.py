"""Agreement of judges, against scikit-learn and the printed examples of its makers."""

import math

import numpy as np
import pytest
from sklearn.metrics import cohen_kappa_score

from vlprobe.metrics import agreement


def labels(*rows: str) -> np.ndarray:
    return np.array([[int(digit) - 1 for digit in row] for row in rows])


def test_alpha_is_that_of_krippendorffs_printed_examples():
    # "Computing Krippendorff's Alpha-Reliability" (2011), examples C and A; 0 stands for no label
    four = labels("123321412000", "123322412503", "033323422510", "123324412510")
    tables = agreement.coincidences_of(four, 5)
    assert agreement.alpha(tables.sum(axis=0)) == pytest.approx(0.743, abs=5e-4)
    two = labels("1211111121", "2221121111")
    assert agreement.alpha(agreement.coincidences_of(two, 2).sum(axis=0)) == pytest.approx(
        0.095, abs=5e-4
    )


def test_kappa_is_that_of_scikit_learn_over_what_both_judged():
    rng = np.random.default_rng(0)
    for n in (5, 40, 300):
        two = rng.integers(-1, 4, (2, n))
        both = (two >= 0).all(axis=0)
        tables = agreement.confusions_of(two, 4)
        expected = cohen_kappa_score(*two[:, both])
        assert agreement.kappa(tables.sum(axis=0)) == pytest.approx(expected, abs=1e-12)


def test_an_interval_holds_the_value_and_resamples_captions_together():
    rng = np.random.default_rng(1)
    first = rng.integers(0, 2, 200)
    two = np.stack([first, np.where(rng.random(200) < 0.8, first, 1 - first)])
    tables = agreement.confusions_of(two, 4)
    alone = agreement.estimate(tables, np.arange(200), agreement.kappa)
    assert alone.low < alone.value < alone.high and alone.n_items == 200
    # by hand: the same draws of captions, each with its ten edits
    groups = np.repeat(np.arange(20), 10)
    together = agreement.estimate(tables, groups, agreement.kappa)
    values = []
    for number in range(1000):
        chosen = np.random.default_rng([20, number]).integers(20, size=20)
        rows = np.concatenate([np.flatnonzero(groups == group) for group in chosen])
        table = np.histogram2d(*two[:, rows], bins=[range(3)] * 2)[0]
        values.append(agreement.kappa(table))
    assert together.value == alone.value and together.n_items == 20
    assert (together.low, together.high) == pytest.approx(tuple(np.percentile(values, [2.5, 97.5])))


def test_what_cannot_be_known_is_nan():
    never = agreement.estimate(np.zeros((3, 4, 4)), np.arange(3), agreement.kappa)
    assert math.isnan(never.value)
    same = agreement.confusions_of(np.zeros((2, 5), dtype=int), 4)
    assert math.isnan(agreement.kappa(same.sum(axis=0)))  # one label alone: chance explains it
    perfect = agreement.confusions_of(np.array([[0, 1, 0, 1]] * 2), 4)
    whole = agreement.estimate(perfect, np.arange(4), agreement.kappa)
    assert whole.value == 1 and math.isnan(whole.low)
