"""The *Export* menu of figures and tables, and the link to the current view with the page that works without it."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from functools import partial
from types import MappingProxyType
from typing import Any
from urllib.parse import urlsplit

import pandas as pd
import plotly.graph_objects as go
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from vlprobe import views
from vlprobe.dashboard import decks
from vlprobe.dashboard.access import is_local
from vlprobe.dashboard.state import (
    PageSubject,
    address,
    attempt,
    page_subject,
    quiet,
    ranked_models,
    renamed,
    view,
)
from vlprobe.dashboard.widgets import draw_toast
from vlprobe.render.attribution import bibliography, short_name, source_line, with_source
from vlprobe.render.html.elements import tag
from vlprobe.render.sentences import joined
from vlprobe.surfaces import paper
from vlprobe.surfaces.paper import can_render
from vlprobe.surfaces.report import report
from vlprobe.views.records import RunRow
from vlprobe.views.runs import QuestionSet

LINK = "This link opens this view for everyone who has access to this dashboard."
LOCAL_LINK = "This link works only on this computer. To share the results, send the report above."
IMAGES = {".svg": ("SVG", "image/svg+xml"), ".pdf": ("PDF", "application/pdf")}
IMAGES |= {".png": ("PNG", "image/png")}
TEXTS = {"csv": ("CSV", "csv", "text/csv"), "latex": ("LaTeX", "tex", "text/x-tex")}
TEXTS |= {"markdown": ("Markdown", "md", "text/markdown")}
NOT_RENDERED = (
    "To export figures, install Chrome or Chromium, and the kaleido package: pip install "
    "'vlprobe[figures]'."
)


def draw_menu(
    key: str,
    figure: go.Figure | Callable[[], go.Figure] | None = None,
    table: pd.DataFrame | Callable[[], pd.DataFrame] | None = None,
    caption: str = "",
    text: Callable[[str], str] | None = None,
    *,
    column: Callable[[], go.Figure] | None = None,
    column_caption: str = "",
    notes: Mapping[str, str] = MappingProxyType({}),
    papers: Sequence[str] = (),
    runs: Sequence[RunRow] = (),
    figure_runs: Sequence[RunRow] = (),
    slot: DeltaGenerator | None = None,
) -> None:
    """Draw the *Export* menu of a figure, of a table, or of both. Files are made after a click.

    Args:
        key: Key of the figure or table, unique across all pages. Names of files have it and the question set.
        figure: The figure, in the colors of the page, or a function that draws it after a click.
        table: The table, or a function that makes it after a click.
        caption: The facts for a figure's caption, to copy.
        text: A function that formats the table as "latex" or "markdown", if it differs from the CSV file's table.
        column: A function that draws the figure for a column of text, if it differs.
        column_caption: As `caption`, for this figure, with its source. It is shown if it differs.
        notes: Remarks below the figure as wide as the "text", the figure for a "column" and the "table".
        papers: Papers whose values are shown (`attribution.bibliography`).
        runs: The runs that are the source. The default is all runs of the question set in the URL.
        figure_runs: Those of them that the figure shows, if it leaves some out.
        slot: Where to draw the menu, such as beside *Share*. The default is here.
    """
    linked = st.query_params.get("set", "")
    if not runs and linked in (row.case_key for row in view(views.runs.question_set_rows)):
        runs = page_subject(linked).question_set.runs
    facts = joined(caption, source_line(figure_runs or runs, renamed()))
    of_sets = f"_{name}" if (name := short_name(runs, renamed())) else ""
    with (slot or st).popover(
        "Export", icon=":material/download:", type="tertiary", key=f"export_{key}"
    ):
        if figure is not None:
            if can_render():
                draw_part("Figure (light theme, 7 inches wide)")
                _draw_images(key, figure, "text", of_sets, notes)
                draw_part("Figure for one of two columns (3.5 inches wide)")
                _draw_images(f"{key}_column", column or figure, "column", of_sets, notes)
                if "set" in st.query_params:
                    _draw_deck_button(key, figure, caption)
            else:
                quiet(NOT_RENDERED)
        if table is not None:
            draw_part("Table")
            with st.container(horizontal=True):
                for how, (label, suffix, mime) in TEXTS.items():
                    contents = partial(_text, table, how, runs, caption, key)
                    if text and how != "csv":
                        contents = partial(text, how)
                    file = f"vlprobe_{key}{of_sets}.{suffix}"
                    file_button(label, contents, file, mime, f"{key}.{suffix}")
            if note := notes.get("table"):
                quiet(note)
        if figure is not None and facts:  # last, so that its length hides no button
            draw_part("Caption")
            st.code(facts, language=None, wrap_lines=True)
            if column_caption not in ("", facts):
                draw_part("Caption of the figure for one column")
                st.code(column_caption, language=None, wrap_lines=True)
            if entries := "\n".join(bibliography(runs, renamed(), papers)):
                draw_part("Sources (BibTeX)")
                st.code(entries, language=None)


def _draw_images(
    name: str,
    figure: go.Figure | Callable[[], go.Figure],
    width: paper.Width,
    of_sets: str,
    notes: Mapping[str, str],
) -> None:
    with st.container(horizontal=True):
        for suffix, (label, mime) in IMAGES.items():
            contents = partial(paper.exported, figure, suffix, width)
            file = f"vlprobe_{name}{of_sets}{suffix}"
            file_button(label, contents, file, mime, f"{name}{suffix}")
    if note := notes.get(width):
        quiet(note)


def _draw_deck_button(key: str, figure: go.Figure | Callable[[], go.Figure], caption: str) -> None:
    draw_toast()
    if st.button("Add to the slides", icon=":material/add_to_queue:", key=f"deck_{key}"):
        title = caption.partition(". ")[0].rstrip(".") + "." if caption else ""
        with st.spinner("Drawing the figure"):  # some seconds
            attempt(decks.add_figure, figure() if callable(figure) else figure, title)
        st.rerun()


def _text(
    table: pd.DataFrame | Callable[[], pd.DataFrame],
    how: str,
    runs: Sequence[RunRow],
    caption: str,
    label: str,
) -> str:
    table = table if isinstance(table, pd.DataFrame) else table()
    return with_source(table, how, runs, renamed(), caption=caption, label=label)


def draw_part(title: str) -> None:
    """Draw the title of one part of a popover."""
    st.html(tag("p", title, class_="vp-part"))


def draw_link(
    subject: PageSubject, row: tuple[str, str] = ("", ""), others: Sequence[QuestionSet] = ()
) -> None:
    """Draw the link to the current view, and the button for a page in one file that works everywhere.

    Args:
        row: Subtype and model of the selected row of Differences.
        others: The other question sets on the page, which the report has, too.
    """
    draw_part("Report")
    report_button(subject, row, others)
    if others:
        quiet(f"The report has all {1 + len(others)} question sets. Each takes about ten seconds.")
    if "without" in st.query_params or st.query_params.get("score") == "right":
        quiet("The report covers all types of edit, and counts the cases that fool a model.")
    draw_part("Link")
    quiet(LOCAL_LINK if is_local(address()) else LINK)
    with st.container(key="share_link"):
        st.code(address(), language=None, wrap_lines=True)


def draw_share(
    subject: PageSubject, shown: Collection[str] = (), others: Sequence[QuestionSet] = ()
) -> DeltaGenerator:
    """Draw the *Share* menu of a page without a choice of cases, and return the place of *Export* beside it.

    Args:
        shown: The models that the page shows. The report compares them with the selected model, best first.
        others: The other question sets on the page, which the report has, too.
    """
    share_slot, export_slot = share_slots()
    if shown:
        ranked = ranked_models(subject)
        rivals = [model for model in ranked if model in shown and model != subject.model]
        subject = replace(subject, rivals=tuple(rivals[: views.paired_tests.MOST_COMPARED - 1]))
    with share_slot.popover("Share", icon=":material/ios_share:", key="share", type="tertiary"):
        draw_link(subject, others=others)
    return export_slot


def share_slots() -> tuple[DeltaGenerator, DeltaGenerator]:
    """Return the places of *Share* and, beside it, of *Export*, for menus that are drawn later."""
    with st.container(horizontal=True, width="content", gap="xsmall", key="share_row"):
        share_slot = st.container(key="share_slot", width="content")
        return share_slot, st.container(key="export_slot", width="content")


def file_button(
    label: str,
    contents: str | Callable[[], str | bytes],
    name: str,
    mime: str,
    key: str | None = None,
    icon: str = "download",
    **settings: Any,
) -> bool:
    """Draw a button that downloads a file, and return whether it was clicked, if the page is drawn again then. If
    `contents` is a function, it is called only after a click.
    """
    settings = {"on_click": "ignore"} | settings
    return st.download_button(
        label, contents, name, mime, key, icon=f":material/{icon}:", **settings
    )


def report_button(
    subject: PageSubject, row: tuple[str, str] = ("", ""), others: Sequence[QuestionSet] = ()
) -> None:
    """Draw a button that downloads a report on the question sets as a single HTML file, which opens on this page, with
    its models and its row of Differences.
    """
    question_sets = subject.question_set, *others
    runs = [run for each in question_sets for run in each.runs]
    make = partial(
        report.report,
        *question_sets,
        start=urlsplit(address()).path.rpartition("/")[2],
        kind=subject.kind,
        compared=subject.compared if subject.model else (),
        row=row,
    )
    file_button(
        "Download as a report",
        make,
        f"vlprobe_report_{short_name(runs, renamed())}.html",
        "text/html",
        icon="description",
        help="A single web page with Home, Explore, Compare and the other pages for these "
        "results, including all numbers, notes and commands. It works offline and sends no "
        "data.",
    )
