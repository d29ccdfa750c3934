"""One process at a run's questions: a part of them at a time to a table of scores in the store."""

import functools
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import pyarrow as pa

from vlprobe.scoring.cases import Scorer
from vlprobe.scoring.encoder import Encoder, similarity_spread
from vlprobe.storage.store import Entry, Store
from vlprobe.types import Item, Model, Picture, Probe, Run

if TYPE_CHECKING:
    from vlprobe.runs.request import Progress, Request

Part = tuple[int, int]  # the first case, and the one after the last


def name(part: Part) -> str:
    """What a part is called in the store.

    >>> name((0, 4096))
    '000000000-000004096'
    """
    return "{:09d}-{:09d}".format(*part)


@dataclass(eq=False)
class Executor(ABC):
    """Who has the parts of a run answered, as long as the block runs."""

    run: Run  # pinned
    items: Sequence[Item]  # of the run
    probe: Probe
    model: Model  # on this machine
    request: "Request"
    store: Store  # where the parts are written to
    progress: "Progress"  # told of finished cases

    fast: ClassVar[bool]  # whether parts can be large

    @functools.cached_property
    def cases(self) -> Entry:
        """The questions."""
        return self.store.cases(self.run.case_key)

    @functools.cached_property
    def label(self) -> str:
        """What the progress is called."""
        return f"{self.run.model} on {self.run.dataset}"

    def blocks(self, columns: Sequence[str]) -> Iterator[pa.Table]:
        """These columns of all questions, a block at a time."""
        return self.cases.blocks("cases", columns)

    @abstractmethod
    def work(self, sample: Sequence[Item], parts: Sequence[Part]) -> float:
        """Scores these parts, and returns the model's similarity spread over a sample of items."""

    @abstractmethod
    def score(self, parts: Sequence[Part]) -> None:
        """Scores these parts, in rising order, and keeps each in the store."""

    @abstractmethod
    def __enter__(self) -> "Executor": ...

    @abstractmethod
    def __exit__(self, *failed: object) -> None: ...


class LocalExecutor(Executor):
    """A model that answers parts of a run in this process, one after the other."""

    @property
    def fast(self) -> bool:
        """On a GPU, where a small part takes no time."""
        return self.model.capabilities.device.startswith("cuda")

    def work(self, sample: Sequence[Item], parts: Sequence[Part]) -> float:
        """Scores these parts, and returns the model's similarity spread over a sample of items."""
        spread = self.spread(sample)
        self.score(parts)
        return spread

    def spread(self, sample: Sequence[Item]) -> float:
        """The similarity spread over the pictures and captions of these items."""
        label = f"{self.label}: similarity spread"
        self.encoder.progress = lambda stage, done, of: self.progress.update(f"{label} ({stage})", 0, 1)
        return similarity_spread(self.encoder, [item.image for item in sample], [item.captions for item in sample])

    def score(self, parts: Sequence[Part]) -> None:
        """Scores these parts, in rising order, and keeps each in the store."""
        total, entry = self.cases.manifest()["n_cases"], self.store.run(self.run.key)
        for part, own in zip(parts, self.cases.slices("cases", parts), strict=True):
            self.encoder.progress = _share(self.progress, self.label, *part, total)
            entry.write_part(name(part), self._scorer(own))
            self.progress.update(self.label, part[1], total)

    def encode(self, part: Part) -> None:
        """Encodes the texts and pictures that a part names, for every process that opens the store afterwards."""
        own = next(self.cases.slices("cases", [part], ["texts", "images"]))
        texts, images = (pa.compute.unique(own[side].combine_chunks().flatten()) for side in ("texts", "images"))
        self.encoder.texts(texts.to_pylist(), keep=True)
        self.encoder.images([Picture.from_name(one) for one in images.to_pylist()])
        self.encoder.flush()

    @functools.cached_property
    def candidates(self) -> tuple[Sequence[Picture], Sequence[str]]:
        """What the galleries hold beside what the cases name."""
        return self.probe.candidates(self.run, self.items, self.blocks, self.store.root)

    def encode_candidates(self, first: int, last: int) -> None:
        """As `encode`, for the candidates of these numbers: pictures first, then texts."""
        images, texts = self.candidates
        self.encoder.images(images[first:last])
        self.encoder.texts(texts[max(first - len(images), 0) : max(last - len(images), 0)], keep=True)
        self.encoder.flush()

    def reopen(self) -> None:
        """Takes up what other processes have encoded."""
        self.close()
        self.__dict__.pop("_scorer", None)

    def __enter__(self) -> "LocalExecutor":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Writes what waits to be kept."""
        if "encoder" in self.__dict__:
            self.encoder.close()
            del self.encoder

    @functools.cached_property
    def encoder(self) -> Encoder:
        """The model with its batches and the embeddings that the store has when it is first used."""
        return Encoder(
            self.model,
            self.store.root / "embeddings" if self.request.keep_embeddings else None,
            self.request.batch_size,
            self.request.workers,
            memory=self.request.memory << 20,
        )

    @functools.cached_property
    def _scorer(self) -> Scorer:
        return self.probe.scorer(self.encoder, self.run, self.items, self.blocks, self.store.root)


def _share(progress: "Progress", label: str, first: int, last: int, total: int) -> Callable[[str, int, int], None]:
    """Progress within a part: pictures are taken for its first half, texts for its second."""

    def update(stage: str, done: int, of: int) -> None:
        half = 0.5 * done / max(of, 1) + (0.5 if stage == "texts" else 0.0)
        progress.update(label, first + half * (last - first), total)

    return update
