"""VISLA's metrics for triplets: two captions with the same meaning (P1, P2) and one with a different meaning (N).

Rows of kind `i2t` have the columns `score_0`, `score_1`, `score_2`: similarity of the picture to P1, P2, N. Rows of
kind `t2t` have the columns `text_01`, `text_02`, `text_12`: cos(P1, P2), cos(P1, N), cos(P2, N), and `overlap_01`...
for shared words. P1 is the true caption with the smaller edit distance to N. All comparisons are strict.
"""

import functools
from collections.abc import Callable

import numpy as np
import pandas as pd

from vlprobe.metrics.pairwise import scores_higher
from vlprobe.types import Metric

Column = Callable[[pd.DataFrame], np.ndarray]  # maps cases to one value per row


def _level(*comparisons: tuple[str, str]) -> Column:
    """Build a function that finds cases that fail only because of a tie: the smallest winner-loser difference is 0."""

    def tied(rows: pd.DataFrame) -> np.ndarray:
        gaps = [
            rows[winner].to_numpy(np.float64) - rows[loser].to_numpy(np.float64)
            for winner, loser in comparisons
        ]
        return np.min(gaps, axis=0) == 0

    return tied


def i2t_accuracy(rows: pd.DataFrame) -> np.ndarray:
    """For each case, return 1 if the picture scores both true captions higher than the wrong one, else 0.

    Source: VISLA, section 3.
    """
    return scores_higher(rows, "score_0", "score_2") * scores_higher(rows, "score_1", "score_2")


def t2t_accuracy(rows: pd.DataFrame) -> np.ndarray:
    """For each case, return 1 if the true captions are closer to each other than to the wrong one, else 0.

    Source: VISLA, section 3.

    >>> t2t_accuracy(pd.DataFrame({"text_01": [0.9, 0.8], "text_02": [0.5, 0.8], "text_12": [0.4, 0.1]})).tolist()
    [1.0, 0.0]
    """
    return scores_higher(rows, "text_01", "text_02") * scores_higher(rows, "text_01", "text_12")


def words_t2t_accuracy(rows: pd.DataFrame) -> np.ndarray:
    """For each case, return 1 if comparing bags of words (by their Jaccard index) solves the text triplet, else 0."""
    return scores_higher(rows, "overlap_01", "overlap_02") * scores_higher(
        rows, "overlap_01", "overlap_12"
    )


def jaccard(left: frozenset[str], right: frozenset[str]) -> float:
    """Compute the Jaccard index: shared words divided by all words, 0 to 1; NaN if both sets are empty.

    >>> jaccard(frozenset({"a", "cat"}), frozenset({"a", "dog"}))
    0.3333333333333333
    """
    return len(left & right) / len(left | right) if left | right else float("nan")


_metric = functools.partial(
    Metric, version=3, unit="rate", direction="up", chance=0.5, source="VISLA, section 3"
)
_of_picture = functools.partial(_metric, kinds=("i2t",))
_of_texts = functools.partial(_metric, kinds=("t2t",))


METRICS = (
    _of_picture(
        name="i2t_accuracy",
        label="Image-to-text accuracy",
        help="Share of pictures that score both true captions above the wrong one.",
        chance=1 / 3,
        value=i2t_accuracy,
        tied=_level(("score_0", "score_2"), ("score_1", "score_2")),
    ),
    _of_picture(
        name="i2t_p1_n",
        label="Image: P1 against N",
        help="Share of pictures that score P1, the true caption closest in wording to the wrong "
        "one, above the wrong one.",
        value=lambda rows: scores_higher(rows, "score_0", "score_2"),
        tied=_level(("score_0", "score_2")),
    ),
    _of_picture(
        name="i2t_p2_n",
        label="Image: P2 against N",
        help="Share of pictures that score P2, the other true caption, above the wrong one.",
        value=lambda rows: scores_higher(rows, "score_1", "score_2"),
        tied=_level(("score_1", "score_2")),
    ),
    _of_texts(
        name="t2t_accuracy",
        label="Text-to-text accuracy",
        help="Share of triplets whose two true captions are closer to each other than to the "
        "wrong one.",
        chance=1 / 3,
        value=t2t_accuracy,
        tied=_level(("text_01", "text_02"), ("text_01", "text_12")),
    ),
    _of_texts(
        name="t2t_p1_n",
        label="Text: P1-N",
        help="Share of triplets in which P2 is closer to P1 than to the wrong caption.",
        value=lambda rows: scores_higher(rows, "text_01", "text_12"),
        tied=_level(("text_01", "text_12")),
    ),
    _of_texts(
        name="t2t_p2_n",
        label="Text: P2-N",
        help="Share of triplets in which P1 is closer to P2 than to the wrong caption.",
        value=lambda rows: scores_higher(rows, "text_01", "text_02"),
        tied=_level(("text_01", "text_02")),
    ),
    _of_texts(
        name="words_t2t_accuracy",
        label="Bag of words (no model)",
        help=(
            "Text-to-text accuracy of a baseline that counts shared words. A model should "
            "beat this baseline."
        ),
        chance=1 / 3,
        value=words_t2t_accuracy,
        tied=_level(("overlap_01", "overlap_02"), ("overlap_01", "overlap_12")),
        model_free=True,
    ),
    _metric(
        name="pair_accuracy",
        label="Pair accuracy",
        help="Share of pictures that score the true caption above the wrong one.",
        kinds=("i2t-pair",),
        value=lambda rows: scores_higher(rows, "score_0", "score_1"),
        tied=_level(("score_0", "score_1")),
    ),
)
