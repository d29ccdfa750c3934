"""Interfaces between the packages: datasets, probes, models, and the encoder that probes use to access a model."""

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
    """A source of pictures and captions. Modules in `datasets/` define PREFIX, NAMES and load(name,
    cache).
    """

    name: str
    digest: str
    items: Sequence[Item]


@dataclass(frozen=True, slots=True, kw_only=True)
class Capabilities:
    """Declares what a model can do. Every model adapter provides one."""

    embeds_texts: bool = False  # the model is a TextEncoder
    embeds_images: bool = False  # the model is a DualEncoder
    scores_pairs: bool = False  # the model is a PairScorer
    matches_side_by_side: bool = False  # the model is a SideBySideMatcher
    answers_cases: bool = False  # the model is a CaseAnswerer
    chooses: bool = False  # a CaseAnswerer that only chooses between two captions
    looks_up: bool = False  # the model is a Lookup: its embeddings or scores come from a file
    has_matrix: bool = False  # a Lookup with the score of every picture with every text
    asks_server: bool = False  # sends requests to a server, but only during a run
    dim: int = 0  # size of a text embedding; 0: no embeddings
    image_dim: int = 0  # size of a picture embedding: `dim`, or a multiple of it
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
    """A frozen model. Modules in `models/` define PREFIX, NAMES and load(name, ...). `capabilities`
    tells which other interfaces the model has.

    `digest` covers the bytes of the weights, the preprocessing, the tokenizer and the precision.
    """

    name: str
    digest: str
    note: str = ""  # a caveat for readers of its scores
    # All files and folders that the model was loaded from; None: there are others, or it is not known
    sources: Sequence[Path] | None = None
    publication: Publication | None = None  # for answers that were not computed here

    @property
    def capabilities(self) -> Capabilities:
        """Return what the model can do."""
        ...

    def tokenize(self, texts: Sequence[str]) -> np.ndarray:
        """Convert texts to int64 token ids of shape (n, columns). The model cannot distinguish texts with equal rows.

        If the model ignores padding, rows are padded with -1, and the number of columns may then
        differ between calls.
        """
        ...

    def facts(self) -> Mapping[str, str]:
        """Return text that describes the model, by subject. For the subjects, see `models.doctor.passport`."""
        return {}

    def published(self) -> Mapping[str, str]:
        """Return what the publisher of the weights states on the same subjects. Empty if that is unknown."""
        return {}


class TextEncoder(Model, Protocol):
    """A model that embeds texts."""

    def encode_texts(self, tokens: np.ndarray) -> np.ndarray:
        """Encode tokens of shape (n, columns) as float32 of shape (n, dim), L2-normalized."""
        ...


class DualEncoder(TextEncoder, Protocol):
    """A model that embeds images and texts in one space. `preprocess` must be safe to call from
    several threads.

    If `image_dim` is a multiple of `dim`, an image has several vectors, stored one after another, and the most
    similar one determines how similar the image is to a caption.
    """

    def preprocess(self, image: "Image.Image") -> np.ndarray:
        """Convert an RGB PIL image to an array. Two images may give arrays of different shapes."""
        ...

    def encode_images(self, pixels: np.ndarray) -> np.ndarray:
        """Encode n preprocessed images as float32 of shape (n, image_dim), L2-normalized. `pixels` has shape (n, ...),
        or is an object array of n arrays if their shapes differ.
        """
        ...


class PairScorer(Model, Protocol):
    """A model that processes a picture and text together to score how well they match. It may also be a DualEncoder or
    a TextEncoder.
    """

    def preprocess(self, image: "Image.Image") -> np.ndarray:
        """Convert an RGB PIL image to an array. Two images may give arrays of different shapes."""
        ...

    def encode_pictures(self, pixels: Sequence[np.ndarray]) -> Sequence:
        """Encode preprocessed images into inputs for `match`, which may be any objects with `nbytes`."""
        ...

    def match(self, encoded: Sequence, tokens: np.ndarray, logits: bool = False) -> np.ndarray:
        """Score how well each picture fits its text: float32 of shape (n,). With `logits`, return the raw output of the
        model's head.
        """
        ...


class SideBySideMatcher(PairScorer, Protocol):
    """A model that matches two captions to two pictures side by side."""

    def first_is_left(
        self, left: "Image.Image", right: "Image.Image", caption_a: str, caption_b: str
    ) -> float:
        """Return the probability, 0 to 1, that caption_a fits the left picture and caption_b fits the right one."""
        ...


class CaseAnswerer(Model, Protocol):
    """A model whose scores were computed elsewhere. It can only answer cases that it has scores for."""

    n_scores: int  # number of available scores

    def check_cases(self, cases: Reader) -> str:
        """Return a note on the answers to a run's cases, or "" if there is nothing to note. Raises InvalidInput if an
        answer is missing, unless the model was loaded with missing answers allowed.
        """
        ...

    def answers(self, cases: "pa.Table") -> np.ndarray:
        """Return the scores for every picture with every text in each case, picture by picture: float32 of shape
        (n_pairs,), with NaN for missing scores.
        """
        ...

    def text_answers(self, cases: "pa.Table") -> "np.ndarray | None":
        """Return the scores for the pairs of texts in each case: float32 of shape (n_cases, pairs), in the order 01,
        02, 12, with NaN for missing scores. Returns None if no case has scores for texts.
        """
        return None

    def orders(self, cases: "pa.Table") -> np.ndarray:
        """Return whether the model chose the true caption when it was listed first, and when it was listed second:
        float32 of shape (2, n_cases) with 1, 0 or NaN. Only meaningful if `n_orders` is 2.
        """
        return np.full((2, len(cases)), np.nan, dtype=np.float32)


class Inputs(Protocol):
    """The distinct pictures and texts in a run, in the order in which `vlprobe ask` writes them.

    Each has keys that may identify it in a file of answers, the most reliable first. The first key
    depends only on the content, so equal pictures share it.
    """

    def pictures(self) -> "Iterator[tuple[Picture, Sequence[str]]]":
        """Yield each picture and its keys. Pictures that differ in the path or the edit are distinct."""
        ...

    def texts(self) -> "Iterator[tuple[str, Sequence[str]]]":
        """Yield each distinct text and its keys."""
        ...


class Lookup(Model, Protocol):
    """A model whose embeddings, or whose scores for all pictures with all texts, were computed
    elsewhere. It reads them from a file and opens no pictures.

    With `capabilities.has_matrix`, a vector is the index of a picture or text in the score matrix,
    and vectors can only be compared with `similarity` and `paired`.
    """

    is_bound: bool  # whether the rows for a run have been found

    def bind(self, inputs: Inputs, key: str, *, is_gallery: bool) -> str:
        """Find the rows in the file for all pictures and texts in a run. Repeated calls with the same `key` do nothing.

        Returns:
            A note on missing embeddings, or "" if none are missing.

        Raises:
            InvalidInput: rows are missing, unless the model was loaded with missing rows allowed and the
                run ranks no gallery.
        """
        ...

    def text_vectors(self, texts: Sequence[str]) -> np.ndarray:
        """Return the vectors for texts: float32 of shape (n, dim), with NaN for texts missing from the file."""
        ...

    def image_vectors(self, images: Sequence[Picture]) -> np.ndarray:
        """Return the vectors for pictures: float32 of shape (n, dim), with NaN for pictures missing from the file."""
        ...

    def similarity(self, left: np.ndarray, right: np.ndarray) -> np.ndarray:
        """Compute the float32 similarity of every left vector with every right vector."""
        ...

    def paired(self, left: np.ndarray, right: np.ndarray) -> np.ndarray:
        """Compute the float32 similarity of each left vector with the right vector in the same row."""
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
    """Return whether the model looks up imported answers in a file."""
    return model.capabilities.looks_up


class Encoder(Protocol):
    """Interface to `scoring.encoder.CachedEncoder` for probes: it runs a model in batches and computes each embedding
    only once.
    """

    model: Model
    dim: int  # size of a text embedding
    image_dim: int  # size of a picture embedding: `dim`, or a multiple of it
    scores_pairs: bool  # whether the model is a PairScorer
    embeds_texts: bool
    embeds_images: bool
    memory: int  # maximum memory in bytes
    # Called with stage, done and total; may raise to stop
    progress: Callable[[str, int, int], None]
    # Vectors of two sides, shapes (n, width) and (m, width), to their similarities, (n, m)
    similarity: Callable[[np.ndarray, np.ndarray], np.ndarray]

    def texts(self, texts: Sequence[str], keep: bool = False) -> np.ndarray:
        """Return the embeddings of texts, float32 of shape (len(texts), dim). With `keep`, they are also
        stored on disk.
        """
        ...

    def images(self, images: Sequence[Picture]) -> np.ndarray:
        """Return the embeddings of pictures, float32 of shape (len(images), image_dim)."""
        ...

    def pairs(
        self,
        images: Sequence[Picture],
        texts: Sequence[str],
        left: np.ndarray,
        right: np.ndarray,
        logits: bool = False,
    ) -> np.ndarray:
        """Return the scores of a PairScorer for images[left] with texts[right], float32 of shape (len(left),)."""
        ...


class Probe(ABC):
    """A test for models. Modules in `probes/` define PROBE. Raise `version` whenever the cases or their
    scores change.
    """

    name: str
    version: int
    dataset: str  # the default: its demo data
    presentation: Presentation  # the probe's texts and names on pages and in reports
    needs: str = ""  # "pictures", or a "gallery" to search; "": a text encoder can take part
    options: tuple[Option, ...] = ()  # the probe's options, with defaults, allowed values and help
    metrics: tuple[Metric, ...]
    optional_metrics: tuple[Metric, ...] = ()  # metrics that only some runs have, see `metrics_of`
    # Optional metrics for models that were asked with both caption orders. Runs
    # with and without them can be compared.
    order_metrics: tuple[Metric, ...] = ()
    # By the name of a table that is stored next to the scores, one row per case: the columns of the
    # scorer's table that it holds in place of the scores; null where an earlier version scored.
    side_tables: "Mapping[str, pa.Schema]" = MappingProxyType({})
    code_digest: str = ""  # digest of a plug-in's code, stored among the options of its runs
    # Captions that English rules leave unchanged, with the codes of their languages; "": unknown
    foreign: Mapping[str, str] = MappingProxyType({})

    @property
    def kinds(self) -> Mapping[str, str]:
        """Return the label of each kind of case, by kind. The first kind is shown first."""
        return {name: kind.label for name, kind in self.presentation.kinds.items()}

    @property
    def defaults(self) -> Mapping[str, object]:
        """Return the default values of the options, by name."""
        return {option.name: option.value for option in self.options}

    def check_options(self, options: Mapping[str, object]) -> None:
        """Raise a VlprobeError if the options are incompatible with each other. No file is read."""
        return  # the options of most probes are always compatible

    def pin(self, options: Mapping[str, object], cache: Path) -> Mapping[str, object]:
        """Return a copy of the options with a digest added for each file or model that they name."""
        return options

    def metrics_of(self, options: Mapping[str, object], n_orders: int = 1) -> tuple[Metric, ...]:
        """Return the metrics for a run with the given options, if the model is asked with `n_orders` caption orders."""
        return (*self.metrics, *self.order_metrics) if n_orders == 2 else self.metrics

    def check_items(self, items: Sequence[Item], options: Mapping[str, object]) -> None:
        """Raise InvalidInput if the pinned options do not match `items`, which are all items in the dataset."""
        return

    def captions_of_rules(self, item: Item, options: Mapping[str, object]) -> Sequence[str]:
        """Return the captions of an item that English rules would edit. The rules skip captions in `foreign`."""
        return ()

    def options_of_languages(self, options: Mapping[str, object]) -> Mapping[str, object]:
        """Return options to add to a run with captions in `foreign`, so that its cases have a key of their own."""
        return {}

    def loads_models(self, options: Mapping[str, object]) -> bool:
        """Return whether generating the cases requires models. If so, one process generates all cases and loads each
        model once.
        """
        return False

    def for_items(self, items: Sequence[Item], options: Mapping[str, object]) -> "Probe":
        """Return the probe for a run over the given items. A case may depend on other items in the run, so the returned
        probe knows the facts that it needs about them.
        """
        return self

    @abstractmethod
    def cases(
        self, item: Item, options: Mapping[str, object], seed: int
    ) -> tuple[list[Case], Mapping[str, int]]:
        """Return the cases for one item, and the number of dropped cases for each reason. Facts about other items come
        from `for_items`.
        """

    @abstractmethod
    def scorer(
        self, encoder: Encoder, run: Run, items: Sequence[Item], cases: Reader, cache: Path
    ) -> "Callable[[pa.Table], pa.Table]":
        """Return a function from a slice of the run's cases to a table with `scores`, `text_scores`, `margin` and
        probe-specific columns.

        The margin is the score of the right winner minus the score of the loser: 0 is a tie and counts as a failure.
        `cases` reads all cases.
        """

    def candidates(
        self, run: Run, items: Sequence[Item], cases: Reader, cache: Path
    ) -> tuple[Sequence[Picture], Sequence[str]]:
        """Return the gallery's pictures and texts that are not in the cases, so that several processes can share the
        work of embedding them.

        Each process embeds any other pictures and texts itself.
        """
        return (), ()

    def survey(self, blocks: "Iterable[pd.DataFrame]") -> Mapping[str, object]:
        """Compute values that depend on all scored cases in a run, which arrive one block at a time.

        If a `note` is among the values, it is shown with the run's numbers, like a model's note.
        """
        return {}

    def prepare(self, rows: "pd.DataFrame", survey_facts: Mapping[str, object]) -> "pd.DataFrame":
        """Add the columns that depend on the survey to a block of scored cases."""
        return rows
