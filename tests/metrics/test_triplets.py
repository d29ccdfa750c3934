"""VISLA's metrics against hand-made triplets and a plain loop."""

import numpy as np
import pandas as pd
import pytest

from vlprobe.metrics import triplets

BY_NAME = {metric.name: metric.value for metric in triplets.METRICS}


def test_both_captions_must_beat_the_negative_strictly():
    rows = pd.DataFrame([[0.3, 0.4, 0.2], [0.3, 0.2, 0.2], [0.1, 0.4, 0.2]], columns=["score_0", "score_1", "score_2"])
    assert triplets.i2t_accuracy(rows).tolist() == [1, 0, 0]
    assert BY_NAME["i2t_p1_n"](rows).tolist() == [1, 1, 0]
    assert BY_NAME["i2t_p2_n"](rows).tolist() == [1, 0, 1]


def test_text_measures_agree_with_a_plain_loop():
    rng = np.random.default_rng(0)
    rows = pd.DataFrame(rng.integers(0, 3, (300, 3)) / 2, columns=["text_01", "text_02", "text_12"])
    loop = [(p1p2 > p1n and p1p2 > p2n, p1p2 > p2n, p1p2 > p1n) for p1p2, p1n, p2n in rows.itertuples(index=False)]
    for column, name in enumerate(("t2t_accuracy", "t2t_p1_n", "t2t_p2_n")):
        assert BY_NAME[name](rows).tolist() == [float(line[column]) for line in loop]


def test_blind_models_get_the_chance_that_is_declared():
    rng = np.random.default_rng(1)
    names = ["score_0", "score_1", "score_2", "text_01", "text_02", "text_12", "overlap_01", "overlap_02", "overlap_12"]
    rows = pd.DataFrame(rng.normal(size=(40_000, 9)), columns=names)
    for metric in triplets.METRICS:
        assert metric.value(rows).mean() == pytest.approx(metric.chance, abs=0.01), metric.name


def test_jaccard_is_shared_over_all():
    assert triplets.jaccard(frozenset("abc"), frozenset("bcd")) == 0.5
    assert np.isnan(triplets.jaccard(frozenset(), frozenset()))
