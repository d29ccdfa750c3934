"""Metrics for half-truths: how often a short true caption is preferred to the same caption with a wrong detail.

Rows are cases with `score_0` (the short caption), `score_2` (the caption with the true detail) and `margin` (the short
caption's score minus the score of the caption with a wrong detail).
"""

import functools

import numpy as np
import pandas as pd

from vlprobe.metrics.pairwise import positive_rate, scores_higher
from vlprobe.perturb.half_truths import KIND
from vlprobe.types import Metric


def longer_preferred(rows: pd.DataFrame) -> np.ndarray:
    """For each case, return 1 if the longer, wrong caption scores strictly higher than the short one, else 0.

    >>> longer_preferred(pd.DataFrame({"margin": [0.2, 0.0, -0.1]})).tolist()
    [0.0, 0.0, 1.0]
    """
    return (rows["margin"].to_numpy() < 0).astype(np.float64)


def true_detail_preferred(rows: pd.DataFrame) -> np.ndarray:
    """For each case, return 1 if adding the true detail to the short caption raises its score, else 0.

    >>> true_detail_preferred(pd.DataFrame({"score_0": [0.2, 0.2], "score_2": [0.3, 0.2]})).tolist()
    [1.0, 0.0]
    """
    return scores_higher(rows, "score_2", "score_0")


_metric = functools.partial(
    Metric,
    version=1,
    kinds=(KIND,),
    unit="rate",
    direction="up",
    chance=0.5,
    source="arXiv 2602.23906",
)

METRICS = (
    _metric(
        name="half_truth_accuracy",
        label="Half-truth accuracy",
        help="Share of short true captions that score above the same caption with a wrong detail. "
        "Chance is 0.5; a tie counts as wrong.",
        value=positive_rate,
    ),
    _metric(
        name="longer_wrong_preferred",
        label="Longer wrong caption preferred",
        help="Share of cases where the longer caption scores higher although its detail is wrong.",
        direction="down",
        value=longer_preferred,
    ),
    _metric(
        name="true_detail_preferred",
        label="True detail preferred",
        help="Share of cases where a true detail raises the score of the short caption. If longer "
        "wrong captions are often preferred too, the model rewards length rather than truth.",
        source="Not in the papers",
        value=true_detail_preferred,
        tied=None,
    ),
)
