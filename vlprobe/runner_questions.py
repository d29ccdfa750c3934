"""The questions of a run, written once and read a part at a time by every model that is asked them."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from vlprobe import check
from vlprobe.errors import InvalidInput
from vlprobe.store import Entry, Store
from vlprobe.types import Case, Dataset, Item, Picture, Probe, Run

if TYPE_CHECKING:
    from vlprobe.runner import Progress

CHUNK_ITEMS = 200  # items whose questions are in memory while they are made
SCHEMA = pa.schema(
    [
        ("case", pa.int64()),
        ("id", pa.string()),
        ("item", pa.string()),
        ("item_code", pa.int32()),
        ("group", pa.string()),
        ("kind", pa.string()),
        ("subtype", pa.string()),
        ("rule", pa.string()),
        ("source", pa.string()),
        ("target", pa.string()),
        ("images", pa.list_(pa.string())),
        ("texts", pa.list_(pa.string())),
        ("roles", pa.list_(pa.string())),
        ("tags", pa.map_(pa.string(), pa.string())),
    ]
)


def ask(run: Run, dataset: Dataset, items: Sequence[Item], probe: Probe, store: Store, progress: "Progress") -> Entry:
    """Writes the questions of a run, unless they are there: `cases/<case key>/cases.parquet`.

    They are written anew where a picture is no longer where it was: the key says that the questions are the same.
    """
    entry = store.cases(run.case_key)
    if entry.complete and all(Picture.named(name).path.exists() for name in _pictures(entry)):
        return entry
    progress.update("Checking the data", 0, 1)
    findings = [asdict(finding) for finding in check.check(dataset, store.root) if finding.count]
    dropped: Counter[str] = Counter()
    n_cases = 0

    def tables() -> Iterator[pa.Table]:
        nonlocal n_cases
        for start in range(0, len(items), CHUNK_ITEMS):
            progress.update("Making edits", start, len(items))
            cases: list[Case] = []
            codes: list[int] = []
            for code, item in enumerate(items[start : start + CHUNK_ITEMS], start):
                made, lost = probe.cases(item, run.options, run.seed)
                cases += made
                codes += [code] * len(made)
                dropped.update(lost)
            yield _table(items, codes, cases, n_cases)
            n_cases += len(cases)
        if not n_cases:
            why = "; ".join(f"{reason}: {count}" for reason, count in dropped.items()) or "no caption can be edited"
            raise InvalidInput(
                f"Probe '{run.probe}' makes no case from dataset '{run.dataset}' ({why}). "
                f"Choose other options, or data that suits it, such as '{probe.dataset}'."
            )

    written = entry.write("cases", tables())
    facts = {"key": run.case_key, "n_items": len(items), "n_cases": n_cases, "dropped": dropped, "findings": findings}
    facts["notes"] = list(getattr(dataset, "notes", ()))
    entry.finish({}, facts, [written])
    return entry


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


def _table(items: Sequence[Item], codes: Sequence[int], cases: Sequence[Case], first: int) -> pa.Table:
    names = {picture: picture.name for case in cases for picture in case.images}
    asked = dict.fromkeys(codes)  # a picture and a tag are written once an item, and not once a case
    place = dict(zip(asked, range(len(asked)), strict=True))
    of_item = pa.array([place[code] for code in codes], pa.int32())
    tags = pa.array([list(items[code].tags.items()) for code in asked], SCHEMA.field("tags").type)
    columns = {
        "case": range(first, first + len(cases)),
        "id": [case.id for case in cases],
        "item": pa.array([items[code].id for code in asked], pa.string()).take(of_item),
        "item_code": codes,
        "group": [case.group for case in cases],
        "kind": [case.edit.kind for case in cases],
        "subtype": [case.edit.subtype for case in cases],
        "rule": [case.edit.rule for case in cases],
        "source": [case.edit.source for case in cases],
        "target": [case.edit.target for case in cases],
        "images": [[names[picture] for picture in case.images] for case in cases],
        "texts": [case.texts for case in cases],
        "roles": [case.roles for case in cases],
        "tags": tags.take(of_item),
    }
    return pa.table(columns, schema=SCHEMA)
