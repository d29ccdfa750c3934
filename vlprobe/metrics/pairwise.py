"""LGIP's metrics: how a caption's similarity to its image changes when the caption is edited.

Rows are cases with the columns `kind`, `subtype`, `strength` and `margin` (similarity of the original minus similarity
of the edit; for a paraphrase, the negative of its absolute value). The erased share also uses `erased` and `text_01`
(the cosine of the original and the edit).
"""

import functools
import math

import numpy as np
import pandas as pd

from vlprobe.types import Metric

PRIORS = {"color": 0.25, "number": 0.55, "object": 1.0}


def invariance_error(rows: pd.DataFrame) -> np.ndarray:
    """For each case, compute how far a caption's similarity to its image moves when only the wording changes:
    |s(I, c) - s(I, c')|.

    The mean includes all paraphrases, as in the paper: a paraphrase with the same embedding as its original counts as
    0. `erased_share` is the share of such paraphrases.

    Source: LGIP, equation 2.

    >>> invariance_error(pd.DataFrame({"margin": [-0.05, 0.0]})).tolist()
    [0.05, 0.0]
    """
    return np.abs(rows["margin"].to_numpy(np.float64))


def erased_share(rows: pd.DataFrame) -> np.ndarray:
    """For each case, return 1 if the paraphrase has the same embedding as the original, so that the model cannot see
    the edit, else 0. Return NaN if the model does not embed texts.

    >>> erased_share(pd.DataFrame({"erased": [True, False, False], "text_01": [1.0, 0.98, math.nan]})).tolist()
    [1.0, 0.0, nan]
    """
    if not {"erased", "text_01"} <= set(rows):
        return np.full(len(rows), math.nan)
    return np.where(rows["text_01"].isna(), math.nan, rows["erased"].to_numpy(np.float64))


def sensitivity_gap(rows: pd.DataFrame) -> np.ndarray:
    """For each case, compute the true caption's score minus the contradicting caption's score: s(I, c) - s(I, c_flip).

    Source: LGIP, equations 3 and 4.
    """
    return rows["margin"].to_numpy(np.float64)


def positive_rate(rows: pd.DataFrame) -> np.ndarray:
    """For each case, return 1 if the true caption scores strictly higher than the contradicting one, else 0.

    Source: LGIP, equation 5.

    >>> positive_rate(pd.DataFrame({"margin": [0.2, 0.0, -0.1]})).tolist()
    [1.0, 0.0, 0.0]
    """
    return (rows["margin"].to_numpy() > 0).astype(np.float64)


def scores_higher(rows: pd.DataFrame, column: str, other: str) -> np.ndarray:
    """For each row, return 1 if the score in `column` is strictly higher than in `other`, else 0; NaN if either is
    unknown.

    >>> rows = pd.DataFrame({"a": [0.5, 0.5, 0.5], "b": [0.25, 0.5, math.nan]})
    >>> scores_higher(rows, "a", "b").tolist()
    [1.0, 0.0, nan]
    """
    known = rows[[column, other]].notna().all(axis=1)
    higher = (rows[column] > rows[other]).to_numpy(np.float64)
    return np.where(known, higher, np.nan)


def strength(subtype: np.ndarray, text_similarity: np.ndarray) -> np.ndarray:
    """Compute how strongly each flip contradicts its caption, from 0 to 1. Half of the strength is a prior for the type
    of flip, and half is the model's distance between the two captions.

    `clip01(0.5 * prior + 0.5 * clip01(1 - cos(caption, flip)))` with the priors color .25, number
    .55, object 1.

    Source: LGIP, section 4.3; the formula and the priors are only in its released code.
    """
    prior = np.array([PRIORS.get(name, math.nan) for name in subtype])
    return np.clip(0.5 * prior + 0.5 * np.clip(1 - text_similarity.astype(np.float64), 0, 1), 0, 1)


def quartiles(values: np.ndarray) -> tuple[float, float]:
    """Compute the first and third quartiles of the values, ignoring NaN. Both are NaN if no value is left."""
    finite = values[~np.isnan(values)]
    low, high = np.quantile(finite, [0.25, 0.75]) if len(finite) else (math.nan, math.nan)
    return float(low), float(high)


def strength_bins(values: np.ndarray, low: float, high: float) -> np.ndarray:
    """Return the bin of each strength: weak (up to the first quartile of the model's flips), strong (above the third
    quartile), or medium; "" if the strength is unknown.
    """
    names = np.full(len(values), "", dtype=object)
    names[values <= low] = "weak"
    names[(values > low) & (values <= high)] = "medium"
    names[values > high] = "strong"
    return names


def _by_strength(rows: pd.DataFrame) -> np.ndarray:
    return rows["strength"].to_numpy(np.float64)


_reworded = functools.partial(Metric, kinds=("paraphrase",), chance=math.nan, tied=None)
_gap = functools.partial(
    Metric, version=2, unit="cosine", direction="up", chance=0.0, value=sensitivity_gap
)
_rate = functools.partial(
    Metric, version=3, unit="rate", direction="up", chance=0.5, value=positive_rate
)

METRICS = (
    _reworded(
        name="invariance_error",
        version=3,
        label="Invariance error",
        help="How much the similarity changes when a caption is only reworded. A value of 0 is no "
        "evidence of understanding if the paraphrases have the same embeddings as their "
        "originals.",
        unit="cosine",
        direction="down",
        source="LGIP, eq. 2",
        value=invariance_error,
    ),
    _reworded(
        name="erased_share",
        version=2,
        label="Erased paraphrases",
        help=(
            "Share of paraphrases with the same embedding as their original. The invariance "
            "error of such a paraphrase is 0."
        ),
        unit="rate",
        direction="none",
        source="Not in the paper; explains values of 0 in eq. 2",
        value=erased_share,
    ),
    _gap(
        name="sensitivity_gap",
        label="Sensitivity gap",
        help="Score of the true caption minus the score of a wrong one (color, number or object changed).",
        source="LGIP, eq. 4",
        kinds=("flip",),
    ),
    _rate(
        name="positive_rate",
        label="Positive rate",
        help="Share of wrong captions that score below the true one. Chance is 0.5; a tie counts as wrong.",
        source="LGIP, eq. 5",
        kinds=("flip",),
    ),
    _gap(
        name="combined_gap",
        label="Combined gap",
        help="Sensitivity gap for wrong captions that are also reworded.",
        source="LGIP, table 3",
        kinds=("combined",),
    ),
    _rate(
        name="combined_positive_rate",
        label="Combined positive rate",
        help="Positive rate for wrong captions that are also reworded.",
        source="LGIP, table 3",
        kinds=("combined",),
    ),
    _gap(
        name="weighted_gap",
        label="Strength-weighted gap",
        help="Sensitivity gap with each flip weighted by how strongly it contradicts the caption.",
        source="LGIP, section 4.3",
        kinds=("flip",),
        weight=_by_strength,
        averaging=("micro",),
    ),
    _rate(
        name="weighted_positive_rate",
        label="Strength-weighted positive rate",
        help="Positive rate with each flip weighted by how strongly it contradicts the caption.",
        source="LGIP, section 4.3",
        kinds=("flip",),
        weight=_by_strength,
        averaging=("micro",),
    ),
)
