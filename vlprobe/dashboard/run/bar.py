"""The thin bar at the bottom of every page while a run is under way."""

import streamlit as st

from vlprobe.dashboard.jobs import under_way
from vlprobe.dashboard.navigation import page_file
from vlprobe.dashboard.run.progress import in_one_line, overall_fraction, stop
from vlprobe.dashboard.state import attempt, plain
from vlprobe.runs.jobs import Job
from vlprobe.storage import access

EVERY_SECONDS = 2


def draw() -> None:
    """Draw the job that has its turn, again every two seconds; nothing if none is under way, or the
    page shows it.
    """
    job = _current()
    if job is not None and job.id not in st.query_params.get_all("job"):
        with st.bottom:
            st.fragment(_draw, run_every=EVERY_SECONDS)()


def _current() -> Job | None:
    """Return the running job, else the one that waits longest; None if nothing is under way."""
    return min(under_way(), key=lambda job: (job.state != "running", job.queued), default=None)


def _draw() -> None:
    job = _current()
    if job is None:  # it has ended: its results are shown now
        st.rerun()
        return
    with st.container(horizontal=True, vertical_alignment="center", key="under_way"):
        st.progress(overall_fraction(job), text=plain(in_one_line(job)))
        st.page_link(page_file("run"), label="Show", query_params={"job": job.id}, width="content")
        if not access.read_only():
            is_stopping = st.session_state.get("stopping") == job.id
            st.button(
                "Stopping" if is_stopping else "Stop",
                key="stop_under_way",
                type="tertiary",
                icon=":material/stop:",
                disabled=is_stopping,
                on_click=attempt,
                args=(stop, job.id),
            )
