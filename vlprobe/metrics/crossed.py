"""Means of answers that are clustered by person and by picture.

Answers from one person are correlated, and so are answers about one picture. People and pictures are therefore
resampled independently. The weight of an answer in a resample is the number of times its person was drawn, multiplied
by the number of times its picture was drawn.

Source: Owen 2007, The pigeonhole bootstrap (its variance is never too small on average). The tests compare it with the
formula of Cameron, Gelbach and Miller 2011.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from vlprobe.metrics.estimate import FEWEST_ITEMS, LEVEL, NO_SPREAD, without_spread

RESAMPLES = 4000
RESAMPLE_BLOCK = 500  # resamples held in memory at once


@dataclass(frozen=True, slots=True)
class CrossedMean:
    """A mean and its 95 % interval. Unknown values are NaN."""

    value: float = math.nan
    low: float = math.nan
    high: float = math.nan
    p: float = math.nan  # two-sided, for the hypothesis that the mean is 0


def crossed_means(
    columns: Sequence[np.ndarray], people: np.ndarray, pictures: np.ndarray, lowest: float
) -> list[CrossedMean]:
    """Compute the mean of each column, with an interval that accounts for sampling both people and pictures.

    A single person is not resampled, so the interval then applies only to that person. The
    interval is NaN with fewer than FEWEST_ITEMS pictures. If all answers agree, the interval is
    `without_spread` for the number of people or pictures, whichever is smaller.

    Args:
        columns: One or more values per answer. Each column is float64 of shape (n,), between `lowest` and 1.
        people: Person who gave each answer, integer codes starting at 0, shape (n,).
        pictures: Picture of each answer, integer codes starting at 0, shape (n,).
        lowest: 0 for rates, -1 for differences of rates.
    """
    if not len(people):
        return [CrossedMean() for _ in columns]
    n_people, n_pictures = int(people.max()) + 1, int(pictures.max()) + 1
    if n_pictures < FEWEST_ITEMS:
        return [CrossedMean(float(column.mean())) for column in columns]
    cells = people.astype(np.int64) * n_pictures + pictures
    tables = [
        np.bincount(cells, weights, n_people * n_pictures).reshape(n_people, n_pictures)
        for weights in (np.ones(len(people)), *columns)
    ]
    blocks = []
    for start in range(0, RESAMPLES, RESAMPLE_BLOCK):
        generator = np.random.default_rng([n_people, n_pictures, start])
        person_counts = _counts(generator, n_people)
        picture_counts = _counts(generator, n_pictures)
        blocks.append([((person_counts @ table) * picture_counts).sum(axis=1) for table in tables])
    weights, *totals = np.concatenate(blocks, axis=1)
    drawn = weights > 0
    n_agreeing = min(n_people, n_pictures) if n_people > 1 else n_pictures
    return [
        _mean(float(column.mean()), total[drawn] / weights[drawn], n_agreeing, lowest)
        for column, total in zip(columns, totals, strict=True)
    ]


def _counts(generator: np.random.Generator, n: int) -> np.ndarray:
    """Count how often each of n people or pictures is drawn in a block of resamples: float64, (RESAMPLE_BLOCK, n)."""
    if n == 1:
        return np.ones((RESAMPLE_BLOCK, 1))
    return generator.multinomial(n, np.full(n, 1 / n), RESAMPLE_BLOCK).astype(np.float64)


def _mean(value: float, resampled: np.ndarray, n_agreeing: int, lowest: float) -> CrossedMean:
    low, high = np.quantile(resampled, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    sides = (resampled <= 0).sum(), (resampled >= 0).sum()
    p = min(1.0, 2 * (int(min(sides)) + 1) / (len(resampled) + 1))
    if high - low < NO_SPREAD:
        low, high = without_spread(value, n_agreeing, lowest)
        p = 1.0 if low <= 0 <= high else min(p, 1 - LEVEL)
    return CrossedMean(value, float(low), float(high), p)
