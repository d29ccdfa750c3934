"""Render a reproduced paper table with the user's runs above the published rows, and all published numbers as a
sortable table.
"""

import html
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from types import MappingProxyType
from typing import TYPE_CHECKING

import pandas as pd

from vlprobe.render import numbers
from vlprobe.render.charts.styles import Looks
from vlprobe.render.html.elements import breakable, column_heads, mark, table, tag
from vlprobe.render.sentences import joined
from vlprobe.render.words import AVERAGED, movement_kinds
from vlprobe.types import AS_PAPER, Metric
from vlprobe.views.published import FACT, SOURCES, Column, PaperTable
from vlprobe.views.records import CellRow, PrintedCell, records

if TYPE_CHECKING:
    from pandas.io.formats.style import Styler

REMARKS = {"doubted": "Doubtful", "differs": "Contradicted elsewhere", "remark": "Remark"}
ELSEWHERE = "Elsewhere, all cases are pooled unless you choose otherwise."
UNITS = {"percent": " %", "million": " million", "billion": " billion"}


@dataclass(frozen=True)
class Remade:
    """A reproduced paper table as HTML, with an explanation and the numbered notes on its cells."""

    table: str
    remark: str
    notes: tuple[str, ...]


def remade(
    cells: pd.DataFrame,
    paper_table: PaperTable,
    metrics: Mapping[str, Metric],
    styles: Looks,
    names: Mapping[str, str] = MappingProxyType({}),
) -> Remade:
    """Render the table from `views.papers.remade` as HTML. `names` maps stored model names to display names."""
    rows = records(CellRow, cells)
    columns = paper_table.columns
    measured = [metrics.get(column.metric) for column in columns]
    units = [_unit(column, metrics) for column in columns]
    # Percentages are written without their sign, because there are many
    are_rates, are_facts = (all(unit == each for unit in units) for each in ("rate", FACT))
    note_numbers = {
        note: number
        for number, note in enumerate(dict.fromkeys(row.note for row in rows if row.note), 1)
    }
    source = SOURCES[paper_table.paper]
    author, *others = source.authors.split(", ")
    bands = {
        "run": "Your runs" if are_facts else f"Your runs. {AVERAGED[AS_PAPER]} {ELSEWHERE}",
        "published": f"Published: {author}{' and others' if others else ''} {source.year}, "
        f"table {paper_table.number}",
    }
    lines = []
    for band, title in bands.items():
        width = str(len(columns) + 1)
        lines.append(f'<tr class="band">{tag("th", title, colspan=width, scope="colgroup")}</tr>')
        of_band = [row for row in rows if row.source == band]
        for model in dict.fromkeys(row.model for row in of_band):
            is_run = band == "run"
            symbol = f"{mark(styles[model])} " if is_run else ""
            tip = f' title="{html.escape(model)}"' if is_run else ""
            name = breakable(names.get(model, model) if is_run else model)
            values = "".join(
                _cell(row, measured[row.column], units[row.column], are_rates, note_numbers)
                for row in of_band
                if row.model == model
            )
            css = "" if is_run else ' class="printed"'
            lines.append(f'<tr{css}><th scope="row"{tip}>{symbol}{name}</th>{values}</tr>')
    draws = ""
    if cells["n_seeds"].to_numpy().any():
        draws = (
            " A value with ± is the mean over random draws, followed by their standard deviation."
        )
    reading = (
        "Compare your numbers with the published ones only if pictures, captions and edits are "
        f"the same.{' In percent.' if are_rates else ''} - = not measured. Below each value is "
        f"its 95 % interval.{draws}"
    )
    title = f"Table {paper_table.number} of the paper, recomputed"
    return Remade(
        table(title, _head(paper_table), lines, "vp-paper"),
        f"{paper_table.about} {'- = unknown.' if are_facts else reading}",
        tuple(note_numbers),
    )


def _unit(column: Column, metrics: Mapping[str, Metric]) -> str:
    """Return the unit of a column's values: that of its metric, or FACT."""
    if column.breakdown == FACT:
        return FACT
    return "rate" if column.relative_to else numbers.unit_of(metrics[column.metric], "cosine")


def numbered(notes: Sequence[str]) -> str:
    """Render notes as a numbered list in HTML, or return "" if there are none."""
    items = "".join(tag("li", note) for note in notes)
    return f'<ol class="vp-notes">{items}</ol>' if items else ""


def _head(paper_table: PaperTable) -> str:
    """Return one or two header rows. Neighboring columns in the same group share a heading."""
    columns = paper_table.columns
    titles = column_heads(column.title for column in columns)
    if not any(column.group for column in columns):
        return f"{tag('th', 'Model', scope='col')}{titles}"
    shared = "".join(
        tag("th", name, scope="colgroup", colspan=str(len(list(neighbors))))
        for name, neighbors in groupby(columns, key=lambda column: column.group)
    )
    return f'<th scope="col" rowspan="2">Model</th>{shared}</tr><tr>{titles}'


def _cell(
    cell: CellRow,
    metric: Metric | None,
    unit: str,
    are_rates: bool,
    note_numbers: Mapping[str, int],
) -> str:
    """Return the table cell for a value, with the value's note or interval."""
    if math.isnan(cell.value):
        return "<td>-</td>"
    suffix = " %" if are_rates else ""
    value = numbers.number(cell.value, unit).removesuffix(suffix)
    if cell.source == "published" and unit == "cosine":
        value = f"{cell.value:.3f}"  # no more digits than were published
    if unit == FACT:
        value = f"{cell.value:,.0f}" if cell.value >= 100 else f"{cell.value:.3g}"
    if cell.note:
        tip = html.escape(cell.note)
        return f'<td title="{tip}">{value}<sup>{note_numbers[cell.note]}</sup></td>'
    small = []
    if not math.isnan(cell.low):
        small.append(numbers.interval(cell.low, cell.high, unit).removesuffix(suffix))
        if cell.ties and metric and not set(metric.kinds) <= movement_kinds():
            small.append(f"{cell.ties:,} tied")
    if cell.n_seeds:
        deviation = numbers.number(cell.sd, unit).removesuffix(suffix)
        small.append(f"± {deviation}, {cell.n_seeds} draws")
    lines = f"<br><small>{'<br>'.join(small)}</small>" if small else ""
    return f"<td>{value}{lines}</td>"


def printed(rows: Sequence[PrintedCell]) -> "Styler":
    """Return a table with one published cell per row, and the corresponding value from a run next
    to it.

    Values sort as numbers and have as many decimals as the published value.
    """
    table = pd.DataFrame(
        {
            "Table": [row.table for row in rows],
            "Model": [row.model for row in rows],
            "Measured": [_measured(row) for row in rows],
            "Printed": [float(row.printed) for row in rows],
            "This run": [row.run for row in rows],
            "95 % interval": [_interval(row) for row in rows],
            "Remark": [
                joined(
                    "Same weights." if row.same_weights else "",
                    row.mark and f"{REMARKS[row.mark]}: {row.note.removeprefix('suspect: ')}",
                )
                for row in rows
            ],
        }
    )
    rows_of_format: dict[str, list[int]] = {}
    for index, row in enumerate(rows):
        sign = "+" if row.printed.startswith("+") else ""
        text = f"{{:{sign}.{_decimals(row)}f}}{UNITS.get(row.unit, '')}"
        rows_of_format.setdefault(text, []).append(index)
    styler = table.style
    for text, indexes in rows_of_format.items():
        styler.format(text, na_rep="", subset=(indexes, ["Printed", "This run"]))
    return styler


def _measured(row: PrintedCell) -> str:
    parts = (row.metric, row.dataset, row.split)
    return " · ".join(text.replace("_", " ") for text in parts if text not in ("all", "none"))


def _interval(row: PrintedCell) -> str:
    """Format the interval for a run's value with the decimals of the published value, or more if both ends would be
    equal.

    >>> _interval(PrintedCell("lgip", 2, "coco", "all", "A", "m", "percent", "86.60", 9.128, 9, 9.5, False, "", ""))
    '9.00 to 9.50'
    >>> _interval(PrintedCell("lgip", 2, "coco", "all", "A", "m", "cosine", ".008", 8e-3, 78e-4, 82e-4, False, "", ""))
    '0.0078 to 0.0082'
    """
    if math.isnan(row.low):
        return ""
    least = _decimals(row)
    counts = range(least, least + 4)
    is_apart = (n for n in counts if f"{row.low:.{n}f}" != f"{row.high:.{n}f}")
    decimals = next(is_apart, least)
    return f"{row.low:.{decimals}f} to {row.high:.{decimals}f}"


def _decimals(row: PrintedCell) -> int:
    return len(row.printed.partition(".")[2])
