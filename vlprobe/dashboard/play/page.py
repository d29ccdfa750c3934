"""The two halves of Play and the switch between them."""

from pathlib import Path

import streamlit as st

from vlprobe.dashboard.play import playground, quiz_page
from vlprobe.dashboard.state import choose

GAMES = {"quiz": "Spot the lie", "playground": "Playground"}
# URL parameters of the Playground; a link with one of these opens it.
STYLE = Path(__file__).with_name("style.css")
PLAYGROUND = (
    "caption",
    "item",
    "models",
    "from",
    "draw",
    "for",
    "lam",
    "edit",
    "word",
    "show",
    "k",
)


def draw() -> None:
    """The half that the address names: the quiz, or what was called
    Playground as a page of its own.
    """
    st.html(STYLE)
    if "game" not in st.query_params and any(name in st.query_params for name in PLAYGROUND):
        st.query_params["game"] = "playground"
    bar = st.container(horizontal=True, vertical_alignment="center", key="play_bar")
    with bar:
        game = choose("Play", "game", GAMES, "quiz", segments=True, bare=True)
    if game == "playground":
        playground.playground()
    else:
        quiz_page.draw(bar)
