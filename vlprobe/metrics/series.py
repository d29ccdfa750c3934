"""Metrics for ordered pictures: the boundary between two captions of a video, and the agreement
between the rankings of a model and of people.

Rows of kind `boundary` have the columns `seconds_off`, the distance between the predicted and the
true boundary (seconds; the farthest of several equally good ones), and `boundary_tied`. Rows of
kind `order` have rank correlations: `agreement` (model and people, for the query), `agreement_edit`
(the same for the edited query), `kept` (the model's order before and after the edit) and
`kept_people` (the same for people).
"""

from collections.abc import Callable

import numpy as np
import pandas as pd

from vlprobe.metrics import ranking
from vlprobe.types import Metric, zero_margin

BOUNDARY_THRESHOLDS = (0.1, 0.2, 0.5, 1.0, 1.5, 2.0, 2.5, 3.0)  # seconds; EqBen, table 12
_BOUNDARY_SOURCE = "EqBen, appendix A.6 and table 12"
_ORDER_SOURCE = "EqBen, figures 1 and 7 (no numbers printed)"


def boundary_scores(scores: np.ndarray) -> np.ndarray:
    """Compute the score of a boundary between each pair of neighboring frames.

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
    rankings = ranking.Ranker()(np.stack([scores, other_scores]).astype(np.float32))
    return round(ranking.rank_correlation(rankings), 12)


def _within(seconds: float) -> Callable[[pd.DataFrame], np.ndarray]:
    return lambda rows: (rows["seconds_off"].to_numpy() <= seconds).astype(np.float64)


def boundary_accuracy(rows: pd.DataFrame) -> np.ndarray:
    """Compute the share of table 12's thresholds within which each boundary is found."""
    return np.mean([_within(seconds)(rows) for seconds in BOUNDARY_THRESHOLDS], axis=0)


def _tied(rows: pd.DataFrame) -> np.ndarray:
    return rows["boundary_tied"].to_numpy() == 1


def _correlation(name: str) -> Callable[[pd.DataFrame], np.ndarray]:
    return lambda rows: rows[name].to_numpy(np.float64)


def _moved(name: str) -> Callable[[pd.DataFrame], np.ndarray]:
    return lambda rows: (1 - rows[name].to_numpy(np.float64)) / 2


def _order_metric(
    name: str, label: str, help: str, value: Callable[[pd.DataFrame], np.ndarray], **others
) -> Metric:
    fields = {
        "unit": "correlation",
        "direction": "up",
        "chance": 0.0,
        "tied": None,
        "source": _ORDER_SOURCE,
    }
    return Metric(
        name=name,
        version=2,
        label=label,
        help=help,
        kinds=("order",),
        value=value,
        **(fields | others),
    )


METRICS = (
    Metric(
        name="boundary_accuracy",
        version=2,
        label="Boundaries found",
        help=(
            "Share of boundaries found, averaged over the paper's eight tolerances from 0.1 "
            "to 3 seconds."
        ),
        unit="rate",
        direction="up",
        chance=float("nan"),
        source=_BOUNDARY_SOURCE,
        kinds=("boundary",),
        value=boundary_accuracy,
        tied=_tied,
    ),
    *(
        Metric(
            name=f"boundary_within_{seconds:g}",
            version=2,
            label=f"Within {seconds:g} s",
            help=f"Share of boundaries predicted within {seconds:g} seconds of the true time.",
            unit="rate",
            direction="up",
            chance=float("nan"),
            source=_BOUNDARY_SOURCE,
            kinds=("boundary",),
            value=_within(seconds),
            tied=_tied,
        )
        for seconds in BOUNDARY_THRESHOLDS
    ),
    _order_metric(
        "order_agreement",
        "Agreement with people",
        (
            "Rank correlation between the model's and the human order of the candidates: 1 is "
            "the same order, 0 is no correlation."
        ),
        _correlation("agreement"),
    ),
    _order_metric(
        "order_agreement_edit",
        "Agreement after the edit",
        (
            "Rank correlation between the model's and the human order for the edited query, "
            "where people ranked it too."
        ),
        _correlation("agreement_edit"),
    ),
    _order_metric(
        "order_first",
        "Same first choice as people",
        "Share of queries for which the model and people rank the same candidate first.",
        lambda rows: (rows["margin"].to_numpy() > 0).astype(np.float64),
        unit="rate",
        chance=float("nan"),
        tied=zero_margin,
    ),
    _order_metric(
        "order_moved",
        "Change after the edit",
        (
            "How much the edit changes the model's order: 0 is unchanged, 100 % is reversed. "
            "Compare it with the human order."
        ),
        _moved("kept"),
        unit="rate",
        direction="none",
        chance=0.5,
    ),
    _order_metric(
        "order_moved_people",
        "Change after the edit, people",
        "How much the edit changes the human order; independent of the model.",
        _moved("kept_people"),
        unit="rate",
        direction="none",
        chance=float("nan"),
        model_free=True,
    ),
)
