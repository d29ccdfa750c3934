"""Agreement between human judges: Krippendorff's alpha with a 95 % interval.

The interval is a percentile interval over resampled groups (all edits of a caption are drawn together).
"""

import math
from collections.abc import Sequence

import numpy as np

from vlprobe.errors import MissingDependency
from vlprobe.metrics.estimate import FEWEST_ITEMS
from vlprobe.metrics.resampling import every_resample
from vlprobe.types import Estimate

UNJUDGED = -1
LOW, HIGH = 2.5, 97.5  # percentiles


def alpha(counts: np.ndarray) -> float:
    """Compute Krippendorff's alpha for unordered labels: 1 is full agreement, 0 is chance agreement.

    Args:
        counts: Number of judges who gave each label to each object, integers of shape (objects, labels).

    Returns:
        Alpha; NaN if no two judges labeled the same object, or if all labels are the same.

    Raises:
        MissingDependency: The package `krippendorff` is not installed.

    Source: Krippendorff 2004, chapter 11.
    """
    paired = counts[counts.sum(axis=1) > 1]
    if np.count_nonzero(paired.sum(axis=0)) < 2:
        return math.nan
    try:
        import krippendorff
    except ImportError:
        raise MissingDependency(
            "Agreement between judges", "krippendorff", "'vlprobe[edits]'"
        ) from None
    return float(krippendorff.alpha(value_counts=paired, level_of_measurement="nominal"))


def estimate(labels: np.ndarray, categories: int, groups: Sequence[int] | np.ndarray) -> Estimate:
    """Compute Krippendorff's alpha, with a 95 % interval from resampling groups.

    Args:
        labels: Integers of shape (judges, n); UNJUDGED marks a missing label.
        categories: Number of different labels.
        groups: Integer codes of shape (n,), from 0; the labels in a group are resampled together.

    Returns:
        The estimate; its interval is NaN if there are fewer than FEWEST_ITEMS groups, or if all labels are the same.
    """
    counts = np.stack([(labels == label).sum(axis=0) for label in range(categories)], axis=1)
    is_paired = counts.sum(axis=1) > 1
    value = alpha(counts)
    _, members = np.unique(np.asarray(groups)[is_paired], return_inverse=True)
    n_groups = int(members.max(initial=-1)) + 1
    if math.isnan(value) or n_groups < FEWEST_ITEMS:
        return Estimate(value, n_items=n_groups)
    paired = counts[is_paired]
    draws = every_resample(n_groups).T.astype(np.int64)
    values = np.array([alpha(np.repeat(paired, draw[members], axis=0)) for draw in draws])
    values = values[~np.isnan(values)]
    low, high = np.percentile(values, [LOW, HIGH]) if len(values) else (math.nan, math.nan)
    if not high - low > 1e-9:
        low = high = math.nan
    return Estimate(value, float(low), float(high), n_groups)
