"""PRSM's measures: how alike two rankings of the same gallery are.

Similarities are float arrays of shape (n_versions, n_candidates); a higher similarity ranks first. Ties share the
average rank, and stand for every order they allow: a model that cannot tell candidates apart gets chance, not a perfect
score.
"""

import math
from itertools import combinations

import numpy as np

from vlprobe.types import Metric

LOCAL = (100, 1000)  # the paper's k


def average_ranks(values: np.ndarray) -> np.ndarray:
    """Ranks 1 to n of each row, the highest value first, ties at their average rank; float64 of the same shape.

    >>> average_ranks(np.array([[0.9, 0.1, 0.5, 0.5]])).tolist()
    [[1.0, 4.0, 2.5, 2.5]]
    """
    order = np.argsort(-values, axis=1, kind="stable")
    sorted_values = np.take_along_axis(values, order, axis=1)
    n = values.shape[1]
    ranks = np.empty(values.shape, dtype=np.float64)
    for row in range(len(values)):
        starts = np.concatenate([[0], np.flatnonzero(np.diff(sorted_values[row])) + 1, [n]])
        middle = (starts[:-1] + starts[1:] + 1) / 2  # mean of starts + 1 .. stops
        ranks[row, order[row]] = np.repeat(middle, np.diff(starts))
    return ranks


def rank_correlation(ranks: np.ndarray) -> float:
    """Mean Spearman correlation over all pairs of rows of average ranks; NaN where a row is constant.

    Source: PRSM, section 3 (global), read as a correlation of ranks.
    """
    centred = ranks - ranks.mean(axis=1, keepdims=True)
    norms = np.linalg.norm(centred, axis=1)
    if len(ranks) < 2 or (norms == 0).any():
        return math.nan
    unit = centred / norms[:, None]
    return float(np.mean([unit[i] @ unit[j] for i, j in combinations(range(len(unit)), 2)]))


def list_correlation(values: np.ndarray) -> float:
    """Mean correlation of the two lists of candidate numbers in ranked order: not a stability, see below.

    Two rankings that differ by one exchange at the top already disagree in every place after it, and the numbers of
    the candidates mean nothing. It is offered because the correlations that PRSM prints (.02 to .04 beside overlaps of
    .64 to .89) are of the size that this reading gives, and cannot be correlations of ranks.
    """
    if (np.ptp(values, axis=1) == 0).any():
        return math.nan
    return rank_correlation(np.argsort(-values, axis=1, kind="stable").astype(np.float64))


def top_overlap(values: np.ndarray, k: int) -> float:
    """Mean share of the first k candidates that two versions have in common, over all pairs of rows.

    A candidate tied at the border counts with the chance that a random order of the tie puts it among the first k.

    Args:
        values: Similarities of shape (n_versions, n_candidates).
        k: Less than n_candidates; otherwise the share is 1 whatever the model does, and NaN is returned.

    Source: PRSM, section 3 (local).
    """
    n = values.shape[1]
    if len(values) < 2 or k >= n:
        return math.nan
    border = np.partition(values, n - k, axis=1)[:, n - k][:, None]
    above, level = values > border, values == border
    places = k - above.sum(axis=1, keepdims=True)
    inside = above + level * (places / level.sum(axis=1, keepdims=True))
    return float(np.mean([(inside[i] * inside[j]).sum() / k for i, j in combinations(range(len(inside)), 2)]))


def _column(name: str):
    return lambda rows: rows[name].to_numpy(np.float64)


METRICS = (
    Metric(
        "prsm_global",
        1,
        "Rank correlation",
        "How alike the whole ranking stays when the query is reworded: 1 is the same order, 0 no relation.",
        "correlation",
        "up",
        0.0,
        "PRSM, section 3 (global), on ranks",
        ("ranking",),
        _column("global"),
        ties=False,
    ),
    *(
        Metric(
            f"prsm_local_{k}",
            1,
            f"Top-{k} overlap",
            f"Share of the first {k} pictures that two wordings of a query share; chance is {k} over the gallery.",
            "rate",
            "up",
            math.nan,
            "PRSM, section 3 (local)",
            ("ranking",),
            _column(f"local_{k}"),
            ties=False,
        )
        for k in (10, *LOCAL)
    ),
    Metric(
        "prsm_global_idlist",
        1,
        "Id-list correlation (not a stability)",
        "Correlation of the lists of picture numbers, a reading that gives numbers like the paper's. Do not use it.",
        "correlation",
        "none",
        0.0,
        "PRSM, table 1, as its sizes suggest",
        ("ranking",),
        _column("global_idlist"),
        ties=False,
    ),
)


def measures(values: np.ndarray) -> dict[str, float]:
    """All measures of one query's versions over one gallery, by column name."""
    return {
        "global": rank_correlation(average_ranks(values)),
        "global_idlist": list_correlation(values),
        **{f"local_{k}": top_overlap(values, k) for k in (10, *LOCAL)},
    }
