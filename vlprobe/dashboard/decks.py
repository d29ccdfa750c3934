"""The arrangement of each deck of slides, with the cases and figures that users add to it on other pages."""

import hashlib
import json
from collections.abc import Sequence
from io import BytesIO

import plotly.graph_objects as go
import streamlit as st
from PIL import Image

from vlprobe import views
from vlprobe.dashboard.access import is_local
from vlprobe.dashboard.navigation import address
from vlprobe.dashboard.state import carried, store, view
from vlprobe.render.slides.arrangement import FIGURE, Arrangement, parse
from vlprobe.scoring import thumbnails
from vlprobe.storage import access
from vlprobe.storage.bookmarks import DECKS
from vlprobe.surfaces import paper
from vlprobe.views.story import added_cards

# Session keys: the arrangements of a visitor's decks, and whether a visitor is or was in a room of someone else
DECK, GUEST = "deck", "is_guest"
FIGURE_SIDE, FIGURE_BYTES = 1344, 90_000  # pixels and bytes of a figure, so that a deck holds many


def read(name: str) -> Arrangement:
    """Return the arrangement of a deck that the current user sees. Raises InvalidInput if it is damaged.

    On the dashboard's computer this is the stored one. Visitors see only the changes of their browser.

    Args:
        name: Key of the question set and kind of the cases, with a space between.
    """
    text = session_text(name) or (DECKS.read(store()).get(name) if is_own() else "")
    return parse(json.loads(text)) if text else Arrangement()


def session_text(name: str) -> str:
    """Return the arrangement of a deck that the session keeps as JSON; "" without one."""
    return st.session_state.get(DECK, {}).get(name, "")


def save(name: str, arrangement: Arrangement) -> None:
    """Store an arrangement, or keep it in the session if it is that of a visitor."""
    text = arrangement.text()
    if is_kept():
        DECKS.save(store(), name, text)
    else:
        st.session_state.setdefault(DECK, {})[name] = text


def is_own() -> bool:
    """Return whether the stored decks are those of the current user: on this computer, except in a room of another."""
    return is_local(st.context.url or "//localhost") and not st.session_state.get(GUEST)


def is_kept() -> bool:
    """Return whether decks are stored: on the dashboard's computer, unless visitors use it, who would share a deck."""
    return is_own() and not (access.read_only() or access.sign_in())


def add_cases(question_set: str, kind: str, case_ids: Sequence[str]) -> None:
    """Add cases to the slides about their kind, and say so in a toast (`widgets.draw_toast`).

    Args:
        question_set: Key of the question set.
        kind: Kind of the cases.
        case_ids: Ids of the cases. Cases that the slides have already are not added again.

    Raises:
        InvalidInput: the deck is full, or its file is damaged.
    """
    arrangement = read(f"{question_set} {kind}")
    n_added = len(set(case_ids) - set(arrangement.cases))
    said = "Added to the slides" if n_added else "Already in the slides"
    if len(case_ids) > 1:
        said = f"Added {n_added:,} of {len(case_ids):,} cases to the slides"
    elif n_added:
        opened = view(views.runs.question_set, question_set)
        cards = view(added_cards, opened, kind, tuple(case_ids))
        lacks = not all(card.images for card in cards)
        if lacks and views.rows.keeps_unpictured(opened):
            said += " without its picture, which is not on this computer"
    _add(question_set, kind, arrangement.with_cases(case_ids), said)


def add_figure(figure: go.Figure, title: str) -> None:
    """Add a figure of the current page to the slides about its question set and kind, and say so in a toast.

    Raises InvalidInput if the deck is full or damaged, and MissingDependency if no figure can be drawn.
    """
    question_set = view(views.runs.question_set, st.query_params["set"])
    kinds = view(views.runs.list_kinds, question_set.key, question_set.probe)
    default = carried("kind", kinds, view(views.runs.default_kind, question_set))
    kind = st.query_params.get("kind", "")
    kind = kind if kind in kinds else default
    content = paper.exported(figure, ".png")
    image = Image.open(BytesIO(content)).convert("RGB")
    source = thumbnails.data_address(thumbnails.encode(image, FIGURE_SIDE, FIGURE_BYTES))
    name = FIGURE + hashlib.blake2b(content, digest_size=8).hexdigest()
    before = read(f"{question_set.key} {kind}")
    said = "Already in the slides" if name in before.figures else "Added to the slides"
    _add(question_set.key, kind, before.with_figure(name, source, title), said)


def _add(question_set: str, kind: str, arrangement: Arrangement, said: str) -> None:
    save(f"{question_set} {kind}", arrangement)
    deck = address("present", {"set": question_set, "kind": kind})
    # The link opens a tab of its own, which lacks the deck of a session
    link = f" [Open the slides]({deck})" if is_kept() else ""
    st.session_state["toast"] = f"{said}.{link}"
