"""Power of paired tests: the smallest detectable difference, and the number of pictures needed for a smaller one.

A difference is detected with 80 % power if it is at least (z + z_80) standard errors, where z is the quantile of the
level. The level is divided by the number of simultaneous tests. An exchange test rejects only if enough pictures differ
that p is below the level when all of them favor one model, so as many of the right or wrong answers must differ.

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


def detectable(error: float, n_items: int, n_tests: int = 1, n_answers: float = 0) -> float:
    """Compute the smallest true difference that a paired test on a question set detects with 80 % power.

    Args:
        error: Standard error of the difference, by picture.
        n_items: Number of pictures that both models answered.
        n_tests: Number of simultaneous tests; the level is .05 divided by it, the first step of Holm's method.
        n_answers: Number of answers, if each is right or wrong. A significant difference then also needs a minimum
            number of answers that differ. 0 for other values, such as movements: a picture can differ by any amount.

    Returns:
        The difference in the metric's unit; infinite if there are too few pictures for any difference to be
        significant, NaN if the error is unknown, or if it is 0 and answers are not right or wrong.

    >>> round(detectable(0.01, 1000), 4), round(detectable(0.0, 1000, n_answers=1000), 4)
    (0.028, 0.0079)
    """
    if math.isnan(error):
        return math.nan
    least = _least_pictures(n_tests)
    if n_items < least:
        return math.inf
    needed = _quantiles(n_tests) * error
    if n_answers >= least:
        return max(needed, _least_share(least, n_answers))
    return needed or math.nan


def pictures_needed(
    difference: float, error: float, n_items: int, n_tests: int = 1, n_answers: float = 0
) -> int:
    """Compute the number of pictures that a paired test needs to detect a difference with 80 % power.

    Args:
        difference: The true difference to detect, above 0.
        error: Standard error of the difference on `n_items` pictures; it falls with the square root of their number.
        n_items: Number of pictures from which the error was estimated.
        n_tests: Number of simultaneous tests.
        n_answers: As in `detectable`, on `n_items` pictures.

    >>> pictures_needed(0.014, 0.01, 1000)
    4005
    """
    least = _least_pictures(n_tests)
    n_needed = max(least, math.ceil(n_items * (_quantiles(n_tests) * error / difference) ** 2))
    per_picture = n_answers / n_items
    if per_picture < 1 or _least_share(least, per_picture * n_needed) <= difference:
        return n_needed
    low, high = n_needed, MOST_PICTURES  # the share falls with the number of pictures
    while high - low > 1:
        middle = (low + high) // 2
        is_enough = _least_share(least, per_picture * middle) <= difference
        low, high = (low, middle) if is_enough else (middle, high)
    return high


def _quantiles(n_tests: int) -> float:
    """Return the sum of the normal quantiles for the level and the power: 2.80 for a single test."""
    return _QUANTILE(1 - ALPHA / (2 * n_tests)) + _QUANTILE(POWER)


def _least_pictures(n_tests: int) -> int:
    """Return how many pictures must differ, all in favor of one model, for significance: 6 for a single test."""
    return math.floor(math.log2(2 * n_tests / ALPHA)) + 1


def _least_share(least: int, n_answers: float) -> float:
    """Return how often a model must be ahead so that a sample has `least` answers in its favor with 80 % power."""
    from scipy.special import betaincinv

    return float(betaincinv(least, n_answers - least + 1, POWER))
