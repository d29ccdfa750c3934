"""Bins of what only the answers know: how strong a flip is to a model, how far shared words mislead.

A bin is named by NAME=VALUE, as the filter and the parameter `bin` of an address have it:

    strength_bin=weak     flips by their strength to the model itself (lgip)
    lure=0.00 to 0.25     triplets by their lure, the lower edge included (visla)
"""

import itertools

import numpy as np

from vlprobe.errors import InvalidInput, NotFound
from vlprobe.storage.store import Store
from vlprobe.views import rows as views_rows

STRENGTH, LURE = "strength_bin", "lure"
STRENGTHS = ("weak", "medium", "strong")
LURE_EDGES = np.linspace(-1, 1, 9)  # of differences of two Jaccard indices
_LURE = "greatest(overlap_02, overlap_12) - overlap_01"
_COLUMNS = {STRENGTH: {"strength_bin"}, LURE: {"overlap_01", "overlap_02", "overlap_12"}}


def lure_bins() -> dict[str, str]:
    """The bins of lures from left to right, and what they are called."""
    return {
        f"{low:.2f} to {high:.2f}": f"{low:g} to {high:g}"
        for low, high in itertools.pairwise(LURE_EDGES)
    }


def check(name: str) -> tuple[str, str]:
    """Name and value of a bin. Raises InvalidInput or NotFound where there is none of that name."""
    what, equals, value = name.partition("=")
    if not equals or what not in _COLUMNS:
        raise InvalidInput(f"'{name[:80]}' is no bin. Expected strength_bin=weak or the like.")
    values = STRENGTHS if what == STRENGTH else tuple(lure_bins())
    if value not in values:
        raise NotFound("bin", value, values)
    return what, value


def members(store: Store, run_key: str, name: str) -> np.ndarray:
    """Numbers of the cases that one run's answers put into a bin, rising; none where that run knows
    of no such bins.
    """
    what, value = check(name)
    if not _COLUMNS[what] <= set(views_rows.answer_columns(store, run_key)):
        return np.empty(0, dtype=np.int32)
    if what == STRENGTH:
        return views_rows.answer_numbers(store, run_key, "strength_bin = ?", [value])
    place = list(lure_bins()).index(value)
    terms, edges = [f"NOT isnan({_LURE})"], []  # NaN is larger than all numbers
    if place:
        terms.append(f"{_LURE} >= ?")
        edges.append(float(LURE_EDGES[place]))
    if place < len(LURE_EDGES) - 2:
        terms.append(f"{_LURE} < ?")
        edges.append(float(LURE_EDGES[place + 1]))
    return views_rows.answer_numbers(store, run_key, " AND ".join(terms), edges)
