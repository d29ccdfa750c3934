"""EqBen's metrics against hand-computed samples and a plain loop."""

import math

import numpy as np
import pandas as pd
import pytest

from vlprobe import judge
from vlprobe.metrics import pairs


def samples(matrix) -> pd.DataFrame:
    return pd.DataFrame(np.asarray(matrix, float), columns=[f"score_{column}" for column in range(4)])


HAND = samples(
    [
        [3, 1, 2, 4],  # all four comparisons hold
        [3, 1, 4, 5],  # the first caption prefers the second picture: text only
        [3, 3, 1, 4],  # a tie: image only
        [1, 3, 4, 2],  # everything the wrong way round
    ]
)


def test_scores_of_hand_made_samples():
    assert pairs.text_score(HAND).tolist() == [1, 1, 0, 0]
    assert pairs.image_score(HAND).tolist() == [1, 0, 1, 0]
    assert pairs.group_score(HAND).tolist() == [1, 0, 0, 0]
    # |(3-1)-(4-2)| + |(3-2)-(4-1)| = 2; |2-1| + |-1-4| = 6; |0-3| + |2-1| = 4; |-2+2| + |-3+1| = 2
    assert pairs.equivariance_deviation(HAND).tolist() == [2, 6, 4, 2]


def test_scores_agree_with_a_plain_loop_on_random_samples():
    rng = np.random.default_rng(0)
    matrix = rng.integers(0, 4, (500, 4))  # few values, so that there are ties
    text = [s11 > s12 and s22 > s21 for s11, s12, s21, s22 in matrix]
    image = [s11 > s21 and s22 > s12 for s11, s12, s21, s22 in matrix]
    assert pairs.text_score(samples(matrix)).tolist() == [float(x) for x in text]
    assert pairs.image_score(samples(matrix)).tolist() == [float(x) for x in image]
    assert pairs.group_score(samples(matrix)).tolist() == [float(a and b) for a, b in zip(text, image, strict=True)]
    assert ((pairs.margins(samples(matrix)) > 0) == (pairs.group_score(samples(matrix)) == 1)).all()


def test_a_blind_model_gets_the_chance_that_is_declared():
    rows = samples(np.random.default_rng(1).normal(size=(40_000, 4)))
    for metric in pairs.METRICS[:3]:
        assert metric.value(rows).mean() == pytest.approx(metric.chance, abs=0.01)


def test_the_average_counts_every_subset_alike():
    rows = samples([[3, 1, 2, 4]] * 9 + [[1, 3, 4, 2]]).assign(
        kind="pair", subtype=["a"] * 9 + ["b"], rule="", margin=1.0, item_code=range(10), group_code=range(10)
    )
    found = judge.judge(rows, pairs.METRICS, 10, [])
    line = found.query("metric == 'average_score' and by == 'all'").iloc[0]
    assert line["value"] == pytest.approx(0.5)
    assert found.query("metric == 'group_score' and by == 'all' and averaging == 'micro'").iloc[0]["value"] == 0.9


def test_valses_measures_of_probabilities():
    found = pairs.probability_scores(np.array([0.9, 0.4, 0.6, 0.5]), np.array([0.1, 0.3, 0.6, 0.2]))
    # captions above .5: 2 of 4; foils below .5: 3 of 4; strictly above their foil: 3 of 4
    assert found == {"p_c": 0.5, "p_f": 0.75, "acc": 0.625, "min": 0.5, "pairwise": 0.75}
    assert math.isnan(pairs.probability_scores(np.empty(0), np.empty(0))["acc"])


def test_a_boundary_is_where_before_then_after_fits_best():
    before, after = np.array([0.9, 0.8, 0.1, 0.1]), np.array([0.1, 0.2, 0.9, 0.8])
    # sums of neighbours: .9 + .2, .8 + .9, .1 + .8: between frames 1 and 2
    assert pairs.boundary_time(before, after, fps=5) == pytest.approx(0.3)
    assert math.isnan(pairs.boundary_time(before[:1], after[:1], 5))


def test_boundary_accuracy_counts_those_within_each_distance():
    found = pairs.boundary_accuracy(np.array([1.0, 2.0, math.nan]), np.array([1.05, 3.0, 1.0]), (0.1, 1.0, 3.0))
    assert found == pytest.approx({0.1: 1 / 3, 1.0: 2 / 3, 3.0: 2 / 3})
