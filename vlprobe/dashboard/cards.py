"""Cases that pass a filter, a page of cards at a time."""

import pandas as pd
import streamlit as st

from vlprobe import views
from vlprobe.dashboard.card import card, case_pictures, chips, shown
from vlprobe.dashboard.case import details
from vlprobe.dashboard.export import link, selection
from vlprobe.dashboard.filters import sorting
from vlprobe.dashboard.state import Questions, counts, quiet, store, turn, view
from vlprobe.render.html import cards as html_cards
from vlprobe.render.words import presentations
from vlprobe.storage import annotations
from vlprobe.views.filter import Filter

SIZE = 12  # cards on a page
WIDE = 340  # of cards with several pictures; pixels


def cards(asked: Questions, chosen: Filter) -> None:
    """One page of cards, how many there are in all, the order, ways to take them along, and the details of one."""
    bar = st.columns([2, 3], vertical_alignment="bottom")
    total = counts(asked, chosen)[chosen.outcome]
    with bar[0]:
        page = turn(total, SIZE)
    with bar[1], st.container(horizontal=True, vertical_alignment="bottom"):
        sorting(chosen)
        link()
        selection(asked, chosen, total)
    table, _ = view(views.cases.failures, asked.question_set, chosen, page, SIZE)
    if table.empty:
        st.info(
            "No case passes these filters. Widen them, or choose another outcome.",
            icon=":material/search_off:",
        )
    else:
        _grid(asked, chosen, table)
    if "case" in st.query_params:
        details(asked, chosen, SIZE)


def _grid(asked: Questions, chosen: Filter, table: pd.DataFrame) -> None:
    said = html_cards.by_case(
        view(
            views.cases.answers,
            asked.question_set,
            tuple(table["case"].tolist()),
            shown(asked, chosen),
        )
    )
    kind = presentations()[asked.probe].kind(chosen.kind)
    ours = {one.case: one for one in annotations.read(store(), asked.key).current}
    if kind.legend:
        quiet(kind.legend)
    grid = st.grid(
        min_column_width=WIDE if kind.wide else 245,
        border=True,
        gap="small",
        key="cards",
    )
    for row in table.itertuples():
        with grid.cell():
            own = said[row.case]
            case_pictures(row, kind, own[chosen.model], 480)
            st.html(card(row, own, asked, chosen) + chips(ours.get(row.case)))
            st.button(
                "Details", key=f"open_{row.case}", on_click=_open, args=(row.id,), width="stretch"
            )


def _open(case_id: str) -> None:
    st.query_params["case"] = case_id
