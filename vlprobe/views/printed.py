"""Every number that the five papers print, each with the number of one run if both mean the same.

Every row of `published.csv` is shown; a run's number is next to a cell if a column of `paper_tables` names it.
"""

import math
from collections.abc import Mapping

import pandas as pd

from vlprobe.models import presets
from vlprobe.storage.store import Store
from vlprobe.types import AS_PAPER
from vlprobe.views import comparisons, estimates, papers, published, runs
from vlprobe.views.paper_tables import TABLES, Column, PaperTable
from vlprobe.views.records import EstimateRow, PrintedCell, records
from vlprobe.views.runs import QuestionSet

COLUMNS = [
    *("paper", "table", "dataset", "split", "model", "metric", "unit"),
    *("printed", "run", "low", "high", "same_weights", "mark", "note"),
]
FACTS = "none"  # the dataset of cells that are about only a model
MARKS = {  # what a note says of its cell; the first that fits
    "doubted": "the number itself is doubted",
    "differs": "another table, or the text, says otherwise",
    "remark": "how the cell was read",
}
DIFFERS = ("print", "the text says")
_Place = tuple[int, str, str, str]  # table, dataset, split and metric of a cell
_Interval = tuple[float, float, float]  # value, low, high
_UNKNOWN: _Interval = (math.nan, math.nan, math.nan)
BERT_BASE = 109.5  # million parameters, as the caption of VISLA's table 2 has it
MILLIONS = {"million": 1.0, "billion": 1000.0, "times BERT-base": BERT_BASE}  # by the unit
FAMILIES = {"rococo-clip": "rococo"}  # of presets whose prefix is not the name of the paper


def mark(note: str) -> str:
    """Return the one of the MARKS that a note is; "" if it is none.

    >>> mark("suspect: too low"), mark("table 3 prints 0.009"), mark("gallery not stated"), mark("")
    ('doubted', 'differs', 'remark', '')
    """
    if "suspect:" in note:
        return "doubted"
    if any(words in note for words in DIFFERS):
        return "differs"
    return "remark" if note else ""


def cells(paper: str = "") -> pd.DataFrame:
    """The printed cells of one paper or of all, in the order of print, without a run.

    Returns:
        COLUMNS: `printed` is the text as printed; `run`, `low`, `high` (in the printed unit) are NaN.
    """
    table = published.load().assign(printed=published.texts())
    table = table.loc[table["paper"] == paper] if paper else table
    unknown = dict.fromkeys(("run", "low", "high"), math.nan)
    marks = [mark(note) for note in table["note"]]
    table = table.assign(**unknown, same_weights=False, mark=marks).reset_index(drop=True)
    return table.loc[:, COLUMNS]


def papers_of(probe: str) -> tuple[str, ...]:
    """The papers of which a run of the probe fills cells, its own first."""
    names = (table.paper or probe for table in TABLES.get(probe, ()))
    return tuple(dict.fromkeys(sorted(names, key=lambda name: name != probe)))


def probes_of(paper: str) -> tuple[str, ...]:
    """The probes whose runs fill cells of the paper, its own first."""
    probes = (probe for probe in TABLES if paper in papers_of(probe))
    return tuple(sorted(probes, key=lambda name: name != paper))


def beside(store: Store, question_set: QuestionSet, model: str, paper: str = "") -> pd.DataFrame:
    """The printed cells of a paper, with the numbers of one model's run.

    Args:
        store: Where results are.
        question_set: The question set of the run.
        model: Whose run.
        paper: One of `papers_of` the question set's probe; "": the probe's own.

    Returns:
        As `cells`; `run`, `low`, `high` are the run's estimate and interval in the printed unit and
        with its sign, NaN where nothing of the run means the same as the cell; beside facts about a
        model those of the run's model. `same_weights` says that it is the one that the cell is about.
    """
    digest = question_set.run(model).model_digest
    probe = question_set.probe
    facts = passport_facts(store, model, digest)
    paper = paper or probe
    table = cells(paper)
    by_cell: dict[_Place, _Interval] = {}
    for paper_table in TABLES.get(probe, ()):
        if (paper_table.paper or probe) == paper:
            by_cell |= _by_cell(store, question_set, paper_table, model)
    rows = []
    names = printed_names(paper, model)
    for row in records(PrintedCell, table):
        number = by_cell.get((row.table, row.dataset, row.split, row.metric), _UNKNOWN)
        scale = 1 / papers.SCALE.get(row.unit, 1.0)
        if row.dataset == FACTS:
            fact = facts.get(row.metric, math.nan) / MILLIONS.get(row.unit, 1.0)
            number, scale = (fact, math.nan, math.nan), 1.0
        rows.append([*(scale * value for value in number), plain(row.model) in names])
    columns = ["run", "low", "high", "same_weights"]
    numbers = pd.DataFrame(rows, columns=pd.Index(columns))
    return table.assign(**{name: numbers[name] for name in columns})


def _by_cell(
    store: Store, question_set: QuestionSet, paper_table: PaperTable, model: str
) -> dict[_Place, _Interval]:
    """Value and interval of a run by the place of the printed cell; a column of several datasets has
    no cell of its own in print.

    Of several groups of rows the run is the first, all items; if its questions were limited to the pictures of each
    group, it is the others.
    """
    grouped = comparisons.grouped_by(store, question_set) if paper_table.groups else ""
    if any(tag.partition("=")[0] == grouped for tag in paper_table.groups.values()):
        return {
            cell_place: interval
            for start, tag in paper_table.groups.items()
            for cell_place, interval in _of_group(
                store, question_set, paper_table, model, start, tag
            ).items()
        }
    if grouped:
        return {}
    start = next(iter(paper_table.rows), "")
    by_cell = {}
    for _, name, index, value, low, high, *_ in papers.run_cells(store, question_set, paper_table):
        column = paper_table.columns[index]
        if name == model and not column.datasets:
            low, high = (low, high) if column.sign > 0 else (-high, -low)
            cell_place = _place(paper_table, column, start)
            by_cell[cell_place] = column.sign * value, low, high
    return by_cell


def _of_group(
    store: Store,
    question_set: QuestionSet,
    paper_table: PaperTable,
    model: str,
    start: str,
    tag: str,
) -> dict[_Place, _Interval]:
    """Return `_by_cell` of the items with a tag NAME=VALUE, for the rows whose split begins with it.

    A whole is known where all questions are of one kind: slices of slices are not stored.
    """
    of_comparisons = comparisons.comparisons(store, question_set, tag)
    name, _, value = tag.partition("=")
    of_tag = estimates.estimates(store, question_set, f"tag:{name}", AS_PAPER)
    of_tag = of_tag.loc[of_tag["slice"] == value]
    subtypes = set(estimates.choices(store, question_set)["subtype"])
    by_cell = {}
    for column in paper_table.columns:
        if column.breakdown == comparisons.BREAKDOWN:
            rows = of_comparisons.loc[of_comparisons["slice"].isin(column.slices)]
        else:
            rows = of_tag if subtypes == set(column.slices) else of_tag.head(0)
        rows = rows.loc[
            (rows["model"] == model)
            & (rows["metric"] == column.metric)
            & (rows["averaging"] == AS_PAPER)
        ]
        for row in records(EstimateRow, rows):
            by_cell[_place(paper_table, column, start)] = row.value, row.low, row.high
    return by_cell


def _place(paper_table: PaperTable, column: Column, start: str) -> _Place:
    """Return the printed position of a column's cell, in the rows whose split begins with it."""
    dataset, split, metric = column.published
    return paper_table.number, dataset, f"{start}/{split}" if start else split, metric


def printed_names(paper: str, model: str) -> set[str]:
    """Return a model's name in the tables of a paper: from its presets, in one spelling."""
    names = {
        preset.printed
        for family in presets.FAMILIES
        if FAMILIES.get(family.PREFIX, family.PREFIX) == paper
        for short_name, preset in family.presets.items()
        if model in (preset.weights, f"{family.PREFIX}:{short_name}")
    }
    # LGIP's table 4 leaves out whose weights they are
    return {plain(text) for name in names for text in (name, name.partition(" (")[0])}


def plain(name: str) -> str:
    """One spelling of names that the tables of a paper spell differently."""
    return name.lower().replace("/", "-")


def passport_facts(store: Store, model: str, digest: str) -> Mapping[str, float]:
    """Return the doctor's findings for these weights: parameters (millions) and embedding_dimension; NaN if unknown."""
    passport: Mapping[str, str] = {}
    for examination in runs.examinations(store):
        if (examination.model, examination.model_digest) == (model, digest):
            passport = examination.passport
            break
    n_weights = passport.get("parameters", "").replace(",", "")
    dimension = passport.get("embedding", "").partition(" ")[0]
    return {
        "parameters": int(n_weights) / 1e6 if n_weights.isdecimal() else math.nan,
        "embedding_dimension": float(dimension) if dimension.isdecimal() else math.nan,
    }
