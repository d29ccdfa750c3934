"""Format numbers for readers: values, intervals, units, differences and p-values."""

import math
from collections.abc import Iterable

import numpy as np

from vlprobe.metrics.estimate import FEWEST_ITEMS
from vlprobe.types import Metric
from vlprobe.views.paired_tests import SIGNIFICANCE

RESAMPLED = "Lines: 95 % intervals, resampled by picture."
TOO_FEW = f"fewer than {FEWEST_ITEMS} pictures"  # the reason why a known value has no interval
WAYS = {"up": "higher is better", "down": "lower is better", "none": ""}


def unit_of(metric: Metric, unit: str) -> str:
    """Return the unit of a metric's values: its own ("rate" or "correlation"), or `unit` if they are cosines."""
    return unit if metric.unit == "cosine" else metric.unit


def number(value: float, unit: str) -> str:
    """Format a value: rates in percent, cosines with four decimals, other values with three, and unknown values as "-".

    >>> number(0.5, "rate"), number(0.0135, "cosine"), number(math.nan, "rate")
    ('50.0 %', '0.0135', '-')
    """
    if math.isnan(value):
        return "-"
    if unit == "rate":
        return f"{100 * value:.1f} %"
    return f"{value:.4f}" if unit == "cosine" else f"{value:.3f}"


def as_printed(value: float, unit: str, column: Iterable[float]) -> str:
    """Format a published value with the decimals of the most precise value in its column of the paper.

    >>> as_printed(0.01, "cosine", [0.008, 0.01]), as_printed(0.83, "rate", [0.83, 0.6]), as_printed(math.nan, "", [])
    ('0.010', '83 %', '-')
    """
    if math.isnan(value):
        return "-"
    decimals = max(len(f"{each:.6g}".partition(".")[2]) for each in (value, *column))
    return (
        f"{100 * value:.{max(decimals - 2, 0)}f} %" if unit == "rate" else f"{value:.{decimals}f}"
    )


def shortest(value: float) -> float | None:
    """Convert a float32 to the shortest float that identifies it, for JSON. Unknown values become None."""
    return None if math.isnan(value) else float(str(np.float32(value)))


def interval(low: float, high: float, unit: str) -> str:
    """Format a 95 % interval in the same way as `number`, or return "" if the interval is unknown.

    >>> interval(0.25, 0.5, "rate")
    '25.0 to 50.0 %'
    """
    if math.isnan(low) or math.isnan(high):
        return ""
    return f"{number(low, unit).removesuffix(' %')} to {number(high, unit)}"


def with_interval(value: float, low: float, high: float, unit: str) -> str:
    """Format a value with its 95 % interval, or with the reason why there is no interval.

    >>> with_interval(0.4, 0.25, 0.5, "rate"), with_interval(0.4, math.nan, math.nan, "rate")
    ('40.0 % (25.0 to 50.0 %)', '40.0 % (-, fewer than 5 pictures)')
    """
    if math.isnan(value):
        return "-"
    return f"{number(value, unit)} ({interval(low, high, unit) or f'-, {TOO_FEW}'})"


def signed(value: float, unit: str) -> str:
    """Format a difference with its sign. Differences between rates are in percentage points.

    >>> signed(0.038, "rate"), signed(-0.0012, "cosine"), signed(math.nan, "rate")
    ('+3.8 points', '-0.0012', '-')
    """
    if math.isnan(value):
        return "-"
    text = _unsigned_zero(number(value, unit).removesuffix(" %"))
    return ("" if text.startswith("-") else "+") + text + (" points" if unit == "rate" else "")


def between(low: float, high: float, unit: str) -> str:
    """Format the interval of a difference without the unit, or return "" if the interval is unknown.

    >>> between(0.021, 0.055, "rate"), between(-0.00001, 0.01, "cosine")
    ('2.1 to 5.5', '0.0000 to 0.0100')
    """
    return " to ".join(
        map(_unsigned_zero, interval(low, high, unit).removesuffix(" %").split(" to "))
    )


def power(values: Iterable[float], unit: str) -> str:
    """Describe the smallest difference (or range of differences) that tests could detect, or return "" if unknown.

    >>> power([0.021], "rate"), power([0.021, 0.034], "rate")
    ('A true difference of 2.1 points would be found four times in five (80 % power).', 'A true difference of 3.4 \
points would be found four times in five (80 % power); in the most precise comparison, one of 2.1 points would be.')
    >>> power([math.inf], "rate"), power([math.nan], "rate")
    ('With so few pictures, no difference could have been detected.', '')
    """
    known = [value for value in values if not math.isnan(value)]
    finite = sorted(value for value in known if value < math.inf)
    if not finite:
        return "With so few pictures, no difference could have been detected." if known else ""
    least, most = (signed(value, unit).removeprefix("+") for value in (finite[0], finite[-1]))
    precise = "" if least == most else f"; in the most precise comparison, one of {least} would be"
    return f"A true difference of {most} would be found four times in five (80 % power){precise}."


def _unsigned_zero(text: str) -> str:
    """Remove the minus sign from a number that is rounded to zero."""
    return text if text.strip("-0.") else text.removeprefix("-")


def chance(p: float) -> str:
    """Format a p-value with two or three decimals, or with more if rounding would move it to the other side of
    SIGNIFICANCE.

    >>> chance(0.00005), chance(0.0312), chance(0.62), chance(1.0)
    ('p < .001', 'p = .031', 'p = .62', 'p = 1')
    >>> chance(0.0499), chance(0.04999999), chance(0.05)
    ('p = .0499', 'p < .05', 'p = .050')
    """
    if math.isnan(p):
        return "p unknown"
    if p < 0.001:
        return "p < .001"
    for text in (f"{p:.2f}",) if p >= 0.1 else (f"{p:.3f}", f"{p:.4f}"):
        if (float(text) < SIGNIFICANCE) == (p < SIGNIFICANCE):  # same verdict as p
            return f"p = {text.removeprefix('0')}" if p < 0.995 else "p = 1"
    return f"p < {SIGNIFICANCE:g}".replace("0.", ".")


def chance_cell(p: float) -> str:
    """Format a p-value for a column of p-values.

    >>> chance_cell(0.00005), chance_cell(0.0312)
    ('< .001', '.031')
    """
    return chance(p).removeprefix("p ").removeprefix("= ")
