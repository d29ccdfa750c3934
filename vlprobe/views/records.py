"""Typed rows for the tables that views return, as in `records(EstimateRow, table)`.

Code that filters, joins or prints a table uses a DataFrame; code that reads each row by name uses a
list of row objects.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import Field, dataclass, field, fields
from numbers import Real
from typing import ClassVar, Protocol, TypeVar

import pandas as pd

from vlprobe.types import Publication


class DataclassRow(Protocol):
    """Protocol that any dataclass satisfies."""

    __dataclass_fields__: ClassVar[dict[str, Field]]


Record = TypeVar("Record", bound=DataclassRow)


@dataclass(frozen=True, slots=True)
class RunRow:
    """A stored run. `older` and `note` are "" if they do not apply."""

    key: str
    case_key: str  # key of its question set
    model: str
    model_digest: str
    dataset: str
    dataset_digest: str
    probe: str
    limit: int
    seed: int
    options: str  # options that differ from the probe's defaults, as " · name value"
    n_items: int
    n_units: int  # number of resampling units
    n_cases: int
    spread: float  # similarity spread, in cosines
    seconds: float
    finished: str  # ISO 8601, UTC
    older: str  # which parts are of an older version than the current code
    note: str
    shipped: bool = False  # whether the run is bundled with vlprobe
    # Which items were chosen, as `Run.selection`; {}: all
    selection: Mapping[str, object] = field(default_factory=dict, hash=False)
    metrics: tuple[str, ...] = field(default=(), hash=False)  # names of the judging metrics
    score_type: str = "cosine"  # see `Capabilities`
    n_orders: int = 1  # orders of the captions in which the model ran; 2: two answers per case
    publication: Publication | None = None  # source of the answers if they were not computed here

    @property
    def is_scored(self) -> bool:
        """Return whether the model gave scores. Otherwise, its answers are only right or wrong."""
        return self.score_type != "verdict"


@dataclass(frozen=True, slots=True)
class QuestionSetRow:
    """An entry in the list of question sets that `views.runs.question_set_rows` returns."""

    case_key: str
    label: str
    dataset: str
    probe: str
    models: list[str]  # newest first
    n_items: int
    n_cases: int
    shipped: bool  # whether all runs are bundled with vlprobe
    finished: str = ""  # when the newest run ended (ISO 8601, UTC)


@dataclass(frozen=True, slots=True)
class CaseRow:
    """A case in a question set."""

    case: int  # case number: the row in every table of the question set
    id: str
    item: str
    kind: str
    subtype: str
    rule: str
    source: str  # removed words
    target: str  # inserted words
    images: Sequence[str]  # names of the pictures
    texts: Sequence[str]
    roles: Sequence[str]
    tags: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class FailureRow(CaseRow):
    """A case that passes a filter, with the answer by the filter's model."""

    margin: float  # NaN: unknown
    scores: Sequence[float]


@dataclass(frozen=True, slots=True)
class AnswerRow:
    """One model's answer to one case."""

    case: int
    model: str
    margin: float  # NaN: unknown
    scores: Sequence[float]
    # All columns of the row, including those of the probe.
    columns: Mapping[str, object] = field(default_factory=dict)
    is_scored: bool = True  # False: right or wrong only, the margin has no magnitude

    def number(self, name: str) -> float:
        """Return the value in a numeric column; NaN if the value is unknown or the probe does not have the column."""
        value = self.columns.get(name)
        return float(value) if isinstance(value, Real) else math.nan

    def text(self, name: str) -> str:
        """Return the value in a text column; "" if the probe does not have the column."""
        return str(self.columns.get(name, ""))


@dataclass(frozen=True, slots=True)
class EstimateRow:
    """One model's mean of one metric in one slice, with a 95 % interval. Unknown numbers are NaN."""

    model: str
    key: str  # key of the run
    metric: str
    averaging: str
    slice: str
    value: float
    low: float
    high: float
    n_items: int
    n_cases: int
    ties: int


@dataclass(frozen=True, slots=True)
class SliceRow:
    """One model's mean in one slice, with a 95 % interval. Unknown numbers are NaN."""

    model: str
    slice: str
    value: float
    low: float
    high: float
    n_items: int
    n_cases: int


@dataclass(frozen=True, slots=True)
class BinRow:
    """One bin in the histogram of a model's values."""

    model: str
    left: float
    right: float
    share: float  # share of the model's values


@dataclass(frozen=True, slots=True)
class LevelRow:
    """A row of `views.repair.repair_levels`: one model's mean of one metric, with a 95 % interval."""

    probe: str
    metric: str
    model: str
    value: float
    low: float
    high: float
    n_items: int


@dataclass(frozen=True, slots=True)
class MoveRow:
    """A row of `views.repair.repair_moves`: a metric's difference between two models in a fine-tuning experiment."""

    probe: str
    metric: str
    step: str  # "loss" or "training"
    base: float
    value: float
    difference: float
    low: float
    high: float
    p_holm: float
    verdict: str
    left_out: int


@dataclass(frozen=True, slots=True)
class PointRow:
    """One model as a point in a plot of two metrics against each other. Unknown numbers are NaN."""

    model: str
    x: float
    x_low: float
    x_high: float
    y: float
    y_low: float
    y_high: float
    x_n: float = math.nan  # number of pictures for x
    y_n: float = math.nan


@dataclass(frozen=True, slots=True)
class PrintedRow:
    """A paper's values for one model in a trade-off plot. Unknown numbers are NaN."""

    model: str
    x: float
    y: float
    note: str


@dataclass(frozen=True, slots=True)
class CellRow:
    """A cell in a reproduced table from a paper. Unknown numbers are NaN."""

    source: str  # "run" or "published"
    model: str
    column: int  # index among the table's columns
    value: float
    low: float
    high: float
    ties: int
    note: str  # "" for none
    sd: float  # standard deviation over the draws
    n_seeds: int  # number of draws; 0: only one


@dataclass(frozen=True, slots=True)
class PrintedCell:
    """A published cell with the corresponding number from a run in the same unit. Unknown numbers are NaN."""

    paper: str
    table: int
    dataset: str
    split: str
    model: str  # as printed
    metric: str
    unit: str
    printed: str  # with the digits as printed
    run: float
    low: float
    high: float
    same_weights: bool  # whether the run's model is the printed one
    mark: str  # one of `views.papers.MARKS`, or "" for none
    note: str


def records(row_type: type[Record], table: pd.DataFrame) -> list[Record]:
    """Convert the rows of a table to `row_type` objects. Each field is read from the column with the field's name."""
    names = [column.name for column in fields(row_type) if column.name != "columns"]
    return [
        row_type(*values) for values in zip(*(table[name].tolist() for name in names), strict=True)
    ]
