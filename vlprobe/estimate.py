"""Means and their intervals, made here for every metric in the same way.

A value is a weighted mean over cases. Its interval comes from resampling items, because five captions and ten edits of
one image are not fifty observations. The same resampling serves every metric of a run and, since it depends on the
number of items alone, every model on the same dataset: differences between models are paired.
"""

from collections.abc import Sequence

import numpy as np

from vlprobe.types import Estimate, Measure

RESAMPLES = 1000
LEVEL = 0.95
_CHUNK = 50  # resamples held in memory at once


def macro(value: np.ndarray, weight: np.ndarray, group: np.ndarray, item: np.ndarray) -> Measure:
    """The mean within each group first, every group then counting once (equations 2, 4 and 5 of LGIP as printed).

    Args:
        value: Float of shape (n,); NaN does not apply.
        weight: Float of shape (n,), the weight of a row within its group.
        group: Integer codes of shape (n,).
        item: Integer codes of shape (n,); a group lies within one item.
    """
    weight = np.where(np.isnan(value), 0.0, weight)
    n_groups = int(group.max()) + 1 if len(group) else 0
    total = np.bincount(group, weight, n_groups)
    summed = np.bincount(group, weight * np.nan_to_num(value), n_groups)
    owner = np.zeros(n_groups, dtype=np.int64)
    owner[group] = item
    there = total > 0
    return Measure(summed[there] / total[there], np.ones(int(there.sum())), owner[there])


def micro(value: np.ndarray, weight: np.ndarray, item: np.ndarray) -> Measure:
    """All rows pooled: a caption with more edits counts more (what LGIP's released code computes)."""
    there = ~np.isnan(value) & (weight > 0)
    return Measure(value[there], weight[there], item[there])


def resample_counts(n_items: int, first: int, last: int) -> np.ndarray:
    """How often each item is drawn in resamples `first` to `last`, float32 of shape (last - first, n_items).

    Depends on nothing but the number of items and the resample's own number.
    """
    counts = np.empty((last - first, n_items), dtype=np.float32)
    for row, number in enumerate(range(first, last)):
        drawn = np.random.default_rng([n_items, number]).integers(n_items, size=n_items)
        counts[row] = np.bincount(drawn, minlength=n_items)
    return counts


def estimates(measures: Sequence[Measure], n_items: int) -> list[Estimate]:
    """The weighted mean of each measure, with a 95 % percentile interval clustered on the item.

    Args:
        measures: What to average; a measure without any weight is unknown: NaN with n_items 0.
        n_items: How many items were asked about, those without a case included.

    Returns:
        One Estimate a measure. With fewer than two items the interval is NaN.
    """
    if not measures:
        return []
    weights = np.stack([np.bincount(m.item, m.weight, n_items) for m in measures], axis=1)
    sums = np.stack([np.bincount(m.item, m.weight * m.value, n_items) for m in measures], axis=1)
    both = np.concatenate([sums, weights], axis=1)
    resampled = np.concatenate(
        [
            resample_counts(n_items, first, min(first + _CHUNK, RESAMPLES)).astype(np.float64) @ both
            for first in range(0, RESAMPLES, _CHUNK)
        ]
    )
    top, bottom = resampled[:, : len(measures)], resampled[:, len(measures) :]
    means = np.divide(top, bottom, out=np.full_like(top, np.nan), where=bottom > 0)
    tail = (1 - LEVEL) / 2
    found = []
    for column in range(len(measures)):
        weight = weights[:, column].sum()
        if weight == 0:
            found.append(Estimate())
            continue
        own = means[:, column]
        own = own[~np.isnan(own)]
        with_rows = int((weights[:, column] > 0).sum())
        low, high = np.quantile(own, [tail, 1 - tail]) if with_rows > 1 else (np.nan, np.nan)
        found.append(Estimate(float(sums[:, column].sum() / weight), float(low), float(high), with_rows))
    return found
