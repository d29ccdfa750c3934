"""Interfaces between the packages: datasets, probes, models, and what probes see of a model's encoder."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Literal, Protocol, TypeGuard

import numpy as np

from vlprobe.types.nouns import Case, Item, Metric, Picture, Publication, Run
from vlprobe.types.options import Option
from vlprobe.types.presentation import Presentation

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa
    from PIL import Image

# Column names to these columns, a block of rows at a time
Reader = Callable[[Sequence[str]], "Iterator[pa.Table]"]


# "verdict": right or wrong only, so a difference of scores has no size
ScoreType = Literal["cosine", "probability", "logit", "verdict", "unknown"]


class Dataset(Protocol):
    """A source of pictures and captions: `datasets/*.py` define PREFIX, names() and load(name,
    cache).
    """

    name: str
    digest: str
    items: Sequence[Item]


@dataclass(frozen=True, slots=True, kw_only=True)
class Capabilities:
    """Capabilities of a model, declared by its adapter."""

    embeds_texts: bool = False  # it is a TextEncoder
    embeds_images: bool = False  # it is a DualEncoder
    scores_pairs: bool = False  # it is a PairScorer
    matches_side_by_side: bool = False  # it is a SideBySideMatcher
    answers_cases: bool = False  # it is a CaseAnswerer
    looks_up: bool = False  # it is a Lookup: its embeddings or scores come from a file
    has_matrix: bool = False  # a Lookup with the score of every picture with every text
    asks_server: bool = False  # sends requests to a server, but only during a run
    dim: int = 0  # of an embedding of a text; 0: it has none
    image_dim: int = 0  # of an embedding of a picture: `dim`, or a multiple of it
    score_type: ScoreType = "cosine"
    # 2: a CaseAnswerer with an answer for each order of the two captions, see `orders`
    n_orders: int = 1
    device: str = "cpu"
    precision: str = "fp32"
    cuts_columns: bool = True  # whether a short text takes less time than a long one

    @property
    def takes_pictures(self) -> bool:
        """Return whether the model has `preprocess`."""
        return (self.embeds_images or self.scores_pairs) and not self.looks_up


class Model(Protocol):
    """A frozen model: `models/*.py` define PREFIX, names() and load(name, ...). `capabilities`
    lists its other interfaces.

    `digest` covers the weights' bytes, the preprocessing, the tokenizer and the precision.
    """

    name: str
    digest: str
    note: str = ""  # a caveat for readers of its scores
    # Files and folders that all of it was loaded from; None: others too, or not known
    sources: Sequence[Path] | None = None
    publication: Publication | None = None  # for answers that were not computed here

    @property
    def capabilities(self) -> Capabilities:
        """Capabilities of the model."""
        ...

    def tokenize(self, texts: Sequence[str]) -> np.ndarray:
        """Convert texts to int64 of shape (n, columns); texts with equal rows are one text to the model.

        -1 follows the end of a text if the model ignores padding; the number of columns may then
        differ by call.
        """
        ...

    def facts(self) -> Mapping[str, str]:
        """Descriptions of the model by subject; `models.doctor.passport` lists the subjects."""
        return {}

    def published(self) -> Mapping[str, str]:
        """Descriptions of the same subjects by the publisher of the weights; empty if unknown."""
        return {}


class TextEncoder(Model, Protocol):
    """A model of texts."""

    def encode_texts(self, tokens: np.ndarray) -> np.ndarray:
        """Encode tokens of shape (n, columns) as float32 of shape (n, dim), L2-normalized."""
        ...


class DualEncoder(TextEncoder, Protocol):
    """A model that embeds images and texts in one space. `preprocess` must be safe to call from
    several threads.

    With an `image_dim` that is a multiple of `dim`, an image is several vectors in a row, and its
    similarity is that of the best one.
    """

    def preprocess(self, image: "Image.Image") -> np.ndarray:
        """An RGB PIL image to an array; two images may give different shapes."""
        ...

    def encode_images(self, pixels: np.ndarray) -> np.ndarray:
        """Encode preprocessed images, of shape (n, ...) or an object array of n arrays of different shapes, as
        float32 of shape (n, image_dim), L2-normalized.
        """
        ...


class PairScorer(Model, Protocol):
    """A model that looks at a picture and a text together. It may be a DualEncoder or
    TextEncoder too.
    """

    def preprocess(self, image: "Image.Image") -> np.ndarray:
        """An RGB PIL image to an array; two images may give different shapes."""
        ...

    def encode_pictures(self, pixels: Sequence[np.ndarray]) -> Sequence:
        """Encode preprocessed images as inputs of `match`: any objects with `nbytes`."""
        ...

    def match(self, encoded: Sequence, tokens: np.ndarray, logits: bool = False) -> np.ndarray:
        """Score how well each picture fits its text, float32 of shape (n,); with `logits`, the raw output of the
        head.
        """
        ...


class SideBySideMatcher(PairScorer, Protocol):
    """A model that matches two captions to two pictures side by side."""

    def first_is_left(
        self, left: "Image.Image", right: "Image.Image", caption_a: str, caption_b: str
    ) -> float:
        """Probability that caption_a fits the left picture and caption_b the right one, 0 to 1."""
        ...


class CaseAnswerer(Model, Protocol):
    """A model whose scores were computed elsewhere: it answers the cases for which it has scores."""

    n_scores: int  # available scores

    def check_cases(self, cases: Reader) -> str:
        """Return a note on the answers to the cases of a run, "" for none. Raises InvalidInput if an answer is
        missing, unless missing answers were allowed on loading.
        """
        ...

    def answers(self, cases: "pa.Table") -> np.ndarray:
        """Scores of each case's pictures with its texts, picture by picture: float32 of shape
        (n_pairs,), NaN if it has none.
        """
        ...

    def text_answers(self, cases: "pa.Table") -> "np.ndarray | None":
        """Scores of each case's text pairs: float32 of shape (n_cases, pairs), in the order 01, 02, 12,
        NaN if it has none; None without a score for any case.
        """
        return None

    def orders(self, cases: "pa.Table") -> np.ndarray:
        """Return whether the model chose the true caption when it was listed first, and when it was listed second:
        float32 of shape (2, n_cases), 1, 0 or NaN. Only with two `n_orders`."""
        return np.full((2, len(cases)), np.nan, dtype=np.float32)


class Inputs(Protocol):
    """The distinct pictures and texts of a run, in the order in which `vlprobe ask` writes them.

    Each has the keys that may identify it in a file, the most reliable first: the first
    depends on its content only, so equal pictures share it.
    """

    def pictures(self) -> "Iterator[tuple[Picture, Sequence[str]]]":
        """Pictures, each path and edit once."""
        ...

    def texts(self) -> "Iterator[tuple[str, Sequence[str]]]":
        """Texts, each once."""
        ...


class Lookup(Model, Protocol):
    """A model whose embeddings, or whose scores of all pictures with all texts, were computed
    elsewhere: it reads them from a file, and opens no picture.

    With `capabilities.has_matrix` a vector is the index of a picture or text in the matrix,
    which only `similarity` can compare.
    """

    is_bound: bool  # whether its rows have been found

    def bind(self, inputs: Inputs, key: str, *, is_gallery: bool) -> str:
        """Find the rows of a run's pictures and texts, once per `key`.

        Returns:
            A note on missing embeddings, "" if there are none.

        Raises:
            InvalidInput: some are missing, unless it was loaded with missing ones allowed and the
                run ranks no gallery.
        """
        ...

    def text_vectors(self, texts: Sequence[str]) -> np.ndarray:
        """Float32 of shape (n, dim), NaN if the file has none."""
        ...

    def image_vectors(self, images: Sequence[Picture]) -> np.ndarray:
        """Float32 of shape (n, dim), NaN if the file has none."""
        ...

    def similarity(self, left: np.ndarray, right: np.ndarray) -> np.ndarray:
        """Similarity of every vector of one side with every one of the other, float32."""
        ...

    def paired(self, left: np.ndarray, right: np.ndarray) -> np.ndarray:
        """Similarity of each vector of one side with that of the same row of the other, float32."""
        ...


def embeds_texts(model: Model) -> TypeGuard[TextEncoder]:
    """Return whether the model has `encode_texts`."""
    return model.capabilities.embeds_texts and not model.capabilities.looks_up


def embeds_images(model: Model) -> TypeGuard[DualEncoder]:
    """Return whether the model has `preprocess` and `encode_images`."""
    return model.capabilities.embeds_images and not model.capabilities.looks_up


def scores_pairs(model: Model) -> TypeGuard[PairScorer]:
    """Return whether the model has `preprocess`, `encode_pictures` and `match`."""
    return model.capabilities.scores_pairs


def matches_side_by_side(model: Model) -> TypeGuard[SideBySideMatcher]:
    """Return whether the model has `first_is_left`."""
    return model.capabilities.matches_side_by_side


def answers_cases(model: Model) -> TypeGuard[CaseAnswerer]:
    """Return whether the model has `check_cases` and `answers`."""
    return model.capabilities.answers_cases


def looks_up(model: Model) -> TypeGuard[Lookup]:
    """Return whether the model looks up imported answers."""
    return model.capabilities.looks_up


class Encoder(Protocol):
    """Interface of `scoring.encoder.CachedEncoder` for probes: a model, its batches, and embeddings that are computed
    once."""

    model: Model
    dim: int  # of an embedding of a text
    image_dim: int  # of an embedding of a picture: `dim`, or a multiple of it
    scores_pairs: bool  # whether the model is a PairScorer
    embeds_texts: bool
    embeds_images: bool
    memory: int  # maximum memory in bytes
    # Called with stage, done and total; may raise to stop
    progress: Callable[[str, int, int], None]
    # Vectors of two sides, shapes (n, width) and (m, width), to their similarities, (n, m)
    similarity: Callable[[np.ndarray, np.ndarray], np.ndarray]

    def texts(self, texts: Sequence[str], keep: bool = False) -> np.ndarray:
        """Embeddings of the texts, float32 of shape (len(texts), dim); with `keep` they are
        stored on disk.
        """
        ...

    def images(self, images: Sequence[Picture]) -> np.ndarray:
        """Embeddings of the pictures, float32 of shape (len(images), image_dim)."""
        ...

    def pairs(
        self,
        images: Sequence[Picture],
        texts: Sequence[str],
        left: np.ndarray,
        right: np.ndarray,
        logits: bool = False,
    ) -> np.ndarray:
        """Scores of images[left] with texts[right], float32 of shape (len(left),), of a PairScorer."""
        ...


class Probe(ABC):
    """A test of models: `probes/*.py` define PROBE. Raise `version` whenever the cases or their
    scores change.
    """

    name: str
    version: int
    dataset: str  # the default: its demo data
    presentation: Presentation  # its texts and names on pages and in reports
    needs: str = ""  # "pictures", or a "gallery" to search; "": a text encoder can take part
    options: tuple[Option, ...] = ()  # its options, with defaults, allowed values and help
    metrics: tuple[Metric, ...]
    optional_metrics: tuple[Metric, ...] = ()  # that only some runs have, see `metrics_of`
    # Of the optional ones, those of models that were asked in both orders of the captions. Runs
    # with and without them can be compared.
    order_metrics: tuple[Metric, ...] = ()
    # By the name of a table that is stored next to the scores, one row per case: the columns of the
    # scorer's table that it holds in place of the scores; null where an earlier version scored.
    side_tables: "Mapping[str, pa.Schema]" = MappingProxyType({})
    code_digest: str = ""  # of a plug-in's code, which its runs have among their options
    foreign: frozenset[str] = frozenset()  # captions that rules for English leave unchanged

    @property
    def kinds(self) -> Mapping[str, str]:
        """The kinds of its cases in plain words; the first is shown first."""
        return {name: kind.label for name, kind in self.presentation.kinds.items()}

    @property
    def defaults(self) -> Mapping[str, object]:
        """The options' default values by name."""
        return {option.name: option.value for option in self.options}

    def check_options(self, options: Mapping[str, object]) -> None:
        """Raise a VlprobeError if options are incompatible; read no file."""
        return  # the options of most probes are always compatible

    def pin(self, options: Mapping[str, object], cache: Path) -> Mapping[str, object]:
        """Return the options with a digest for each file or model that they name."""
        return options

    def metrics_of(self, options: Mapping[str, object], n_orders: int = 1) -> tuple[Metric, ...]:
        """The metrics of a run with these options, of a model with so many orders of captions."""
        return (*self.metrics, *self.order_metrics) if n_orders == 2 else self.metrics

    def check_items(self, items: Sequence[Item], options: Mapping[str, object]) -> None:
        """Raise InvalidInput if pinned options do not match `items`, all items of the dataset."""
        return

    def captions_of_rules(self, item: Item, options: Mapping[str, object]) -> Sequence[str]:
        """Captions of an item that rules for English would edit; the rules skip those in `foreign`."""
        return ()

    def loads_models(self, options: Mapping[str, object]) -> bool:
        """Return whether making the cases requires models: one process then makes all cases and loads each model
        once."""
        return False

    def for_items(self, items: Sequence[Item], options: Mapping[str, object]) -> "Probe":
        """Return the probe for a run over these items, with the facts about other items that
        its cases depend on.
        """
        return self

    @abstractmethod
    def cases(
        self, item: Item, options: Mapping[str, object], seed: int
    ) -> tuple[list[Case], Mapping[str, int]]:
        """The cases of one item, and how many were dropped for each reason; see `for_items` for
        other items.
        """

    @abstractmethod
    def scorer(
        self, encoder: Encoder, run: Run, items: Sequence[Item], cases: Reader, cache: Path
    ) -> "Callable[[pa.Table], pa.Table]":
        """A function from a slice of the run's cases to `scores`, `text_scores`, `margin` and
        columns of this probe.

        The margin is the score of the right winner minus that of the loser: 0 is a tie and a failure. `cases`
        reads all cases.
        """

    def candidates(
        self, run: Run, items: Sequence[Item], cases: Reader, cache: Path
    ) -> tuple[Sequence[Picture], Sequence[str]]:
        """Pictures and texts of galleries in addition to those of the cases, for several
        processes to embed.

        Each process embeds any others itself.
        """
        return (), ()

    def survey(self, blocks: "Iterable[pd.DataFrame]") -> Mapping[str, object]:
        """Values that depend on all scored cases of a run, which come a block at a time.

        A `note` among them is shown with the run's numbers, as a model's note is.
        """
        return {}

    def prepare(self, rows: "pd.DataFrame", survey_facts: Mapping[str, object]) -> "pd.DataFrame":
        """A block of scored cases with the columns added that depend on the survey."""
        return rows
