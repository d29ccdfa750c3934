"""The layout of a paper's table: its columns, and the value of a run that belongs in each."""

from collections.abc import Mapping
from dataclasses import dataclass, field

ALL_SLICES = "*"  # each slice of a breakdown, counted alike


@dataclass(frozen=True)
class Column:
    """One column of a paper's table, and what of a run belongs there."""

    group: str  # the heading that it shares with its neighbours
    title: str
    metric: str  # of the probe
    published: tuple[str, str, str]  # dataset, split, metric as published.csv has them
    datasets: tuple[str, ...] = ()  # printed in several datasets' columns: their mean
    breakdown: str = "all"
    slices: tuple[str, ...] = ()  # names of the slice that belongs here; empty: the whole
    # The paper's own file of this column, without its ending: a run over it belongs here, too.
    released: str = ""
    sign: int = 1  # -1: printed the other way round
    # The slices of the same breakdown that the value is relative to: a share, 0.1 is 10 % more.
    relative_to: tuple[str, ...] = ()


@dataclass(frozen=True)
class PaperTable:
    """A table of a paper."""

    number: int
    title: str  # in a picker
    about: str  # what its rows were scored on, and how that differs
    columns: tuple[Column, ...]
    # Where rows are not models: start of the split, name.
    rows: Mapping[str, str] = field(default_factory=dict)
    paper: str = ""  # that prints it, where it is not the probe's own
    # Of these rows, by the start of the split, the tag NAME=VALUE of the items that they are about.
    groups: Mapping[str, str] = field(default_factory=dict)
