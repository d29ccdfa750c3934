"""Metrics of changed pictures: the change of scores and the share of flipped decisions when a picture is changed.

Rows are cases with `score_0` and `score_1` (similarity of the picture to the true and to the wrong caption),
`score_2` and `score_3` (the same for the changed picture), and `margin` (`score_2 - score_3`).
"""

import functools
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
    is_right_unchanged = unchanged_positive_rate(rows)
    return np.where(np.isnan(is_right_unchanged), np.nan, is_right_unchanged != positive_rate(rows))


_metric = functools.partial(
    Metric, version=1, kinds=(CHANGED,), unit="rate", direction="up", chance=0.5
)

METRICS = (
    _metric(
        name="picture_positive_rate",
        label="Positive rate (changed picture)",
        help="Share of changed pictures whose true caption scores above the wrong one. Chance is "
        "0.5; a tie counts as wrong.",
        source="LGIP, eq. 5, on changed pictures",
        value=positive_rate,
    ),
    _metric(
        name="decision_flips",
        label="Decision flips",
        help="Share of cases where the change to the picture changes which caption wins.",
        direction="down",
        source="Not in the papers",
        value=decision_flips,
        tied=None,
    ),
    _metric(
        name="picture_invariance_error",
        label="Picture invariance error",
        help=(
            "How much the similarity of the true caption changes when only the picture is changed."
        ),
        unit="cosine",
        direction="down",
        chance=math.nan,
        source="LGIP, eq. 2, on changed pictures",
        value=invariance_error,
        tied=None,
    ),
    _metric(
        name="picture_sensitivity_gap",
        label="Sensitivity gap (changed picture)",
        help="Score of the true caption minus the score of the wrong one, on the changed picture.",
        unit="cosine",
        chance=0.0,
        source="LGIP, eq. 4, on changed pictures",
        value=sensitivity_gap,
    ),
    _metric(
        name="unchanged_positive_rate",
        label="Positive rate (unchanged picture)",
        help="Positive rate of the same cases before the picture is changed.",
        source="LGIP, eq. 5",
        value=unchanged_positive_rate,
        tied=None,
    ),
    _metric(
        name="typographic_positive_rate",
        label="Positive rate (false word on the picture)",
        help="Share of pictures with the wrong caption's word written on them whose true caption still scores higher.",
        source="Goh et al. 2021 (typographic attacks)",
        kinds=(WRITTEN,),
        value=positive_rate,
    ),
    _metric(
        name="typographic_flips",
        label="Decision flips (false word on the picture)",
        help="Share of cases where the false word written on the picture changes which caption wins.",
        direction="down",
        source="Goh et al. 2021 (typographic attacks)",
        kinds=(WRITTEN,),
        value=decision_flips,
        tied=None,
    ),
)
