"""Explore, top to bottom: the sentence, the active filters, the rail of facets next to the wall, the drawer.

The wall is drawn before the rail, whose counts take longer, and before *Share*.
"""

from pathlib import Path

import streamlit as st

from vlprobe.dashboard import cases, frame, mixed, tables
from vlprobe.dashboard.cases import choices, drawer, sentence, share
from vlprobe.dashboard.explore import filters, rail, wall
from vlprobe.dashboard.state import PageSubject, n_passing

STYLE = Path(__file__).with_name("style.css")


def draw_page() -> None:
    """The whole page."""
    for sheet in (cases.STYLE, STYLE):
        st.html(sheet)
    about = sentence.subject()
    if mixed.is_shown(about, about.kind):
        _draw_mixed(about)
        return
    with st.container(horizontal=True, vertical_alignment="center", gap="small", key="sentence"):
        sentence.draw_sentence(about)
        st.space("stretch")
        order = st.container(key="order", width="content")
        case_filter = filters.draw_filters(about)
        with order:
            choices.draw_order(about, case_filter)
        share_slot = st.container(key="explore_share", width="content")
    frame.say_strangers(about)
    rail.draw_chips(case_filter)
    with st.container(horizontal=True, gap="medium", key="explore_body"):
        rail_slot = st.container(key=rail.container_key(), width=rail.WIDTH, gap="xsmall")
        with st.container(key="explore_wall", width="stretch"):
            wall.draw_wall(about, case_filter)
    with rail_slot:
        rail.draw_rail(about, case_filter)
    with share_slot:
        n_cases = n_passing(about, case_filter)
        share.draw_share(about, case_filter, n_cases)
    if "case" in st.query_params:
        size = wall.page_size(about, case_filter.kind)
        drawer.draw_case(about, case_filter, size, wall.is_grouped())
    _draw_notes(about)


def _draw_notes(about: PageSubject) -> None:
    """Draw the notes on the models and the questions."""
    if any(run.note or run.older for run in about.question_set.runs):
        with st.expander("Notes on these models", key="model_notes"):
            frame.notes(about)
    tables.about(about.question_set)


def _draw_mixed(about: PageSubject) -> None:
    """Draw searches among mixed pictures, one per view."""
    current = mixed.current(about)
    with st.container(horizontal=True, vertical_alignment="center", gap="small", key="sentence"):
        sentence.draw_sentence(about)
        st.space("stretch")
        mixed.draw_steps(current)
    frame.say_strangers(about)
    mixed.draw_view(current)
    _draw_notes(about)
