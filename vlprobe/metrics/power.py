"""Power of paired tests: the smallest detectable difference, and the number of pictures needed for a smaller one.

A difference is detected with 80 % power if it is at least (z + z_80) standard errors, where z is the quantile of the
level. The level is divided by the number of simultaneous tests. With few pictures a larger difference is needed: an
exchange test rejects only if enough pictures differ that p is below the level when all of them favor one model.

Source: Bloom 1995 (minimum detectable effects); Miller 2024, arXiv 2411.00640, section 5 (clustered, paired).
"""

import math
import statistics

from vlprobe.metrics.estimate import LEVEL, Z

POWER = 0.8
ALPHA = 1 - LEVEL
_QUANTILE = statistics.NormalDist().inv_cdf
MOST_PICTURES = 2**40


def standard_error(low: float, high: float) -> float:
    """Compute the standard error that corresponds to a 95 % interval.

    >>> round(standard_error(-0.0196, 0.0196), 3)
    0.01
    """
    return (high - low) / (2 * Z)


def detectable(error: float, n_items: int, n_tests: int = 1, is_rate: bool = True) -> float:
    """Compute the smallest true difference that a paired test on a question set detects with 80 % power.

    Args:
        error: Standard error of the difference, by picture.
        n_items: Number of pictures that both models answered.
        n_tests: Number of simultaneous tests; the level is .05 divided by it, the first step of Holm's method.
        is_rate: Whether each value lies between 0 and 1. A significant difference then also needs a minimum number
            of pictures that differ.

    Returns:
        The difference in the metric's unit; infinite if there are too few pictures for any difference to be
        significant, NaN if the error is unknown.

    >>> round(detectable(0.01, 1000), 4), round(detectable(0.0, 1000), 4)
    (0.028, 0.0079)
    """
    if math.isnan(error):
        return math.nan
    least = _least_pictures(n_tests)
    if n_items < least:
        return math.inf
    needed = _quantiles(n_tests) * error
    return max(needed, _least_share(least, n_items)) if is_rate else needed


def pictures_needed(
    difference: float, error: float, n_items: int, n_tests: int = 1, is_rate: bool = True
) -> int:
    """Compute the number of pictures that a paired test needs to detect a difference with 80 % power.

    Args:
        difference: The true difference to detect, above 0.
        error: Standard error of the difference on `n_items` pictures; it falls with the square root of their number.
        n_items: Number of pictures from which the error was estimated.
        n_tests: Number of simultaneous tests.
        is_rate: Whether values range from 0 to 1.

    >>> pictures_needed(0.014, 0.01, 1000)
    4005
    """
    least = _least_pictures(n_tests)
    n_needed = max(least, math.ceil(n_items * (_quantiles(n_tests) * error / difference) ** 2))
    if not is_rate or _least_share(least, n_needed) <= difference:
        return n_needed
    low, high = n_needed, MOST_PICTURES  # the share falls with the number of pictures
    while high - low > 1:
        middle = (low + high) // 2
        is_enough = _least_share(least, middle) <= difference
        low, high = (low, middle) if is_enough else (middle, high)
    return high


def _quantiles(n_tests: int) -> float:
    """Return the sum of the normal quantiles for the level and the power: 2.80 for a single test."""
    return _QUANTILE(1 - ALPHA / (2 * n_tests)) + _QUANTILE(POWER)


def _least_pictures(n_tests: int) -> int:
    """Return how many pictures must differ, all in favor of one model, for significance: 6 for a single test."""
    return math.floor(math.log2(2 * n_tests / ALPHA)) + 1


def _least_share(least: int, n_items: int) -> float:
    """Return how often a model must be ahead so that a sample has `least` pictures in its favor with 80 % power."""
    from scipy.special import betaincinv

    return float(betaincinv(least, n_items - least + 1, POWER))
