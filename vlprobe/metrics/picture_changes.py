"""Metrics for changed pictures: how scores and decisions change when a picture is changed.

Rows are cases with `score_0` and `score_1` (similarity of the picture to the true and to the wrong caption),
`score_2` and `score_3` (the same for the changed picture), and `margin` (`score_2 - score_3`).

With the option `search`, rows also have SEARCH_COLUMNS for both directions: `i2t` (the picture searches for its
captions among those of all items) and `t2i` (the true caption searches for the picture among those of all items).
These columns are the rank of the right candidate with unchanged pictures, its rank with changed pictures (1 is best; a
tie counts against the right candidate), the latter rank if ties did not count, and the overlap between the first DEPTH
results of both searches.
"""

import functools
import math
from collections.abc import Iterable, Iterator

import numpy as np
import pandas as pd

from vlprobe.metrics.pairwise import positive_rate, scores_higher, sensitivity_gap
from vlprobe.metrics.retrieval import recall, recall_tied
from vlprobe.types import Metric

CHANGED = "picture-change"  # the kind of case whose picture is changed
WRITTEN = "false-word"  # the kind of case with a false word on the picture
DEPTH = 10  # number of first results whose overlap is computed
CUTOFFS = (1, 5, 10)  # K of R@K
SEARCH_COLUMNS = tuple(
    name
    for direction in ("i2t", "t2i")
    for name in (
        *(f"{direction}_rank_clean", f"{direction}_rank_changed"),
        *(f"least_{direction}_rank_changed", f"{direction}_overlap"),
    )
)


def invariance_error(rows: pd.DataFrame) -> np.ndarray:
    """For each case, compute how far the true caption's similarity moves when the picture is changed:
    |s(I, c) - s(I', c)|.

    Source: LGIP, equation 2, with the picture in place of the caption.

    >>> rows = pd.DataFrame({"score_0": [0.5, 0.25], "score_2": [0.25, 0.25]})
    >>> invariance_error(rows).tolist()
    [0.25, 0.0]
    """
    scores = rows[["score_0", "score_2"]].to_numpy(np.float64)
    return np.abs(scores[:, 0] - scores[:, 1])


def unchanged_positive_rate(rows: pd.DataFrame) -> np.ndarray:
    """For each case, return 1 if the unchanged picture scores strictly higher with the true caption, else 0.

    >>> unchanged_positive_rate(pd.DataFrame({"score_0": [0.5, 0.5], "score_1": [0.25, 0.5]})).tolist()
    [1.0, 0.0]
    """
    return scores_higher(rows, "score_0", "score_1")


def decision_flips(rows: pd.DataFrame) -> np.ndarray:
    """For each case, return 1 if changing the picture changes which caption wins, else 0. A tie counts as a failure,
    both before and after the change.

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
        help=(
            "Share of cases where the change to the picture changes which caption scores higher."
        ),
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
        help=(
            "Share of pictures whose true caption still scores higher when the wrong "
            "caption's word is written on the picture."
        ),
        source="Goh et al. 2021 (typographic attacks)",
        kinds=(WRITTEN,),
        value=positive_rate,
    ),
    _metric(
        name="typographic_flips",
        label="Decision flips (false word on the picture)",
        help=(
            "Share of cases where the false word written on the picture changes which caption "
            "scores higher."
        ),
        direction="down",
        source="Goh et al. 2021 (typographic attacks)",
        kinds=(WRITTEN,),
        value=decision_flips,
        tied=None,
    ),
)


def recall_sum(rows: pd.DataFrame, column: str) -> np.ndarray:
    """Compute R@1 + R@5 + R@10 of each search, from 0 to 3; NaN if the rank is unknown.

    >>> recall_sum(pd.DataFrame({"rank": [1, 7, 11, math.nan]}), "rank").tolist()
    [3.0, 1.0, 0.0, nan]
    """
    recalls = np.sum([recall(rows, column, k) for k in CUTOFFS], axis=0)
    return np.where(rows[column].isna(), math.nan, recalls)


def survey_search(blocks: Iterable[pd.DataFrame]) -> dict[str, object]:
    """Compute the mean `recall_sum` of searches with unchanged pictures, for each direction and rule."""
    totals: dict[tuple[str, str], np.ndarray] = {}
    for rows in blocks:
        for direction in ("i2t", "t2i"):
            sums = pd.Series(recall_sum(rows, f"{direction}_rank_clean"))
            by_rule = sums.groupby(rows["rule"].to_numpy()).agg(["sum", "count"])
            for rule, values in zip(by_rule.index, by_rule.to_numpy(), strict=True):
                key = direction, str(rule)
                totals[key] = totals.get(key, np.zeros(2)) + values
    return {
        "clean_recall_sums": {
            key: total / count if count else math.nan for key, (total, count) in totals.items()
        }
    }


def impact(rows: pd.DataFrame, direction: str) -> np.ndarray:
    """For each case, compute the loss in `recall_sum`, divided by the mean `recall_sum` with
    unchanged pictures over all cases with the same rule.

    The mean over the cases with one rule is MMI: (clean - changed) / clean, computed from the means.

    Source: MMRB (arXiv 2212.08044), MultiModal Impact score, with R@1 + R@5 + R@10.
    """
    clean, changed = (recall_sum(rows, f"{direction}_rank_{name}") for name in ("clean", "changed"))
    means = rows[f"{direction}_clean_recall_sum"].to_numpy(np.float64)
    return np.divide(clean - changed, means, out=np.full(len(rows), math.nan), where=means > 0)


def _search_metrics(direction: str, query: str, target: str) -> Iterator[Metric]:
    """Yield the metrics for one search direction; `query` is the plural name of the queries."""
    metric = functools.partial(
        Metric, version=1, kinds=(CHANGED,), unit="rate", chance=math.nan, tied=None
    )
    for k in CUTOFFS:
        yield metric(
            name=f"changed_{direction}_r{k}_kept",
            label=f"R@{k} kept, changed pictures",
            help=f"Among the {query} whose right {target} is in the first {k} results, the share "
            "for which it is still there when the pictures are changed.",
            direction="up",
            source="RoCOCO, section 4 (1 - drop rate), on changed pictures",
            value=functools.partial(recall, column=f"{direction}_rank_changed", k=k),
            weight=functools.partial(recall, column=f"{direction}_rank_clean", k=k),
            averaging=("micro",),
            tied=functools.partial(recall_tied, column=f"{direction}_rank_changed", k=k),
        )
    yield metric(
        name=f"changed_{direction}_overlap",
        label=f"Top-{DEPTH} overlap, changed pictures",
        help=f"Overlap of the first {DEPTH} results for {query} before and after the pictures are "
        f"changed; chance is {DEPTH} divided by the gallery size.",
        direction="up",
        source="PRSM, section 3 (local), on changed pictures",
        value=lambda rows: rows[f"{direction}_overlap"].to_numpy(np.float64),
    )
    yield metric(
        name=f"changed_{direction}_mmi",
        label="Impact on recall (MMI)",
        help=(
            f"Share of the sum R@1 + R@5 + R@10 for {query} that is lost when the pictures are "
            "changed."
        ),
        direction="down",
        chance=0.0,
        source="MMRB (arXiv 2212.08044), MMI",
        value=functools.partial(impact, direction=direction),
        averaging=("micro",),
        version=2,  # 1 had Wilson's interval, which is for values in [0, 1]
        signed=True,
    )


SEARCH_METRICS = (
    *_search_metrics("i2t", "pictures", "caption"),
    *_search_metrics("t2i", "captions", "picture"),
)
