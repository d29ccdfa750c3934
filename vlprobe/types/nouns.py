"""The nouns, in the order that data flows: Item -> Case -> scores -> Measure -> Estimate, and Run
for a pass over all.

Scores are not a class: they are float32 arrays, cosines of L2-normalized embeddings unless a probe
says otherwise.
"""

import hashlib
import json
import math
from bisect import bisect_left
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import numpy as np

if TYPE_CHECKING:
    import pandas as pd

Role = Literal["original", "same", "different"]


@dataclass(frozen=True, slots=True)
class Picture:
    """An image file, and the edit that is applied when it is opened: a mixture, a change, or none."""

    path: Path
    edit: "PictureEdit | None" = None
    absent: str = ""  # identity of a picture whose file is missing
    change: "PictureChange | None" = None

    @property
    def name(self) -> str:
        """The picture's name in tables: its path, or JSON for an edited picture."""
        if self.change:
            return json.dumps({"path": str(self.path), "change": asdict(self.change)})
        if self.edit is None:
            return str(self.path)
        return json.dumps(
            {"path": str(self.path), **asdict(self.edit), "partner": str(self.edit.partner)}
        )

    @property
    def paths(self) -> tuple[Path, ...]:
        """The picture's file, and the file of the picture mixed into it."""
        return (self.path, self.edit.partner) if self.edit else (self.path,)

    @property
    def edit_key(self) -> str:
        """All that determines the edited pixels except the files; "" for a picture without an edit."""
        if self.change:
            return (
                f"{self.change.kind} {self.change.severity} {self.change.seed} {self.change.word}"
            )
        return f"{self.edit.kind} {self.edit.lam!r} {self.edit.seed}" if self.edit else ""

    @classmethod
    def from_name(cls, name: str) -> "Picture":
        """The picture with this name."""
        if not name.startswith("{"):
            return cls(Path(name))
        edit = json.loads(name)
        path = Path(edit.pop("path"))
        if "change" in edit:
            return cls(path, change=PictureChange(**edit["change"]))
        return cls(path, PictureEdit(**edit | {"partner": Path(edit["partner"])}))


@dataclass(frozen=True, slots=True)
class PictureEdit:
    """An edit of a picture with another one: `mix` blends the two, `patch` pastes a rectangle of the partner."""

    kind: Literal["mix", "patch"]
    partner: Path
    lam: float  # share of the picture that stays, 0 to 1
    seed: int


@dataclass(frozen=True, slots=True)
class PictureChange:
    """A change to a picture, such as noise, blur or a rotation, with its severity."""

    kind: str  # of `perturb.picture_changes.KINDS`
    severity: int  # 1 to 5
    seed: int
    word: str = ""  # the word that an overlay writes


@dataclass(frozen=True, slots=True)
class Edit:
    """Edit of a caption, with the rule that made it."""

    kind: str  # paraphrase, flip or combined
    subtype: str  # of a paraphrase: simple, advanced; of a flip: color, number, object
    rule: str  # the rule's id, such as "template:in-this-image" or "passive"
    source: str = ""  # the words taken out, as written in the caption
    target: str = ""  # the words put in
    via: str = ""  # for a combined edit: the paraphrase that was then flipped


@dataclass(frozen=True, slots=True)
class Series:
    """Pictures in an order: the frames of a video by time, or candidates as people ranked them.

    For a video, the item's caption is true before the boundary and its foil after it. For candidates, the caption
    is the query and the foil is its edit.
    """

    pictures: tuple[Picture, ...]
    times: tuple[float, ...] = ()  # seconds of each frame, ascending; (): candidates, best first
    boundary: float = 0.0  # for frames: the second from which the foil is true
    # For candidates: indices into `pictures` as people ranked them for the edit; (): unknown
    edit_order: tuple[int, ...] = ()

    @property
    def boundary_index(self) -> int:
        """The index of the last frame before the boundary; -1 if the boundary precedes all frames."""
        return bisect_left(self.times, self.boundary) - 1


@dataclass(frozen=True, slots=True)
class Item:
    """An image with its captions.

    Datasets of minimal pairs and hard negatives add `foils` that do not fit the image; minimal pairs also add the
    image that the foil fits. Only readers of datasets set `cluster` and `setting`: a column of a user's file with
    such a name is a tag.
    """

    id: str
    image: Picture | None  # None: texts only
    captions: tuple[str, ...]
    tags: Mapping[str, str] = field(default_factory=dict)  # tags for slices of estimates
    foils: tuple[str, ...] = ()  # captions that do not fit the image
    # A second picture, which the foil fits and the caption does not
    foil_image: Picture | None = None
    cluster: str = ""  # items of one cluster are resampled together, such as those that share a picture; "": separately
    setting: str = ""  # PRSM's: the captions are the versions of one query, written in this setting
    series: "Series | None" = None  # ordered pictures, for the probe `series`

    @property
    def pictures(self) -> tuple[Picture, ...]:
        """All pictures of the item: its image, the image of its foils, and those of its series."""
        series = self.series.pictures if self.series else ()
        return tuple(picture for picture in (self.image, self.foil_image, *series) if picture)

    @property
    def unit(self) -> str:
        """The unit of resampling: the cluster, or the item itself."""
        return self.cluster or self.id


@dataclass(frozen=True, slots=True)
class Case:
    """The smallest unit that is scored: a few pictures against a few texts, and the edit between
    the texts.

    A macro mean first averages within each `group`: for caption edits, the edited
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
    """Return whether the case's margin is 0, for metrics that make the same comparisons as the margin."""
    return rows["margin"].to_numpy() == 0


# Aggregation of cases: "micro" pools all cases, "macro" takes the mean of each group's mean, as
# LGIP prints it (equations 2, 4 and 5). Pooled is the default everywhere, so that a fact has one number.
AVERAGINGS = ("micro", "macro")
POOLED, AS_PAPER = AVERAGINGS


@dataclass(frozen=True, slots=True)
class Metric:
    """Function from cases to values, with the unit, direction, chance level and source of the number."""

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
    weight: "Callable[[pd.DataFrame], np.ndarray] | None" = (
        None  # of a row in the pooled mean; None: 1
    )
    averaging: tuple[str, ...] = ("macro", "micro")  # the means that are stored
    # Cases with equal values in this metric's comparison, bool of shape (n,); None: no ties, or 0
    # is the aim.
    tied: "Callable[[pd.DataFrame], np.ndarray] | None" = zero_margin
    # Computed only from the questions: it has a value even if the model has no answer
    model_free: bool = False
    # Column whose values have equal weight: `weight` is 1 over the number of cases of the row's value.
    even_over: str = ""


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


@dataclass(frozen=True, slots=True)
class Publication:
    """Publication of a model's answers, which its authors computed and vlprobe did not."""

    about: str  # the authors' description of the model: "CLIP ViT-B/32 (OpenAI), zero-shot"
    authors: str  # of the answers
    source: str  # URL
    license: str  # of the answers


@dataclass(frozen=True)
class Run:
    """Everything that can change a number, and nothing that cannot; its key names the stored
    scores permanently.
    """

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
    # The selected items, before the limit: "items" (ids), "where" (TAG=VALUE), "sample" (how many);
    # and cases of these that are not: "without" (ids), "errata" (digests). Empty: all.
    selection: Mapping[str, object] = field(default_factory=dict)

    def record(self) -> dict[str, object]:
        """Return the fields as stored and digested, without an empty selection: runs of versions
        without selections keep their keys.
        """
        fields = asdict(self)
        if not self.selection:
            del fields["selection"]
        return fields

    @property
    def key(self) -> str:
        """Digest of everything that can change a number. Two names of the same model or dataset
        share one key.
        """
        fields = self.record()
        del fields["model"], fields["dataset"]
        return _digest(fields)

    @property
    def case_key(self) -> str:
        """Digest of everything that can change a case: runs of several models over the same
        cases share it.
        """
        fields = self.record()
        for name in ("model", "dataset", "model_digest", "metrics"):
            del fields[name]
        return _digest(fields)


def _digest(fields: Mapping[str, object]) -> str:
    """First 16 hex digits of the sha256 of the fields as JSON."""
    return hashlib.sha256(json.dumps(fields, sort_keys=True).encode()).hexdigest()[:16]
