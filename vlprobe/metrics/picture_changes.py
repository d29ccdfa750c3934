"""Metrics of changed pictures: the change of scores and the share of flipped decisions when a picture is changed.

Rows are cases with `score_0` and `score_1` (similarity of the picture to the true and to the wrong caption),
`score_2` and `score_3` (the same for the changed picture), and `margin` (`score_2 - score_3`).
"""

import math

import numpy as np
import pandas as pd

from vlprobe.metrics.pairwise import positive_rate, scores_higher, sensitivity_gap
from vlprobe.types import Metric

CHANGED = "picture-change"  # the kind of cases whose picture is changed
WRITTEN = "false-word"  # the kind of cases with a false word on the picture


def invariance_error(rows: pd.DataFrame) -> np.ndarray:
    """Compute how far the true caption's similarity moves when the picture is changed: |s(I, c) - s(I', c)|.

    Source: LGIP, equation 2, with the picture in place of the caption.

    >>> rows = pd.DataFrame({"score_0": [0.5, 0.25], "score_2": [0.25, 0.25]})
    >>> invariance_error(rows).tolist()
    [0.25, 0.0]
    """
    scores = rows[["score_0", "score_2"]].to_numpy(np.float64)
    return np.abs(scores[:, 0] - scores[:, 1])


def unchanged_positive_rate(rows: pd.DataFrame) -> np.ndarray:
    """Return 1 if the unchanged picture scores higher with the true caption; a tie is a failure.

    >>> unchanged_positive_rate(pd.DataFrame({"score_0": [0.5, 0.5], "score_1": [0.25, 0.5]})).tolist()
    [1.0, 0.0]
    """
    return scores_higher(rows, "score_0", "score_1")


def decision_flips(rows: pd.DataFrame) -> np.ndarray:
    """Return 1 if changing the picture changes which caption wins; a tie counts as a failure before and after.

    >>> rows = pd.DataFrame({"score_0": [0.5, 0.5], "score_1": [0.25, 0.25], "margin": [0.1, -0.1]})
    >>> decision_flips(rows).tolist()
    [0.0, 1.0]
    """
    before = unchanged_positive_rate(rows)
    return np.where(np.isnan(before), np.nan, before != positive_rate(rows))


METRICS = (
    Metric(
        name="picture_positive_rate",
        version=1,
        label="Positive rate (changed picture)",
        help=(
            "Share of changed pictures whose true caption scores above the wrong one. Chance "
            "is 0.5; a tie counts as wrong."
        ),
        unit="rate",
        direction="up",
        chance=0.5,
        source="LGIP, eq. 5, on changed pictures",
        kinds=(CHANGED,),
        value=positive_rate,
    ),
    Metric(
        name="decision_flips",
        version=1,
        label="Decision flips",
        help="Share of cases where the change of the picture changes which caption wins.",
        unit="rate",
        direction="down",
        chance=0.5,
        source="Not in the papers",
        kinds=(CHANGED,),
        value=decision_flips,
        tied=None,
    ),
    Metric(
        name="picture_invariance_error",
        version=1,
        label="Picture invariance error",
        help=(
            "How much the similarity of the true caption changes when only the picture is changed."
        ),
        unit="cosine",
        direction="down",
        chance=math.nan,
        source="LGIP, eq. 2, on changed pictures",
        kinds=(CHANGED,),
        value=invariance_error,
        tied=None,
    ),
    Metric(
        name="picture_sensitivity_gap",
        version=1,
        label="Sensitivity gap (changed picture)",
        help="Score of the true caption minus the score of the wrong one, on the changed picture.",
        unit="cosine",
        direction="up",
        chance=0.0,
        source="LGIP, eq. 4, on changed pictures",
        kinds=(CHANGED,),
        value=sensitivity_gap,
    ),
    Metric(
        name="unchanged_positive_rate",
        version=1,
        label="Positive rate (unchanged picture)",
        help="Positive rate of the same cases before the picture is changed.",
        unit="rate",
        direction="up",
        chance=0.5,
        source="LGIP, eq. 5",
        kinds=(CHANGED,),
        value=unchanged_positive_rate,
        tied=None,
    ),
    Metric(
        name="typographic_positive_rate",
        version=1,
        label="Positive rate (false word on the picture)",
        help="Share of pictures with the wrong caption's word written on them whose true caption still scores higher.",
        unit="rate",
        direction="up",
        chance=0.5,
        source="Goh et al. 2021 (typographic attacks)",
        kinds=(WRITTEN,),
        value=positive_rate,
    ),
    Metric(
        name="typographic_flips",
        version=1,
        label="Decision flips (false word on the picture)",
        help="Share of cases where the false word written on the picture changes which caption wins.",
        unit="rate",
        direction="down",
        chance=0.5,
        source="Goh et al. 2021 (typographic attacks)",
        kinds=(WRITTEN,),
        value=decision_flips,
        tied=None,
    ),
)
