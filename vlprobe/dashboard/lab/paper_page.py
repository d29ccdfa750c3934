"""The shared parts of the four pages of single papers: their own figure after the examples, the
paper's table folded below.
"""

from collections.abc import Iterator
from contextlib import contextmanager

import streamlit as st

from vlprobe import views
from vlprobe.dashboard import case_links, export, frame, papers, tables
from vlprobe.dashboard.lab import opening
from vlprobe.dashboard.lab.opening import Opening
from vlprobe.dashboard.state import PageSubject, view
from vlprobe.render.words import slice_order, wrong

OPENS = "A press on a mark opens its cases."


def begin(probe: str) -> Opening:
    """The row of pickers, the finding and its pictures, and one link per kind of edit."""
    begun = opening.draw(probe)
    draw_rows(begun)
    return begun


def draw_rows(begun: Opening) -> None:
    """A link to the cases of each kind of edit, those that fool the model most often first."""
    choices = view(views.estimates.choices, begun.questions.question_set)
    subtypes = choices.loc[choices["kind"] == begun.kind, "subtype"].unique()
    filters = {
        name: case_links.slice_filter(begun.questions, begun.model, (begun.kind,), "subtype", name)
        for name in sorted(subtypes, key=slice_order)
        if name
    }
    if len(filters) > 1:
        case_links.draw_links(
            begun.questions,
            {capital(wrong(name)): row_filter for name, row_filter in filters.items()},
        )


def capital(text: str) -> str:
    """The text with a capital at its beginning."""
    return text[:1].upper() + text[1:]


@contextmanager
def how_it_is_measured() -> Iterator[None]:
    """The fold for what the numbers are, their unit and how to read them."""
    with st.expander("How it is measured", icon=":material/straighten:", key="how_measured"):
        yield


def end(stored: PageSubject, name: str) -> None:
    """The paper's table, folded, what to know of the models, and the questions."""
    with st.expander(
        "As the paper's tables have it", icon=":material/table_chart:", key="paper_table"
    ):
        table = papers.paper(stored)
        export.download(view(views.papers.remade, stored.question_set, table.number), name)
    frame.notes(stored)
    tables.about(stored.question_set)
