"""A paper's table as HTML: a user's runs above the printed rows, which keep their notes."""

import html
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from types import MappingProxyType

import pandas as pd

from vlprobe.render import numbers
from vlprobe.render.charts.styles import Looks
from vlprobe.render.html.elements import breakable, column_heads, mark, table, tag
from vlprobe.render.words import AVERAGED, movement_kinds
from vlprobe.types import AS_PAPER, Metric
from vlprobe.views.paper_tables import PaperTable
from vlprobe.views.published import SOURCES
from vlprobe.views.records import CellRow, records

_DRAWS = " After ± the standard deviation from one draw to another, where there are several: the value is their mean."


@dataclass(frozen=True)
class Remade:
    """A paper's table made again: the table, how to read it, and the notes on cells, as HTML."""

    table: str
    remark: str
    notes: str
    n_notes: int


def remade(
    cells: pd.DataFrame,
    paper_table: PaperTable,
    probe: str,
    metrics: Mapping[str, Metric],
    styles: Looks,
    called: Mapping[str, str] = MappingProxyType({}),
) -> Remade:
    """Return the result of `views.papers.remade` as HTML; `called` has display names of models."""
    rows = records(CellRow, cells)
    notes = dict.fromkeys(row.note for row in rows if row.note)
    drawing = _Drawing(
        tuple(metrics[column.metric] for column in paper_table.columns),
        tuple(
            "rate" if column.relative_to else numbers.unit_of(metrics[column.metric], "cosine")
            for column in paper_table.columns
        ),
        styles,
        {note: number for number, note in enumerate(notes, 1)},
        called,
    )
    width = len(paper_table.columns) + 1
    source = SOURCES[paper_table.paper or probe]
    author, *others = source.authors.split(", ")
    published = (
        f"{author}{' and others' if others else ''} {source.year}, table {paper_table.number}"
    )
    lines = [
        _band("Your runs", width),
        *_lines([row for row in rows if row.source == "run"], drawing),
        _band(f"Published: {published}", width),
        *_lines([row for row in rows if row.source == "published"], drawing),
    ]
    rates = " In per cent." if drawing.are_rates else ""
    name = f"Table {paper_table.number} of the paper, made again"
    items = "".join(tag("li", note) for note in notes)
    return Remade(
        table(name, _head(paper_table), lines, "vp-paper"),
        f"{paper_table.about} Numbers of your own stand beside them for orientation: they compare "
        f"only where pictures, captions and edits are the same.{rates} A dash: not asked. "
        f"Below a value of yours its 95 % interval. {AVERAGED[AS_PAPER]}"
        f"{_DRAWS if cells['n_seeds'].to_numpy().any() else ''}",
        f'<ol class="vp-notes">{items}</ol>' if notes else "",
        len(notes),
    )


@dataclass(frozen=True)
class _Drawing:
    """The values that all cells of a table share."""

    metrics: tuple[Metric, ...]  # of the columns
    units: tuple[str, ...]  # same format
    styles: Looks
    note_numbers: Mapping[str, int]  # by the note
    called: Mapping[str, str]  # other names of models than the stored ones

    @property
    def are_rates(self) -> bool:
        """Return whether all numbers are per cents, which then stand without their sign: they are many."""
        return all(unit == "rate" for unit in self.units)


def _head(paper_table: PaperTable) -> str:
    """One or two rows of headings; those that neighbours share are written once."""
    columns = paper_table.columns
    groups = [
        (name, len(list(neighbours)))
        for name, neighbours in groupby(columns, key=lambda column: column.group)
    ]
    titles = column_heads(column.title for column in columns)
    if not any(name for name, _ in groups):
        return f"{tag('th', 'Model', scope='col')}{titles}"
    shared = "".join(tag("th", name, scope="colgroup", colspan=str(size)) for name, size in groups)
    return f'<th scope="col" rowspan="2">Model</th>{shared}</tr><tr>{titles}'


def _band(text: str, width: int) -> str:
    return f'<tr class="band">{tag("th", text, colspan=str(width), scope="colgroup")}</tr>'


def _lines(rows: Sequence[CellRow], drawing: _Drawing) -> list[str]:
    """A line a model."""
    lines = []
    for model in dict.fromkeys(row.model for row in rows):
        cells = [row for row in rows if row.model == model]
        is_run = cells[0].source == "run"
        symbol = f"{mark(drawing.styles[model])} " if is_run else ""
        tip = f' title="{html.escape(model)}"' if is_run else ""
        name = breakable(drawing.called.get(model, model) if is_run else model)
        css = "" if is_run else ' class="printed"'
        values = "".join(_cell(cell, drawing) for cell in cells)
        lines.append(f'<tr{css}><th scope="row"{tip}>{symbol}{name}</th>{values}</tr>')
    return lines


def _cell(cell: CellRow, drawing: _Drawing) -> str:
    """A value with its note or its interval."""
    metric = drawing.metrics[cell.column]
    unit = drawing.units[cell.column]
    if math.isnan(cell.value):
        return "<td>-</td>"
    suffix = " %" if drawing.are_rates else ""
    value = numbers.number(cell.value, unit).removesuffix(suffix)
    if cell.source == "published" and unit == "cosine":
        value = f"{cell.value:.3f}"  # no more figures than were printed
    if cell.note:
        number = drawing.note_numbers[cell.note]
        return f'<td title="{html.escape(cell.note)}">{value}<sup>{number}</sup></td>'
    small = []
    if not math.isnan(cell.low):
        small.append(numbers.interval(cell.low, cell.high, unit).removesuffix(suffix))
        if cell.ties and not set(metric.kinds) <= movement_kinds():
            small.append(f"{cell.ties:,} tied")
    if cell.n_seeds:
        spread = numbers.number(cell.sd, unit).removesuffix(suffix)
        small.append(f"± {spread}, {cell.n_seeds} draws")
    lines = "<br>".join(small)
    return f"<td>{value}<br><small>{lines}</small></td>" if small else f"<td>{value}</td>"
