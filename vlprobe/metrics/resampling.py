"""Bootstrap resamples of items, shared by all intervals."""

import functools

import numpy as np

RESAMPLES = 1000
RESAMPLE_BLOCK = 50  # resamples held in memory at once
MOST_KEPT = 1 << 15  # items whose counts may stay in memory, at RESAMPLES bytes per item


def resample_counts(n_items: int, start: int, stop: int) -> np.ndarray:
    """Count how often each item is drawn in resamples `start` to `stop`, float32 of shape (stop - start,
    n_items).

    The counts depend only on the number of items and the number of the resample.
    """
    counts = np.empty((stop - start, n_items), dtype=np.float32)
    for row, number in enumerate(range(start, stop)):
        drawn = np.random.default_rng([n_items, number]).integers(n_items, size=n_items)
        counts[row] = np.bincount(drawn, minlength=n_items)
    return counts


def every_resample(n_items: int) -> np.ndarray:
    """Return `resample_counts` for all resamples as uint8 of shape (n_items, RESAMPLES); no item is drawn
    more than 255 times.
    """
    return _kept_resamples(n_items) if n_items <= MOST_KEPT else _count_resamples(n_items)


def _count_resamples(n_items: int) -> np.ndarray:
    counts = np.empty((n_items, RESAMPLES), dtype=np.uint8)
    for start in range(0, RESAMPLES, RESAMPLE_BLOCK):
        stop = min(start + RESAMPLE_BLOCK, RESAMPLES)
        counts[:, start:stop] = resample_counts(n_items, start, stop).T
    counts.flags.writeable = False
    return counts


# A page requests the same counts for each selection, for its items and for their groups.
_kept_resamples = functools.lru_cache(maxsize=3)(_count_resamples)
