"""Results that come while Home is looked at: they are shown as soon as the first model is done."""

import streamlit as st

from vlprobe import views
from vlprobe.dashboard.state import picked, store, view
from vlprobe.runs import jobs

EVERY_SECONDS = 2
KNOWN = "home_sets"  # question sets that this visitor has had the chance to see


def show_new_results() -> None:
    """Leads to one's own newest results where they came since this visitor's last look;
    looks again during a run.
    """
    sets = view(views.runs.question_sets)
    own_keys = sets[~sets["shipped"].astype(bool)]["case_key"].tolist()
    earlier_keys = st.session_state.setdefault(KNOWN, own_keys)
    new = [key for key in own_keys if key not in earlier_keys]
    if new:
        picked()
        st.query_params.clear()
        st.query_params["set"] = new[0]
    st.session_state[KNOWN] = own_keys
    if jobs.going(store()):
        st.fragment(_look, run_every=EVERY_SECONDS)(store().version())


def _look(version: str) -> None:
    if store().version() != version:
        st.rerun()
