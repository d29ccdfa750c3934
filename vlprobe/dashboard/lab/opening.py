"""The opening of a Lab page: one row that names the models, then the finding, with pictures of it."""

from collections.abc import Sequence
from dataclasses import dataclass

import streamlit as st

from vlprobe import views
from vlprobe.case import json
from vlprobe.case.card import card_type, case_card
from vlprobe.dashboard import case_links, frame
from vlprobe.dashboard.cases.sentence import stored_kinds
from vlprobe.dashboard.components import component
from vlprobe.dashboard.navigation import page_file
from vlprobe.dashboard.state import (
    PageSubject,
    choose,
    counts,
    model_name,
    pick_question_set,
    plain,
    renamed,
    store,
    view,
)
from vlprobe.render.words import movement_kinds, presentations
from vlprobe.scoring.thumbnails import addresses
from vlprobe.types.presentation import KindPresentation
from vlprobe.views.filter import Filter
from vlprobe.views.wall import WallCard

N_EXAMPLES = 7  # cards: one row at 1280 pixels
N_BESIDE = 6  # of two pictures side by side: two whole rows


@dataclass(frozen=True)
class Opening:
    """The subject of a page."""

    questions: PageSubject
    model: str
    kind: str  # of the examples

    @property
    def believed(self) -> Filter:
        """Return the wrong captions that fool the model, or all cases if no model can be fooled."""
        outcome = "all" if self.kind in movement_kinds() else "fooled"
        return Filter(self.model, self.kind, outcome=outcome)


def pick(probe: str = "") -> PageSubject:
    """The picker of question sets, of one probe or of all; where a probe was
    never asked, how to ask it.
    """
    stored = view(views.runs.question_sets)
    if probe:
        if probe not in set(stored["probe"]):
            st.title(presentations()[probe].name, anchor=False)
        return frame.begin(probe, says_sentence=False)
    if stored.empty:
        st.title("Where does a number come from?", anchor=False)
    return pick_question_set()


def pick_model(stored: PageSubject) -> str:
    """The picker of the model whose cases are shown."""
    names = {name: model_name(name) for name in stored.models}
    return choose("Model", "model", names, case_links.first_model(stored.models), always=True)


def draw(probe: str) -> Opening:
    """The row of pickers, the finding, pictures of it, and the question, on a probe's own page."""
    with st.container(horizontal=True, key="lab_subject"):
        stored = pick(probe)
        model = pick_model(stored)
        kinds = stored_kinds(stored)
        lies = {name: stored.presentation.kind(name).lie or name for name in kinds}
        kind = view(views.runs.default_kind, stored.question_set, (model,))
        if len(kinds) > 1:
            kind = choose("Fooled by", "kind", lies, kind, always=True)
    opening = Opening(stored, model, kind)
    st.title(plain(finding(opening)), anchor=False)
    frame.sentence(stored, kind)
    frame.say_strangers(stored)
    draw_examples(opening.questions, opening.believed)
    return opening


def finding(opening: Opening) -> str:
    """The fooled models and their rates, as a heading."""
    kind = opening.questions.presentation.kind(opening.kind)
    subject = f"{model_name(opening.model)} {kind.verb} {kind.lie}"
    if kind.is_movement:
        return subject
    counted = counts(opening.questions, opening.believed)
    return f"{subject}: {counted['fooled']:,} of {counted['all']:,}"


def draw_examples(stored: PageSubject, case_filter: Filter, key: str = "examples") -> None:
    """Cards of the first cases under a filter, one a picture; a press opens the case in Explore."""
    kind = stored.presentation.kind(case_filter.kind)
    n_cards = N_BESIDE if card_type(kind).is_neutral else N_EXAMPLES
    cards, n_pictures, _ = view(views.wall.wall, stored.question_set, case_filter, 1, n_cards, True)
    if not cards:
        return
    label = f"{len(cards)} of {n_pictures:,} examples"
    draw_cards(cards, kind, label, case_links.query(stored, case_filter), key)


def draw_cards(
    cards: Sequence[WallCard],
    kind: KindPresentation,
    label: str,
    query: case_links.Query,
    key: str,
) -> None:
    """A row of cards; a press opens the case in Explore.

    Args:
        cards: Cards of one kind.
        kind: How it is presented.
        label: Description of the row, for screen readers.
        query: What Explore's address says beside the case.
        key: Key of the component.
    """
    described = [case_card(card, kind) for card in cards]
    sources = addresses(store().root, [shot.name for card in described for shot in card.front])
    drawn = [json.wall_card(card, sources.__getitem__, renamed=renamed()) for card in described]
    values = {"label": label, "strip": False, "bare": True, "cards": drawn}
    component("wall")(key=key, data=values, on_open_change=_nothing)
    opened = st.session_state[key].get("open") if key in st.session_state else None
    if opened in [card.id for card in cards]:
        st.switch_page(page_file("explore"), query_params={**query, "case": str(opened)})


def _nothing() -> None:
    """A trigger is only given to a page that listens."""
