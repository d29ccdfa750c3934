"""The wall: a sentence with the count, one card per picture, pages of them."""

import functools
from dataclasses import replace

import streamlit as st

from vlprobe import views
from vlprobe.case import json
from vlprobe.case.card import card_type, case_card
from vlprobe.dashboard.components import component
from vlprobe.dashboard.explore import filters
from vlprobe.dashboard.navigation import PAGE_SIZE
from vlprobe.dashboard.photographs import draw_download
from vlprobe.dashboard.state import (
    PageSubject,
    counts,
    dataset_name,
    mark_picked,
    model_name,
    n_passing,
    page_number,
    paginate,
    renamed,
    store,
    view,
)
from vlprobe.render import wall as render_wall
from vlprobe.render.html.elements import tag
from vlprobe.render.words import movement_kinds
from vlprobe.scoring.thumbnails import addresses
from vlprobe.storage import annotations
from vlprobe.views.filter import Filter
from vlprobe.views.wall import WallCard

PAIRS_PAGE_SIZE = 30  # cards with two pictures


def is_grouped() -> bool:
    """Return whether the wall has one card per picture; otherwise one per case."""
    return st.query_params.get("cards", "") != "every"


def page_size(stored: PageSubject, kind: str) -> int:
    """Cards on a page: the data sent at once is up to a megabyte."""
    presented = stored.presentation.kind(kind)
    return PAGE_SIZE if card_type(presented).counts_pictures else PAIRS_PAGE_SIZE


def draw_wall(stored: PageSubject, case_filter: Filter) -> None:
    """The heading, one page of cards, and the page numbers; or what to do where no case passes."""
    kind = stored.presentation.kind(case_filter.kind)
    size = page_size(stored, case_filter.kind)
    n_cases = n_passing(stored, case_filter)
    page = page_number(n_cases, size)
    cards, n_pictures, _ = view(
        views.wall.wall, stored.question_set, case_filter, page, size, is_grouped()
    )
    n_cards = n_pictures if is_grouped() else n_cases
    if n_cards and not cards:  # a link to a page beyond the last
        page = page_number(n_cards, size)
        cards, n_pictures, _ = view(
            views.wall.wall, stored.question_set, case_filter, page, size, is_grouped()
        )
    if not cards:
        _draw_nothing(stored, case_filter)
        return
    has_pictures = any(card.images for card in cards)
    is_scored = stored.question_set.run(case_filter.model).is_scored
    heading = render_wall.heading(
        kind, case_filter.outcome, n_cases, n_pictures, has_pictures, is_scored
    )
    _draw_cards(stored, case_filter, cards, heading)
    if n_cards > size:
        paginate(n_cards, size)


def _note(stored: PageSubject, case_filter: Filter) -> str:
    """Describe the rate, the layout of the cards, and the filters."""
    layout = "every case" if not is_grouped() else "grouped by picture"
    rate = _rate(stored, case_filter)
    active = [active.label for active in filters.active_filters(case_filter)]
    return " · ".join(filter(None, [rate, layout, *active]))


def _rate(stored: PageSubject, case_filter: Filter) -> str:
    """Count the wrong captions of the question set that fool the model; empty if no model can be fooled."""
    counted = dict(counts(stored, case_filter))
    # Filters that name an outcome: other cases count as asked
    asked = replace(case_filter, lost_to=False, fooled=(), held=(), agreement="")
    counted["all"] = counts(stored, asked)["all"]
    if case_filter.kind in movement_kinds() or case_filter.other or not counted["all"]:
        return ""
    n_orders = stored.question_set.run(case_filter.model).n_orders
    rate = render_wall.rate_text(counted, n_orders)
    return rate if case_filter.outcome == "fooled" else f"fooled by {rate}"


def _draw_cards(
    stored: PageSubject, case_filter: Filter, cards: tuple[WallCard, ...], label: str
) -> None:
    kind = stored.presentation.kind(case_filter.kind)
    written = {
        annotation.case: annotation for annotation in annotations.read(store(), stored.key).current
    }
    described = [case_card(card, kind) for card in cards]
    names = [shot.name for card in described for shot in card.front]
    sources = addresses(store().root, names)
    make = functools.partial(
        json.wall_card,
        source=sources.__getitem__,
        renamed=renamed(),
        badge=is_grouped(),
    )
    pictures_note = ""
    if not all(sources.values()):
        pictures_note = _pictures_here(stored, case_filter)
        with st.container(horizontal=True, vertical_alignment="center", key="pictures_offer"):
            _offer_pictures(stored, case_filter)
            draw_download(stored, "wall_download")
    values = {
        "label": label,
        "heading": label,
        "place": dataset_name(stored.question_set.runs[0].dataset),  # no picker says so on a phone
        "note": " · ".join(filter(None, [_note(stored, case_filter), pictures_note])),
        "strip": False,
        "legend": json.legend(described),
        "cards": [
            make(card, tags=written[card.case.case].tags if card.case.case in written else ())
            for card in described
        ],
    }
    component("wall")(key="wall", data=values, on_open_change=_open)


def _pictures_here(stored: PageSubject, case_filter: Filter) -> str:
    """Count how many of the questions have a picture that can be shown, where some have not."""
    n_pictured, n_cases = view(views.rows.with_pictures, stored.question_set, case_filter.kind)
    if n_pictured == n_cases:
        return ""
    return f"{n_pictured:,} of {n_cases:,} {'has' if n_pictured == 1 else 'have'} a picture here"


def _offer_pictures(stored: PageSubject, case_filter: Filter) -> None:
    """A press to the cases that have their picture here, where only some of the shown have."""
    if case_filter.pictured:
        return
    n_pictured = n_passing(stored, replace(case_filter, pictured=True))
    if n_pictured:
        label = f"Show the {n_pictured:,} with a picture here"
        st.button(label, key="only_pictured", icon=":material/image:", on_click=_only_pictured)


def _only_pictured() -> None:
    mark_picked()
    for name in ("page", "case"):
        st.query_params.pop(name, None)
    st.query_params["pictured"] = "here"


def _open() -> None:
    """The card that was pressed goes into the URL."""
    case_id = st.session_state["wall"].get("open")
    if case_id:
        st.query_params["case"] = str(case_id)


def _draw_nothing(stored: PageSubject, case_filter: Filter) -> None:
    """No case passes: the sentence, and the nearest filter to drop with how many cases it hides."""
    kind = stored.presentation.kind(case_filter.kind)
    st.html(tag("h1", _nothing(case_filter, kind.is_movement), class_="vp-nothing"))
    for active, n_cases in filters.nearest_to_drop(stored, case_filter):
        st.button(
            f"Drop “{active.label}”: {n_cases:,} {'case' if n_cases == 1 else 'cases'}",
            key="drop_nearest",
            icon=":material/filter_list_off:",
            on_click=filters.drop,
            args=(active.parameter, active.value),
        )
        return
    everything = Filter(case_filter.model, case_filter.kind, outcome="all")
    n_all = n_passing(stored, everything)
    n_fooled = n_passing(stored, Filter(case_filter.model, case_filter.kind))
    if n_fooled and filters.active_filters(case_filter):
        label = f"Clear all filters: {n_fooled:,} cases"
        st.button(label, key="drop_all", on_click=filters.clear_filters)
    elif n_all:
        st.button(f"Show all {n_all:,} cases", key="show_all", on_click=_show_all)


def _nothing(case_filter: Filter, is_movement: bool) -> str:
    if case_filter.outcome == "held" and not case_filter.other:
        return "No wrong caption is rejected here."
    if is_movement or case_filter.outcome == "all":
        return "No case matches these filters."
    if case_filter.outcome == "tied":
        return f"{model_name(case_filter.model)} gives no two captions equal scores here."
    return "No wrong caption fools the model here."


def _show_all() -> None:
    filters.clear_filters()
    mark_picked()
    st.query_params["outcome"] = "all"
