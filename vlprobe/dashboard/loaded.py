"""Models that pages run. Each is loaded once for all pages and visitors, and used by one visitor at a time.

They are not in Streamlit's caches, because a message from any visitor can clear those.
"""

import contextlib

import streamlit as st

from vlprobe import registry
from vlprobe.dashboard.access import changes
from vlprobe.dashboard.state import model_name, plain, quiet
from vlprobe.errors import VlprobeError
from vlprobe.runs.playground import Player
from vlprobe.storage.memory import SingleFlightCache

# A demo model loads in .3 s of CPU, larger ones in seconds, and each press would load again.
_small_models = SingleFlightCache(16)  # so that a page can run all of them
_large_models = SingleFlightCache(6)
SLOW = (
    "Loading may take a while, because weights that are not on this machine are downloaded first."
)


def loads_at_once(name: str) -> bool:
    """Return whether a page may load a model without a click: it loads fast, and not from a file that a link names."""
    return name.startswith(("demo:", "control:")) and "@" not in name


def load_player(name: str) -> Player:
    """Return the model with the given name, loading it on first use. Raises NotFound or InvalidInput."""
    if loads_at_once(name):
        return _small_models.get(name, lambda: _load(name))
    with contextlib.nullcontext() if is_loaded(name) else st.spinner("Loading the model"):
        return _large_models.get(name, lambda: _load(name))


def _load(name: str) -> Player:
    return Player(registry.load_model(name))


def is_loaded(name: str) -> bool:
    """Return whether a model is in memory."""
    return name in _small_models or name in _large_models


def ready_player(name: str, does: str, inputs: str) -> Player | None:
    """Draw a button that loads a model. Returns the model, or None before a click or if it cannot be loaded or used."""
    ready = st.session_state.setdefault("figures_loaded", set())
    called, is_fast = model_name(name), loads_at_once(name)
    if name not in ready:
        if not is_fast and not changes(f"{called} cannot be loaded here."):
            return None
        verb, icon = ("Run", "play_arrow") if is_fast else ("Load", "download")
        label = f"{verb} {plain(called)}"
        if not st.button(label, icon=f":material/{icon}:", key=f"load_{does}"):
            quiet("Takes a few seconds." if is_fast else SLOW)
            return None
    try:
        player = load_player(name)
    except VlprobeError as error:
        quiet(str(error))
        return None
    ready.add(name)
    capabilities = player.model.capabilities
    if capabilities.embeds_texts if does == "encode_texts" else capabilities.embeds_images:
        return player
    quiet(f"{called} does not embed {inputs}. Choose another model.")
    return None
