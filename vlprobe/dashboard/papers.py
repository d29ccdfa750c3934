"""A paper's table with the user's runs, and the picker of it."""

import streamlit as st

from vlprobe import views
from vlprobe.dashboard.state import PageSubject, choose, model_name, quiet, view
from vlprobe.render.html import papers
from vlprobe.views.paper_tables import PaperTable, paper_tables


def paper(stored: PageSubject) -> PaperTable:
    """A picker of the paper's tables, and the one that is picked."""
    tables = {str(table.number): table for table in paper_tables(stored.probe)}
    number = next(iter(tables))
    if len(tables) > 1:
        names = {name: f"Table {name}: {table.title}" for name, table in tables.items()}
        number = choose("Table of the paper", "table", names, number)
    table = tables[number]
    remade = papers.remade(
        view(views.papers.remade, stored.question_set, table.number),
        table,
        stored.probe,
        stored.metrics,
        stored.looks,
        {model: model_name(model) for model in stored.models},
    )
    st.html(remade.table)
    quiet(remade.remark)
    if remade.notes:
        with st.expander(f"Notes on the printed numbers ({remade.n_notes})"):
            st.html(remade.notes)
    return table
