"""Whether what is stored is still what was written: read on the page, told in plain words, made anew by a press."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import streamlit as st

from vlprobe import access, jobs, registry, verify
from vlprobe.errors import VlprobeError
from vlprobe.files import REPAIR
from vlprobe.markup import breakable, tag
from vlprobe.runner import Request
from vlprobe.store import Store
from vlprobe.types import Run
from vlprobe.ui_state import attempt, plain, quiet, store
from vlprobe.ui_tables import show
from vlprobe.verify import Damage

FOUND = "stored_damages"  # of this session's last look
MENDED = "stored_mended"
HEAD = ("What", "File", "What is wrong", "What happens to it")
ROWS = 50
OTHERS = {  # what is no run: in plain words, and what becomes of it
    "embeddings": ("Embeddings, kept to save time", "Goes, and is made by the next run that needs it"),
    "models": ("What a model's examination found", "Goes, and the model is examined by its next run"),
    "jobs": ("What is known of a job", "Goes; what it had finished stays"),
    "annotations": ("Tags and notes", "Stays: nobody but you can write it again"),
}
NEVER_FINISHED = ("A file that was never finished", "Goes")


@dataclass(frozen=True)
class Found:
    """A damage as it was seen: a file that is written anew meanwhile has another stamp, and is left alone."""

    damage: Damage
    stamp: tuple[int, int] | None  # size and time; None where there is no such file


@dataclass(frozen=True)
class Known:
    """Runs by their key, and how each was asked for."""

    runs: Mapping[str, Run]
    asked: Mapping[str, Request]


def stored() -> None:
    """A button that reads all that is stored; of what is damaged a list, and a button that makes it anew."""
    if access.read_only():
        return
    st.header("What is stored")
    if told := st.session_state.pop(MENDED, ""):
        st.success(plain(told), icon=":material/check_circle:")
    quiet("Disks forget. Every result was stored with a checksum; this compares all of them, and changes nothing.")
    if st.button("Check what is stored", icon=":material/fact_check:", key="check_stored"):
        _look()
    found = st.session_state.get(FOUND)
    if found is None:
        return
    if not found:
        st.success("Everything that is stored is as it was written.", icon=":material/check_circle:")
        return
    _list(found)


def way_out(error: VlprobeError) -> None:
    """Below an error that says something stored is damaged: the way to the button."""
    if REPAIR in str(error) and not access.read_only():
        st.page_link("pages/run.py", label="Check what is stored, and make it anew", icon=":material/fact_check:")


def _look() -> None:
    bar = st.progress(0.0, text="Reading what is stored")
    try:
        found = verify.damages(
            store(), lambda label, done, of: bar.progress(done / of, text=f"{label}: {done:,} of {of:,} files")
        )
        st.session_state[FOUND] = tuple(Found(damage, _stamp(damage)) for damage in found)
    except VlprobeError as error:
        st.session_state.pop(FOUND, None)
        st.error(plain(str(error)), icon=":material/error:")
    finally:
        bar.empty()


def _list(found: tuple[Found, ...]) -> None:
    known = _known(store())
    alike: dict[tuple[str, ...], list[str]] = {}
    for one in found:
        what, then = _in_words(one.damage, known)
        alike.setdefault((what, one.damage.why, then), []).append(_inside(one.damage))
    rows = []
    for (what, why, then), files in list(alike.items())[:ROWS]:
        more = f"<br>{tag('small', f'and {len(files) - 1:,} more')}" if len(files) > 1 else ""
        path = f"<td>{breakable(files[0])}{more}</td>"
        cells = [tag("td", text[:1].upper() + text[1:]) for text in (why, then)]
        rows.append(f'<tr class="first">{tag("th", what, scope="row")}{path}{"".join(cells)}</tr>')
    st.warning(
        f"{len(found):,} stored {'file is' if len(found) == 1 else 'files are'} damaged.", icon=":material/warning:"
    )
    show("Damaged files", "".join(tag("th", title, scope="col") for title in HEAD), rows)
    if len(alike) > ROWS:
        quiet(f"The first {ROWS} kinds of {len(alike):,}. `vlprobe verify` lists all of them.")
    if not any(one.damage.drop for one in found):
        return
    asked = again(found, known)
    st.button(
        "Make it anew",
        type="primary",
        icon=":material/play_arrow:",
        key="mend_stored",
        on_click=attempt,
        args=(_mend, found),
    )
    models = sum(len(request.models) for request in asked)
    runs = f"{models} {'run starts' if models == 1 else 'runs start'} again"
    quiet(
        f"The damaged files go, and {runs}; models and pictures have to be where they were. What is whole is kept."
        if models
        else "The damaged files go. No run has to start again for them at once."
    )


def again(found: tuple[Found, ...], known: Known) -> list[Request]:
    """The runs that make anew what goes, those that differ by the model alone in one."""
    merged: list[Request] = []
    for key in dict.fromkeys(key for one in found if one.damage.drop for key in _runs_of(one.damage, known)):
        request = known.asked[key]
        alike = [one for one in merged if replace(one, models=request.models) == request]
        if not alike:
            merged.append(request)
        elif not set(request.models) <= set(alike[0].models):
            merged[merged.index(alike[0])] = replace(request, models=(*alike[0].models, *request.models))
    return merged


def _mend(found: tuple[Found, ...]) -> None:
    """Drops what is still as damaged as it was seen, then starts its runs."""
    store().writable()
    st.session_state.pop(FOUND, None)
    same = tuple(one for one in found if _stamp(one.damage) == one.stamp)
    asked = again(same, _known(store()))
    verify.repair([one.damage for one in same])
    started = [jobs.start(request, store()) for request in asked]
    gone = sum(bool(one.damage.drop) for one in same)
    st.session_state[MENDED] = f"{gone:,} damaged {'file' if gone == 1 else 'files'} removed." + (
        " What they held is being made anew: see the top of this page." if started else ""
    )
    if started:
        st.query_params["job"] = started[0]


def _known(there: Store) -> Known:
    """All runs of which anything can still be told, by their manifests or by the jobs that made them."""
    runs = {}
    for path in there.root.glob("runs/*/manifest.json"):
        try:
            run = Run(**json.loads(path.read_bytes())["run"])
            if run.key == path.parent.name:  # the rest of a damaged manifest may be wrong, but not this
                runs[run.key] = run
        except (OSError, ValueError, TypeError, KeyError):
            continue
    asked = {key: _request(run) for key, run in runs.items()}
    for job in jobs.jobs(there):
        if isinstance(job.request, Request):
            pairs = zip(job.keys, job.request.models, strict=False)
            asked |= {key: replace(job.request, models=(model,)) for key, model in pairs}
    return Known(runs, asked)


def _request(run: Run) -> Request:
    own = registry.load_probe(run.probe).defaults
    options = {name: value for name, value in run.options.items() if name in own}
    return Request((run.model,), run.dataset, run.probe, options, run.seed, run.limit)


def _runs_of(damage: Damage, known: Known) -> list[str]:
    """Keys of the runs that make this anew."""
    kind, key = _place(damage)
    if kind == "runs":
        return [key] if key in known.asked else []
    return [own for own, run in known.runs.items() if kind == "cases" and run.case_key == key]


def _in_words(damage: Damage, known: Known) -> tuple[str, str]:
    """What a damaged file holds, and what becomes of it."""
    kind = _place(damage)[0]
    if damage.path.name.endswith(".tmp") or not kind:
        return NEVER_FINISHED
    if kind in OTHERS:
        return OTHERS[kind]
    runs = _runs_of(damage, known)
    if not runs:
        what = "Answers of a model" if kind == "runs" else "Questions"
        return what, "Goes; which run it was cannot be told, so run it again as you did"
    asked = known.asked[runs[0]]
    data = f"{asked.dataset or registry.load_probe(asked.probe).dataset} · {asked.probe}"
    what = f"Answers of {asked.models[0]} to {data}" if kind == "runs" else f"Questions of {data}"
    return what, "Goes, and is made anew"


def _place(damage: Damage) -> tuple[str, str]:
    """The folder of the cache that a file is in, and the one below it, which names a run or its questions."""
    found = re.search(r"\b(runs|cases|embeddings|models|jobs|annotations)/([0-9a-z]*)", _inside(damage))
    return (found[1], found[2]) if found else ("", "")


def _inside(damage: Damage) -> str:
    """Where a file is in the cache, or in the object store."""
    path = damage.path
    return path.relative_to(store().root).as_posix() if isinstance(path, Path) else path.name


def _stamp(damage: Damage) -> tuple[int, int] | None:
    if not isinstance(damage.path, Path) or not damage.path.exists():
        return None
    status = damage.path.stat()
    return status.st_size, status.st_mtime_ns
