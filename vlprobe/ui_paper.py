"""A paper's table with one's own runs above the printed rows, which are set apart and keep their notes."""

import html
import math
from collections.abc import Mapping, Sequence
from itertools import groupby

import pandas as pd
import streamlit as st

from vlprobe import charts
from vlprobe.published import SOURCES
from vlprobe.ui_state import Questions, choose, quiet, tag, view
from vlprobe.ui_tables import breakable, mark, show
from vlprobe.ui_words import MOVED
from vlprobe.views_paper import PaperTable, paper_tables


def paper(asked: Questions) -> PaperTable:
    """A picker of the paper's tables, and the one that is picked."""
    tables = {str(table.number): table for table in paper_tables(asked.probe)}
    number = next(iter(tables))
    if len(tables) > 1:
        names = {name: f"Table {name}: {table.title}" for name, table in tables.items()}
        number = choose("Table of the paper", "table", names, number)
    table = tables[number]
    source = SOURCES[asked.probe]
    cells = view("remade", asked.key, table.number)
    notes = {note: place for place, note in enumerate(dict.fromkeys(cells["note"][cells["note"] != ""]), 1)}
    head = _head(table)
    width = len(table.columns) + 1
    rows = [_band("Your runs", width), *_rows(cells[cells["source"] == "run"], table, asked, notes)]
    first, *more = source.authors.split(", ")
    told = f"Published: {first}{' and others' if more else ''} {source.year}, table {table.number}"
    rows += [_band(told, width), *_rows(cells[cells["source"] == "published"], table, asked, notes)]
    show(f"Table {table.number} of the paper, made again", head, rows, "vp-paper")
    rates = " In per cent." if _bare(asked, table) else ""
    quiet(
        f"{table.about} Numbers of your own stand beside them for orientation: they compare only where pictures, "
        f"captions and edits are the same.{rates} A dash: not asked. Below a value of yours its 95 % interval."
    )
    if notes:
        with st.expander(f"Notes on the printed numbers ({len(notes)})"):
            found = "".join(f"<li>{html.escape(note)}</li>" for note in notes)
            st.html(f'<ol class="vp-notes">{found}</ol>')
    return table


def _head(table: PaperTable) -> str:
    """One or two rows of headings; those that neighbours share are written once."""
    groups = [(name, len(list(own))) for name, own in groupby(column.group for column in table.columns)]
    titles = "".join(tag("th", column.title, scope="col") for column in table.columns)
    if not any(name for name, _ in groups):
        return f"{tag('th', 'Model', scope='col')}{titles}"
    shared = "".join(tag("th", name, scope="colgroup", colspan=str(size)) for name, size in groups)
    return f'<th scope="col" rowspan="2">Model</th>{shared}</tr><tr>{titles}'


def _band(text: str, width: int) -> str:
    return f'<tr class="band">{tag("th", text, colspan=str(width), scope="colgroup")}</tr>'


def _rows(cells: pd.DataFrame, table: PaperTable, asked: Questions, notes: Mapping[str, int]) -> Sequence[str]:
    rows = []
    for model, own in cells.groupby("model", sort=False):
        looks = f"{mark(asked.looks[model])} " if own["source"].iloc[0] == "run" else ""
        line = "".join(_cell(cell, asked, table, notes) for cell in own.itertuples())
        css = ' class="printed"' if own["source"].iloc[0] == "published" else ""
        rows.append(f'<tr{css}><th scope="row">{looks}{breakable(model)}</th>{line}</tr>')
    return rows


def _cell(cell: object, asked: Questions, table: PaperTable, notes: Mapping[str, int]) -> str:
    metric = asked.metrics[table.columns[cell.column].metric]
    unit = charts.unit_of(metric, "cosine")
    if math.isnan(cell.value):
        return "<td>-</td>"
    end = " %" if _bare(asked, table) else ""
    value = charts.number(cell.value, unit).removesuffix(end)
    if cell.source == "published" and unit == "cosine":
        value = f"{cell.value:.3f}"  # no more figures than were printed
    if cell.note:
        text = html.escape(cell.note)
        return f'<td title="{text}">{value}<sup>{notes[cell.note]}</sup></td>'
    if math.isnan(cell.low):
        return f"<td>{value}</td>"
    tied = f"<br>{cell.ties:,} tied" if cell.ties and not set(metric.kinds) <= set(MOVED) else ""
    return f"<td>{value}<br><small>{charts.interval(cell.low, cell.high, unit).removesuffix(end)}{tied}</small></td>"


def _bare(asked: Questions, table: PaperTable) -> bool:
    """Whether all numbers are per cents, which then stand without their sign: there are too many of them."""
    return all(asked.metrics[column.metric].unit == "rate" for column in table.columns)
