"""Estimate how long a run will take, and read partial results from the finished parts of an unfinished run."""

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from vlprobe.storage.store import Store
from vlprobe.views.records import RunRow
from vlprobe.views.tables import CaseTable, remember

PART = re.compile(r"([0-9]{1,18})-([0-9]{1,18})")  # number of the first case, and end of the part


@dataclass(frozen=True, slots=True)
class Duration:
    """The expected duration of a task in seconds, from `low` to `high`; NaN if no similar task was done before."""

    low: float
    high: float
    is_scaled: bool = False  # whether the similar task had another number of items

    def __add__(self, other: "Duration") -> "Duration":
        is_scaled = self.is_scaled or other.is_scaled
        return Duration(self.low + other.low, self.high + other.high, is_scaled)

    @property
    def is_known(self) -> bool:
        """Return whether a similar task was done before, so that the duration is known."""
        return not math.isnan(self.high)


NOTHING = Duration(0.0, 0.0)
UNKNOWN = Duration(math.nan, math.nan)


def expected(
    runs: Sequence[RunRow], models: Sequence[str], dataset: str, probe: str, limit: int = 0
) -> Duration:
    """Estimate the time that the given models need for one probe on one dataset.

    A model that has run before is expected to take the same time per case as last time. For a new
    model, the range is from the fastest to the slowest of the other models.

    Args:
        runs: Stored runs, newest first.
        limit: Number of items to evaluate; 0 means all.

    Returns:
        Total seconds for all models, one after the other; UNKNOWN if no stored run has the same questions, or if stored
        runs cover only part of the questions.
    """
    alike = [
        run
        for run in runs
        if (run.dataset, run.probe) == (dataset, probe)
        and (limit or not (run.limit or run.selection))
    ]
    if not alike:
        return UNKNOWN
    total = NOTHING
    for model in models:
        newest = next((run for run in alike if run.model == model), None)
        known = [newest] if newest else alike
        times = [_scaled(run, limit) for run in known]
        total += Duration(min(times), max(times), times != [run.seconds for run in known])
    return total


def _scaled(run: RunRow, limit: int) -> float:
    """Return a run's duration in seconds, scaled to `limit` items. If `limit` is 0, the duration is not scaled."""
    items = max(run.n_items, 1)
    if not (run.limit or run.selection):  # the run covered all items
        limit = min(limit, items)
    return run.seconds * (limit / items if limit else 1.0)


def in_words(duration: Duration) -> str:
    """Format a duration in words, as a range if its two ends differ.

    >>> in_words(Duration(155, 155)), in_words(Duration(100, 400)), in_words(Duration(8, 20))
    ('About 3 minutes', 'About 2 to 7 minutes', 'Less than a minute')
    >>> in_words(UNKNOWN), in_words(Duration(7100, 9000))
    ('Time unknown until the run starts', 'About 2 to 2.5 hours')
    """
    if not duration.is_known:
        return "Time unknown until the run starts"
    if duration.high < 45:
        return "Less than a minute"
    unit, seconds = ("hour", 3600) if duration.high >= 5400 else ("minute", 60)
    step = 0.5 if unit == "hour" else 1
    amounts = (round(end / seconds / step) * step for end in (duration.low, duration.high))
    ends = [f"{max(amount, step):g}" for amount in amounts]
    plural = "" if ends[1] == "1" else "s"
    return f"About {ends[1] if ends[0] == ends[1] else ' to '.join(ends)} {unit}{plural}"


class SoFar(NamedTuple):
    """Partial results of an unfinished run on the cases of one kind."""

    n_fooled: int  # including ties
    n_answered: int  # cases whose margin is known
    n_cases: int  # cases of the whole run
    last_fooled: int = -1  # number of the last case that fooled the model; -1 if none did


def so_far(store: Store, run_key: str, case_key: str, kind: str) -> SoFar:
    """Count how many cases of one kind fool a model in an unfinished run.

    Only parts stored on this machine are read. Cases in incomplete, removed or damaged parts count as not answered.
    """
    numbers = CaseTable(store, case_key).numbers("kind = ?", [kind])
    n_fooled = n_answered = 0
    last_fooled = -1
    for path in sorted((store.run(run_key).folder / "parts").glob("*.json")):
        matched = PART.fullmatch(path.stem)
        margins = _part_margins(path.with_suffix(".parquet")) if matched else None
        if not matched or margins is None:
            continue
        start, stop = map(int, matched.groups())
        first, end = np.searchsorted(numbers, [start, stop])
        if len(margins) != stop - start:
            continue
        of_kind = margins[numbers[first:end] - start]
        fooled = numbers[first:end][of_kind <= 0]
        n_fooled += len(fooled)
        last_fooled = int(fooled[-1]) if len(fooled) else last_fooled
        n_answered += int(np.count_nonzero(~np.isnan(of_kind)))
    return SoFar(n_fooled, n_answered, len(numbers), last_fooled)


def _part_margins(path: Path) -> np.ndarray | None:
    """Return the margins in one stored part of a run, shape (n,); None if the part cannot be read."""
    try:
        status = path.stat()
        version = str(path), status.st_size, status.st_mtime_ns
        return remember(
            ("part", version), lambda: pq.read_table(path, columns=["margin"])["margin"].to_numpy()
        )
    except (OSError, pa.ArrowInvalid, KeyError):
        return None
