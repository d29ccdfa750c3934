"""EqBen's metrics against hand-computed samples and a plain loop."""

import math

import numpy as np
import pandas as pd
import pytest

from vlprobe.metrics import pairs
from vlprobe.metrics.judge import Judge


def samples(matrix) -> pd.DataFrame:
    return pd.DataFrame(
        np.asarray(matrix, float), columns=[f"score_{column}" for column in range(4)]
    )


HAND = samples(
    [
        [3, 1, 2, 4],  # all four comparisons hold
        [3, 1, 4, 5],  # the first caption prefers the second picture: text score only
        [3, 3, 1, 4],  # a tie: image score only
        [1, 3, 4, 2],  # all comparisons are reversed
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
    assert pairs.group_score(samples(matrix)).tolist() == [
        float(a and b) for a, b in zip(text, image, strict=True)
    ]
    assert ((pairs.margins(samples(matrix)) > 0) == (pairs.group_score(samples(matrix)) == 1)).all()


def test_a_random_model_gets_the_declared_chance():
    rows = samples(np.random.default_rng(1).normal(size=(40_000, 4)))
    for metric in pairs.METRICS[:3]:
        assert metric.value(rows).mean() == pytest.approx(metric.chance, abs=0.01)


def estimates(rows: pd.DataFrame, n_items: int) -> pd.DataFrame:
    judge = Judge(pairs.METRICS, n_items, [])
    judge.add(pairs.prepare(rows, pairs.survey([rows])))
    return judge.estimates()


def test_the_average_weights_every_subset_equally():
    rows = samples([[3, 1, 2, 4]] * 9 + [[1, 3, 4, 2]]).assign(
        kind="pair",
        subtype=["a"] * 9 + ["b"],
        rule="",
        margin=1.0,
        item_code=range(10),
        group_code=range(10),
    )
    found = estimates(rows, 10)
    line = found.query("metric == 'average_score' and by == 'all'").iloc[0]
    assert line["value"] == pytest.approx(0.5)
    assert (
        found.query("metric == 'group_score' and by == 'all' and averaging == 'micro'").iloc[0][
            "value"
        ]
        == 0.9
    )


FOILS = pd.DataFrame(
    {
        "kind": "foil",
        "subtype": ["a", "a", "b", "b"],
        "rule": "",
        "score_0": [0.9, 0.4, 0.6, 0.5],
        "score_1": [0.1, 0.3, 0.6, 0.2],
        "margin": [0.8, 0.1, 0.0, 0.3],
        "item_code": range(4),
        "group_code": range(4),
    }
)


def judge_foils(rows: pd.DataFrame) -> pd.Series:
    found = estimates(rows, 4).query("by == 'all' and averaging == 'micro'")
    return found.set_index("metric")["value"]


def test_valses_measures_of_probabilities():
    found = judge_foils(FOILS.assign(probability=True))
    # captions above .5: 2 of 4; foils below .5: 3 of 4; strictly above their foil: 3 of 4
    assert found["caption_accepted"] == 0.5
    assert found["foil_rejected"] == 0.75
    assert found["judged_rightly"] == 0.625
    assert found["weaker_side"] == 0.5
    assert found["foil_accuracy"] == 0.75


def test_a_model_that_always_accepts_has_a_weaker_side_of_0():
    found = judge_foils(FOILS.assign(probability=True, score_0=0.9, score_1=0.8))
    assert (found["caption_accepted"], found["foil_rejected"], found["weaker_side"]) == (1, 0, 0)


@pytest.mark.parametrize("rows", [FOILS, FOILS.assign(probability=False)])
def test_scores_that_are_not_probabilities_have_no_threshold_of_one_half(rows):
    found = judge_foils(rows)
    for name in ("caption_accepted", "foil_rejected", "judged_rightly", "weaker_side"):
        assert math.isnan(found[name])
    assert found["foil_accuracy"] == 0.75


def test_matching_in_both_orders_needs_both_and_a_tie_fails():
    rows = pd.DataFrame(
        {"order_12": [0.9, 0.9, 0.5, math.nan], "order_21": [0.6, 0.1, 0.9, math.nan]}
    )
    assert pairs.matched(rows, "order_12")[:3].tolist() == [1, 1, 0]
    assert pairs.matched(rows, "order_21")[:3].tolist() == [1, 0, 1]
    assert pairs.matched(rows, "order_12", "order_21")[:3].tolist() == [1, 0, 0]
    assert math.isnan(pairs.matched(rows, "order_12", "order_21")[3])


def test_a_case_that_the_model_cannot_answer_is_not_counted():
    found = judge_foils(FOILS.assign(margin=[0.8, 0.1, math.nan, math.nan]))
    assert found["foil_accuracy"] == 1.0
    line = estimates(FOILS.assign(margin=math.nan), 4).query("metric == 'foil_accuracy'")
    assert line["value"].isna().all() and (line["n_items"] == 0).all() and (line["ties"] == 0).all()
