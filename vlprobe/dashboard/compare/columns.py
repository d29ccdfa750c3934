"""Two columns of pictures, facing each other: cases that fool only one of two models,
every model on every card.
"""

import functools
from dataclasses import dataclass

import htpy
import streamlit as st

from vlprobe import views
from vlprobe.case import json
from vlprobe.case.card import case_card, wrong_captions
from vlprobe.dashboard import case_links
from vlprobe.dashboard.compare.forest import Parting, draw_row_picker
from vlprobe.dashboard.components import component
from vlprobe.dashboard.navigation import page_file
from vlprobe.dashboard.state import PageSubject, n_passing, quiet, store, view
from vlprobe.render.forest import rest
from vlprobe.render.html.elements import embed, mark, tag
from vlprobe.render.wall import side_filter
from vlprobe.render.words import movement_kinds
from vlprobe.scoring import thumbnails
from vlprobe.views.bodies import body_of
from vlprobe.views.filter import Filter
from vlprobe.views.paired_tests import PairedTests
from vlprobe.views.wall import WallCard

SHOWN = 6  # cards in a column


@dataclass(frozen=True)
class Side:
    """One of the two columns."""

    name: str  # of its parts on the page
    case_filter: Filter  # its model is the fooled one
    n_cases: int


def draw_columns(contest: PageSubject, comparison: PairedTests, parting: Parting) -> Filter:
    """Heading, both columns, and what both do; returns the filter of the left one."""
    kind = contest.kind_presentation
    row = comparison.row(parting.rival, parting.subtype)
    sides = _sides(contest, comparison, parting)
    with st.container(horizontal=True, vertical_alignment="center", key="parting"):
        st.html(tag("h2", "Where they disagree"), width="content")
        draw_row_picker(contest, comparison, parting)
        st.space("stretch")
        _draw_legend(contest)
    with st.container(key="facing"):
        for slot, side in zip(st.columns(2, gap="large"), sides, strict=True):
            with slot:
                _draw_side(contest, side)
    quiet(rest(row, comparison, wrong_captions(kind)))
    return sides[0].case_filter


def _sides(contest: PageSubject, comparison: PairedTests, parting: Parting) -> tuple[Side, Side]:
    """Return the left column, of cases that fool only the baseline, and the right one."""
    row = comparison.row(parting.rival, parting.subtype)
    base, rival = contest.model, parting.rival
    side_filters = [
        side_filter(contest.kind, *pair, parting.subtype) for pair in ((base, rival), (rival, base))
    ]
    sizes = row.only_base, row.only_model
    if comparison.is_movement:
        sizes = tuple(n_passing(contest, side) for side in side_filters)
    return Side("left", side_filters[0], sizes[0]), Side("right", side_filters[1], sizes[1])


def filter_of_case(contest: PageSubject, parting: Parting) -> Filter:
    """The column of the URL's case; all cases of its kind if it is in none."""
    number = view(views.rows.case_number, contest.question_set, st.query_params["case"])
    pairs = ((contest.model, parting.rival), (parting.rival, contest.model))
    for pair in pairs:
        case_filter = side_filter(contest.kind, *pair, parting.subtype)
        if (
            number is not None
            and view(views.wall.neighbors, contest.question_set, case_filter, number).place
        ):
            return case_filter
    return Filter(contest.model, contest.kind, outcome="all", other=parting.rival)


def _draw_legend(contest: PageSubject) -> None:
    entries = [
        htpy.span[embed(mark(contest.looks[model])), htpy.bdi[name]]
        for model, name in contest.names.items()
    ]
    st.html(str(htpy.p(".vp-legend")[entries]), width="content")


def _draw_side(contest: PageSubject, side: Side) -> None:
    """The count in words with the way to all of them, and the first cards."""
    names = contest.names
    is_movement = side.case_filter.kind in movement_kinds()
    model, rival = names[side.case_filter.model], names[side.case_filter.other]
    sentence: list[htpy.Node] = [" fooled ", htpy.b[model], f", not {rival}"]
    if is_movement:
        sentence = [" move ", htpy.b[model], f" more than {rival}"]
    with st.container(horizontal=True, vertical_alignment="center", key=f"{side.name}_head"):
        st.html(
            str(htpy.p(".vp-side")[htpy.b(".vp-big")[f"{side.n_cases:,}"], htpy.span[sentence]])
        )
        if side.n_cases:
            st.page_link(
                page_file("explore"),
                label="See all",
                help=f"All {side.n_cases:,} in Explore",
                query_params=case_links.query(contest, side.case_filter),
            )
    if not side.n_cases:
        st.html(tag("p", "None.", class_="vp-quiet"))
        return
    cards, _, _ = view(views.wall.wall, contest.question_set, side.case_filter, 1, SHOWN, True)
    key = f"{side.name}_cards"
    values = card_values(contest, side.case_filter, cards, f"Only {model}, not {rival}")
    component("wall")(key=key, data=values, on_open_change=functools.partial(open_case, key))


def card_values(
    contest: PageSubject,
    case_filter: Filter,
    cards: tuple[WallCard, ...],
    label: str,
    *,
    badge: bool = True,
) -> dict[str, object]:
    """Return the data that the component `wall` draws: cards with one small box per model."""
    kind = contest.presentation.kind(case_filter.kind)
    answers = {}
    if body_of(kind).uses_answer:
        numbers = tuple(card.case for card in cards)
        answers = view(views.rows.answer_rows, contest.question_set, numbers, contest.compared)
    described = [case_card(card, kind, answers.get(card.case)) for card in cards]
    names = [name for card in described for name in json.facing_pictures(card)]
    sources = thumbnails.addresses(store().root, names)
    drawn = [
        json.facing_card(
            card, contest.compared, contest.names, contest.looks, sources.__getitem__, badge=badge
        )
        for card in described
    ]
    return {"label": label, "bare": True, "facing": True, "strip": False, "cards": drawn}


def open_case(key: str) -> None:
    """The card that was pressed goes into the URL."""
    if case_id := st.session_state[key].get("open"):
        st.query_params["case"] = str(case_id)
