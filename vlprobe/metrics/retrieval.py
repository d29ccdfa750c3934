"""RoCOCO's measures: retrieval in a clean gallery, and in the same gallery with altered captions or pictures added.

Rows have the columns `rank_clean` and `rank` (1 is best; a tie with a wrong candidate counts against the right one; NaN
if it ranks below the 10 or more results of an approximate search, which versions before 0.3.0 had), and `top_altered`
(1 if no original scores strictly higher than the best altered candidate). `least_rank_clean` and `least_rank` are the
ranks if ties did not count against the right candidate. `top_tied` is 1 if the best original and the best altered
candidate score the same.
"""

import functools
import math

import numpy as np
import pandas as pd

from vlprobe.types import Metric

CLEAN = "clean_"  # prefix of the kinds for searches in a clean gallery only


def recall(rows: pd.DataFrame, column: str, k: int) -> np.ndarray:
    """For each query, return 1 if the right candidate is among the first k (up to 10), and 0 if it is not or its rank
    is unknown.

    >>> recall(pd.DataFrame({"rank": [1, 6, math.nan]}), "rank", 5).tolist()
    [1.0, 0.0, 0.0]
    """
    return (rows[column].to_numpy() <= k).astype(np.float64)


def recall_tied(rows: pd.DataFrame, column: str, k: int) -> np.ndarray:
    """For each query, return whether the right candidate misses the first k only because of ties.

    >>> ranks = pd.DataFrame({"rank": [1, 6, 6], "least_rank": [1, 5, 6]})
    >>> recall_tied(ranks, "rank", 5).tolist()
    [False, True, False]
    """
    return (recall(rows, column, k) == 0) & (recall(rows, f"least_{column}", k) == 1)


def drop(rows: pd.DataFrame) -> np.ndarray:
    """For each query, compute the loss of R@1 in the altered gallery. The mean, weighted by the hits in the clean
    gallery, is (R@1 - R_new@1) / R@1.

    A query that is right only in the altered gallery does not count as a gain. This happens only with a
    matching head, if altered candidates push a preferred original off the short list.

    Source: RoCOCO, section 4. The metric is undefined if no query is found in the clean gallery.
    """
    return recall(rows, "rank_clean", 1) - recall(rows, "rank", 1)


def _kind_metrics(kind: str, query: str, target: str) -> tuple[Metric, ...]:
    """Create the metrics for one search direction. `query` is the plural name of the queries, and `target` is the name
    of the right candidate.
    """
    metric = functools.partial(
        Metric, version=3, unit="rate", chance=math.nan, source="RoCOCO, section 4", kinds=(kind,)
    )
    return (
        *(
            metric(
                name=f"{kind}_r{k}{suffix}",
                label=f"R@{k}, {gallery} gallery",
                help=f"Share of {query} with the right {target} among the top {k} of the {gallery} gallery.",
                direction="up",
                # Runs without altered candidates have a clean gallery too
                kinds=(kind,) if suffix else (kind, f"{CLEAN}{kind}"),
                value=functools.partial(recall, column=column, k=k),
                tied=functools.partial(recall_tied, column=column, k=k),
            )
            for k in (1, 5, 10)
            for column, gallery, suffix in (
                ("rank_clean", "clean", ""),
                ("rank", "altered", "_new"),
            )
        ),
        metric(
            name=f"{kind}_drop_rate",
            label="Drop rate",
            help="Share of the clean R@1 that is lost when altered candidates are added to the gallery.",
            direction="down",
            value=drop,
            tied=lambda rows: (recall(rows, "rank_clean", 1) == 1) & recall_tied(rows, "rank", 1),
            weight=lambda rows: recall(rows, "rank_clean", 1),
            averaging=("micro",),
        ),
        metric(
            name=f"{kind}_rsms",
            label="Altered on top (RSMS)",
            help=(
                f"Share of {query} for which an altered candidate is ranked first or tied for "
                "first."
            ),
            direction="down",
            chance=0.5,
            value=lambda rows: rows["top_altered"].to_numpy(np.float64),
            tied=lambda rows: rows["top_tied"].to_numpy() == 1,
        ),
    )


METRICS = (
    *_kind_metrics("i2t", "pictures", "caption"),
    *_kind_metrics("t2i", "captions", "picture"),
)
