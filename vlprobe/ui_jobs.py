"""Starting a run, watching it, stopping it. A run is a process of its own: closing the page does not end it."""

import re
import shlex
import time
from collections.abc import Sequence

import streamlit as st

from vlprobe import jobs, registry
from vlprobe.errors import VlprobeError
from vlprobe.jobs import Job
from vlprobe.runner import Request
from vlprobe.training.request import TrainRequest
from vlprobe.ui_access import changes
from vlprobe.ui_state import attempt, plain, quiet, store, tag, view
from vlprobe.ui_verify import said

DEMO = Request(models=("demo:softmax", "demo:sigmoid", "demo:weak"), dataset="demo", probe="lgip")
STATES = {
    "queued": ("…", "Waiting"),
    "running": ("▶", "Running"),
    "done": ("✔", "Done"),
    "failed": ("✘", "Failed"),
    "cancelled": ("■", "Cancelled"),
    "dead": ("✘", "Stopped"),
}
CHOICES = {"rules": ("strict", "paper"), "tag": ("rule", "marker")}  # options of probes that are one word of a few
LABELS = {
    "kinds": "Kinds of edit",
    "rules": "Rule set",
    "k_same": "Rewordings a caption, at most",
    "k_diff": "Flips a caption, at most",
    "tag": "Advanced rewordings are told by",
    "approximate": "Candidates looked up, 0: all",
    "normalise": "Released captions: lower-case both sides",
}
HELP = {
    "rules": "Strict keeps captions grammatical and drops flips that stay true; paper does literally what LGIP prints.",
    "tag": "The rule that made them, or the paper's test for marker words.",
}


def begin(request: Request) -> None:
    """Starts a job and puts its id into the URL."""
    st.query_params["job"] = jobs.start(request, store())


def demo_button() -> None:
    """One press runs the three demo models on the demo scenes."""
    if not changes("Nothing has been stored in it yet."):
        return
    st.button(
        "Run the demo", type="primary", icon=":material/play_arrow:", key="demo", on_click=attempt, args=(begin, DEMO)
    )


def probe_button(probe: str) -> None:
    """One press asks the three demo models this probe's questions; and the same for a terminal."""
    if not changes("These questions were not asked before it was opened."):
        return
    request = Request(DEMO.models, registry.load_probe(probe).dataset, probe)
    icon = ":material/play_arrow:"
    st.button("Run it on the demo data", type="primary", icon=icon, key="demo", on_click=attempt, args=(begin, request))
    st.html(tag("p", "Or in a terminal, for models of your own:", class_="vp-quiet"))
    words = [word for model in DEMO.models for word in ("--model", model)]
    st.code(shlex.join(["vlprobe", "run", *words, "--probe", probe]), language="bash", wrap_lines=True)


def watched() -> Job | None:
    """The job that the URL names; a name that is not known is said, and the page goes on."""
    job_id = st.query_params.get("job", "")
    try:
        return jobs.read(store(), job_id) if job_id else None
    except VlprobeError as error:
        st.error(plain(str(error)))
        return None


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
    with st.container(border=True, key="job"):
        what = f"{', '.join(job.request.models)} on {job.request.dataset} · {job.request.probe}"
        st.html(f'<p class="vp-job">{tag("strong", f"{icon} {word}")} {tag("span", what)}</p>')
        if job.error:
            st.error(plain(said(job.error)))
        if not job.ended:
            st.progress(_overall(job), text=plain(job.label))
            quiet(_pace(job))
        elif job.label:
            quiet(f"{job.label.rstrip('.')}, {span(job.updated - job.created)} after it was started.")
        with st.container(horizontal=True):
            if job.state != "done" and not changes("Jobs cannot be stopped or started here."):
                pass
            elif not job.ended:
                asked = st.session_state.get("stopping") == job.id
                word = "Stopping at the next batch" if asked else "Cancel"
                icon = ":material/stop:"
                st.button(word, icon=icon, key="cancel", disabled=asked, on_click=attempt, args=(stop, job.id))
            elif job.state != "done":
                icon = ":material/play_arrow:"
                st.button("Resume", icon=icon, key="resume", on_click=attempt, args=(resume, job.id))
            else:
                _results_link(job)
        with st.expander("Log"):
            st.code(jobs.log(store(), job.id) or "Nothing was printed.", language=None, wrap_lines=True)


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
    named = [place for place, model in enumerate(job.request.models) if model in job.label]
    place = max(named, key=lambda place: len(job.request.models[place]), default=0)
    return min((place + job.fraction) / len(job.request.models), 1.0)


def _pace(job: Job) -> str:
    parts = [f"{span(time.time() - job.created)} since it was started"]
    spent = job.updated - job.started
    if job.state == "running" and job.done > 0 and spent > 0.5:
        rate = job.done / spent
        what = "steps" if isinstance(job.request, TrainRequest) else "cases"
        parts = [f"{job.done:,.0f} of {job.total:,.0f} {what}", f"{rate:,.{0 if rate >= 10 else 1}f} a second", *parts]
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
    if isinstance(job.request, TrainRequest):
        to = {"training": job.id}
        st.page_link("pages/repair.py", label="See the losses", icon=":material/build:", query_params=to)
        return
    stored = view("runs")
    own = stored[stored["key"].isin(job.keys)]
    if len(own):
        asked = {"set": own["case_key"].iloc[0]}
        st.page_link("pages/overview.py", label="See the numbers", icon=":material/scatter_plot:", query_params=asked)
        st.page_link("pages/failures.py", label="See the failures", icon=":material/image:", query_params=asked)


def form() -> None:
    """What to run; where earlier runs cannot be read, that is said, and the rest of the page is there to mend them."""
    try:
        _form()
    except VlprobeError as error:
        st.error(plain(said(str(error))), icon=":material/error:")


def _form() -> None:
    """Models, dataset, probe and its options; then one button."""
    if not changes("What was run before is on the other pages. Install vlprobe to run your own models and pictures."):
        return
    models = st.multiselect(
        "Models",
        _known("models"),
        key="run_models",
        accept_new_options=True,
        placeholder="Choose, or type a name and press Enter",
        help="Any OpenCLIP model can be typed: `openclip:NAME/TAG`, or `openclip:NAME@CHECKPOINT` for a file.",
    )
    columns = st.columns(3)
    probe = columns[0].selectbox("Probe", sorted(registry.names("probes"), key=_lgip_first), key="run_probe")
    natural = registry.load_probe(probe).dataset
    known = sorted(_known("datasets"), key=lambda name: name != natural)
    chosen = columns[1].selectbox("Dataset", known, key=f"run_dataset_{probe}")
    typed = ", ".join(f"`{name}`" for name in registry.names("datasets") if name not in known)
    own = columns[2].text_input(
        "Or pictures of your own",
        key="run_own",
        placeholder="coco:/path/to/folder",
        help=f"Takes the place of the dataset. With the path of your file or folder: {typed}.",
    )
    dataset = own.strip() or chosen
    defaults = registry.load_probe(probe).defaults
    first = [name for name, default in defaults.items() if isinstance(default, list) or name == "rules"]
    options = _options(probe, first, [1, 3] if len(first) == 2 else len(first))
    with st.expander("Size, machine and details"):
        sizes = st.columns(3)
        limit = sizes[0].number_input(
            "Only the first pictures", 0, None, 0, key="run_limit", help="0 takes all pictures of the dataset."
        )
        device = sizes[1].selectbox("Device", ["auto", "cpu", "cuda", "cuda:1", "mps"], key="run_device")
        batch = sizes[2].number_input("Batch size", 1, 4096, 64, key="run_batch", help="Changes the speed only.")
        options |= _options(probe, [name for name in defaults if name not in first], 3)
    request = Request(
        tuple(name.strip() for name in models),
        dataset.strip(),
        probe,
        options,
        limit=int(limit),
        device=device,
        batch_size=int(batch),
    )
    quiet(_work(request))
    wanting = not models or any(value == [] for value in options.values())
    st.button(
        "Start",
        type="primary",
        icon=":material/play_arrow:",
        key="start",
        disabled=wanting,
        help="Choose at least one model and one kind of edit." if wanting else None,
        on_click=attempt,
        args=(begin, request),
    )


def _lgip_first(name: str) -> tuple[bool, str]:
    return name != "lgip", name


def _options(probe: str, names: Sequence[str], widths: Sequence[int] | int) -> dict[str, object]:
    """One field for each of these options of the probe; the kind of its default says which."""
    found: dict[str, object] = {}
    columns = st.columns(widths) if names else []
    for place, name in enumerate(names):
        default = registry.load_probe(probe).defaults[name]
        column, key = columns[place % len(columns)], f"run_{probe}_{name}"
        label = LABELS.get(name, name.replace("_", " ").capitalize())
        if isinstance(default, list):
            found[name] = column.multiselect(label, default, default, key=key)
        elif isinstance(default, bool):
            found[name] = column.toggle(label, default, key=key)
        elif isinstance(default, int):
            found[name] = int(column.number_input(label, min(default, 1), None, default, key=key))
        elif name in CHOICES:
            found[name] = column.selectbox(label, CHOICES[name], key=key, help=HELP[name])
        else:
            found[name] = column.text_input(label, str(default), key=key)
    return found


def _work(request: Request) -> str:
    """What is known of the work before it begins: from earlier runs on the same dataset."""
    stored = view("runs")
    same = stored[(stored["dataset"] == request.dataset) & (stored["probe"] == request.probe)]
    if same.empty:
        return "Work: unknown until the dataset has been read; the first seconds of the run tell."
    last = same.iloc[0]
    share = min(request.limit / last["n_items"], 1.0) if request.limit else 1.0
    told = f"Work: about {last['n_items'] * share:,.0f} pictures and {last['n_cases'] * share:,.0f} cases a model"
    known = same.drop_duplicates("model").set_index("model")["seconds"]
    timed = [f"{model} took {span(known[model])}" for model in request.models if model in known]
    return f"{told}, judging by the last run on this dataset. {'; '.join(timed) + '.' if timed else ''}"


def _known(folder: str) -> list[str]:
    """Names that can be chosen as they are, the demo's and those of earlier runs first."""
    earlier = view("runs")[folder.removesuffix("s")].tolist()
    named = [name for name in registry.names(folder) if not re.search("[A-Z]{3}", name)]
    return sorted(dict.fromkeys([*earlier, *named]), key=lambda name: not name.startswith("demo"))


def past() -> None:
    """The newest jobs but for the one that is watched, each with a way back to it."""
    watching = st.query_params.get("job", "")
    found = [job for job in jobs.jobs(store()) if job.id != watching][:12]
    for line in jobs.damaged(store()):
        st.warning(plain(said(line)), icon=":material/warning:")
    if not found:
        quiet(
            "None yet. Runs that were started in a terminal are not listed here; their results are on the other pages."
        )
    for job in found:
        icon, word = STATES[job.state]
        with st.container(horizontal=True, vertical_alignment="center", key=f"past_{job.id}"):
            when = time.strftime("%d %b, %H:%M", time.localtime(job.created))
            what = f"{', '.join(job.request.models)} on {job.request.dataset} · {job.request.probe}"
            st.html(
                f'<p class="vp-job">{tag("strong", f"{icon} {word}")} {tag("span", what)} '
                f"{tag('small', when, class_='vp-quiet')}</p>"
            )
            st.button("Open", key=f"open_{job.id}", on_click=_open, args=(job.id,))


def _open(job_id: str) -> None:
    st.query_params["job"] = job_id
