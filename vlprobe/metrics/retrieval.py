"""RoCOCO's measures: retrieval in a clean gallery, and in the same gallery with altered captions or pictures added.

Rows carry `rank_clean` and `rank` (1 is best; a tie with a wrong candidate counts against the right one; NaN: beyond
the candidates that an approximate search looked up, of which there are 10 or more), and `top_altered` (1 where no
original scores strictly above the best altered candidate). `least_rank_clean` and `least_rank` are the ranks if no tie
counted against the right candidate, `top_tied` is 1 where the best original and the best altered candidate are equal.
"""

import math

import numpy as np
import pandas as pd

from vlprobe.types import Metric


def recall(rows: pd.DataFrame, column: str, k: int) -> np.ndarray:
    """Whether the right candidate is among the first k, at most 10: an unknown rank is not.

    >>> recall(pd.DataFrame({"rank": [1, 6, math.nan]}), "rank", 5).tolist()
    [1.0, 0.0, 0.0]
    """
    return (rows[column].to_numpy() <= k).astype(np.float64)


def recall_tied(rows: pd.DataFrame, column: str, k: int) -> np.ndarray:
    """Whether ties alone keep the right candidate from the first k.

    >>> ranks = pd.DataFrame({"rank": [1, 6, 6], "least_rank": [1, 5, 6]})
    >>> recall_tied(ranks, "rank", 5).tolist()
    [False, True, False]
    """
    return (recall(rows, column, k) == 0) & (recall(rows, f"least_{column}", k) == 1)


def _drop_tied(rows: pd.DataFrame) -> np.ndarray:
    return (recall(rows, "rank_clean", 1) == 1) & recall_tied(rows, "rank", 1)


def drop(rows: pd.DataFrame) -> np.ndarray:
    """What is lost of the clean R@1: averaged with the clean hits as weights this is (R@1 - R_new@1) / R@1.

    A query that is right in the altered gallery alone does not count as a gain. Only a matching head can have one:
    altered candidates may push an original that it prefers from its short-list.

    Source: RoCOCO, section 4. Undefined where nothing is found in the clean gallery.
    """
    return recall(rows, "rank_clean", 1) - recall(rows, "rank", 1)


def _kind_metrics(kind: str, query: str, found: str) -> tuple[Metric, ...]:
    def metric(name: str, label: str, text: str, direction: str, chance: float, value, tied, weight=None) -> Metric:
        averaging = ("micro",) if weight else ("macro", "micro")
        full = f"{kind}_{name}"
        return Metric(
            *(full, 2, label, text, "rate", direction, chance, "RoCOCO, section 4", (kind,)),
            *(value, weight, averaging, tied),
        )

    sides = {"": ("rank_clean", "clean"), "_new": ("rank", "altered")}
    recalls = [
        metric(
            f"r{k}{suffix}",
            f"R@{k}, {gallery} gallery",
            f"Share of {query} whose {found} is among the first {k} in the {gallery} gallery.",
            "up",
            math.nan,
            lambda rows, column=column, k=k: recall(rows, column, k),
            lambda rows, column=column, k=k: recall_tied(rows, column, k),
        )
        for k in (1, 5, 10)
        for suffix, (column, gallery) in sides.items()
    ]
    return (
        *recalls,
        metric(
            "drop_rate",
            "Drop rate",
            "Share of the clean R@1 that is lost when altered candidates join the gallery.",
            "down",
            math.nan,
            drop,
            _drop_tied,
            lambda rows: recall(rows, "rank_clean", 1),
        ),
        metric(
            "rsms",
            "Altered on top (RSMS)",
            f"Share of {query} for which an altered candidate comes first; a tie counts.",
            "down",
            0.5,
            lambda rows: rows["top_altered"].to_numpy(np.float64),
            lambda rows: rows["top_tied"].to_numpy() == 1,
        ),
    )


METRICS = (*_kind_metrics("i2t", "pictures", "caption"), *_kind_metrics("t2i", "captions", "picture"))
