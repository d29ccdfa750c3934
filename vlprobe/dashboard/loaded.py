"""Models that pages ask: loaded once for all pages and people, and each answers one of them at a
time.

They are not in Streamlit's caches, which a message of any visitor clears.
"""

import contextlib

import streamlit as st

from vlprobe import registry
from vlprobe.runs.playground import Player
from vlprobe.storage.memory import SingleFlightCache

# A demo model loads in .3 s of CPU, larger ones in seconds, and each press would load again.
_small_models = SingleFlightCache(16)  # so that a page can ask all of them
_large_models = SingleFlightCache(6)
SLOW = "Loading may take a while: weights that are not on this machine are downloaded."


def loads_at_once(name: str) -> bool:
    """Return whether a model loads in a moment and from no file that a link can name, so that no click is required."""
    return name.startswith(("demo:", "control:")) and "@" not in name


def load_player(name: str) -> Player:
    """The model of this name. Raises NotFound or InvalidInput."""
    if loads_at_once(name):
        return _small_models.get(name, lambda: _load(name))
    is_loaded = name in _large_models
    with contextlib.nullcontext() if is_loaded else st.spinner("Loading the model"):
        return _large_models.get(name, lambda: _load(name))


def _load(name: str) -> Player:
    return Player(registry.load_model(name))
