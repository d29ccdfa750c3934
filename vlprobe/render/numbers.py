"""Numbers as a person reads them: values, intervals, units."""

import math

from vlprobe.metrics.estimate import FEWEST_ITEMS
from vlprobe.types import Metric

TOO_FEW = f"fewer than {FEWEST_ITEMS} pictures"  # why a known value has no interval
WAYS = {"up": "higher is better", "down": "lower is better", "none": ""}


def unit_of(metric: Metric, unit: str) -> str:
    """The unit that a metric's values are given in: "rate", "correlation", or "cosine" or "spread"
    as chosen.
    """
    return unit if metric.unit == "cosine" else metric.unit


def number(value: float, unit: str) -> str:
    """A value as people read it: rates in per cent, cosines with four decimals, others with three;
    "-" if unknown.

    >>> number(0.5, "rate"), number(0.0135, "cosine"), number(math.nan, "rate")
    ('50.0 %', '0.0135', '-')
    """
    if math.isnan(value):
        return "-"
    if unit == "rate":
        return f"{100 * value:.1f} %"
    return f"{value:.4f}" if unit == "cosine" else f"{value:.3f}"


def interval(low: float, high: float, unit: str) -> str:
    """The 95 % interval in the units of `number`; empty where it is unknown.

    >>> interval(0.25, 0.5, "rate")
    '25.0 to 50.0 %'
    """
    if math.isnan(low) or math.isnan(high):
        return ""
    return f"{number(low, unit).removesuffix(' %')} to {number(high, unit)}"


def with_interval(value: float, low: float, high: float, unit: str) -> str:
    """A value with its 95 % interval, or with the reason why there is none.

    >>> with_interval(0.4, 0.25, 0.5, "rate"), with_interval(0.4, math.nan, math.nan, "rate")
    ('40.0 % (25.0 to 50.0 %)', '40.0 % (-, fewer than 5 pictures)')
    """
    if math.isnan(value):
        return "-"
    return f"{number(value, unit)} ({interval(low, high, unit) or f'-, {TOO_FEW}'})"
