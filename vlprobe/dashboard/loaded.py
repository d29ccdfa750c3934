"""Models that pages run. Each is loaded once for all pages and visitors, and used by one visitor at a time.

They are not in Streamlit's caches, because a message from any visitor can clear those.
"""

import contextlib

import streamlit as st

from vlprobe import registry
from vlprobe.runs.playground import Player
from vlprobe.storage.memory import SingleFlightCache

# A demo model loads in .3 s of CPU, larger ones in seconds, and each press would load again.
_small_models = SingleFlightCache(16)  # so that a page can run all of them
_large_models = SingleFlightCache(6)
SLOW = "Loading may take a while: weights that are not on this machine are downloaded."


def loads_at_once(name: str) -> bool:
    """Return whether a page may load a model without a click: it loads fast, and not from a file that a link names."""
    return name.startswith(("demo:", "control:")) and "@" not in name


def load_player(name: str) -> Player:
    """Return the model with the given name, loading it on first use. Raises NotFound or InvalidInput."""
    if loads_at_once(name):
        return _small_models.get(name, lambda: _load(name))
    is_loaded = name in _large_models
    with contextlib.nullcontext() if is_loaded else st.spinner("Loading the model"):
        return _large_models.get(name, lambda: _load(name))


def _load(name: str) -> Player:
    return Player(registry.load_model(name))
