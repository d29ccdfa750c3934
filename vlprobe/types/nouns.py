"""The core data types, in the order in which data flows: Item -> Case -> scores -> Measure -> Estimate. A Run
describes one pass over all of them.

Scores have no class: they are float32 arrays, with cosines of L2-normalized embeddings unless a probe
says otherwise.
"""

import hashlib
import json
import math
from bisect import bisect_left
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import numpy as np

if TYPE_CHECKING:
    import pandas as pd

Role = Literal["original", "same", "different"]


@dataclass(frozen=True, slots=True)
class Picture:
    """An image file, and optionally an edit that is applied when the image is opened: a mixture or a change."""

    path: Path
    edit: "PictureEdit | None" = None
    absent: str = ""  # identity of a picture whose file is missing
    change: "PictureChange | None" = None

    @property
    def name(self) -> str:
        """Return the picture's name in tables: its path, or JSON if the picture is edited."""
        if self.change:
            return json.dumps({"path": str(self.path), "change": asdict(self.change)})
        if self.edit is None:
            return str(self.path)
        return json.dumps(
            {"path": str(self.path), **asdict(self.edit), "partner": str(self.edit.partner)}
        )

    @property
    def paths(self) -> tuple[Path, ...]:
        """Return the path to the picture and, for a mixture, the path to the picture mixed into it."""
        return (self.path, self.edit.partner) if self.edit else (self.path,)

    @property
    def edit_key(self) -> str:
        """Return a string with all settings that determine the edited pixels, or "" for a picture without an edit."""
        if self.change:
            return (
                f"{self.change.kind} {self.change.severity} {self.change.seed} {self.change.word}"
            )
        return f"{self.edit.kind} {self.edit.lam!r} {self.edit.seed}" if self.edit else ""

    @classmethod
    def from_name(cls, name: str) -> "Picture":
        """Create a picture from its name in tables (see `name`)."""
        if not name.startswith("{"):
            return cls(Path(name))
        edit = json.loads(name)
        path = Path(edit.pop("path"))
        if "change" in edit:
            return cls(path, change=PictureChange(**edit["change"]))
        return cls(path, PictureEdit(**edit | {"partner": Path(edit["partner"])}))


@dataclass(frozen=True, slots=True)
class PictureEdit:
    """A mixture of a picture with a partner: `mix` blends the two, and `patch` pastes a rectangle from the partner."""

    kind: Literal["mix", "patch"]
    partner: Path
    lam: float  # share of the picture that stays, 0 to 1
    seed: int


@dataclass(frozen=True, slots=True)
class PictureChange:
    """A change to a picture, such as noise, blur or a rotation, with its severity."""

    kind: str  # one of `perturb.picture_changes.KINDS`
    severity: int  # 1 to 5
    seed: int
    word: str = ""  # the word that an overlay writes


@dataclass(frozen=True, slots=True)
class Edit:
    """An edit to a caption, and the rule that made the edit."""

    kind: str  # paraphrase, flip or combined
    subtype: str  # for a paraphrase: simple, advanced; for a flip: color, number, object
    rule: str  # the rule's id, such as "template:in-this-image" or "passive"
    source: str = ""  # the removed words, as written in the caption
    target: str = ""  # the inserted words
    via: str = ""  # for a combined edit: the paraphrase that was then flipped


@dataclass(frozen=True, slots=True)
class Series:
    """Pictures in a fixed order: video frames by time, or candidates ranked by people.

    For a video, the item's caption is true before the boundary and its foil is true after it. For candidates, the
    caption is the query and the foil is the edited query.
    """

    pictures: tuple[Picture, ...]
    times: tuple[float, ...] = ()  # seconds of each frame, ascending; (): candidates, best first
    boundary: float = 0.0  # for frames: the second from which the foil is true
    # For candidates: indices into `pictures` as people ranked them for the edit; (): unknown
    edit_order: tuple[int, ...] = ()

    @property
    def boundary_index(self) -> int:
        """Return the index of the last frame before the boundary, or -1 if the boundary precedes all frames."""
        return bisect_left(self.times, self.boundary) - 1


@dataclass(frozen=True, slots=True)
class Item:
    """An image with its captions.

    Datasets of minimal pairs and hard negatives add `foils` that do not fit the image; minimal pairs also add the
    image that the foil fits. Only dataset readers set `cluster` and `setting`: in a user's file, a column with
    one of these names is a tag.
    """

    id: str
    image: Picture | None  # None: texts only
    captions: tuple[str, ...]
    tags: Mapping[str, str] = field(default_factory=dict)  # tags for slices of estimates
    foils: tuple[str, ...] = ()  # captions that do not fit the image
    # A second picture that fits the foil but not the caption
    foil_image: Picture | None = None
    cluster: str = ""  # items of one cluster are resampled together, such as those that share a picture; "": separately
    setting: str = ""  # PRSM's: the captions are the versions of one query, written in this setting
    series: "Series | None" = None  # ordered pictures, for the probe `series`

    @property
    def pictures(self) -> tuple[Picture, ...]:
        """Return all pictures in the item: its image, the image for its foils, and the pictures in its series."""
        series = self.series.pictures if self.series else ()
        return tuple(picture for picture in (self.image, self.foil_image, *series) if picture)

    def with_pictures(self, change: Callable[[Picture], Picture]) -> "Item":
        """Return a copy of the item in which a function has replaced each picture."""
        series = self.series
        if series:
            series = replace(series, pictures=tuple(map(change, series.pictures)))
        image, foil_image = (
            picture and change(picture) for picture in (self.image, self.foil_image)
        )
        return replace(self, image=image, foil_image=foil_image, series=series)

    @property
    def unit(self) -> str:
        """Return the resampling unit: the cluster, or the item itself if it has no cluster."""
        return self.cluster or self.id


@dataclass(frozen=True, slots=True)
class Case:
    """The smallest unit that is scored: one or more pictures, one or more captions, and the edit that turns one caption
    into the other.

    A macro mean first averages within each `group`; for caption edits, a group is one edited
    caption.
    """

    id: str
    item_id: str
    group: str
    images: tuple[Picture, ...]
    texts: tuple[str, ...]
    roles: tuple[Role, ...]  # one for each text; the first is the original
    edit: Edit


def zero_margin(rows: "pd.DataFrame") -> np.ndarray:
    """Mark the rows with a margin of 0, for metrics that compare the same scores as the margin."""
    return rows["margin"].to_numpy() == 0


# Aggregation of cases: "micro" pools all cases, "macro" takes the mean of each group's mean, as
# LGIP prints it (equations 2, 4 and 5). Pooled is the default everywhere, so that a fact has one number.
AVERAGINGS = ("micro", "macro")
POOLED, AS_PAPER = AVERAGINGS


@dataclass(frozen=True, slots=True)
class Metric:
    """A function from cases to values, with the unit, direction, chance level and source of the resulting number."""

    name: str
    version: int  # raised whenever the numbers change
    label: str
    help: str  # one or two plain sentences for a tooltip
    unit: str  # cosine or rate
    direction: Literal["up", "down", "none"]  # the better direction
    chance: float  # for a model that guesses; NaN if that is undefined
    source: str  # paper, equation or table
    kinds: tuple[str, ...]  # the kinds of cases that it evaluates
    value: "Callable[[pd.DataFrame], np.ndarray]"  # cases of those kinds to one float a row; NaN: does not apply
    # Weight of a row in the pooled mean; None: 1
    weight: "Callable[[pd.DataFrame], np.ndarray] | None" = None
    averaging: tuple[str, ...] = ("macro", "micro")  # the means that are stored
    # Cases with equal values in this metric's comparison, bool of shape (n,); None: no ties, or 0
    # is the aim.
    tied: "Callable[[pd.DataFrame], np.ndarray] | None" = zero_margin
    # Computed only from the questions: it has a value even if the model has no answer
    model_free: bool = False
    # Column whose values have equal weight: `weight` is 1 over the number of cases of the row's value.
    even_over: str = ""
    # Whether a value can be negative, so that Wilson's interval, which is for values in [0, 1], does not apply
    signed: bool = False

    @property
    def is_share(self) -> bool:
        """Whether all values are in [0, 1]."""
        return self.unit == "rate" and not self.signed


@dataclass(frozen=True, slots=True)
class Measure:
    """A metric's values for n cases, ready to be averaged: float64 of shape (n,). Values with weight 0 do not count."""

    value: np.ndarray
    weight: np.ndarray
    item: np.ndarray  # shape (n,), the code of the item that each row belongs to, 0 to n_items - 1


@dataclass(frozen=True, slots=True)
class Estimate:
    """A mean and its 95 % interval from resampled items. An unknown mean is NaN, never 0, and has n_items 0."""

    value: float = math.nan
    low: float = math.nan
    high: float = math.nan
    n_items: int = 0


@dataclass(frozen=True, slots=True)
class Publication:
    """Source of published model answers, which were computed by their authors and not by vlprobe."""

    about: str  # the authors' description of the model: "CLIP ViT-B/32 (OpenAI), zero-shot"
    authors: str  # authors of the answers
    source: str  # URL
    license: str  # license for the answers


@dataclass(frozen=True)
class Run:
    """Everything that can change a number in a run, and nothing else. The run's key permanently names the stored
    scores.
    """

    model: str
    model_digest: str  # weights, preprocessing, tokenizer and precision
    dataset: str
    dataset_digest: str  # ids, captions, tags and the bytes of the images
    probe: str
    probe_version: int
    metrics: tuple[str, ...]  # name@version
    options: Mapping[str, object] = field(default_factory=dict)  # the probe's options
    seed: int = 42
    limit: int = 0  # 0: all items
    # The selected items, before the limit: "items" (ids), "where" (TAG=VALUE), "sample" (how many);
    # and excluded cases: "without" (ids), "errata" (digests). Empty: all cases of all items.
    selection: Mapping[str, object] = field(default_factory=dict)

    def record(self) -> dict[str, object]:
        """Return the fields as they are stored and hashed. An empty selection is left out, so that runs from versions
        without selections keep their keys.
        """
        fields = asdict(self)
        if not self.selection:
            del fields["selection"]
        return fields

    @property
    def key(self) -> str:
        """Return a digest of everything that can change a number. Two names for the same model or dataset give
        the same key.
        """
        fields = self.record()
        del fields["model"], fields["dataset"]
        return _digest(fields)

    @property
    def case_key(self) -> str:
        """Return a digest of everything that can change a case. Runs of several models on the same cases
        share it.
        """
        fields = self.record()
        for name in ("model", "dataset", "model_digest", "metrics"):
            del fields[name]
        return _digest(fields)


def _digest(fields: Mapping[str, object]) -> str:
    """Hash the fields as JSON with SHA-256, and return the first 16 hexadecimal digits."""
    return hashlib.sha256(json.dumps(fields, sort_keys=True).encode()).hexdigest()[:16]
