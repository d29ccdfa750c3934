"""The nouns, in the order that data flows: Item -> Case -> scores -> Measure -> Estimate, and Run for a pass over all.

Scores are not a class: they are float32 arrays, cosines of l2-normalised embeddings unless a probe says otherwise.
This module imports nothing else of vlprobe.
"""

import hashlib
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Literal, Protocol

import numpy as np

Role = Literal["original", "same", "different"]


@dataclass(frozen=True, slots=True)
class Picture:
    """An image file, and what is done to it when it is opened (nothing, unless an edit is named)."""

    path: Path
    edit: "PictureEdit | None" = None


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
class Text:
    """A caption in a case: the original, or an edit of it that means the same or something different."""

    text: str
    role: Role
    edit: Edit | None = None


@dataclass(frozen=True, slots=True)
class Item:
    """One image and what people wrote about it. The id is the unit of resampling."""

    id: str
    image: Picture
    captions: tuple[str, ...]
    tags: Mapping[str, str] = field(default_factory=dict)  # what results can be sliced by


@dataclass(frozen=True, slots=True)
class Case:
    """One question to a model: how well does each text fit each image?"""

    id: str
    item_id: str
    images: tuple[Picture, ...]
    texts: tuple[Text, ...]


@dataclass(frozen=True, slots=True)
class Measure:
    """A metric on many rows at once: float64 arrays of shape (n,); weight 0 (or a NaN value) does not apply."""

    value: np.ndarray
    weight: np.ndarray
    item: np.ndarray  # shape (n,), integer code of the item that each row belongs to


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


class DualEncoder(Protocol):
    """A frozen model that puts images and texts in one space: `models/*.py` define PREFIX, names() and load(name, ...).

    `digest` covers the weights' bytes, the preprocessing, the tokenizer and the precision. `preprocess` must be safe to
    call from several threads. The encode methods return float32 of shape (n, dim), l2-normalised.
    """

    name: str
    digest: str
    dim: int

    def preprocess(self, image: "object") -> np.ndarray:
        """An RGB PIL image to the array that encode_images stacks."""

    def encode_images(self, pixels: np.ndarray) -> np.ndarray:
        """Shape (n, ...) of preprocessed images to (n, dim)."""

    def tokenize(self, texts: Sequence[str]) -> np.ndarray:
        """Texts to int64 of shape (n, context). Texts with equal rows are one text to the model."""

    def encode_texts(self, tokens: np.ndarray) -> np.ndarray:
        """Shape (n, context) to (n, dim)."""
