"""Relative increase from one mean to another mean of the same model, with a 95 % interval."""

import math
from collections.abc import Sequence

import numpy as np

from vlprobe.metrics.estimate import FEWEST_ITEMS, LEVEL, resampled_sums
from vlprobe.metrics.resampling import every_resample
from vlprobe.types import Estimate, Measure


def increases(pairs: Sequence[tuple[Measure, Measure]], n_items: int) -> list[Estimate]:
    """Compute how much the first mean of each pair of measures exceeds the second: 0.1 means 10 % more.

    The interval is the 95 % percentile interval over the same item resamples as for all estimates.
    Each resample draws both means together, so variation that an item adds to both does not widen
    the interval.

    Args:
        pairs: Pairs of measures for one model; items have the same codes in both measures.
        n_items: Total number of items, including items whose cases are all excluded.

    Returns:
        One estimate per pair, over the items that count for either mean. It is unknown if a mean is
        unknown or the second mean is 0; the interval is unknown with fewer than FEWEST_ITEMS items.

    Source: LGIP, table 4 (Adv %); the interval is ours.
    """
    if not pairs:
        return []
    sums = np.stack(
        [
            np.bincount(measure.item, summand, n_items)
            for pair in pairs
            for measure in pair
            for summand in (measure.weight * measure.value, measure.weight)
        ]
    )
    resampled = resampled_sums(sums, every_resample(n_items), np.arange(n_items))
    shape = (len(pairs), 2, 2, -1)
    values = _shares(sums.sum(axis=1).reshape(shape))[:, 0]
    drawn = _shares(resampled.reshape(shape))
    n_counted = (sums.reshape(shape)[:, :, 1] > 0).any(axis=1).sum(axis=1)
    return [
        _estimate(float(value), shares, int(count))
        for value, shares, count in zip(values, drawn, n_counted, strict=True)
    ]


def _shares(sums: np.ndarray) -> np.ndarray:
    """Compute the relative increase of each pair, of shape (n, m), from the totals and weights of both measures, of
    shape (n, 2, 2, m). It is NaN if a mean is unknown or the second mean is 0.
    """
    means = np.divide(
        sums[:, :, 0],
        sums[:, :, 1],
        out=np.full_like(sums[:, :, 0], np.nan),
        where=sums[:, :, 1] > 0,
    )
    means, bases = means[:, 0], means[:, 1]
    return np.divide(means, bases, out=np.full_like(means, np.nan), where=bases != 0) - 1


def _estimate(value: float, drawn: np.ndarray, n_items: int) -> Estimate:
    increases_drawn = drawn[~np.isnan(drawn)]
    if math.isnan(value):
        return Estimate()
    if n_items < FEWEST_ITEMS or not len(increases_drawn):
        return Estimate(value, n_items=n_items)
    low, high = np.quantile(increases_drawn, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    return Estimate(value, float(low), float(high), n_items)
