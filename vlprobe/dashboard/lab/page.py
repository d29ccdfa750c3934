"""Lab's first page: links to its other pages, and a button that checks stored results for damage and repairs it."""

import html
import re
import time
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, replace
from pathlib import Path

import streamlit as st

from vlprobe import __version__, registry
from vlprobe.dashboard.navigation import BELOW
from vlprobe.dashboard.state import attempt, command, plain, quiet, store
from vlprobe.dashboard.tables import show
from vlprobe.dashboard.widgets import link_page, show_errors
from vlprobe.errors import VlprobeError
from vlprobe.render.html.elements import breakable, column_heads, tag
from vlprobe.render.sentences import capitalized
from vlprobe.runs import jobs, verify
from vlprobe.runs.request import Request
from vlprobe.runs.verify import Damage
from vlprobe.storage import access
from vlprobe.storage.files import lock, parse_json_object
from vlprobe.storage.store import Store
from vlprobe.types import Run
from vlprobe.types.selection import request_fields

DOORS = {  # by page: a description and an icon
    "models": ("Model metadata, and checks with known answers.", "health_and_safety"),
    "breakdown": (
        "Every number, broken down by type of edit, rule, strength and tag.",
        "bar_chart",
    ),
    "repair": (
        "Models before and after fine-tuning on pairs, wrong words and mixed pictures.",
        "build",
    ),
    "retrieval": (
        "How often a search returns a decoy first, in the format of RoCOCO's tables.",
        "search",
    ),
    "pairs": (
        "Text, image and group scores for two pictures with one difference, in EqBen's format.",
        "compare",
    ),
    "triplets": (
        "Two captions that mean the same thing and one that does not, in VISLA's format.",
        "change_history",
    ),
    "rankings": (
        "How stable search results are when the query is reworded, in PRSM's format.",
        "format_list_numbered",
    ),
    "series": (
        "Where a video changes (EqBen, table 12), and whether models rank pictures as people do.",
        "view_column",
    ),
    "published": (
        "Every number printed in the five papers, next to yours, with remarks on doubtful ones.",
        "menu_book",
    ),
    "suspects": (
        "Cases whose label at least two thirds of the strong models reject. Judge with one key "
        "press whether a case is hard or mislabeled.",
        "flag",
    ),
    "docs": ("Guides, with the formula and a worked example for every number.", "description"),
}


def draw_doors() -> None:
    """Draw links to Lab's pages, the version of vlprobe, and the location of the results."""
    st.title("Lab")
    st.markdown("In depth: model checks, breakdowns, fine-tuning, paper tables.")
    grid = st.grid(min_column_width=300, border=True, gap="small", key="doors")
    for page, name in BELOW.items():
        answer, icon = DOORS[page]
        with grid.cell():
            link_page(page, f"**{name}**", icon=icon)
            quiet(answer)
    quiet(f"vlprobe {__version__} · results in {store().address}")


FOUND = "stored_damages"  # session key: the result of the last check
MENDED = "stored_mended"
HEAD = ("Content", "File", "Problem", "Repair")
ROWS = 50
OTHERS = {  # files other than runs, with a description and their repair
    "embeddings": (
        "Embeddings, stored to save time",
        "Deleted; the next run that needs them rebuilds them",
    ),
    "models": ("Results of model checks", "Deleted; the next run of the model repeats them"),
    "jobs": ("State of a job", "Deleted; its finished results stay"),
    "annotations": ("Tags and notes", "Kept, because they cannot be recreated"),
}
RESULTS = ("Questions or answers",)
NEVER_FINISHED = ("An unfinished file", "Deleted")


@dataclass(frozen=True)
class DamageCheck:
    """The damage found in a check of all stored data, and the time of the check."""

    damages: tuple[Damage, ...]
    time: str


@dataclass(frozen=True)
class History:
    """Stored runs, and the request that made each run. Both are keyed by run key."""

    runs: Mapping[str, Run]
    requests: Mapping[str, Request]


def draw_stored() -> None:
    """Draw a button that checks all stored data and, after a check, the damaged files and a button to repair them."""
    if access.read_only():
        return
    st.header("Stored results")
    if outcome := st.session_state.pop(MENDED, ""):
        st.success(plain(outcome), icon=":material/check_circle:")
    quiet("Check stored results for damage (read-only).")
    if st.button("Check stored results", icon=":material/fact_check:", key="check_stored"):
        st.session_state.pop(FOUND, None)
        with show_errors():
            damages = tuple(_read())
            st.session_state[FOUND] = DamageCheck(damages, time.strftime("%d %b, %H:%M"))
    check = st.session_state.get(FOUND)
    if check is None:
        return
    if not check.damages:
        st.success(f"{check.time}: all checksums match.", icon=":material/check_circle:")
        return
    _list(check)


def _read(only: tuple[Damage, ...] | None = None) -> list[Damage]:
    """Check all stored data, or only the entries in `only`, and return the damaged ones. Draws a progress bar."""
    bar = st.progress(0.0, text="Reading stored results")

    def report(label: str, done: float, total: float) -> None:
        bar.progress(done / total, text=f"{label}: {done:,} of {total:,} files")

    try:
        return verify.damages(store(), report, only)
    finally:
        bar.empty()


def _list(check: DamageCheck) -> None:
    history, damages = _history(store()), check.damages
    alike: dict[tuple[str, ...], list[str]] = {}
    for damage in damages:
        subject, fate = _in_words(damage, history)
        alike.setdefault((subject, damage.why, fate), []).append(_inside(damage))
    rows = []
    for (subject, why, fate), files in list(alike.items())[:ROWS]:
        n_more = f"<br>{tag('small', f'and {len(files) - 1:,} more')}" if len(files) > 1 else ""
        cells = [
            breakable(files[0]) + n_more,
            *(html.escape(capitalized(text)) for text in (why, fate)),
        ]
        columns = zip(HEAD[1:], cells, strict=True)
        body = "".join(f'<td data-title="{title}">{cell}</td>' for title, cell in columns)
        rows.append(f'<tr class="first">{tag("th", subject, scope="row")}{body}</tr>')
    older = sum(damage.why == verify.OLDER for damage in damages)
    if damaged := len(damages) - older:
        st.warning(f"{check.time}: {_files(damaged)} damaged.", icon=":material/warning:")
    if older:
        st.info(
            f"{check.time}: {_files(older)} from an older version of vlprobe. No result is lost.",
            icon=":material/info:",
        )
    show("Damaged files", column_heads(HEAD), rows, "vp-prose")
    if len(alike) > ROWS:
        quiet(
            f"Showing the first {ROWS} of {len(alike):,} kinds of damage. `vlprobe verify` lists "
            "all of them."
        )
    if not any(damage.drop for damage in damages):
        return
    requests = runs_again(damages, history)
    if st.button("Compute again", type="primary", icon=":material/play_arrow:", key="mend_stored"):
        attempt(_mend, damages)
        st.rerun()
    models = sum(len(request.models) for request in requests)
    starts = f"{models} {'run' if models == 1 else 'runs'} will start again"
    quiet(
        f"These files will be deleted, and {starts}; the models and pictures must still be in the "
        "same place. Undamaged files are kept."
        if models
        else "These files will be deleted. No runs need to be repeated."
    )


def _files(count: int) -> str:
    return f"{count:,} stored {'file is' if count == 1 else 'files are'}"


def runs_again(damages: Sequence[Damage], history: History) -> list[Request]:
    """Return the run requests that recreate deleted data. Requests that differ only in their models are merged."""
    merged: list[Request] = []
    for key in dict.fromkeys(
        key for damage in damages if damage.drop for key in _runs_of(damage, history)
    ):
        request = history.requests[key]
        alike = [
            earlier for earlier in merged if replace(earlier, models=request.models) == request
        ]
        if not alike:
            merged.append(request)
        elif not set(request.models) <= set(alike[0].models):
            merged[merged.index(alike[0])] = replace(
                request, models=(*alike[0].models, *request.models)
            )
    return merged


def _mend(damages: tuple[Damage, ...]) -> None:
    """Delete the data that is still damaged, and start the runs that recreate it. Their requests are stored first."""
    current = store()
    current.require_writable()
    with lock(
        current.root / "jobs" / ".mending.lock", lambda: None
    ):  # if two users click, the second one finds everything repaired
        still = _read(damages)
        st.session_state.pop(FOUND, None)
        history = _history(current)
        live = {probe for job in jobs.jobs(current) if not job.ended for probe in job.probes}
        free = [damage for damage in still if not _busy(damage, history, live)]
        requests = {jobs.write(request, current): request for request in runs_again(free, history)}
        gone, begun, problems = 0, [], []
        for damage in free:
            try:
                verify.repair([damage])
                gone += 1
            except VlprobeError as error:
                problems.append(str(error))
        for job_id, request in requests.items():
            try:
                jobs.resume(current, job_id)
                begun.append(job_id)
            except VlprobeError as error:
                subject = f"{', '.join(request.models)} on {request.dataset} · {request.probe}"
                resume = command("jobs", "--resume", job_id)
                problems.append(f"{subject}: {error} In a terminal: {resume}")
    sentences = [
        f"{gone:,} {'file' if gone == 1 else 'files'} removed." if gone else "Nothing was removed."
    ]
    if begun:
        sentences.append("Their results are being rebuilt: see the top of this page.")
    if busy := len(still) - len(free):
        sentences.append(
            f"{busy:,} {'file was' if busy == 1 else 'files were'} not changed, because a job is "
            "running the same tests. Check again when that job has ended."
        )
    if {damage.path for damage in damages if damage.drop} - {damage.path for damage in still}:
        sentences.append("Files rebuilt since the check were not changed.")
    st.session_state[MENDED] = " ".join(sentences)
    if problems:
        st.session_state["problem"] = " ".join(problems)
    if requests:
        st.query_params["job"] = next(iter(begun or requests))


def _busy(damage: Damage, history: History, probes: Set[str]) -> bool:
    """Return whether an unfinished job may be using damaged data. If the data's run is unknown, any job counts."""
    if _place(damage)[0] not in ("runs", "cases"):
        return False
    of_damage = {history.requests[key].probe for key in _runs_of(damage, history)}
    return bool(of_damage & probes if of_damage else probes)


def _history(current: Store) -> History:
    """Collect all runs that can be repeated, because their manifest or the job that made them still describes them."""
    runs = {}
    for path in current.root.glob("runs/*/manifest.json"):
        try:
            run = Run(**parse_json_object(path.read_text())["run"])
            # The rest of a damaged manifest may be wrong, but not the key; a plug-in may be
            # unnamed here.
            if run.key == path.parent.name and registry.has_probe(run.probe):
                runs[run.key] = run
        except (OSError, ValueError, TypeError, KeyError):
            continue
    requests = {key: _request(run) for key, run in runs.items()}
    for job in jobs.jobs(current):
        of_models = [
            replace(request, models=(model,)) for request in job.requests for model in job.models
        ]
        # The lengths differ if the job has not ended or if a probe was left out
        if len(of_models) == len(job.keys):
            requests |= zip(job.keys, of_models, strict=True)
    return History(runs, requests)


def _request(run: Run) -> Request:
    defaults = registry.load_probe(run.probe).defaults
    options = {name: value for name, value in run.options.items() if name in defaults}
    plain = Request((run.model,), run.dataset, run.probe, options, run.seed, run.limit)
    return replace(plain, **request_fields(run.selection))


def _runs_of(damage: Damage, history: History) -> list[str]:
    """Return the keys of the runs that must be repeated to recreate a damaged file."""
    kind, key = _place(damage)
    if kind == "runs":
        return [key] if key in history.requests else []
    return [
        run_key for run_key, run in history.runs.items() if kind == "cases" and run.case_key == key
    ]


def _in_words(damage: Damage, history: History) -> tuple[str, str]:
    """Return a description of a damaged file's content, and of how it is repaired."""
    kind = _place(damage)[0]
    if damage.path.name.endswith(".tmp") or not kind:
        return NEVER_FINISHED
    if kind in OTHERS and (damage.drop or kind == "annotations"):
        return OTHERS[kind]
    if not damage.drop:
        return OTHERS.get(kind, RESULTS)[0], "Kept; ask its owner for read access"
    runs = _runs_of(damage, history)
    if not runs:
        subject = "Answers of a model" if kind == "runs" else "Questions"
        return subject, "Deleted; the run that made it is unknown, so repeat that run yourself"
    request = history.requests[runs[0]]
    questions = f"{request.dataset or registry.load_probe(request.probe).dataset} · {request.probe}"
    subject = (
        f"Answers of {request.models[0]} to {questions}"
        if kind == "runs"
        else f"Questions of {questions}"
    )
    return subject, "Deleted and rebuilt"


def _place(damage: Damage) -> tuple[str, str]:
    """Return the cache folder that contains a file, and the run or question set that the file belongs to."""
    match = re.search(
        r"\b(runs|cases|embeddings|models|jobs|annotations)/([0-9a-z]*)", _inside(damage)
    )
    return (match[1], match[2]) if match else ("", "")


def _inside(damage: Damage) -> str:
    """Return the path of a file relative to the cache, or its name in the object store."""
    path = damage.path
    return path.relative_to(store().root).as_posix() if isinstance(path, Path) else path.name
