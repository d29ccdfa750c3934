"""Every number that the five papers print, each beside the number of one run where both mean the
same.

What stands in `published.csv` is shown, whatever it is; a run's number stands beside a cell that a
column of `paper_tables` names.
"""

import math

import pandas as pd

from vlprobe.models import presets
from vlprobe.storage.store import Store
from vlprobe.views import papers, published
from vlprobe.views.paper_tables import TABLES, PaperTable
from vlprobe.views.records import PrintedCell, records
from vlprobe.views.runs import QuestionSet

COLUMNS = [
    *("paper", "table", "dataset", "split", "model", "metric", "unit"),
    *("printed", "run", "low", "high", "same_weights", "mark", "note"),
]
MARKS = {  # what a note says of its cell; the first that fits
    "doubted": "the number itself is doubted",
    "differs": "another table, or the text, says otherwise",
    "remark": "how the cell was read",
}
DIFFERS = ("print", "the text says")
FAMILIES = {"rococo-clip": "rococo"}  # of presets whose prefix is not the name of the paper


def mark(note: str) -> str:
    """Which of the MARKS a note is; "" where there is none.

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


def beside(store: Store, question_set: QuestionSet, model: str) -> pd.DataFrame:
    """The printed cells of the paper of a question set's probe, with the numbers of one model's run.

    Returns:
        As `cells`; `run`, `low`, `high` are the run's estimate and interval in the printed unit and
        with its sign, NaN where nothing of the run means the same as the cell; `same_weights` says
        that the run's model is the one that the cell is about.
    """
    question_set.run(model)
    table = cells(question_set.probe)
    estimates = {}
    for paper_table in TABLES[question_set.probe]:
        estimates |= _by_cell(store, question_set, paper_table, model)
    rows = []
    names = printed_names(question_set.probe, model)
    for row in records(PrintedCell, table):
        number = estimates.get(
            (row.table, row.dataset, row.split, row.metric), (math.nan, math.nan, math.nan)
        )
        scale = 1 / papers.SCALE.get(row.unit, 1.0)
        rows.append([*(scale * value for value in number), _plain(row.model) in names])
    columns = ["run", "low", "high", "same_weights"]
    numbers = pd.DataFrame(rows, columns=pd.Index(columns))
    return table.assign(**{name: numbers[name] for name in columns})


def _by_cell(
    store: Store, question_set: QuestionSet, paper_table: PaperTable, model: str
) -> dict[tuple[int, str, str, str], tuple[float, float, float]]:
    """Value and interval of a run by the table, dataset, split and metric of the printed cell.

    A column of several datasets has no cell of its own in print; of several groups of rows the run
    is the first.
    """
    start = next(iter(paper_table.rows), "")
    by_cell = {}
    for _, name, index, value, low, high, *_ in papers.run_cells(store, question_set, paper_table):
        column = paper_table.columns[index]
        dataset, split, metric = column.published
        if name == model and not column.datasets:
            split = f"{start}/{split}" if start else split
            low, high = (low, high) if column.sign > 0 else (-high, -low)
            by_cell[paper_table.number, dataset, split, metric] = column.sign * value, low, high
    return by_cell


def printed_names(paper: str, model: str) -> set[str]:
    """What the tables of a paper call a model: of its presets, in one spelling."""
    names = {
        preset.printed
        for family in presets.FAMILIES
        if FAMILIES.get(family.PREFIX, family.PREFIX) == paper
        for short_name, preset in family.presets.items()
        if model in (preset.weights, f"{family.PREFIX}:{short_name}")
    }
    # LGIP's table 4 leaves out whose weights they are
    return {_plain(text) for name in names for text in (name, name.partition(" (")[0])}


def _plain(name: str) -> str:
    """One spelling of names that the tables of a paper spell differently."""
    return name.lower().replace("/", "-")
