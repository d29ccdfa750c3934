"""One model's answers to the questions of a run: scored part by part, then judged block by block."""

import datetime
import hashlib
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict

import numpy as np
import pandas as pd
import pyarrow as pa

from vlprobe import __version__
from vlprobe.metrics.judge import Judge
from vlprobe.probes.fit import score_type
from vlprobe.runs import executor, questions
from vlprobe.runs.executor import Executor, Part
from vlprobe.scoring import cases as scoring_cases
from vlprobe.storage.store import Entry
from vlprobe.types import Probe

PART_CASES = 4096  # at least, in a part: what is lost at most when a run is killed
FAST_PART_CASES = 65_536  # where a part of the size above takes a second
JUDGED_CASES = 65_536  # at least, in a block that is judged at once
SPREAD_ITEMS = 1000  # items whose mismatched pairs give a model's similarity spread
JUDGED = ("case", "item", "item_code", "group", "kind", "subtype", "rule")  # columns of the cases


def answer(by: Executor) -> None:
    """Has every case scored and writes scores, estimates and the manifest of the run."""
    started = time.monotonic()
    run, probe, model = by.run, by.probe, by.model
    entry, asked = by.store.run(run.key), by.cases.manifest()
    total = asked["n_cases"]
    sample = sorted(by.items, key=lambda item: hashlib.sha256(f"{run.seed}/spread/{item.id}".encode()).digest())
    sample = list({item.image: item for item in sample if item.image}.values())[:SPREAD_ITEMS]
    # A case has two or three texts, and for a moment each has its vector twice.
    fits = (by.request.memory << 20) // (4 * 2 * 3 * 4 * max(model.capabilities.dim, 1))
    parts = questions.parts(by.cases, max(1, min(FAST_PART_CASES if by.fast else PART_CASES, fits)))
    finished = entry.parts()
    spread = by.work(sample, [part for part in parts if executor.name(part) not in finished])
    by.progress.update(f"{by.label}: intervals", total, total)
    answers = _Answers(by, entry, parts)
    judge = Judge(probe.metrics, answers.n_units, answers.tags)
    erased: Counter[str] = Counter()
    written = entry.write("scores", answers.judged(probe, judge, erased))
    tables = {"estimates": judge.estimates(), "sums": judge.sums()}
    facts = {
        **{"key": run.key, "case_key": run.case_key, "run": asdict(run)},
        **{name: asked[name] for name in ("n_items", "n_cases", "dropped", "findings", "notes")},
        "n_units": answers.n_units,
        "spread": spread,
        "note": "; ".join(filter(None, [model.note, answers.note])),
        "score_type": score_type(model, probe),
        "erased": erased,
        "version": __version__,
        "seconds": round(time.monotonic() - started, 3),
        "finished": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
    }
    tables = {name: pa.Table.from_pandas(own.assign(run=run.key), preserve_index=False) for name, own in tables.items()}
    entry.finish(tables, facts, [written])


class _Answers:
    """The scored parts of a run, read back a block at a time with what the metrics need to know of their cases."""

    def __init__(self, by: Executor, entry: Entry, parts: Sequence[Part]) -> None:
        self.by, self.entry, self.parts, items = by, entry, parts, by.items
        self.tags = sorted({name for item in items for name in item.tags})
        self._tags = {name: pd.Categorical([item.tags.get(name, "") for item in items]) for name in self.tags}
        self._units = pd.factorize(np.array([item.unit for item in items], dtype=object))[0]
        self.n_units = int(self._units.max()) + 1

    def judged(self, probe: Probe, judge: Judge, erased: Counter[str]) -> Iterator[pa.Table]:
        """Blocks of the table of scores; on its way each block is judged, and its erased edits are counted by kind."""
        known = probe.survey(rows for _, _, rows in self._blocks())
        self.note = str(known.get("note", ""))
        for cases, scores, rows in self._blocks():
            rows = probe.prepare(rows, known)
            judge.add(rows)
            if "erased" in rows:
                erased.update(rows["kind"][rows["erased"]].tolist())
            bins = rows["strength_bin"].tolist() if "strength_bin" in rows else [""] * len(rows)
            yield pa.table(
                {
                    "run": pa.repeat(self.by.run.key, len(rows)),
                    **{name: cases[name] for name in ("case", "item", "kind", "subtype", "rule")},
                    "strength_bin": pa.array(bins, pa.string()),
                    **{name: scores[name] for name in scores.column_names},
                }
            )

    def _blocks(self) -> Iterator[tuple[pa.Table, pa.Table, pd.DataFrame]]:
        blocks: list[list[Part]] = [[]]
        for part in self.parts:
            if blocks[-1] and part[0] - blocks[-1][0][0] >= JUDGED_CASES:
                blocks.append([])
            blocks[-1].append(part)
        ranges = [(block[0][0], block[-1][1]) for block in blocks]
        for block, cases in zip(blocks, self.by.cases.slices("cases", ranges, JUDGED), strict=True):
            scores = pa.concat_tables([self._part(part) for part in block])
            yield cases, scores, self._rows(cases, scores)

    def _part(self, part: Part) -> pa.Table:
        """A scored part, always as it is read from the disk; one damaged since it was written is made again."""
        found = self.entry.part(executor.name(part))
        if found is None:
            self.by.score([part])
            found = self.entry.part(executor.name(part))
        return found

    def _rows(self, cases: pa.Table, scores: pa.Table) -> pd.DataFrame:
        """What the metrics see: codes for item and group, one column a tag."""
        code = cases["item_code"].to_numpy()
        named = {name: cases[name].combine_chunks().dictionary_encode() for name in ("kind", "subtype", "rule")}
        rows = pd.DataFrame({name: column.to_pandas() for name, column in named.items()})
        rows["item_code"] = self._units[code]
        rows["group_code"] = cases["group"].combine_chunks().dictionary_encode().indices.to_numpy()
        rows = rows.assign(**scoring_cases.score_columns(scores))
        return rows.assign(**{f"tag:{name}": values[code] for name, values in self._tags.items()})
