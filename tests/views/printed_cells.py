"""The published cells by paper, table, model and metric, read without the tested code."""

import csv
from decimal import ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_UP, Decimal
from pathlib import Path

from vlprobe.views import published

with (
    Path(published.__file__).with_name("published.csv").open(encoding="utf-8", newline="") as _file
):
    ROWS = list(csv.DictReader(_file))
KEY = ("paper", "table", "dataset", "split", "model", "metric")
CELLS = {tuple(row[k] for k in KEY): row for row in ROWS}
VALUE = {key: float(row["value"]) for key, row in CELLS.items()}


def pick(paper, tables, metric):
    """Return {key: value} of a metric in some tables."""
    return {
        k: v for k, v in VALUE.items() if k[0] == paper and int(k[1]) in tables and k[5] == metric
    }


def swap(key, **changes):
    return tuple(changes.get(name, part) for name, part in zip(KEY, key, strict=True))


def half_step(key):
    """Return half of the last printed digit."""
    return 0.5 * 10.0 ** -len(CELLS[key]["value"].partition(".")[2])


def is_suspect(key):
    return "suspect:" in CELLS[key]["note"]


def count_roundings(key, size):
    """Return the ways of rounding to two digits by which a count out of `size` gives the printed percentage."""
    printed = Decimal(CELLS[key]["value"])
    percents = [Decimal(100 * count) / size for count in range(size + 1)]
    near = [percent for percent in percents if abs(percent - printed) <= Decimal("0.01")]
    modes = {"rounded": ROUND_HALF_UP, "cut": ROUND_FLOOR, "rounded up": ROUND_CEILING}
    return {
        name
        for name, mode in modes.items()
        if any(percent.quantize(Decimal("0.01"), mode) == printed for percent in near)
    }


def has_note(words):
    """Return the cells whose note contains the words."""
    return {key for key, row in CELLS.items() if words in row["note"]}
