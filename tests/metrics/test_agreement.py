"""Agreement of judges, against Krippendorff's published examples, a loop over pairs, and earlier versions."""

import itertools
import math

import numpy as np
import pytest

from vlprobe.metrics import agreement


def labels(*rows: str) -> np.ndarray:
    """Return labels with one row per judge; 0 means no label."""
    return np.array([[int(digit) - 1 for digit in row] for row in rows])


def counts(labels_by_judge: np.ndarray, categories: int) -> np.ndarray:
    return np.stack([(labels_by_judge == label).sum(axis=0) for label in range(categories)], axis=1)


def three_judges() -> np.ndarray:
    """Return labels with gaps that mostly agree."""
    rng = np.random.default_rng(7)
    truth = rng.integers(0, 4, 120)
    drawn = np.stack(
        [np.where(rng.random(120) < 0.8, truth, rng.integers(0, 4, 120)) for _ in range(3)]
    )
    drawn[2, 90:] = drawn[0, :5] = agreement.UNJUDGED
    return drawn


def test_alpha_matches_krippendorffs_published_examples():
    # "Computing Krippendorff's Alpha-Reliability" (2011), examples C and A
    four = labels("123321412000", "123322412503", "033323422510", "123324412510")
    assert agreement.alpha(counts(four, 5)) == pytest.approx(0.743, abs=5e-4)
    two = labels("1211111121", "2221121111")
    assert agreement.alpha(counts(two, 2)) == pytest.approx(0.095, abs=5e-4)


def test_alpha_is_one_minus_observed_by_expected_disagreement_of_all_pairs():
    columns = [column[column >= 0].tolist() for column in three_judges().T]
    columns = [column for column in columns if len(column) > 1]
    observed = sum(
        sum(a != b for a, b in itertools.permutations(column, 2)) / (len(column) - 1)
        for column in columns
    )
    every = list(itertools.chain(*columns))
    expected = sum(a != b for a, b in itertools.permutations(every, 2)) / (len(every) - 1)
    assert agreement.alpha(counts(three_judges(), 4)) == pytest.approx(1 - observed / expected)


@pytest.mark.parametrize(
    ("groups", "expected"),
    [
        (np.arange(120), (0.6768589824517106, 0.587367264011756, 0.7581327288017393, 120)),
        (
            np.repeat(np.arange(30), 4),
            (0.6768589824517106, 0.5890035976636726, 0.7548927953504689, 30),
        ),
    ],
    ids=["each edit", "edits of a caption together"],
)
def test_alpha_and_its_interval_match_those_of_earlier_versions(groups, expected):
    estimated = agreement.estimate(three_judges(), 4, groups)
    assert (estimated.value, estimated.low, estimated.high, estimated.n_items) == pytest.approx(
        expected, abs=1e-9
    )


def test_an_undefined_agreement_is_nan():
    never = agreement.estimate(np.full((2, 3), agreement.UNJUDGED), 4, np.arange(3))
    assert math.isnan(never.value) and never.n_items == 0
    once = labels("1200", "0021")
    assert math.isnan(agreement.alpha(counts(once, 4)))
    same = np.zeros((2, 5), dtype=int)
    assert math.isnan(agreement.alpha(counts(same, 4)))  # chance explains one label
    whole = agreement.estimate(np.array([[0, 1, 0, 1, 0, 1]] * 2), 4, np.arange(6))
    assert whole.value == 1 and math.isnan(whole.low)
