"""Metrics for hard positives: a true caption, a second caption with the same meaning, and a wrong one.

Rows are cases with the picture's score for each caption: `score_0` (the true caption), `score_1` (the second true
caption) and `score_2` (the wrong one).
"""

import functools
from collections.abc import Sequence

import numpy as np
import pandas as pd

from vlprobe.metrics.pairwise import scores_higher
from vlprobe.metrics.triplets import i2t_accuracy
from vlprobe.types import Metric

KIND = "hard-positive"  # the kind of the cases


def brittleness(rows: pd.DataFrame) -> np.ndarray:
    """For each case, return 1 if the wrong caption scores between the two true ones, else 0. A tie counts as between.

    >>> scores = {"score_0": [0.9, 0.9, 0.1], "score_1": [0.4, 0.8, 0.2], "score_2": [0.5, 0.5, 0.5]}
    >>> brittleness(pd.DataFrame(scores)).tolist()
    [1.0, 0.0, 0.0]
    """
    is_below = scores_higher(rows, "score_2", "score_0") * scores_higher(rows, "score_2", "score_1")
    return 1.0 - i2t_accuracy(rows) - is_below


def _is_tied(rows: pd.DataFrame, columns: Sequence[str]) -> np.ndarray:
    """For each case, return whether the wrong caption's score equals that of a true caption in the given columns."""
    return (rows[list(columns)].to_numpy() == rows[["score_2"]].to_numpy()).any(axis=1)


_metric = functools.partial(
    Metric,
    version=1,
    kinds=(KIND,),
    unit="rate",
    direction="up",
    source="Kamath et al. 2024 (arXiv 2409.17958)",
)

METRICS = (
    _metric(
        name="original_accuracy",
        label="Original accuracy",
        help="Share of pictures that score the original caption above the wrong one.",
        chance=0.5,
        value=lambda rows: scores_higher(rows, "score_0", "score_2"),
        tied=lambda rows: _is_tied(rows, ["score_0"]),
    ),
    _metric(
        name="augmented_accuracy",
        label="Augmented accuracy",
        help="Share of pictures that score both true captions above the wrong one.",
        chance=1 / 3,
        value=i2t_accuracy,
        tied=lambda rows: rows[["score_0", "score_1"]].min(axis=1).eq(rows["score_2"]).to_numpy(),
    ),
    _metric(
        name="brittleness",
        label="Brittleness",
        help="Share of pictures that score the wrong caption between the two true ones, so that "
        "the answer depends on the wording.",
        direction="down",
        chance=1 / 3,
        value=brittleness,
        tied=lambda rows: _is_tied(rows, ["score_0", "score_1"]),
    ),
)
