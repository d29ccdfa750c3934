"""Starting a run, watching it, stopping it. A run is a process of its own: closing the page does not end it."""

import shlex
import time

import streamlit as st

from vlprobe import registry, views
from vlprobe.dashboard.access import changes
from vlprobe.dashboard.state import attempt, plain, quiet, store, tag, view
from vlprobe.dashboard.verify import said
from vlprobe.errors import VlprobeError
from vlprobe.runs import jobs
from vlprobe.runs.jobs import Job
from vlprobe.runs.request import Request

DEMO = Request(models=("demo:softmax", "demo:sigmoid", "demo:weak"), dataset="demo", probe="lgip")
WATCHED = 5  # jobs that a page shows at once: one a probe
STATES = {
    "queued": ("…", "Waiting"),
    "running": ("▶", "Running"),
    "done": ("✔", "Done"),
    "failed": ("✘", "Failed"),
    "cancelled": ("■", "Cancelled"),
    "dead": ("✘", "Stopped"),
}


def begin(*requests: Request) -> None:
    """Starts a job a request and puts their ids into the URL; on one device they take turns."""
    st.query_params["job"] = [jobs.start(request, store()) for request in requests]


def demo_button() -> None:
    """One press runs the three demo models on the demo scenes."""
    if not changes("Nothing has been stored in it yet."):
        return
    st.button(
        "Run the demo",
        type="primary",
        icon=":material/play_arrow:",
        key="demo",
        on_click=attempt,
        args=(begin, DEMO),
    )


def probe_button(probe: str) -> None:
    """One press asks the three demo models this probe's questions; and the same for a terminal."""
    if not changes("These questions were not asked before it was opened."):
        return
    request = Request(DEMO.models, registry.load_probe(probe).dataset, probe)
    icon = ":material/play_arrow:"
    st.button(
        "Run it on the demo data",
        type="primary",
        icon=icon,
        key="demo",
        on_click=attempt,
        args=(begin, request),
    )
    st.html(tag("p", "Or in a terminal, for models of your own:", class_="vp-quiet"))
    words = [word for model in DEMO.models for word in ("--model", model)]
    st.code(
        shlex.join(["vlprobe", "run", *words, "--probe", probe]), language="bash", wrap_lines=True
    )


def watched() -> Job | None:
    """The first job that the URL names; a name that is not known is said, and the page goes on."""
    return next(iter(all_watched()), None)


def all_watched() -> list[Job]:
    """The jobs that the URL names, at most WATCHED; a name that is not known is said, and the page goes on."""
    named = []
    for job_id in list(filter(None, st.query_params.get_all("job")))[:WATCHED]:
        try:
            named.append(jobs.read(store(), job_id))
        except VlprobeError as error:
            st.error(plain(str(error)))
    return named


def panel(job: Job) -> None:
    """How far a job is, told anew every second while it runs."""
    st.fragment(_panel, run_every=None if job.ended else 1)(job.id, job.ended)


def reread(job_id: str, ended: bool) -> Job | None:
    """The job as it is now, for a panel that is told anew; once it has ended the whole page is. A lost one is said."""
    try:
        job = jobs.read(store(), job_id)
    except VlprobeError as error:
        st.error(plain(str(error)))
        return None
    if job.ended != ended:
        st.rerun()
    return job


def _panel(job_id: str, ended: bool) -> None:
    job = reread(job_id, ended)
    if job is None:
        return
    icon, word = STATES[job.state]
    with st.container(border=True, key=f"job_{job.id}"):
        what = f"{', '.join(job.models)} on {job.dataset} · {job.task}"
        st.html(f'<p class="vp-job">{tag("strong", f"{icon} {word}")} {tag("span", what)}</p>')
        if job.error:
            st.error(plain(said(job.failure)))
        if not job.ended:
            st.progress(_overall(job), text=plain(job.label))
            quiet(_pace(job))
        elif job.label:
            quiet(
                f"{job.label.rstrip('.')}, {span(job.updated - job.created)} after it was started."
            )
        with st.container(horizontal=True):
            if job.state != "done" and not changes("Jobs cannot be stopped or started here."):
                pass
            elif not job.ended:
                asked = st.session_state.get("stopping") == job.id
                word = "Stopping at the next batch" if asked else "Cancel"
                icon = ":material/stop:"
                st.button(
                    word,
                    icon=icon,
                    key=f"cancel_{job.id}",
                    disabled=asked,
                    on_click=attempt,
                    args=(stop, job.id),
                )
            elif job.state != "done":
                icon = ":material/play_arrow:"
                st.button(
                    "Resume",
                    icon=icon,
                    key=f"resume_{job.id}",
                    on_click=attempt,
                    args=(resume, job.id),
                )
            else:
                _results_link(job)
        with st.expander("Log"):
            st.code(
                jobs.log(store(), job.id) or "Nothing was printed.", language=None, wrap_lines=True
            )


def stop(job_id: str) -> None:
    """Asks a job to stop; the button then says that it was asked."""
    jobs.cancel(store(), job_id)
    st.session_state["stopping"] = job_id


def resume(job_id: str) -> None:
    """Starts a stopped job again."""
    st.session_state.pop("stopping", None)
    jobs.resume(store(), job_id)


def _overall(job: Job) -> float:
    """Models count equally; which one is being asked is told by the label."""
    named = [place for place, model in enumerate(job.models) if model in job.label]
    place = max(named, key=lambda place: len(job.models[place]), default=0)
    return min((place + job.fraction) / len(job.models), 1.0)


def _pace(job: Job) -> str:
    parts = [f"{span(time.time() - job.created)} since it was started"]
    spent = job.updated - job.started
    if job.state == "running" and job.done > 0 and spent > 0.5:
        rate = job.done / spent
        what = "steps" if job.request.kind == "training" else "cases"
        parts = [
            f"{job.done:,.0f} of {job.total:,.0f} {what}",
            f"{rate:,.{0 if rate >= 10 else 1}f} a second",
            *parts,
        ]
        if rate > 0 and job.done < job.total:
            parts.insert(2, f"about {span((job.total - job.done) / rate)} left for this model")
    return " · ".join(parts)


def span(seconds: float) -> str:
    """A time as people say it: seconds, minutes or hours."""
    seconds = max(seconds, 0)  # a clock may have been set back
    if seconds < 60:
        return f"{seconds:.0f} s"
    if seconds < 3600:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.1f} h"


def _results_link(job: Job) -> None:
    if job.request.kind == "training":
        to = {"training": job.id}
        st.page_link(
            "pages/repair.py", label="See the losses", icon=":material/build:", query_params=to
        )
        return
    stored = view(views.runs.runs)
    own = stored[stored["key"].isin(job.keys)]
    if len(own):
        asked = {"set": own["case_key"].iloc[0]}
        st.page_link(
            "pages/home.py",
            label="See the numbers",
            icon=":material/scatter_plot:",
            query_params=asked,
        )
        st.page_link(
            "pages/explore.py",
            label="See the failures",
            icon=":material/image:",
            query_params=asked,
        )


def past() -> None:
    """The newest jobs but for the one that is watched, each with a way back to it."""
    watching = st.query_params.get_all("job")
    found = [job for job in jobs.jobs(store()) if job.id not in watching][:12]
    for error in jobs.damaged(store()):
        st.warning(plain(said(error)), icon=":material/warning:")
    if not found:
        quiet(
            "None yet. Runs that were started in a terminal are not listed here; their results are on the other pages."
        )
    for job in found:
        icon, word = STATES[job.state]
        with st.container(horizontal=True, vertical_alignment="center", key=f"past_{job.id}"):
            when = time.strftime("%d %b, %H:%M", time.localtime(job.created))
            what = f"{', '.join(job.models)} on {job.dataset} · {job.task}"
            st.html(
                f'<p class="vp-job">{tag("strong", f"{icon} {word}")} {tag("span", what)} '
                f"{tag('small', when, class_='vp-quiet')}</p>"
            )
            st.button("Open", key=f"open_{job.id}", on_click=_open, args=(job.id,))


def _open(job_id: str) -> None:
    st.query_params["job"] = job_id
