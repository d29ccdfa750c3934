"""Jobs on any page: a notice for each that has ended since a visitor's last look, with a link to its results, and the
thin bar at the bottom while one runs.
"""

import streamlit as st

from vlprobe.dashboard.jobs import STATES, under_way
from vlprobe.dashboard.navigation import page_file
from vlprobe.dashboard.run.progress import (
    in_one_line,
    overall_fraction,
    result_link,
    stop,
    what_was_found,
)
from vlprobe.dashboard.state import attempt, plain, store
from vlprobe.errors import VlprobeError
from vlprobe.render.html.elements import tag
from vlprobe.runs import jobs
from vlprobe.runs.jobs import Job
from vlprobe.storage import access

GOING, ENDED = (
    "jobs_going",
    "jobs_ended",
)  # in the session: ids at the last look, and of the notices
EVERY_SECONDS = 2
MOST = 3  # notices at once, the newest


def draw_notices() -> None:
    """Draw a notice for each job that has ended and whose progress this page does not show."""
    going = {job.id for job in under_way()}
    before = st.session_state.get(GOING, set())
    ended = [*st.session_state.get(ENDED, ()), *sorted(before - going)]
    shown = st.query_params.get_all("job")
    st.session_state[GOING] = going
    st.session_state[ENDED] = [job_id for job_id in ended if job_id not in shown][-MOST:]
    if st.session_state[ENDED]:
        with st.container(key="notices"):
            for job_id in st.session_state[ENDED]:
                try:
                    _draw(jobs.read(store(), job_id))
                except VlprobeError:  # it was deleted meanwhile
                    _dismiss(job_id)


def _draw(job: Job) -> None:
    """Draw the notice of one job."""
    icon, word = STATES[job.state]
    with st.container(key=f"notice_{job.id}", gap="small"):
        st.html(
            f'<p class="vp-job" role="status">{tag("strong", f"{icon} {word}")} '
            f"{tag('span', what_was_found(job))}</p>"
        )
        with st.container(horizontal=True, vertical_alignment="center"):
            page, label, query = result_link(job)
            # The page behind the link receives the job, so that the notice disappears there.
            st.page_link(page_file(page), label=label, query_params=query | {"job": job.id})
            st.space("stretch")
            st.button(
                "Dismiss",
                key=f"dismiss_{job.id}",
                type="tertiary",
                on_click=_dismiss,
                args=(job.id,),
            )


def _dismiss(job_id: str) -> None:
    st.session_state[ENDED] = [other for other in st.session_state[ENDED] if other != job_id]


def draw_bar() -> None:
    """Draw the job that has its turn, again every two seconds; nothing if none is under way, or the
    page shows it.
    """
    job = _current_job()
    if job is not None and job.id not in st.query_params.get_all("job"):
        with st.bottom:
            st.fragment(_draw_job, run_every=EVERY_SECONDS)()


def _current_job() -> Job | None:
    """Return the running job, else the one that waits longest; None if nothing is under way."""
    return min(under_way(), key=lambda job: (job.state != "running", job.queued), default=None)


def _draw_job() -> None:
    job = _current_job()
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
