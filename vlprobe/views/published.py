"""Published numbers from the result tables in the five papers, and a description of the tables that a user's run can
fill.

`published.csv` has one row per printed cell, except for cells printed as a dash and columns of
words.

    paper, table   lgip tables 2-7, rococo 3-7, eqben 2-12, visla 2-9, prsm 1
    dataset        the evaluated dataset; `none` for facts about a model,
                   `row_mean` for the mean of a row's other cells,
                   `eqben` for the mean of the five subsets times three scores
    split          the part of the dataset, or the edit; `all` for the whole dataset
    model          as printed, without citations. Rows printed as "+ FT" or "+ EQSIM" include the model of their block
                   and the fine-tuning data: "FIBER + EQSIM (F30K)". PRSM does not state which CLIP
                   model it used.
    metric, unit   below
    value          as printed, never rescaled: 400M is 400 with the unit million, a drop rate keeps its minus sign
    note           why a cell differs from another publication of the same number, or how it was read; a note with
                   "suspect:" says why the number itself is in doubt, one with "the text says" cites a contradiction

Metrics (in percent unless a unit is given):

    lgip     invariance_error, sensitivity_gap, combined_gap (cosine); positive_rate, combined_positive_rate (share);
             invariance_increase (from the simple to the advanced paraphrases)
    rococo   i2t_ or t2i_ before: r1 (clean gallery), r1_new (altered items added), drop_rate, rsms (top-1 is altered)
    eqben    text_score, image_score, group_score, avg; group_accuracy (split: the order of the captions in the
             question); min_pc_pf and acc (VALSE); i2t_r1 to t2i_r10 (retrieval); boundary_accuracy (splits are
             thresholds in seconds)
    visla    t2t_accuracy, i2t_accuracy, p1_n, p2_n (split: the side compared with the captions, text or image);
             parameters, embedding_dimension, pretraining_samples, finetuning_samples (units in the
             row)
    prsm     global (rank correlation); local_100, local_1000 (share); n (count).
             split: group / kind of paraphrase / versions compared

`paper_tables.toml` lists the papers, and the tables that a run can fill. `paper_columns.csv` lists
the columns of these tables: the metric and the slices of a run that belong in each column (slice
names are separated by spaces; none: the whole question set; *: the mean of all slices; breakdown `fact`: the
column has a fact about the models instead of a metric), and the dataset, split and metric of the
column's cells in `published.csv`.
"""

import csv
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pandas as pd

FOLDER = Path(__file__).parent
_CSV = FOLDER / "published.csv"
FACT = "fact"  # breakdown of columns that have facts about the models instead of a metric
ALL_SLICES = "*"  # every slice of a breakdown, with equal weight
PRSM_VERSIONS = {"P1": "o-c1-c2", "P2": "p1-p2-p3-np", "P3": "o-a1-a2-a12"}  # of a query, in print


@dataclass(frozen=True, slots=True)
class PrintedSource:
    """The paper that published numbers come from."""

    title: str
    authors: str
    year: int
    identifier: str


@dataclass(frozen=True)
class Column:
    """A column in a paper's table, with the metric that corresponds to it in runs."""

    group: str  # heading that the column shares with its neighbors
    title: str
    metric: str  # name of the probe's metric, or of the fact
    breakdown: str  # or FACT
    slices: tuple[str, ...]  # names of the slice that belongs here; empty: the whole question set
    datasets: tuple[str, ...]  # several: the value is the mean over these datasets' columns
    split: str
    printed_metric: str
    sign: int  # -1: printed with the opposite sign
    # The paper's file for this column, without extension: a run on the file belongs here, too.
    released: str
    # Slices of the same breakdown that the value is relative to, as a share: 0.1 is 10 % more.
    relative_to: tuple[str, ...]


@dataclass(frozen=True)
class PaperTable:
    """A result table in a paper, with its columns."""

    number: int
    title: str  # title in pickers
    about: str  # what the rows were scored on, and how runs differ from that
    columns: tuple[Column, ...]
    paper: str  # name of the paper that prints the table
    # If rows are not models: name by start of the split.
    rows: Mapping[str, str] = field(default_factory=dict)
    # Tag NAME=VALUE of the items that such a row is about, by start of the split.
    groups: Mapping[str, str] = field(default_factory=dict)


def _tables(described: list[dict]) -> dict[str, tuple[PaperTable, ...]]:
    """Group the described paper tables by the probe whose runs fill them."""
    columns: dict[tuple[str, int], list[Column]] = {}
    with (FOLDER / "paper_columns.csv").open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            slices, datasets, relative_to = (
                tuple(row[name].split()) for name in ("slices", "dataset", "relative_to")
            )
            heading = row["group"], row["title"], row["metric"], row["breakdown"]
            cells = datasets, row["split"], row["printed_metric"], int(row["sign"])
            column = Column(*heading, slices, *cells, row["released"], relative_to)
            columns.setdefault((row["probe"], int(row["table"])), []).append(column)
    tables: dict[str, tuple[PaperTable, ...]] = {}
    for table in described:
        probe = table.pop("probe")
        of_table = tuple(columns[probe, table["number"]])
        paper_table = PaperTable(**{"paper": probe} | table, columns=of_table)
        tables[probe] = (*tables.get(probe, ()), paper_table)
    return tables


_DESCRIBED = tomllib.loads((FOLDER / "paper_tables.toml").read_text(encoding="utf-8"))
SOURCES = {name: PrintedSource(**source) for name, source in _DESCRIBED["sources"].items()}
TABLES: Mapping[str, tuple[PaperTable, ...]] = _tables(_DESCRIBED["tables"])


def load(paper: str = "") -> "pd.DataFrame":
    """Load the published numbers from one paper or all papers, one row per cell.

    Returns:
        The columns of `published.csv`: `table` is int64, `value` is float64, and the rest are strings;
        an empty note is ''. The column `printed` has the value as printed (0.010, not 0.01).
    """
    import pandas as pd

    cells = pd.read_csv(_CSV, dtype="str", keep_default_na=False, encoding="utf-8")
    cells = cells.assign(printed=cells["value"]).astype({"table": "int64", "value": "float64"})
    return cells.loc[cells["paper"] == paper].reset_index(drop=True) if paper else cells
