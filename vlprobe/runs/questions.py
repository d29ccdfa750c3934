"""The questions of a run, written once and read a part at a time by every model that is asked them."""

import contextlib
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from vlprobe.datasets import audit
from vlprobe.errors import InvalidInput
from vlprobe.runs import case_workers
from vlprobe.storage.store import Entry, Store
from vlprobe.types import Dataset, Item, Picture, Probe, Run

if TYPE_CHECKING:
    from vlprobe.runs.request import Progress

SCHEMA = case_workers.COLUMNS.insert(0, pa.field("case", pa.int64()))


def ask(
    run: Run,
    dataset: Dataset,
    items: Sequence[Item],
    probe: Probe,
    store: Store,
    progress: "Progress",
    workers: int = 1,
) -> Entry:
    """Writes the questions of a run, unless they are there: `cases/<case key>/cases.parquet`.

    They are written anew where a picture is no longer where it was: the key says that the questions are the same.
    """
    entry = store.cases(run.case_key)
    if entry.complete and all(Picture.from_name(name).path.exists() for name in _pictures(entry)):
        return entry
    progress.update("Checking the data", 0, 1)
    findings = [finding for finding in audit.check(items, store.root) if finding.count]
    dropped: Counter[str] = Counter()
    n_cases = 0

    def tables(made: Iterator[case_workers.Chunk]) -> Iterator[pa.Table]:
        nonlocal n_cases
        for start in range(0, len(items), case_workers.CHUNK_ITEMS):
            progress.update("Making edits", start, len(items))
            batch, lost = next(made)
            dropped.update(lost)
            numbers = pa.array(np.arange(n_cases, n_cases + len(batch)))
            yield pa.Table.from_arrays([numbers, *batch.columns], schema=SCHEMA)
            n_cases += len(batch)
        if not n_cases:
            why = "; ".join(f"{reason}: {count}" for reason, count in dropped.items()) or "no caption can be edited"
            raise InvalidInput(
                f"Probe '{run.probe}' makes no case from dataset '{run.dataset}' ({why}). "
                f"Choose other options, or data that suits it, such as '{probe.dataset}'."
            )

    with contextlib.closing(case_workers.chunks(items, probe, run, workers)) as made:
        written = entry.write("cases", tables(made))
    facts = {"key": run.case_key, "n_items": len(items), "n_cases": n_cases, "dropped": dropped}
    facts["findings"] = [asdict(finding) for finding in findings if finding.name != audit.NOT_ENGLISH]
    facts["notes"] = [*getattr(dataset, "notes", ()), *_language_notes(findings)]
    entry.finish({}, facts, [written])
    return entry


def _language_notes(findings: Sequence[audit.Finding]) -> list[str]:
    return [
        f"{finding.count:,} of {finding.of:,} captions are not in English (in {', '.join(finding.examples)}). "
        "Captions are edited by English rules and templates: numbers on edits of these mean nothing."
        for finding in findings
        if finding.name == audit.NOT_ENGLISH
    ]


def parts(cases: Entry, size: int) -> list[tuple[int, int]]:
    """Where to cut the questions: first case and the one after the last of each part.

    A part has at least `size` cases, but for the last one, and ends where an item ends.
    """
    counts = np.zeros(cases.manifest()["n_items"], dtype=np.int64)
    for block in cases.blocks("cases", ["item_code"]):
        counts += np.bincount(block["item_code"].to_numpy(), minlength=len(counts))
    ends = np.cumsum(counts)
    found, first = [], 0
    while first < ends[-1]:
        last = int(ends[min(np.searchsorted(ends, first + size), len(ends) - 1)])
        found.append((first, last))
        first = last
    return found


def _pictures(cases: Entry) -> set[str]:
    found: set[str] = set()
    for block in cases.blocks("cases", ["images"]):
        found.update(pa.compute.unique(block["images"].combine_chunks().flatten()).to_pylist())
    return found
