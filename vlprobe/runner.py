"""Plan (names to pinned Runs) and execute: the one way from a dataset, a probe and models to stored results.

The questions are written first and shared by all models; each model then answers them part by part. A part that is on
disk is not asked again, so that the same call resumes after a crash, a cancel or a full disk.
"""

import datetime
import functools
import hashlib
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace

import numpy as np
import pandas as pd
import pyarrow as pa

from vlprobe import __version__, check, doctor, files, judge, registry, scoring
from vlprobe.embeddings import Encoder, similarity_spread
from vlprobe.errors import InvalidInput
from vlprobe.scoring import Scorer
from vlprobe.store import Entry, Store
from vlprobe.types import Case, Dataset, DualEncoder, Item, Picture, Probe, Run

PART_CASES = 4096  # cases in a part: what is lost at most when a run is killed
SPREAD_ITEMS = 1000  # items whose mismatched pairs give a model's similarity spread
CASES_SCHEMA = pa.schema(
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


@dataclass(frozen=True)
class Request:
    """What a person asks for: names and options, nothing loaded yet."""

    models: tuple[str, ...]
    dataset: str  # "": the probe's demo data
    probe: str
    options: Mapping[str, object] = field(default_factory=dict)
    seed: int = 42
    limit: int = 0  # items; 0: all
    device: str = "auto"
    precision: str = "fp32"
    batch_size: int = 64
    workers: int = 2
    keep_embeddings: bool = True
    examine: bool = True  # put the model to the doctor's checks too, once for each dataset


class Progress:
    """Told how far a run is; the command line and jobs override `update`, which may raise to stop."""

    def update(self, label: str, done: float, total: float) -> None:
        """`label` says what is being done; `done` of `total` cases or items."""


def execute(request: Request, store: Store, progress: Progress | None = None) -> list[dict]:
    """Runs what is asked for and is not stored yet.

    Returns:
        The manifest of each model's run, in the order of the request. What is finished stays when a later model fails.
    """
    progress = progress or Progress()
    store.writable()
    if request.limit < 0 or request.batch_size < 1 or request.workers < 1:
        raise InvalidInput("The limit must be 0 or more, batch size and workers 1 or more.")
    probe = registry.load_probe(request.probe)
    options = probe.pin(_options(probe, request.options), store.root)
    name = request.dataset or probe.dataset
    progress.update(f"Reading {name}", 0, 1)
    dataset = registry.load_dataset(name, store.root)
    items = [_found(item) for item in (dataset.items[: request.limit] if request.limit else dataset.items)]
    manifests = []
    for name in request.models:
        progress.update(f"Loading {name}", 0, 1)
        model = registry.load_model(name, request.device, request.precision)
        scoring.refuse_unfit(model, probe)
        run = plan(model, dataset, probe, options, request)
        if not store.run(run.key).complete or not store.cases(run.case_key).complete:
            ask(run, dataset, items, probe, store, progress)
            busy = functools.partial(progress.update, f"{run.model} on {run.dataset}: another process is at it", 0, 1)
            with files.turn(store.run(run.key).folder / ".lock", busy):
                if not store.run(run.key).complete:
                    answer(run, items, probe, model, request, store, progress)
        examined = any(one.dataset_digest == dataset.digest for one in doctor.load(store, model.digest))
        if request.examine and not examined and doctor.sample(dataset.items, model):
            doctor.examine(model, dataset, store.root, progress.update)
        manifests.append(store.run(run.key).manifest())
    return manifests


def _found(item: Item) -> Item:
    """The item with whole paths, so that its pictures are found from wherever the results are read."""
    whole = {
        name: replace(picture, path=picture.path.resolve())
        for name in ("image", "other")
        if (picture := getattr(item, name))
    }
    return replace(item, **whole)


def _options(probe: Probe, given: Mapping[str, object]) -> dict[str, object]:
    """The probe's options with what is given in place of the defaults, each of the type of its default."""
    unknown = sorted(set(given) - set(probe.defaults))
    if unknown:
        raise InvalidInput(f"Probe '{probe.name}' has no option '{unknown[0]}'. It has: {', '.join(probe.defaults)}.")
    return {
        name: _like(default, given[name], name) if name in given else default
        for name, default in probe.defaults.items()
    }


def _like(default: object, value: object, name: str) -> object:
    words = {"true": True, "1": True, "false": False, "0": False}
    if isinstance(default, bool):
        if str(value).lower() in words:
            return words[str(value).lower()]
        expected = "true or false"
    elif isinstance(default, int):
        if str(value).isdecimal():
            return int(str(value))
        expected = "a whole number"
    elif isinstance(default, list):
        values = list(value) if isinstance(value, list | tuple) else [value] if value not in ("", None) else []
        return [_like(default[0], one, name) if default else str(one) for one in values]
    else:
        return str(value)
    raise InvalidInput(f"Option '{name}' is '{value}'. Expected {expected}.")


def plan(model: DualEncoder, dataset: Dataset, probe: Probe, options: Mapping[str, object], request: Request) -> Run:
    """Pins everything that can change a number."""
    return Run(
        model=model.name,
        model_digest=model.digest,
        dataset=dataset.name,
        dataset_digest=dataset.digest,
        probe=probe.name,
        probe_version=probe.version,
        metrics=tuple(f"{metric.name}@{metric.version}" for metric in probe.metrics),
        options=dict(options),
        seed=request.seed,
        limit=request.limit if request.limit < len(dataset.items) else 0,
    )


def ask(run: Run, dataset: Dataset, items: Sequence[Item], probe: Probe, store: Store, progress: Progress) -> Entry:
    """Writes the questions of a run, unless they are there: `cases/<case key>/cases.parquet`.

    They are written anew where a picture is no longer where it was: the key says that the questions are the same.
    """
    entry = store.cases(run.case_key)
    if entry.complete and all(Picture.named(name).path.exists() for name in _pictures(entry.table("cases"))):
        return entry
    tables, dropped, n_cases = [], {}, 0
    for start in range(0, len(items), 1000):
        progress.update("Making edits", start, len(items))
        cases: list[tuple[int, Item, Case]] = []
        for code, item in enumerate(items[start : start + 1000], start):
            made, lost = probe.cases(item, run.options, run.seed)
            cases += [(code, item, case) for case in made]
            for reason, count in lost.items():
                dropped[reason] = dropped.get(reason, 0) + count
        tables.append(_case_table(cases, n_cases))
        n_cases += len(cases)
    if not n_cases:
        why = "; ".join(f"{reason}: {count}" for reason, count in dropped.items()) or "no caption can be edited"
        raise InvalidInput(
            f"Probe '{run.probe}' makes no case from dataset '{run.dataset}' ({why}). "
            f"Choose other options, or data that suits it, such as '{probe.dataset}'."
        )
    progress.update("Checking the data", 0, 1)
    findings = [asdict(finding) for finding in check.check(dataset, store.root) if finding.count]
    facts = {"key": run.case_key, "n_items": len(items), "n_cases": n_cases, "dropped": dropped, "findings": findings}
    facts["notes"] = list(getattr(dataset, "notes", ()))
    entry.finish({"cases": pa.concat_tables(tables)}, facts)
    return entry


def _pictures(cases: pa.Table) -> list[str]:
    return pa.compute.unique(cases["images"].combine_chunks().flatten()).to_pylist()


def _case_table(cases: Sequence[tuple[int, Item, Case]], first: int) -> pa.Table:
    columns = {
        "case": range(first, first + len(cases)),
        "id": [case.id for _, _, case in cases],
        "item": [case.item_id for _, _, case in cases],
        "item_code": [code for code, _, _ in cases],
        "group": [case.group for _, _, case in cases],
        "kind": [case.edit.kind for _, _, case in cases],
        "subtype": [case.edit.subtype for _, _, case in cases],
        "rule": [case.edit.rule for _, _, case in cases],
        "source": [case.edit.source for _, _, case in cases],
        "target": [case.edit.target for _, _, case in cases],
        "images": [[picture.name for picture in case.images] for _, _, case in cases],
        "texts": [case.texts for _, _, case in cases],
        "roles": [case.roles for _, _, case in cases],
        "tags": [list(item.tags.items()) for _, item, _ in cases],
    }
    return pa.table(columns, schema=CASES_SCHEMA)


def answer(
    run: Run,
    items: Sequence[Item],
    probe: Probe,
    model: DualEncoder,
    request: Request,
    store: Store,
    progress: Progress,
) -> None:
    """Scores every case with the model and writes scores, estimates and the manifest of the run."""
    started = time.monotonic()
    cases_entry, entry = store.cases(run.case_key), store.run(run.key)
    cases, asked = cases_entry.table("cases"), cases_entry.manifest()
    total = cases.num_rows
    label = f"{run.model} on {run.dataset}"
    encoder = Encoder(
        model,
        store.root / "embeddings" if request.keep_embeddings else None,
        request.batch_size,
        request.workers,
        lambda stage, done, of: progress.update(f"{label}: similarity spread ({stage})", 0, total),
    )
    sample = sorted(items, key=lambda item: hashlib.sha256(f"{run.seed}/spread/{item.id}".encode()).digest())
    sample = list({item.image: item for item in sample if item.image}.values())[:SPREAD_ITEMS]
    spread = similarity_spread(encoder, [item.image for item in sample], [item.captions for item in sample])
    score = probe.scorer(encoder, run, items, cases, store.root)
    names = []
    for first in range(0, total, PART_CASES):
        last = min(first + PART_CASES, total)
        names.append(f"{first:09d}-{last:09d}")
        if not entry.has_part(names[-1]):
            encoder.progress = _share(progress, label, first, last, total)
            entry.write_part(names[-1], score(cases.slice(first, last - first)))
        progress.update(label, last, total)
    scores = pa.concat_tables(_whole_parts(entry, names, cases, score))
    progress.update(f"{label}: intervals", total, total)
    rows, tags, n_units = _rows(cases, scores, items)
    rows = probe.prepare(rows)
    found, sums = judge.judge(rows, probe.metrics, n_units, tags)
    scores = pa.table(
        {
            "run": pa.array([run.key]).take(pa.array(np.zeros(total, dtype=np.int32))),
            **{name: cases[name] for name in ("case", "item", "kind", "subtype", "rule")},
            "strength_bin": pa.array(rows["strength_bin"].tolist() if "strength_bin" in rows else [""] * total),
            **{name: scores[name] for name in scores.column_names},
        }
    )
    tables = {
        "scores": scores,
        "estimates": pa.Table.from_pandas(found.assign(run=run.key), preserve_index=False),
        "sums": pa.Table.from_pandas(sums.assign(run=run.key), preserve_index=False),
    }
    facts = {
        **{"key": run.key, "case_key": run.case_key, "run": asdict(run)},
        **{name: asked[name] for name in ("n_items", "n_cases", "dropped", "findings", "notes")},
        "n_units": n_units,
        "spread": spread,
        "note": getattr(model, "note", ""),
        "score_type": scoring.score_type(model, probe),
        "erased": _erased(cases, scores),
        "version": __version__,
        "seconds": round(time.monotonic() - started, 3),
        "finished": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
    }
    entry.finish(tables, facts)


def _erased(cases: pa.Table, scores: pa.Table) -> dict[str, int]:
    """How many edits of each kind never reach the model: its tokenizer makes the same of them as of the original."""
    if "erased" not in scores.column_names:
        return {}
    kinds = pa.compute.value_counts(cases["kind"].filter(scores["erased"]))
    return {pair["values"]: pair["counts"] for pair in kinds.to_pylist()}


def _share(progress: Progress, label: str, first: int, last: int, total: int):
    """Progress within a part: pictures are taken for its first half, texts for its second."""

    def update(stage: str, done: int, of: int) -> None:
        half = 0.5 * done / max(of, 1) + (0.5 if stage == "texts" else 0.0)
        progress.update(label, first + half * (last - first), total)

    return update


def _whole_parts(entry: Entry, names: Sequence[str], cases: pa.Table, score: Scorer) -> Iterator[pa.Table]:
    for name in names:
        part = entry.part(name)
        if part is None:  # damaged since it was written: asked again
            first, last = (int(number) for number in name.split("-"))
            part = score(cases.slice(first, last - first))
            entry.write_part(name, part)
        yield part


def _rows(cases: pa.Table, scores: pa.Table, items: Sequence[Item]) -> tuple[pd.DataFrame, list[str], int]:
    """What the metrics see: codes for item and group, one column a tag; the tags; how many units can be resampled."""
    rows = cases.select(["item_code", "kind", "subtype", "rule"]).to_pandas()
    rows["group_code"] = cases["group"].combine_chunks().dictionary_encode().indices.to_numpy()
    rows = rows.assign(**scoring.columns(scores))
    names = sorted({name for item in items for name in item.tags})
    for name in names:
        rows[f"tag:{name}"] = np.array([item.tags.get(name, "") for item in items], dtype=object)[rows["item_code"]]
    # Rows of a triplet file that share a picture are one observation: the picture is what is resampled.
    units = pd.factorize(np.array([item.tags.get("picture", item.id) for item in items], dtype=object))[0]
    names = [name for name in names if name != "picture"]
    return rows.assign(item_code=units[rows["item_code"]]), names, int(units.max()) + 1
