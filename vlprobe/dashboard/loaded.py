"""Models that pages ask: loaded once for all pages and people, and each answers one of them at a
time.
"""

import streamlit as st

from vlprobe import registry
from vlprobe.runs.playground import Player
from vlprobe.storage import access


def at_hand(name: str) -> bool:
    """Whether a model loads in a moment and from no file that a link can name, so that nobody has
    to ask for it.
    """
    return name.startswith(("demo:", "control:")) and "@" not in name


def loaded(name: str) -> Player:
    """The model of this name. Raises NotFound or InvalidInput."""
    return _at_hand(name) if at_hand(name) else _loaded(name)


@st.cache_resource(max_entries=16, show_spinner=False)
def _at_hand(name: str) -> Player:
    """Small models, so that a page can ask all of them."""
    return _loaded_anew(name)


@st.cache_resource(max_entries=6, show_spinner="Loading the model")
def _loaded(name: str) -> Player:
    return _loaded_anew(name)


def _loaded_anew(name: str) -> Player:
    access.refuse_name(name)
    return Player(registry.load_model(name))
