"""Start and watch runs from a page. Each run is a separate process, so closing the page does not end it."""

import contextlib

import streamlit as st

from vlprobe import registry
from vlprobe.dashboard.access import changes
from vlprobe.dashboard.state import command, store, tag
from vlprobe.dashboard.widgets import press, show_errors
from vlprobe.errors import VlprobeError
from vlprobe.runs import jobs
from vlprobe.runs.jobs import Job
from vlprobe.runs.request import PlanRequest, Request

DEMO = Request(models=("demo:softmax", "demo:sigmoid", "demo:weak"), dataset="demo", probe="lgip")
STARTED = "started_job"  # session key: the job that the user started last
WATCHED = 5  # maximum number of jobs that a page shows at once
STATES = {
    "queued": ("…", "Waiting"),
    "running": ("▶", "Running"),
    "done": ("✔", "Done"),
    "failed": ("✘", "Failed"),
    "cancelled": ("■", "Canceled"),
    "dead": ("✘", "Stopped"),
}


def begin(*requests: Request) -> None:
    """Start one job for all given requests, and write the job's id to the URL."""
    job_request = requests[0] if len(requests) == 1 else PlanRequest(requests)
    job_id = jobs.start(job_request, store())
    st.query_params["job"] = [job_id]
    st.session_state[STARTED] = job_id


def under_way() -> list[Job]:
    """Return the jobs that have not ended, or an empty list if they cannot be read, which the Run page reports."""
    try:
        return jobs.unfinished_jobs(store())
    except VlprobeError:
        return []


def find_again() -> None:
    """Add all unfinished jobs to the URL and, if the URL names no job, the last one that this visitor started."""
    linked = list(filter(None, st.query_params.get_all("job")))
    ids = [*linked, *(job.id for job in under_way())]
    started = st.session_state.get(STARTED)
    if started and not linked:
        with contextlib.suppress(VlprobeError):  # the job was deleted
            ids.insert(0, jobs.read(store(), started).id)
    if len(set(ids)) > len(linked):
        st.query_params["job"] = list(dict.fromkeys(ids))


def demo_button() -> None:
    """Draw a button that runs the three demo models on the demo scenes."""
    if changes("It has no results yet."):
        press("Run the demo", begin, DEMO, icon="play_arrow", type="primary", key="demo")


def probe_button(probe: str) -> None:
    """Draw a button that runs a probe on the three demo models, and the equivalent command."""
    if not changes("This test was not run before the demo was published."):
        return
    request = Request(DEMO.models, registry.load_probe(probe).dataset, probe)
    label = "Run it on the demo data"
    press(label, begin, request, icon="play_arrow", type="primary", key="demo")
    st.html(tag("p", "Or in a terminal, for your own models:", class_="vp-quiet"))
    words = [word for model in DEMO.models for word in ("--model", model)]
    st.code(command("run", *words, "--probe", probe), language="bash", wrap_lines=True)


def watched() -> Job | None:
    """Return the first job that the URL names, or None. An unknown job is reported, and the page continues."""
    return next(iter(all_watched()), None)


def all_watched() -> list[Job]:
    """Return up to WATCHED jobs that the URL names. An unknown job is reported, and the page continues."""
    watched_jobs = []
    for job_id in list(filter(None, st.query_params.get_all("job")))[:WATCHED]:
        with show_errors():
            watched_jobs.append(jobs.read(store(), job_id))
    return watched_jobs


def span(seconds: float) -> str:
    """Format a duration in seconds, minutes or hours."""
    seconds = max(seconds, 0)  # the clock may have been set back
    if seconds < 60:
        return f"{seconds:.0f} s"
    if seconds < 3600:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.1f} h"
