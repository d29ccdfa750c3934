"""EqBen's metrics, on samples of two pictures and two captions, each caption true of its own picture only.

Rows carry `score_0` to `score_3`: s11, s12, s21, s22, where s12 is the similarity of the first picture to the second
caption. All comparisons are strict: a tie is a failure.
"""

import math
from collections.abc import Sequence

import numpy as np
import pandas as pd

from vlprobe.types import Metric

BOUNDARY_THRESHOLDS = (0.1, 0.2, 0.5, 1.0, 1.5, 2.0, 2.5, 3.0)  # seconds; EqBen, table 12


def _scores(rows: pd.DataFrame) -> tuple[np.ndarray, ...]:
    return tuple(rows[f"score_{column}"].to_numpy(np.float64) for column in range(4))


def margins(rows: pd.DataFrame) -> np.ndarray:
    """The smallest of the four differences that should be positive: the sample is solved where it is above 0."""
    s11, s12, s21, s22 = _scores(rows)
    return np.minimum.reduce([s11 - s12, s22 - s21, s11 - s21, s22 - s12])


def text_score(rows: pd.DataFrame) -> np.ndarray:
    """Whether each picture prefers its own caption: s11 > s12 and s22 > s21. Source: EqBen section 5, Winoground."""
    s11, s12, s21, s22 = _scores(rows)
    return ((s11 > s12) & (s22 > s21)).astype(np.float64)


def image_score(rows: pd.DataFrame) -> np.ndarray:
    """Whether each caption prefers its own picture: s11 > s21 and s22 > s12. Source: EqBen section 5, Winoground."""
    s11, s12, s21, s22 = _scores(rows)
    return ((s11 > s21) & (s22 > s12)).astype(np.float64)


def group_score(rows: pd.DataFrame) -> np.ndarray:
    """Whether both hold. Source: EqBen section 5, Winoground.

    >>> samples = pd.DataFrame([[3.0, 1.0, 2.0, 4.0], [3.0, 3.0, 1.0, 4.0]], columns=[f"score_{n}" for n in range(4)])
    >>> group_score(samples).tolist()  # in the second sample the first picture fits both captions alike
    [1.0, 0.0]
    """
    return text_score(rows) * image_score(rows)


def equivariance_deviation(rows: pd.DataFrame) -> np.ndarray:
    """How unequally the score answers to equal changes: |(s11-s12) - (s22-s21)| + |(s11-s21) - (s22-s12)|.

    Source: EqBen figure 6, which gives no formula; this is the deviation that equation 6 (EqSim v2) drives to zero.
    """
    s11, s12, s21, s22 = _scores(rows)
    return np.abs((s11 - s12) - (s22 - s21)) + np.abs((s11 - s21) - (s22 - s12))


def foil_accuracy(rows: pd.DataFrame) -> np.ndarray:
    """Whether a picture prefers its caption to a foil. Source: VALSE; EqBen table 8."""
    return (rows["margin"].to_numpy() > 0).astype(np.float64)


def _average(rows: pd.DataFrame) -> np.ndarray:
    return (text_score(rows) + image_score(rows) + group_score(rows)) / 3


def _evenly_over_subsets(rows: pd.DataFrame) -> np.ndarray:
    return (1 / rows.groupby("subtype")["subtype"].transform("size")).to_numpy(np.float64)


def probability_scores(caption: np.ndarray, foil: np.ndarray) -> dict[str, float]:
    """VALSE's measures of a model that gives the probability that a text fits.

    Args:
        caption: Probability of the true caption, shape (n,).
        foil: Probability of the foil, shape (n,).

    Returns:
        p_c (share of captions above one half), p_f (share of foils below one half), acc (their mean), min (the smaller
        of the two) and pairwise (caption strictly above foil); NaN where n is 0.

    Source: VALSE; EqBen table 8. Without meaning for cosines: one half is then no threshold.
    """
    if not len(caption):
        return dict.fromkeys(("p_c", "p_f", "acc", "min", "pairwise"), math.nan)
    p_c, p_f = float((caption > 0.5).mean()), float((foil < 0.5).mean())
    return {
        "p_c": p_c,
        "p_f": p_f,
        "acc": (p_c + p_f) / 2,
        "min": min(p_c, p_f),
        "pairwise": float((caption > foil).mean()),
    }


def boundary_time(before: np.ndarray, after: np.ndarray, fps: float) -> float:
    """Where in a video a change happens: between the two neighbouring frames that best fit "before" then "after".

    Args:
        before: Similarity of each frame to the caption of what was, shape (n_frames,).
        after: Similarity of each frame to the caption of what is then, shape (n_frames,).
        fps: Frames a second.

    Returns:
        Seconds from the first frame to the middle of the pair with the largest s(I1, T1) + s(I2, T2); the first pair
        where several are equal; NaN with fewer than two frames.

    Source: EqBen, appendix A.6.
    """
    if len(before) < 2:
        return math.nan
    return (int(np.argmax(before[:-1] + after[1:])) + 0.5) / fps


def boundary_accuracy(
    predicted: np.ndarray, true: np.ndarray, thresholds: Sequence[float] = BOUNDARY_THRESHOLDS
) -> dict[float, float]:
    """Share of boundaries found within each distance (seconds); a boundary without prediction is a failure.

    Source: EqBen, table 12.
    """
    if not len(true):
        return dict.fromkeys(thresholds, math.nan)
    distance = np.abs(predicted - true)
    return {threshold: float((distance <= threshold).mean()) for threshold in thresholds}


def _metric(
    name: str, label: str, text: str, chance: float, value, unit: str = "rate", direction: str = "up"
) -> Metric:
    return Metric(name, 1, label, text, unit, direction, chance, "EqBen, section 5", ("pair",), value)


METRICS = (
    _metric(
        "text_score", "Text score", "Share of pairs in which each picture prefers its own caption.", 0.25, text_score
    ),
    _metric(
        "image_score", "Image score", "Share of pairs in which each caption prefers its own picture.", 0.25, image_score
    ),
    _metric("group_score", "Group score", "Share of pairs in which both hold.", 1 / 6, group_score),
    Metric(
        "average_score",
        1,
        "Average",
        "Mean of the three scores with every subset counted alike.",
        "rate",
        "up",
        (0.25 + 0.25 + 1 / 6) / 3,
        "EqBen, table 3",
        ("pair",),
        _average,
        _evenly_over_subsets,
        ("micro",),
    ),
    _metric(
        "equivariance_deviation",
        "Equivariance deviation",
        "How unequally the score answers to equal changes; 0 is perfectly even. Compare models in spread units.",
        math.nan,
        equivariance_deviation,
        "cosine",
        "down",
    ),
    Metric(
        "foil_accuracy",
        1,
        "Foil accuracy",
        "Share of pictures that prefer their caption to a foil.",
        "rate",
        "up",
        0.5,
        "VALSE; EqBen, table 8",
        ("foil",),
        foil_accuracy,
    ),
)
