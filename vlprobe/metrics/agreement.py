"""Agreement of people on labels: Cohen's kappa for two, Krippendorff's alpha for any number, with 95 % intervals.

Both are functions of a table that counts pairs of labels, categories by categories, summed over what was
judged. Intervals are percentiles over resampled groups (all edits of a caption are drawn together).
"""

import math
from collections.abc import Callable, Sequence

import numpy as np

from vlprobe.metrics.estimate import FEWEST_ITEMS
from vlprobe.metrics.resampling import every_resample
from vlprobe.types import Estimate

UNJUDGED = -1
LOW, HIGH = 2.5, 97.5  # percentiles


def kappa(confusion: np.ndarray) -> float:
    """Cohen's kappa: how much more two judges agree than by chance; 1 is always, 0 as often as by chance.

    Args:
        confusion: Shape (categories, categories): how often the first judge said the row's, the second one the
            column's.

    Returns:
        NaN where both always say the same one category: then chance explains all of it.

    Source: Cohen 1960.

    >>> round(kappa(np.array([[20, 5], [10, 15]])), 3)
    0.4
    """
    total = confusion.sum()
    if not total:
        return math.nan
    observed = np.trace(confusion) / total
    expected = float(confusion.sum(axis=0) @ confusion.sum(axis=1)) / total**2
    return float((observed - expected) / (1 - expected)) if expected < 1 else math.nan


def alpha(coincidences: np.ndarray) -> float:
    """Krippendorff's alpha of labels without an order, of any number of judges with gaps; read as kappa is.

    Args:
        coincidences: Shape (categories, categories), as `coincidences_of` gives it, summed.

    Source: Krippendorff 2004, chapter 11.
    """
    counts = coincidences.sum(axis=0)
    total = counts.sum()
    expected = total**2 - (counts**2).sum()
    if not expected:
        return math.nan
    observed = total - np.trace(coincidences)
    return float(1 - (total - 1) * observed / expected)


def confusions_of(labels: np.ndarray, categories: int) -> np.ndarray:
    """The table of each thing that two judges labelled, shape (n, categories, categories).

    Args:
        labels: Integers of shape (2, n), UNJUDGED where a judge said nothing.
        categories: How many labels there are.
    """
    tables = np.zeros((labels.shape[1], categories, categories))
    both = np.flatnonzero((labels != UNJUDGED).all(axis=0))
    tables[both, labels[0, both], labels[1, both]] = 1
    return tables


def coincidences_of(labels: np.ndarray, categories: int) -> np.ndarray:
    """The table of each thing, shape (n, categories, categories): every ordered pair of two judges' labels, each
    counting 1 / (judges - 1).

    Args:
        labels: Integers of shape (judges, n), UNJUDGED where a judge said nothing.
        categories: How many labels there are.
    """
    counts = np.stack([(labels == label).sum(axis=0) for label in range(categories)], axis=1)
    n_judges = counts.sum(axis=1)
    pairs = counts[:, :, None] * counts[:, None, :] - np.eye(categories) * counts[:, :, None]
    return pairs / np.maximum(n_judges - 1, 1)[:, None, None]


def estimate(
    tables: np.ndarray, groups: Sequence[int] | np.ndarray, measure: Callable[[np.ndarray], float]
) -> Estimate:
    """`kappa` or `alpha` with its 95 % interval over resampled groups.

    Args:
        tables: Of each thing that was judged.
        groups: Integer codes of shape (n,), from 0: what is resampled together.
        measure: Of the summed table.

    Returns:
        An interval of NaN with fewer than FEWEST_ITEMS groups, or if all agree.
    """
    value, used = measure(tables.sum(axis=0)), tables.any(axis=(1, 2))
    codes = np.asarray(groups)[used]
    _, members = np.unique(codes, return_inverse=True)
    n_groups = len(np.unique(codes))
    if math.isnan(value) or n_groups < FEWEST_ITEMS:
        return Estimate(value, n_items=n_groups)
    sums = np.zeros((n_groups, *tables.shape[1:]))
    np.add.at(sums, members, tables[used])
    counts = every_resample(n_groups).T.astype(np.float64)
    resampled = np.tensordot(counts, sums, axes=1)
    values = np.array([measure(table) for table in resampled])
    values = values[~np.isnan(values)]
    low, high = np.percentile(values, [LOW, HIGH]) if len(values) else (math.nan, math.nan)
    if not high - low > 1e-9:
        low = high = math.nan
    return Estimate(value, float(low), float(high), n_groups)
