"""Renaming models and datasets: their names on pages, with their results unchanged."""

from collections.abc import Mapping

import streamlit as st

from vlprobe import views
from vlprobe.dashboard.state import attempt, dataset_name, model_name, plain, quiet, store, view
from vlprobe.errors import InvalidInput
from vlprobe.storage import access, display_names


def stored_names() -> dict[str, str]:
    """Every stored model and dataset, and what it is called now; models first."""
    models = {name: model_name(name) for name in view(views.runs.models)}
    datasets = sorted(set(view(views.runs.runs)["dataset"]))
    return models | {name: dataset_name(name) for name in datasets if name not in models}


def draw_form() -> None:
    """A form that renames one of them; nothing in a read-only dashboard, or
    where nothing is stored.
    """
    called = {} if access.read_only() else stored_names()
    if not called:
        return
    with (
        st.expander("Rename a model or a dataset", icon=":material/edit:", key="renaming"),
        st.form("rename", border=False, clear_on_submit=True),
    ):
        left, right = st.columns(2)
        left.selectbox(
            "Stored as",
            list(called),
            key="rename_stored",
            format_func=lambda name: name if called[name] == name else f"{called[name]} ({name})",
        )
        right.text_input(
            "Called",
            key="rename_display",
            max_chars=display_names.MAX_LENGTH,
            placeholder="Empty: its own name again",
        )
        st.form_submit_button(
            "Rename", key="rename_submit", on_click=attempt, args=(_rename, called)
        )
        quiet("Only what pages show changes. Results, links and commands keep the stored name.")


def _rename(called: Mapping[str, str]) -> None:
    """Raise InvalidInput if the name is already in use."""
    stored = str(st.session_state["rename_stored"])
    display = " ".join(str(st.session_state["rename_display"]).split())
    others = [name for name, label in called.items() if name != stored and label == display]
    if display and others:
        raise InvalidInput(f"'{display}' is what '{others[0]}' is called. Choose another name.")
    display_names.rename(store(), stored, display)
    message = (
        f"{stored} is called {display} now." if display else f"{stored} has its own name again."
    )
    st.toast(plain(message), icon=":material/edit:")
