"""Partial results of a run in progress, from its finished parts."""

import re
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from vlprobe.storage.store import Store
from vlprobe.views.rows import CaseTable, remember

PART = re.compile(r"([0-9]{1,18})-([0-9]{1,18})")  # the number of its first case, and its end


class SoFar(NamedTuple):
    """Partial results on the cases of one kind."""

    n_fooled: int  # ties among them
    n_answered: int  # whose margin is known
    n_cases: int  # of the whole run


def so_far(store: Store, run_key: str, case_key: str, kind: str) -> SoFar:
    """Count the cases of a kind that fool a model in an unfinished run.

    Only parts on this machine are read; parts that are incomplete, removed or damaged count as not
    answered.
    """
    numbers = CaseTable(store, case_key).numbers("kind = ?", [kind])
    n_fooled = n_answered = 0
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
        n_fooled += int(np.count_nonzero(of_kind <= 0))
        n_answered += int(np.count_nonzero(~np.isnan(of_kind)))
    return SoFar(n_fooled, n_answered, len(numbers))


def _part_margins(path: Path) -> np.ndarray | None:
    """The margins of a part's cases in their order, float of shape (n,); None if they cannot be
    read.
    """
    try:
        status = path.stat()
        version = str(path), status.st_size, status.st_mtime_ns
        return remember(
            ("part", version), lambda: pq.read_table(path, columns=["margin"])["margin"].to_numpy()
        )
    except (OSError, pa.ArrowInvalid, KeyError):
        return None
