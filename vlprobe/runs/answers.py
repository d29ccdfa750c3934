"""Scoring of the cases in a run by one model, one part at a time, and computation of the metrics from the scores."""

import contextlib
import datetime
import hashlib
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa

from vlprobe import __version__, registry
from vlprobe.errors import InvalidInput, Misfit
from vlprobe.metrics.judge import Judge, metrics_on
from vlprobe.models.scores import ScoreFile
from vlprobe.probes.fit import score_type
from vlprobe.runs import case_workers, questions
from vlprobe.runs.context import RunContext
from vlprobe.runs.executor import CaseRange, Executor, bind, part_name
from vlprobe.runs.request import RunKeys
from vlprobe.scoring import cases as scoring_cases
from vlprobe.types import Item, Metric, Model, Run, answers_cases

PART_CASES = 4096  # minimum per part: the most that is lost when a run is killed
FAST_PART_CASES = 65_536  # for fast models, which score PART_CASES in a second
JUDGED_CASES = 65_536  # minimum number of cases in a block that is judged at once
SAMPLED_ITEMS = 200  # make the cases that show which probes a score file answers
SPREAD_ITEMS = 1000  # items whose mismatched pairs give a model's similarity spread
JUDGED_COLUMNS = ("case", "item", "item_code", "group", "kind", "subtype", "rule")


@dataclass(frozen=True)
class ScoredBlock:
    """A block of cases with the model's scores. It consists of complete groups of cases."""

    cases: pa.Table  # JUDGED_COLUMNS
    scores: pa.Table  # from the probe's scorer, without the columns in side tables
    side_tables: Mapping[str, pa.Table]  # by name, one row per case
    rows: pd.DataFrame  # input of the metrics, one row per case: see `Judge.add`


@dataclass(frozen=True)
class Judged:
    """Metric estimates and score files computed from a run's scores."""

    estimates: pd.DataFrame
    sums: pd.DataFrame
    n_units: int  # number of resampling units: items, or clusters of items
    erased: Mapping[str, int]  # by kind, cases whose edit is lost in the model's input
    note: str  # the probe's note on the scores
    files: Sequence[dict]  # manifest records for the score table and the side tables


def answered_probes(
    model: ScoreFile,
    items: Sequence[Item],
    probes: Mapping[str, Mapping[str, object]],
    seed: int,
    cache: Path,
) -> list[str]:
    """Return the probes that have a case for which a score file has a score. Galleries have no such cases.

    Args:
        items: The items of a dataset, of which SAMPLED_ITEMS make cases.
        probes: The options of each probe, by name.
        seed: Seed of the run that will use the file.
    """
    sample = items[:: max(1, len(items) // SAMPLED_ITEMS)]
    answered = []
    for name, options in probes.items():
        probe = registry.load_probe(name)
        if probe.needs == "gallery" or probe.loads_models(options):
            continue
        run = Run("", "", "", "", name, probe.version, (), probe.pin(options, cache), seed)
        with contextlib.suppress(Misfit):  # the probe does not apply to the dataset
            blocks = case_workers.chunks(sample, probe, run, 1)
            if any(model.has_answers(pa.Table.from_batches([block])) for block, _ in blocks):
                answered.append(name)
    return answered


def answer(context: RunContext, model: Model, executor: Executor) -> None:
    """Score all cases that have no scores yet, compute all metrics, and write the run's scores, estimates and
    manifest.
    """
    started = time.monotonic()
    executor.progress.begin_run(RunKeys(context.run.key, context.run.case_key, context.run.probe))
    coverage = (
        model.check_cases(context.read_cases) if answers_cases(model) else bind(context, model)
    )
    case_manifest, run_entry = context.case_entry.manifest(), context.run_entry
    # At least so many cases a part, but not more than fit: a case has two or three texts, and for a moment each has its
    # vector twice
    fitting = (context.request.memory << 20) // (4 * 2 * 3 * 4 * max(model.capabilities.dim, 1))
    part_cases = min(FAST_PART_CASES if executor.large_parts else PART_CASES, fitting)
    case_ranges = questions.part_ranges(context.case_entry, max(1, part_cases))
    finished = run_entry.parts()
    missing = [case_range for case_range in case_ranges if part_name(case_range) not in finished]
    spread = executor.spread_and_score(spread_sample(context), missing)
    n_cases = case_manifest["n_cases"]
    executor.progress.update(f"{context.label}: intervals", n_cases, n_cases)
    scale = score_type(model, context.probe)
    metrics = metrics_on(
        scale, context.probe.metrics_of(context.run.options, model.capabilities.n_orders)
    )
    judged = judge_parts(context, executor, case_ranges, metrics)
    run, publication = context.run, getattr(model, "publication", None)
    facts = {
        **{"key": run.key, "case_key": run.case_key, "run": run.record()},
        **{
            name: case_manifest[name]
            for name in ("n_items", "n_cases", "dropped", "findings", "notes")
        },
        "n_units": judged.n_units,
        "spread": spread,
        "note": "; ".join(filter(None, [model.note, coverage, judged.note])),
        "score_type": scale,
        **({"n_orders": model.capabilities.n_orders} if model.capabilities.n_orders > 1 else {}),
        **({"publication": asdict(publication)} if publication else {}),
        "erased": judged.erased,
        "version": __version__,
        "seconds": round(time.monotonic() - started, 3),
        "finished": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
    }
    tables = {
        name: pa.Table.from_pandas(table.assign(run=run.key), preserve_index=False)
        for name, table in (("estimates", judged.estimates), ("sums", judged.sums))
    }
    run_entry.finish(tables, facts, judged.files)


def spread_sample(context: RunContext) -> list[Item]:
    """Sample the items from which the similarity spread is computed. The same seed always gives the same items, and
    each picture occurs at most once.
    """

    def rank(item: Item) -> bytes:
        return hashlib.sha256(f"{context.run.seed}/spread/{item.id}".encode()).digest()

    by_image = {item.image: item for item in sorted(context.items, key=rank) if item.image}
    return list(by_image.values())[:SPREAD_ITEMS]


def judge_parts(
    context: RunContext,
    executor: Executor,
    case_ranges: Sequence[CaseRange],
    metrics: Sequence[Metric],
) -> Judged:
    """Evaluate the given metrics on the scored parts of a run, and write the score table and the
    side tables.
    """
    probe = context.probe
    scored = _ScoredParts(context, executor, case_ranges)
    judge = Judge(metrics, scored.n_units, scored.tag_names)
    survey = probe.survey(block.rows for block in scored.blocks())
    erased: Counter[str] = Counter()
    with contextlib.ExitStack() as stack:
        writers = {
            name: stack.enter_context(context.run_entry.writer(name))
            for name in ("scores", *probe.side_tables)
        }
        for block in scored.blocks():
            rows = probe.prepare(block.rows, survey)
            judge.add(rows)
            if "erased" in rows:
                erased.update(rows["kind"][rows["erased"]].tolist())
            writers["scores"].write(_scores_table(context.run.key, block, rows))
            for name, table in block.side_tables.items():
                writers[name].write(table)
    lines = [writer.line for writer in writers.values()]
    note = str(survey.get("note", ""))
    return Judged(judge.estimates(), judge.sums(), scored.n_units, erased, note, lines)


def _scores_table(run_key: str, block: ScoredBlock, rows: pd.DataFrame) -> pa.Table:
    """Build one block of the score table to store. `rows` are the block's rows as prepared by the probe."""
    bins = rows["strength_bin"].tolist() if "strength_bin" in rows else [""] * len(rows)
    return pa.table(
        {
            "run": pa.repeat(run_key, len(rows)),
            **{name: block.cases[name] for name in ("case", "item", "kind", "subtype", "rule")},
            "strength_bin": pa.array(bins, pa.string()),
            **{name: block.scores[name] for name in block.scores.column_names},
        }
    )


def _side_table(
    run_key: str, numbers: pa.ChunkedArray, scored: pa.Table, schema: pa.Schema
) -> pa.Table:
    """Extract the columns for a side table from a block of scored cases. Missing columns are filled with nulls."""
    columns = {"run": pa.repeat(run_key, len(scored)), "case": numbers}
    for field in schema:
        is_known = field.name in scored.column_names
        column = (
            scored[field.name].cast(field.type) if is_known else pa.nulls(len(scored), field.type)
        )
        columns[field.name] = column
    return pa.table(columns)


class _ScoredParts:
    """Reader for the scored parts of a run. It yields them in blocks, with the item data that the metrics need."""

    def __init__(
        self, context: RunContext, executor: Executor, case_ranges: Sequence[CaseRange]
    ) -> None:
        self._context, self._executor, self._case_ranges = context, executor, case_ranges
        self._schema: pa.Schema | None = None
        items = context.items
        self.tag_names = sorted({name for item in items for name in item.tags})
        self._tags = {
            name: pd.Categorical([item.tags.get(name, "") for item in items])
            for name in self.tag_names
        }
        self._unit_codes = pd.factorize(np.array([item.unit for item in items], dtype=object))[0]
        self.n_units = int(self._unit_codes.max()) + 1

    def blocks(self) -> Iterator[ScoredBlock]:
        """Yield all cases in order, in blocks of at least JUDGED_CASES; only the last block may be smaller."""
        blocks: list[list[CaseRange]] = [[]]
        for case_range in self._case_ranges:
            if blocks[-1] and case_range[0] - blocks[-1][0][0] >= JUDGED_CASES:
                blocks.append([])
            blocks[-1].append(case_range)
        ranges = [(block[0][0], block[-1][1]) for block in blocks]
        slices = self._context.case_entry.slices("cases", ranges, JUDGED_COLUMNS)
        for block, cases in zip(blocks, slices, strict=True):
            parts = [self._read(case_range) for case_range in block]
            # A part of an earlier version may lack a column; all blocks have those of the first one
            schema = self._schema = self._schema or pa.unify_schemas(
                [part.schema for part in parts]
            )
            scored = pa.concat_tables([schema.empty_table(), *parts], promote_options="default")
            scored = scored.select(schema.names)
            side_tables = {
                name: _side_table(self._context.run.key, cases["case"], scored, schema)
                for name, schema in self._context.probe.side_tables.items()
            }
            beside = {name for table in side_tables.values() for name in table.column_names}
            scores = scored.select([name for name in scored.column_names if name not in beside])
            yield ScoredBlock(cases, scores, side_tables, self._rows(cases, scores))

    def _read(self, case_range: CaseRange) -> pa.Table:
        """Read a scored part from disk. A part that was damaged since it was written is scored again."""
        run_entry = self._context.run_entry
        scores = run_entry.part(part_name(case_range))
        if scores is None:
            self._executor.score([case_range])
            scores = run_entry.part(part_name(case_range))
        if scores is None:
            raise InvalidInput(
                f"Part {part_name(case_range)} of '{run_entry.folder}' was damaged again "
                "right after it was written. Check the disk, then run the command again."
            )
        return scores

    def _rows(self, cases: pa.Table, scores: pa.Table) -> pd.DataFrame:
        """Build the table that the metrics read, with columns for resampling units, groups and tags."""
        item_code = cases["item_code"].to_numpy()
        words = {
            name: cases[name].combine_chunks().dictionary_encode()
            for name in ("kind", "subtype", "rule")
        }
        rows = pd.DataFrame({name: column.to_pandas() for name, column in words.items()})
        rows["item_code"] = self._unit_codes[item_code]
        rows["group_code"] = cases["group"].combine_chunks().dictionary_encode().indices.to_numpy()
        rows = rows.assign(**scoring_cases.score_columns(scores))
        return rows.assign(
            **{f"tag:{name}": values[item_code] for name, values in self._tags.items()}
        )
