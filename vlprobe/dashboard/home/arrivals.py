"""Results that come while Home is looked at: they are shown where they are the most complete."""

import streamlit as st

from vlprobe import views
from vlprobe.dashboard.state import picked, store, view
from vlprobe.runs import jobs

EVERY_SECONDS = 2
LEADING = "home_leading"  # in the session: the most complete question set at the last look


def show_new_results() -> None:
    """Show the most complete question set where it has changed since the last look, unless the
    visitor chose another one; look again during a run.
    """
    leading = next(iter(view(views.runs.question_sets)["case_key"]), "")
    earlier = st.session_state.get(LEADING, leading)
    if leading != earlier and st.query_params.get("set", earlier) == earlier:
        picked()
        st.query_params.clear()
        st.query_params["set"] = leading
    st.session_state[LEADING] = leading
    if jobs.going(store()):
        st.fragment(_look, run_every=EVERY_SECONDS)(store().version())


def _look(version: str) -> None:
    if store().version() != version:
        st.rerun()
