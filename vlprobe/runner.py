"""Plan (names to pinned Runs) and execute: the one way from a dataset, a probe and models to stored results.

The questions are written first and shared by all models; each model then answers them part by part. A part that is on
disk is not asked again, so that the same call resumes after a crash, a cancel or a full disk.
"""

import dataclasses
import datetime
import hashlib
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import pandas as pd
import pyarrow as pa

from vlprobe import __version__, judge, registry
from vlprobe.embeddings import Encoder, similarity_spread
from vlprobe.errors import InvalidInput
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
    dataset: str
    probe: str
    options: Mapping[str, object] = field(default_factory=dict)
    seed: int = 42
    limit: int = 0  # items; 0: all
    device: str = "auto"
    precision: str = "fp32"
    batch_size: int = 64
    workers: int = 2
    keep_embeddings: bool = True


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
    options = _options(probe, request.options)
    progress.update(f"Reading {request.dataset}", 0, 1)
    dataset = registry.load_dataset(request.dataset, store.root)
    items = dataset.items[: request.limit] if request.limit else dataset.items
    manifests = []
    for name in request.models:
        progress.update(f"Loading {name}", 0, 1)
        model = registry.load_model(name, request.device, request.precision)
        run = plan(model, dataset, probe, options, request)
        if not store.run(run.key).complete:
            ask(run, items, probe, store, progress)
            answer(run, items, probe, model, request, store, progress)
        manifests.append(store.run(run.key).manifest())
    return manifests


def _options(probe: Probe, given: Mapping[str, object]) -> dict[str, object]:
    unknown = sorted(set(given) - set(probe.defaults))
    if unknown:
        raise InvalidInput(f"Probe '{probe.name}' has no option '{unknown[0]}'. It has: {', '.join(probe.defaults)}.")
    return {**probe.defaults, **given}


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


def ask(run: Run, items: Sequence[Item], probe: Probe, store: Store, progress: Progress) -> Entry:
    """Writes the questions of a run, unless they are there: `cases/<case key>/cases.parquet`."""
    entry = store.cases(run.case_key)
    if entry.complete:
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
        raise InvalidInput(
            f"Probe '{run.probe}' makes no case from dataset '{run.dataset}': no caption can be edited with these "
            "options. Choose other kinds of edit, or captions that name a colour, a number or an object."
        )
    facts = {"key": run.case_key, "n_items": len(items), "n_cases": n_cases, "dropped": dropped}
    entry.finish({"cases": pa.concat_tables(tables)}, facts)
    return entry


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
        "images": [[str(picture.path) for picture in case.images] for _, _, case in cases],
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
    sample = sample[:SPREAD_ITEMS]
    spread = similarity_spread(encoder, [item.image for item in sample], [item.captions for item in sample])
    names = []
    for first in range(0, total, PART_CASES):
        last = min(first + PART_CASES, total)
        names.append(f"{first:09d}-{last:09d}")
        if not entry.has_part(names[-1]):
            encoder.progress = _share(progress, label, first, last, total)
            entry.write_part(names[-1], score(cases.slice(first, last - first), encoder, probe))
        progress.update(label, last, total)
    scores = pa.concat_tables(_whole_parts(entry, names, cases, encoder, probe))
    progress.update(f"{label}: intervals", total, total)
    rows, tags = _rows(cases, scores, items)
    rows = probe.prepare(rows)
    found = judge.judge(rows, probe.metrics, asked["n_items"], tags)
    scores = pa.table(
        {
            "run": pa.array([run.key]).take(pa.array(np.zeros(total, dtype=np.int32))),
            **{name: cases[name] for name in ("case", "item", "kind", "subtype", "rule")},
            "strength_bin": pa.array(rows["strength_bin"].tolist(), pa.string()),
            **{name: scores[name] for name in ("margin", "text_similarity", "scores")},
        }
    )
    table = pa.Table.from_pandas(found.assign(run=run.key), preserve_index=False)
    facts = {
        **{"key": run.key, "case_key": run.case_key, "run": dataclasses.asdict(run)},
        **{name: asked[name] for name in ("n_items", "n_cases", "dropped")},
        "spread": spread,
        "note": getattr(model, "note", ""),
        "version": __version__,
        "seconds": round(time.monotonic() - started, 3),
        "finished": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
    }
    entry.finish({"scores": scores, "estimates": table}, facts)


def _share(progress: Progress, label: str, first: int, last: int, total: int):
    """Progress within a part: pictures are taken for its first half, texts for its second."""

    def update(stage: str, done: int, of: int) -> None:
        half = 0.5 * done / max(of, 1) + (0.5 if stage == "texts" else 0.0)
        progress.update(label, first + half * (last - first), total)

    return update


def _whole_parts(
    entry: Entry, names: Sequence[str], cases: pa.Table, encoder: Encoder, probe: Probe
) -> Iterator[pa.Table]:
    for name in names:
        part = entry.part(name)
        if part is None:  # damaged since it was written: asked again
            first, last = (int(number) for number in name.split("-"))
            part = score(cases.slice(first, last - first), encoder, probe)
            entry.write_part(name, part)
        yield part


def score(cases: pa.Table, encoder: Encoder, probe: Probe) -> pa.Table:
    """One model's similarities for a slice of cases.

    Returns:
        `scores`: for each case a list of float32 of length n_images * n_texts, image by image; `margin`;
        `text_similarity`: cosine of the original and the first edit, NaN with one text.
    """
    images, image_of, n_images = _distinct(cases["images"])
    texts, text_of, n_texts = _distinct(cases["texts"])
    image_vectors = encoder.images([Picture(path) for path in images])
    first_text = np.concatenate([[0], np.cumsum(n_texts)[:-1]])
    first_image = np.concatenate([[0], np.cumsum(n_images)[:-1]])
    encoder.texts([texts[code] for code in dict.fromkeys(text_of[first_text].tolist())], keep=True)
    text_vectors = encoder.texts(texts)
    n_pairs = n_images * n_texts
    offsets = np.concatenate([[0], np.cumsum(n_pairs)])
    row = np.repeat(np.arange(len(n_pairs)), n_pairs)
    within = np.arange(offsets[-1]) - offsets[row]
    left = image_of[first_image[row] + within // n_texts[row]]
    right = text_of[first_text[row] + within % n_texts[row]]
    similarity = _cosines(image_vectors, left, text_vectors, right)
    two = n_texts > 1
    text_similarity = np.full(len(n_texts), np.nan, dtype=np.float32)
    text_similarity[two] = _cosines(text_vectors, text_of[first_text[two]], text_vectors, text_of[first_text[two] + 1])
    widest = int(n_pairs.max())
    columns = np.full((len(n_pairs), widest), np.nan, dtype=np.float32)
    columns[row, within] = similarity
    rows = cases.select(["kind", "subtype", "rule"]).to_pandas()
    rows = rows.assign(**{f"score_{column}": columns[:, column] for column in range(widest)})
    return pa.table(
        {
            "scores": pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), pa.array(similarity)),
            "margin": pa.array(probe.margins(rows).astype(np.float32)),
            "text_similarity": pa.array(text_similarity),
        }
    )


def _distinct(column: pa.ChunkedArray) -> tuple[list[str], np.ndarray, np.ndarray]:
    """Distinct strings of a list column, the code of each entry, and how many entries each row has."""
    lists = column.combine_chunks()
    encoded = lists.flatten().dictionary_encode()
    return encoded.dictionary.to_pylist(), encoded.indices.to_numpy(), lists.value_lengths().to_numpy()


def _cosines(left: np.ndarray, left_row: np.ndarray, right: np.ndarray, right_row: np.ndarray) -> np.ndarray:
    """Row-wise products, summed in one order whatever the neighbours: equal vectors give equal scores to the bit."""
    found = np.empty(len(left_row), dtype=np.float32)
    for start in range(0, len(left_row), 8192):
        chunk = slice(start, start + 8192)
        found[chunk] = np.einsum("nd,nd->n", left[left_row[chunk]], right[right_row[chunk]])
    return found


def _rows(cases: pa.Table, scores: pa.Table, items: Sequence[Item]) -> tuple[pd.DataFrame, list[str]]:
    """What the metrics see: codes for item and group, one column a tag."""
    rows = cases.select(["item_code", "kind", "subtype", "rule"]).to_pandas()
    rows["group_code"] = cases["group"].combine_chunks().dictionary_encode().indices.to_numpy()
    rows["margin"] = scores["margin"].to_numpy()
    rows["text_similarity"] = scores["text_similarity"].to_numpy()
    names = sorted({name for item in items for name in item.tags})
    for name in names:
        rows[f"tag:{name}"] = np.array([item.tags.get(name, "") for item in items], dtype=object)[rows["item_code"]]
    return rows, names
