"""Executors, which score a run one part at a time and write the scores to the store. `LocalExecutor` uses this
process.

A model with imported answers is first bound to the pictures and texts in the run. Several runs of
one model share the embeddings of recurring texts.
"""

import functools
import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np
from pandas.core.util.hashing import hash_array

from vlprobe.errors import InvalidInput
from vlprobe.models.from_files.lookup import BoundLookup
from vlprobe.probes.fit import check_candidates, takes_every_pair
from vlprobe.runs.context import RunContext
from vlprobe.runs.request import Progress
from vlprobe.scoring import thumbnails
from vlprobe.scoring.cases import Scorer
from vlprobe.scoring.encoder import CachedEncoder
from vlprobe.scoring.spread import similarity_spread
from vlprobe.storage import files
from vlprobe.types import Item, Model, Run, looks_up

QUESTIONS = "questions.json"  # written by `vlprobe ask`, next to the answers
MOST_BYTES = 1 << 20


def bind(context: RunContext, model: Model) -> str:
    """Bind a model with imported answers to all pictures and texts in the run. Other models are left unchanged.

    Returns:
        A note for readers about missing rows, or "" if none are missing.

    Raises:
        InvalidInput: rows are missing, and missing rows are not allowed.
    """
    if not looks_up(model):
        return ""
    is_gallery = context.probe.needs == "gallery"
    try:
        return model.bind(context.inputs(), context.run.key, is_gallery=is_gallery)
    except InvalidInput as error:
        if isinstance(model, BoundLookup) and (words := _asked_otherwise(model.file, context.run)):
            raise InvalidInput(f"{error} {words}") from None
        raise


def announce_pairs(context: RunContext, model: Model, tell: Callable[[str], None]) -> None:
    """Report the number of forward passes if the model needs one for every pair of a picture and a text in a gallery.

    Raises Misfit if there are too many candidates.
    """
    if not takes_every_pair(model.capabilities, context.probe):
        return
    inputs = context.inputs()
    images, texts = inputs.candidates
    check_candidates(model.name, context.probe, len(images), len(texts))
    n_pictures, n_texts = (sum(1 for _ in side) for side in (inputs.pictures(), inputs.texts()))
    tell(
        f"{model.name} has no embeddings: up to {n_pictures * n_texts:,} forward passes "
        f"({n_pictures:,} pictures x {n_texts:,} texts)."
    )


def _asked_otherwise(file: Path, run: Run) -> str:
    """Describe how the settings in the questions.json next to imported answers differ from a run's settings. Returns ""
    if there is no such file or no difference.
    """
    path = (file if file.is_dir() else file.parent) / QUESTIONS
    try:
        if path.stat().st_size > MOST_BYTES:
            return ""
        facts = files.parse_json_object(files.read(path).decode())
    except (OSError, ValueError):  # no such file, or not written by `vlprobe ask`
        return ""
    words = " ".join(_differences(facts, run))
    return f"'{path}' was written with {words}. Use the same options." if words else ""


def _differences(facts: Mapping[str, object], run: Run) -> Iterator[str]:
    """Yield the `vlprobe ask` settings that differ from a run's settings, as command-line options."""
    if facts.get("dataset_digest") != run.dataset_digest:
        yield f"--dataset {facts.get('dataset')}"
    for name in ("probe", "seed", "limit"):
        if name in facts and facts[name] != getattr(run, name):
            yield f"--{name} {facts[name]}"
    previous, options = (
        _mapping(facts.get("options")),
        _mapping(json.loads(json.dumps(run.options))),
    )
    for name in sorted(previous.keys() | options.keys()):
        if previous.get(name) != options.get(name):
            yield f"--option {name}={','.join(_texts(previous.get(name)))}"
    chosen = _mapping(facts.get("selection"))
    if chosen != run.selection:
        for name, value in chosen.items():
            yield from (f"--{name} {text}" for text in _texts(value))


def _mapping(value: object) -> Mapping[str, object]:
    return value if isinstance(value, dict) else {}


def _texts(value: object) -> list[str]:
    """Convert a single value, or each entry in a list, to a string."""
    return [str(entry) for entry in (value if isinstance(value, list | tuple) else [value])]


def recurring_texts(contexts: Sequence[RunContext]) -> Callable[[Sequence[str]], np.ndarray]:
    """Build a function that marks the texts that occur in the stored cases of at least two of the given runs.

    It uses 8 bytes of memory per distinct text. After a hash collision (one in 2^64), an embedding is
    stored unnecessarily.

    Returns:
        A function from texts to a bool array of shape (n,).
    """
    hashes_of_runs = []
    for context in contexts:
        hashes = [np.empty(0, dtype=np.uint64)]
        for block in context.read_cases(["texts"]):
            texts = block["texts"].combine_chunks().flatten().unique().to_pylist()
            hashes.append(np.unique(_hash(texts)))
        hashes_of_runs.append(np.unique(np.concatenate(hashes)))
    hashes, counts = np.unique(np.concatenate(hashes_of_runs), return_counts=True)
    recurring = hashes[counts > 1]
    return lambda texts: np.isin(_hash(texts), recurring)


def _hash(texts: Sequence[str]) -> np.ndarray:
    return hash_array(np.array(texts, dtype=object), categorize=False)


CaseRange = tuple[int, int]  # a range of case numbers: start and stop


def part_name(case_range: CaseRange) -> str:
    """Return the name under which a part is stored.

    >>> part_name((0, 4096))
    '000000000-000004096'
    """
    return "{:09d}-{:09d}".format(*case_range)


class Executor(ABC):
    """Base class for objects that score the parts of a run. Call `close` at the end.

    Args:
        large_parts: Whether the model is fast enough for large parts.
    """

    def __init__(self, context: RunContext, progress: Progress, large_parts: bool) -> None:
        self.context, self.progress, self.large_parts = context, progress, large_parts
        self.n_cases: int = context.case_entry.manifest()["n_cases"]

    @abstractmethod
    def score(self, case_ranges: Sequence[CaseRange]) -> None:
        """Score the given parts in ascending order and write each part to the store."""

    @abstractmethod
    def spread_and_score(self, sample: Sequence[Item], case_ranges: Sequence[CaseRange]) -> float:
        """Score the given parts, and return the model's similarity spread over the pictures and captions of the
        sampled items.
        """

    def close(self) -> None:  # noqa: B027
        """Write embeddings that are still in memory and free all resources. By default, there are none."""


class SharedEncoder:
    """One model's encoder, shared by several runs so that each picture and text is encoded only once.

    Args:
        recurs: A function that marks the texts that several of the runs have in common (see `CachedEncoder`).
    """

    def __init__(self, recurs: Callable[[Sequence[str]], np.ndarray]) -> None:
        self.recurs = recurs
        self.encoder: CachedEncoder | None = None

    def close(self) -> None:
        """Write the embeddings that are still in memory to the store."""
        if self.encoder is not None:
            self.encoder.close()
            self.encoder = None


class LocalExecutor(Executor):
    """Executor that scores the parts in this process, one after another.

    The encoder is opened on first use and reads the stored embeddings. A shared encoder stays open.
    """

    def __init__(
        self,
        context: RunContext,
        model: Model,
        progress: Progress,
        shared: SharedEncoder | None = None,
    ) -> None:
        super().__init__(
            context, progress, large_parts=model.capabilities.device.startswith("cuda")
        )
        self.model = model
        self._shared = shared
        self._encoder: CachedEncoder | None = shared.encoder if shared else None
        self._scorer: Scorer | None = None

    @property
    def encoder(self) -> CachedEncoder:
        """Return the model's encoder, which adds batching and stored embeddings."""
        if self._encoder is None:
            bind(self.context, self.model)
            request, root = self.context.request, self.context.store.root
            self._encoder = CachedEncoder(
                self.model,
                root / "embeddings" if request.keep_embeddings else None,
                request.batch_size,
                request.workers,
                memory=request.memory << 20,
                on_read=functools.partial(thumbnails.keep, root),
                recurs=self._shared.recurs if self._shared else None,
            )
            if self._shared:
                self._shared.encoder = self._encoder
        return self._encoder

    @property
    def scorer(self) -> Scorer:
        """Return the probe's scorer for this model, a function from cases to scores."""
        if self._scorer is None:
            context = self.context
            self._scorer = context.probe.scorer(
                self.encoder, context.run, context.items, context.read_cases, context.store.root
            )
        return self._scorer

    def spread(self, sample: Sequence[Item]) -> float:
        """Return the model's similarity spread over the pictures and captions of the sampled items."""
        label = f"{self.context.label}: similarity spread"
        self.progress.update(label, 0, 1)
        self.encoder.progress = lambda stage, done, total: self.progress.update(
            f"{label} ({stage})", done, total
        )
        pictures = [item.image for item in sample if item.image]
        return similarity_spread(
            self.encoder, pictures, [item.captions for item in sample if item.image]
        )

    def score(self, case_ranges: Sequence[CaseRange]) -> None:
        """Score the given parts in ascending order and write each part to the store."""
        label, run_entry = self.context.label, self.context.run_entry
        if case_ranges:
            self.progress.update(label, case_ranges[0][0], self.n_cases)
        for case_range, cases in zip(
            case_ranges, self.context.case_entry.slices("cases", case_ranges), strict=True
        ):
            self.encoder.progress = _within_part(self.progress, label, case_range, self.n_cases)
            run_entry.write_part(part_name(case_range), self.scorer(cases))
            self.progress.update(label, case_range[1], self.n_cases)

    def spread_and_score(self, sample: Sequence[Item], case_ranges: Sequence[CaseRange]) -> float:
        """Compute the similarity spread first, then score the given parts, and return the spread."""
        spread = self.spread(sample)
        self.score(case_ranges)
        return spread

    def close(self) -> None:
        """Write the embeddings that are still in memory to the store."""
        if self._encoder is not None and not self._shared:
            self._encoder.close()
        self._encoder = None


def _within_part(
    progress: Progress, label: str, case_range: CaseRange, total: int
) -> Callable[[str, int, int], None]:
    """Build a progress callback for one part: pictures count as its first half, texts as its second half."""
    start, stop = case_range

    def update(stage: str, done: int, of: int) -> None:
        share = 0.5 * done / max(of, 1) + (0.5 if stage == "texts" else 0.0)
        progress.update(label, start + share * (stop - start), total)

    return update
