"""Notices on any page: which jobs have ended since a visitor's last look, each with a link to what was found."""

import streamlit as st

from vlprobe.dashboard.jobs import STATES, under_way
from vlprobe.dashboard.navigation import page_file
from vlprobe.dashboard.run.progress import result_link, what_was_found
from vlprobe.dashboard.state import store
from vlprobe.errors import VlprobeError
from vlprobe.render.html.elements import tag
from vlprobe.runs import jobs
from vlprobe.runs.jobs import Job

GOING, ENDED = (
    "jobs_going",
    "jobs_ended",
)  # in the session: ids at the last look, and of the notices
MOST = 3  # notices at once, the newest


def draw() -> None:
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
