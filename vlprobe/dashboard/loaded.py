"""Models that pages ask: loaded once for all pages and people, and each answers one of them at a time."""

import streamlit as st

from vlprobe import registry
from vlprobe.runs.playground import Player
from vlprobe.storage import access


def at_hand(name: str) -> bool:
    """Whether a model loads in a moment and from no file that a link can name, so that nobody has to ask for it."""
    return name.startswith(("demo:", "control:")) and "@" not in name


@st.cache_resource(max_entries=6, show_spinner="Loading the model")
def loaded(name: str) -> Player:
    """The model of this name. Raises NotFound or InvalidInput."""
    access.refuse_name(name)
    return Player(registry.load_model(name))
