"""Case storage for runs: the cases are written once and read part by part by every model."""

import contextlib
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from vlprobe.datasets import audit
from vlprobe.errors import InvalidInput, Misfit, StoredDamage
from vlprobe.perturb.language import NOT_IN_ENGLISH
from vlprobe.perturb.other_languages import OTHER_LANGUAGES, languages
from vlprobe.runs import case_workers
from vlprobe.runs.context import RunContext
from vlprobe.runs.request import Progress
from vlprobe.storage import containers, errata, memo
from vlprobe.storage.store import Entry
from vlprobe.types import Picture, Probe, Run

_BRING_EDITS = "Edits from a file work in any language: --option edits=FILE (docs/edits.md)."
FIRST_PART_CASES = 64
# For each question set without cases, by key: the number of dropped items by reason
NO_CASES = "no-cases.json"
MOST_NO_CASES = 1000  # the newest question sets, which are remembered
SCHEMA = case_workers.COLUMNS.insert(0, pa.field("case", pa.int64()))


def are_stored(context: RunContext) -> bool:
    """Return whether the run's cases are stored and their pictures can still be found. A picture counts as found if it
    is at its stored path or the dataset marks it as absent.

    If a picture was moved, the cases are written again under the same key.
    """
    if not context.case_entry.complete:
        return False
    absent = {picture.path for item in context.items for picture in item.pictures if picture.absent}
    paths = (Picture.from_name(name).path for name in picture_names(context.case_entry))
    return all(path in absent or containers.is_file(path) for path in paths)


def check_data(context: RunContext, progress: Progress) -> list[audit.AuditFinding]:
    """Return the defects that the data audit finds in a run's items."""
    progress.update("Checking the data", 0, 1)
    return [finding for finding in audit.check(context.items, context.store.root) if finding.count]


def write_cases(
    context: RunContext,
    dataset_notes: Sequence[str],
    findings: Sequence[audit.AuditFinding],
    progress: Progress,
) -> None:
    """Write the cases for a run to `cases/<case key>/cases.parquet`.

    Raises:
        InvalidInput: a case to exclude does not exist, or none of the errata applies to the question set.
        Misfit: no item has a case.
    """
    items, case_entry = context.items, context.case_entry
    dropped: Counter[str] = Counter()
    n_cases = n_left_out = 0
    without = pa.array(context.run.selection.get("without", []), pa.string())
    rejected = frozenset(cast(list[str], context.run.selection.get("errata", [])))
    n_rejected = 0
    with (
        contextlib.closing(
            case_workers.chunks(items, context.probe, context.run, context.request.workers)
        ) as chunks,
        case_entry.writer("cases") as writer,
    ):
        for start in range(0, len(items), case_workers.CHUNK_ITEMS):
            progress.update("Making edits", start, len(items))
            batch, dropped_of_chunk = next(chunks)
            dropped.update(dropped_of_chunk)
            is_left_out = pc.call_function("is_in", [batch["id"]], pc.SetLookupOptions(without))
            batch = batch.filter(pc.call_function("invert", [is_left_out]))
            n_left_out += len(is_left_out) - len(batch)
            if rejected:
                n_before = len(batch)
                shown = zip(batch["images"].to_pylist(), batch["texts"].to_pylist(), strict=True)
                keeps = [errata.question_digest(*question) not in rejected for question in shown]
                batch = batch.filter(pa.array(keeps, pa.bool_()))
                n_rejected += n_before - len(batch)
            numbers = pa.array(np.arange(n_cases, n_cases + len(batch)))
            writer.write(pa.Table.from_arrays([numbers, *batch.columns], schema=SCHEMA))
            n_cases += len(batch)
        if n_left_out < len(without):
            raise InvalidInput(
                f"{len(without) - n_left_out:,} of {len(without):,} cases to exclude are "
                "not in this question set. Use the case ids shown on the cards of this "
                "question set."
            )
        if rejected and not n_rejected:
            raise InvalidInput(
                f"None of the {len(rejected):,} rejected labels belongs to this question set. "
                "Use errata for this dataset."
            )
        if n_left_out + n_rejected:
            dropped["left out by people"] = n_left_out + n_rejected
        if not n_cases:
            path = context.store.root / NO_CASES
            rows = memo.read(path) | {context.run.case_key: dict(dropped)}
            memo.write(path, rows, MOST_NO_CASES)
            raise _no_case(context.run, context.probe, dropped)
    listed = [asdict(finding) for finding in findings if finding.name != audit.NOT_ENGLISH]
    facts = {
        **{"key": context.run.case_key, "n_items": len(items), "n_cases": n_cases},
        **{"dropped": dropped, "findings": listed},
        "notes": [*dataset_notes, *_language_notes(context, findings)],
    }
    case_entry.finish({}, facts, [writer.line])


def known_misfit(run: Run, probe: Probe, cache: Path) -> Misfit | None:
    """Return the error that `write_cases` stored if a probe is known to have no cases for a dataset; otherwise None.

    Without this memo, a finished `run --probe all` would load its models again, because a probe without
    cases has no stored run: on six pictures and two demo models, 3.7 s of CPU time instead of 1.0 s.
    """
    dropped = memo.read(cache / NO_CASES).get(run.case_key) if memo.is_used() else None
    if not isinstance(dropped, dict) or not all(isinstance(n, int) for n in dropped.values()):
        return None
    return _no_case(run, probe, dropped)


def _no_case(run: Run, probe: Probe, dropped: Mapping[str, int]) -> Misfit:
    reasons = (
        "; ".join(f"{reason}: {count}" for reason, count in dropped.items())
        or "no caption can be edited"
    )
    if any(reason.endswith(NOT_IN_ENGLISH) for reason in dropped):
        return Misfit(
            f"Probe '{run.probe}' has no cases for dataset '{run.dataset}': "
            f"{run.options[audit.NOT_ENGLISH]:,} captions are not in English, and its "
            f"rules have no edit for them. {_BRING_EDITS}"
        )
    return Misfit(
        f"Probe '{run.probe}' has no cases for dataset '{run.dataset}' ({reasons}). Choose "
        f"other options or a suitable dataset, such as '{probe.dataset}'."
    )


def _language_notes(context: RunContext, findings: Sequence[audit.AuditFinding]) -> list[str]:
    if audit.NOT_ENGLISH not in context.run.options:
        return []  # no English rule skipped a caption
    return [
        f"{finding.count:,} of {finding.of:,} captions are not in English (in {', '.join(finding.examples)}). "
        f"Rules for English do not edit these.{_by_table(context)} {_BRING_EDITS}"
        for finding in findings
        if finding.name == audit.NOT_ENGLISH
    ]


def _by_table(context: RunContext) -> str:
    """Return a sentence with the number of captions in each language that has a table of colors and numbers."""
    if OTHER_LANGUAGES not in context.run.options:
        return ""
    names = Counter(
        language.name
        for code in context.probe.foreign.values()
        if (language := languages().get(code))
    )
    if not names:
        return ""
    counted = ", ".join(f"{name} ({count:,})" for name, count in names.most_common())
    return f" Tables have flips of colors and numbers for {counted}."


def part_ranges(case_entry: Entry, size: int) -> list[tuple[int, int]]:
    """Compute the start and stop case numbers for each part.

    A part has at least `size` cases and ends at the end of an item. The first part has a tenth of all
    cases, but at least FIRST_PART_CASES, because partial results are shown once it is scored. The
    last part has the remaining cases.
    """
    counts = np.zeros(case_entry.manifest()["n_items"], dtype=np.int64)
    for block in case_entry.blocks("cases", ["item_code"]):
        counts += np.bincount(block["item_code"].to_numpy(), minlength=len(counts))
    ends = np.cumsum(counts)
    ranges, start = [], 0
    first_size = min(size, max(int(ends[-1]) // 10, FIRST_PART_CASES))
    while start < ends[-1]:
        stop = start + (size if ranges else first_size)
        stop = int(ends[min(np.searchsorted(ends, stop), len(ends) - 1)])
        ranges.append((start, stop))
        start = stop
    return ranges


def picture_names(case_entry: Entry) -> set[str]:
    """Return the names of all pictures in stored cases. Raises StoredDamage if the cases have no picture column."""
    names: set[str] = set()
    for block in case_entry.blocks("cases", ["images"]):
        if "images" not in block.column_names:
            raise StoredDamage(f"The cases of {case_entry.folder.name} have no pictures.")
        names.update(block["images"].combine_chunks().flatten().unique().to_pylist())
    return names
