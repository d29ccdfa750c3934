"""The nouns, in the order that data flows: Item -> Case -> scores -> Measure -> Estimate, and Run for a pass over all.

Scores are not a class: they are float32 arrays, cosines of l2-normalised embeddings unless a probe says otherwise.
This module imports nothing else of vlprobe at run time.
"""

import hashlib
import json
import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Literal, Protocol

import numpy as np

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa
    from PIL import Image

    from vlprobe.scoring.encoder import Encoder
    from vlprobe.types.options import Option

Role = Literal["original", "same", "different"]
Reader = Callable[[Sequence[str]], "Iterator[pa.Table]"]  # names of columns to these columns, a block of rows at a time


@dataclass(frozen=True, slots=True)
class Picture:
    """An image file, and what is done to it when it is opened (nothing, unless an edit is named)."""

    path: Path
    edit: "PictureEdit | None" = None

    @property
    def name(self) -> str:
        """How the picture is written in a table: its path, or JSON where it is edited."""
        if self.edit is None:
            return str(self.path)
        return json.dumps({"path": str(self.path), **asdict(self.edit), "partner": str(self.edit.partner)})

    @classmethod
    def named(cls, name: str) -> "Picture":
        """The picture that is written so."""
        if not name.startswith("{"):
            return cls(Path(name))
        edit = json.loads(name)
        path = Path(edit.pop("path"))
        return cls(path, PictureEdit(**edit | {"partner": Path(edit["partner"])}))


@dataclass(frozen=True, slots=True)
class PictureEdit:
    """A change to a picture by means of another: `mix` blends the two, `patch` pastes a rectangle of the partner."""

    kind: Literal["mix", "patch"]
    partner: Path
    lam: float  # share of the picture that stays, 0 to 1
    seed: int


@dataclass(frozen=True, slots=True)
class Edit:
    """What was done to a caption, so that a result can be traced to the rule that made it."""

    kind: str  # paraphrase, flip or combined
    subtype: str  # of a paraphrase: simple, advanced; of a flip: color, number, object
    rule: str  # the rule's id, such as "template:in-this-image" or "passive"
    source: str = ""  # the words taken out, as written in the caption
    target: str = ""  # the words put in
    via: str = ""  # for a combined edit: the paraphrase that was then flipped


@dataclass(frozen=True, slots=True)
class Item:
    """One image and what people wrote about it.

    Datasets of minimal pairs and of hard negatives also say what does not fit: `foils`, and in a minimal pair the
    picture that the foil does fit. `cluster` and `setting` are for the readers of datasets alone: a column that a user
    names so is a tag like any other.
    """

    id: str
    image: Picture | None  # None: texts only
    captions: tuple[str, ...]
    tags: Mapping[str, str] = field(default_factory=dict)  # what results can be sliced by
    foils: tuple[str, ...] = ()  # captions that do not fit the image
    other: Picture | None = None  # a second picture, which the foil fits and the caption does not
    cluster: str = ""  # items of one cluster are resampled together, as where they share a picture; "": each alone
    setting: str = ""  # PRSM's: the captions are the versions of one query, written in this setting

    @property
    def unit(self) -> str:
        """The name of what is resampled: the cluster, or the item itself."""
        return self.cluster or self.id


@dataclass(frozen=True, slots=True)
class Case:
    """The smallest question that a person can look at: a few pictures against a few texts, and what was edited.

    `group` is what a macro mean averages within first: for caption edits, the caption that was edited.
    """

    id: str
    item_id: str
    group: str
    images: tuple[Picture, ...]
    texts: tuple[str, ...]
    roles: tuple[Role, ...]  # one for each text; the first is the original
    edit: Edit


def zero_margin(rows: "pd.DataFrame") -> np.ndarray:
    """Whether the case's margin is 0: for metrics that make the same comparisons as the margin."""
    return rows["margin"].to_numpy() == 0


@dataclass(frozen=True, slots=True)
class Metric:
    """How a column of cases becomes a number, and everything a reader must know about that number."""

    name: str
    version: int  # raised whenever the numbers change
    label: str
    help: str  # one or two plain sentences for a tooltip
    unit: str  # cosine or rate
    direction: Literal["up", "down", "none"]  # which way is better
    chance: float  # what a model that knows nothing gets; NaN where that is not defined
    source: str  # paper, equation or table
    kinds: tuple[str, ...]  # the kinds of edit that it judges
    value: "Callable[[pd.DataFrame], np.ndarray]"  # cases of those kinds to one float a row; NaN: does not apply
    weight: "Callable[[pd.DataFrame], np.ndarray] | None" = None  # of a row in the pooled mean; None: 1
    averaging: tuple[str, ...] = ("macro", "micro")  # the first is the headline
    # Cases in which what this metric compares is equal, bool of shape (n,); None: nothing is, or 0 is the aim.
    tied: "Callable[[pd.DataFrame], np.ndarray] | None" = zero_margin
    model_free: bool = False  # computed from the questions alone: it has a value where the model has no answer


@dataclass(frozen=True, slots=True)
class Measure:
    """A metric on many cases, ready to be averaged: float64 of shape (n,); weight 0 does not count."""

    value: np.ndarray
    weight: np.ndarray
    item: np.ndarray  # shape (n,), the code of the item that each row belongs to, 0 to n_items - 1


@dataclass(frozen=True, slots=True)
class Estimate:
    """A mean with its 95 % interval over resampled items; unknown is NaN with n_items 0, never 0."""

    value: float = math.nan
    low: float = math.nan
    high: float = math.nan
    n_items: int = 0


@dataclass(frozen=True)
class Run:
    """Everything that can change a number, and nothing that cannot; the key names the result for ever."""

    model: str
    model_digest: str  # weights, preprocessing, tokenizer and precision
    dataset: str
    dataset_digest: str  # ids, captions, tags and the bytes of the images
    probe: str
    probe_version: int
    metrics: tuple[str, ...]  # name@version
    options: Mapping[str, object] = field(default_factory=dict)  # of the probe
    seed: int = 42
    limit: int = 0  # 0: all items

    @property
    def key(self) -> str:
        """First 16 hex digits of the sha256 of all that names a number. Two names of the same bytes share one key."""
        named = asdict(self)
        del named["model"], named["dataset"]
        return hashlib.sha256(json.dumps(named, sort_keys=True).encode()).hexdigest()[:16]

    @property
    def case_key(self) -> str:
        """Names the questions asked, whoever answers: runs of several models over the same cases share it."""
        named = {k: v for k, v in asdict(self).items() if k not in ("model", "dataset", "model_digest", "metrics")}
        return hashlib.sha256(json.dumps(named, sort_keys=True).encode()).hexdigest()[:16]


class Dataset(Protocol):
    """A way in for pictures and captions: `datasets/*.py` define PREFIX, names() and load(name, cache)."""

    name: str
    digest: str
    items: Sequence[Item]


class Probe(ABC):
    """A way of asking: `probes/*.py` define PROBE. Raise `version` whenever the cases or their scores change."""

    name: str
    version: int
    dataset: str  # what it is tried on where nobody chose one
    kinds: Mapping[str, str]  # the kinds of its cases, in plain words; the first is shown first
    needs: str = ""  # "pictures", or a "gallery" to search; "": a text encoder can take part
    options: "tuple[Option, ...]" = ()  # what can be set, with defaults, allowed values and help
    metrics: tuple[Metric, ...]

    @property
    def defaults(self) -> Mapping[str, object]:
        """The options' default values by name."""
        return {option.name: option.value for option in self.options}

    def refuse(self, options: Mapping[str, object]) -> None:
        """Raises a VlprobeError where options that are allowed one by one do not go together; reads no file."""
        return  # most probes have none that do not

    def pin(self, options: Mapping[str, object], cache: Path) -> Mapping[str, object]:
        """The options with everything in them that names a file or a model pinned by a digest."""
        return options

    def asks_models(self, options: Mapping[str, object]) -> bool:
        """Whether making the cases takes models: then one process makes them all, so that each is loaded once."""
        return False

    def among(self, items: Sequence[Item], options: Mapping[str, object]) -> "Probe":
        """The probe that makes the cases of a run over these items, with what a case depends on of other items."""
        return self

    @abstractmethod
    def cases(self, item: Item, options: Mapping[str, object], seed: int) -> tuple[list[Case], Mapping[str, int]]:
        """The questions about one item, and how many were dropped for each reason; see `among` for other items."""

    @abstractmethod
    def scorer(
        self, encoder: "Encoder", run: Run, items: Sequence[Item], cases: "Reader", cache: Path
    ) -> "Callable[[pa.Table], pa.Table]":
        """What turns a slice of the run's cases into `scores`, `text_scores`, `margin` and columns of its own.

        The margin is what should win minus what should lose: 0 is a tie and a failure. `cases` reads all of them.
        """

    def candidates(
        self, run: Run, items: Sequence[Item], cases: "Reader", cache: Path
    ) -> tuple[Sequence[Picture], Sequence[str]]:
        """What galleries hold beside what the cases name, so that several processes can encode it first, each a share.

        What is not named here is encoded by each of them.
        """
        return (), ()

    def survey(self, blocks: "Iterable[pd.DataFrame]") -> Mapping[str, object]:
        """What can only be known from all scored cases of a run, which come a block at a time.

        A `note` in it is told with the run's numbers, as a model's note is.
        """
        return {}

    def prepare(self, rows: "pd.DataFrame", known: Mapping[str, object]) -> "pd.DataFrame":
        """A block of scored cases with the columns added that need what the survey found."""
        return rows


class TextEncoder(Protocol):
    """A frozen model of texts: `models/*.py` define PREFIX, names() and load(name, ...).

    `digest` covers the weights' bytes, the preprocessing, the tokenizer and the precision. A model may also have a
    `note`, what a reader of its scores must know.
    """

    name: str
    digest: str
    dim: int

    def tokenize(self, texts: Sequence[str]) -> np.ndarray:
        """Texts to int64 of shape (n, columns); texts with equal rows are one text to the model.

        -1 stands after the end of a text where a model sees no pads; the number of columns may then differ by call.
        """

    def encode_texts(self, tokens: np.ndarray) -> np.ndarray:
        """Shape (n, columns) to float32 of shape (n, dim), l2-normalised."""


class DualEncoder(TextEncoder, Protocol):
    """A frozen model that puts images and texts in one space. `preprocess` must be safe to call from several threads.

    With `image_dim`, a multiple of `dim`, an image is several vectors in a row, and the best of them is its similarity.
    """

    def preprocess(self, image: "Image.Image") -> np.ndarray:
        """An RGB PIL image to the array that encode_images stacks."""

    def encode_images(self, pixels: np.ndarray) -> np.ndarray:
        """Shape (n, ...) of preprocessed images to float32 of shape (n, image_dim or dim), l2-normalised."""


class PairScorer(Protocol):
    """A frozen model that looks at a picture and a text together. It may be a DualEncoder or TextEncoder too.

    `score_type` says what a score is: "probability" or "logit".
    """

    name: str
    digest: str
    score_type: str

    def preprocess(self, image: "Image.Image") -> np.ndarray:
        """An RGB PIL image to an array; two images may give different shapes."""

    def look(self, pixels: Sequence[np.ndarray]) -> Sequence:
        """Preprocessed images to what `match` needs of each: anything with `nbytes`."""

    def tokenize(self, texts: Sequence[str]) -> np.ndarray:
        """As of a TextEncoder."""

    def match(self, seen: Sequence, tokens: np.ndarray, logits: bool = False) -> np.ndarray:
        """How well each picture fits its text, float32 of shape (n,); with `logits` as the head gives it."""
