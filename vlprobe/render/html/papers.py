"""A paper's table as HTML: one's own runs above the printed rows, which are set apart and keep their notes."""

import html
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby

import pandas as pd

from vlprobe.render import numbers
from vlprobe.render.charts.styles import Looks
from vlprobe.render.html.elements import breakable, mark, table, tag
from vlprobe.render.words import movement_kinds
from vlprobe.types import Metric
from vlprobe.views.paper_tables import PaperTable
from vlprobe.views.published import SOURCES


@dataclass(frozen=True)
class Remade:
    """A paper's table, made again: the table, what to know of it, and the notes on single cells, as HTML."""

    table: str
    remark: str
    notes: str
    n_notes: int


def remade(
    cells: pd.DataFrame, shown: PaperTable, probe: str, metrics: Mapping[str, Metric], looks: Looks
) -> Remade:
    """What `views_paper.remade` returns, as HTML."""
    source = SOURCES[probe]
    notes = {
        note: place
        for place, note in enumerate(dict.fromkeys(cells["note"][cells["note"] != ""]), 1)
    }
    width = len(shown.columns) + 1
    bare = all(metrics[column.metric].unit == "rate" for column in shown.columns)
    rows = [_band("Your runs", width)]
    rows += _rows(cells[cells["source"] == "run"], shown, metrics, looks, notes, bare)
    first, *more = source.authors.split(", ")
    rows.append(
        _band(
            f"Published: {first}{' and others' if more else ''} {source.year}, table {shown.number}",
            width,
        )
    )
    rows += _rows(cells[cells["source"] == "published"], shown, metrics, looks, notes, bare)
    rates = " In per cent." if bare else ""
    return Remade(
        table(f"Table {shown.number} of the paper, made again", _head(shown), rows, "vp-paper"),
        f"{shown.about} Numbers of your own stand beside them for orientation: they compare only where pictures, "
        f"captions and edits are the same.{rates} A dash: not asked. Below a value of yours its 95 % interval.",
        f'<ol class="vp-notes">{"".join(tag("li", note) for note in notes)}</ol>' if notes else "",
        len(notes),
    )


def _head(shown: PaperTable) -> str:
    """One or two rows of headings; those that neighbours share are written once."""
    groups = [
        (name, len(list(own))) for name, own in groupby(column.group for column in shown.columns)
    ]
    titles = "".join(tag("th", column.title, scope="col") for column in shown.columns)
    if not any(name for name, _ in groups):
        return f"{tag('th', 'Model', scope='col')}{titles}"
    shared = "".join(tag("th", name, scope="colgroup", colspan=str(size)) for name, size in groups)
    return f'<th scope="col" rowspan="2">Model</th>{shared}</tr><tr>{titles}'


def _band(text: str, width: int) -> str:
    return f'<tr class="band">{tag("th", text, colspan=str(width), scope="colgroup")}</tr>'


def _rows(
    cells: pd.DataFrame,
    shown: PaperTable,
    metrics: Mapping[str, Metric],
    looks: Looks,
    notes: Mapping[str, int],
    bare: bool,
) -> Sequence[str]:
    rows = []
    for model, own in cells.groupby("model", sort=False):
        look = f"{mark(looks[model])} " if own["source"].iloc[0] == "run" else ""
        line = "".join(
            _cell(cell, metrics[shown.columns[cell.column].metric], notes, bare)
            for cell in own.itertuples()
        )
        css = ' class="printed"' if own["source"].iloc[0] == "published" else ""
        rows.append(f'<tr{css}><th scope="row">{look}{breakable(model)}</th>{line}</tr>')
    return rows


def _cell(cell: object, metric: Metric, notes: Mapping[str, int], bare: bool) -> str:
    """Where all numbers are per cents they stand without their sign: there are too many of them."""
    unit = numbers.unit_of(metric, "cosine")
    if math.isnan(cell.value):
        return "<td>-</td>"
    end = " %" if bare else ""
    value = numbers.number(cell.value, unit).removesuffix(end)
    if cell.source == "published" and unit == "cosine":
        value = f"{cell.value:.3f}"  # no more figures than were printed
    if cell.note:
        text = html.escape(cell.note)
        return f'<td title="{text}">{value}<sup>{notes[cell.note]}</sup></td>'
    if math.isnan(cell.low):
        return f"<td>{value}</td>"
    tied = (
        f"<br>{cell.ties:,} tied" if cell.ties and not set(metric.kinds) <= movement_kinds() else ""
    )
    return f"<td>{value}<br><small>{numbers.interval(cell.low, cell.high, unit).removesuffix(end)}{tied}</small></td>"
