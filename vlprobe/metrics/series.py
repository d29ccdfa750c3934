"""Metrics for ordered pictures: the boundary between two captions in a video, and the agreement between rankings by a
model and by people.

Rows of kind `boundary` have the columns `seconds_off`, the distance between the predicted and the true boundary
(seconds; the farthest of several equally good ones), and `boundary_tied`. Rows of kind `order` have rank correlations:
`agreement` (model and people, for the query), `agreement_edit` (the same for the edited query), `kept` (the model's
order before and after the edit) and `kept_people` (the same for people).
"""

import functools
import math
from collections.abc import Callable

import numpy as np
import pandas as pd

from vlprobe.metrics import ranking
from vlprobe.types import Metric, zero_margin

BOUNDARY_THRESHOLDS = (0.1, 0.2, 0.5, 1.0, 1.5, 2.0, 2.5, 3.0)  # seconds; EqBen, table 12


def boundary_scores(scores: np.ndarray) -> np.ndarray:
    """Score each pair of neighboring frames as a possible boundary.

    Args:
        scores: Scores of each frame with the caption before and the caption after, shape (n_frames, 2).

    Returns:
        s(I1, T1) + s(I2, T2), float64 of shape (n_frames - 1,).

    Source: EqBen, appendix A.6.

    >>> boundary_scores(np.array([[0.5, 0.0], [0.25, 0.5], [0.0, 1.0]])).tolist()
    [1.0, 1.25]
    """
    scores = scores.astype(np.float64)
    return scores[:-1, 0] + scores[1:, 1]


def rank_correlation(scores: np.ndarray, other_scores: np.ndarray) -> float:
    """Compute Spearman's correlation between two lists of scores for the same candidates, with average
    ranks for ties; NaN if all scores in a list are equal.

    >>> rank_correlation(np.array([3.0, 2.0, 1.0]), np.array([0.9, 0.1, 0.5]))
    0.5
    """
    rankings = ranking.ranked(np.stack([scores, other_scores]).astype(np.float32))
    return round(ranking.rank_correlation(rankings), 12)


def _within(seconds: float) -> Callable[[pd.DataFrame], np.ndarray]:
    return lambda rows: (rows["seconds_off"].to_numpy() <= seconds).astype(np.float64)


def boundary_accuracy(rows: pd.DataFrame) -> np.ndarray:
    """For each boundary, return the share of the tolerances in table 12 within which the model's boundary lies."""
    return np.mean([_within(seconds)(rows) for seconds in BOUNDARY_THRESHOLDS], axis=0)


_boundary_metric = functools.partial(
    Metric,
    version=2,
    unit="rate",
    direction="up",
    chance=math.nan,
    source="EqBen, appendix A.6 and table 12",
    kinds=("boundary",),
    tied=lambda rows: rows["boundary_tied"].to_numpy() == 1,
)
_order_metric = functools.partial(
    Metric,
    version=2,
    unit="rate",
    direction="none",
    chance=math.nan,
    source="EqBen, figures 1 and 7 (without numbers)",
    kinds=("order",),
    tied=None,
)
_agreement_metric = functools.partial(_order_metric, unit="correlation", direction="up", chance=0.0)

METRICS = (
    _boundary_metric(
        name="boundary_accuracy",
        label="Boundaries found",
        help="Share of boundaries found, averaged over the paper's eight tolerances from 0.1 to 3 seconds.",
        value=boundary_accuracy,
    ),
    *(
        _boundary_metric(
            name=f"boundary_within_{seconds:g}",
            label=f"Within {seconds:g} s",
            help=f"Share of boundaries predicted within {seconds:g} seconds of the true time.",
            value=_within(seconds),
        )
        for seconds in BOUNDARY_THRESHOLDS
    ),
    _agreement_metric(
        name="order_agreement",
        label="Agreement with people",
        help="Rank correlation between the model's and the human order of the candidates: 1 is the same order, 0 is "
        "no correlation.",
        value=lambda rows: rows["agreement"].to_numpy(np.float64),
    ),
    _agreement_metric(
        name="order_agreement_edit",
        label="Agreement after the edit",
        help="Rank correlation between the model's and the human order for the edited query, if "
        "people also ranked the candidates for that query.",
        value=lambda rows: rows["agreement_edit"].to_numpy(np.float64),
    ),
    _order_metric(
        name="order_first",
        label="Same first choice as people",
        help="Share of queries for which the model and people rank the same candidate first.",
        direction="up",
        value=lambda rows: (rows["margin"].to_numpy() > 0).astype(np.float64),
        tied=zero_margin,
    ),
    _order_metric(
        name="order_moved",
        label="Change after the edit",
        help="How much the edit changes the model's order: 0 is unchanged, 100 % is reversed. "
        "Compare this value with the change in the human order.",
        chance=0.5,
        value=lambda rows: (1 - rows["kept"].to_numpy(np.float64)) / 2,
    ),
    _order_metric(
        name="order_moved_people",
        label="Change after the edit, people",
        help="How much the edit changes the human order; independent of the model.",
        value=lambda rows: (1 - rows["kept_people"].to_numpy(np.float64)) / 2,
        model_free=True,
    ),
)
