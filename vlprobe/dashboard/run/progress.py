"""The progress of jobs: a card per model on the Run page, and on other pages a bar, and a notice when a job ends."""

import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Literal

import streamlit as st

from vlprobe import views
from vlprobe.case.card import wrong_captions
from vlprobe.dashboard.access import changes
from vlprobe.dashboard.jobs import STATES, span, under_way
from vlprobe.dashboard.pictures import large_picture
from vlprobe.dashboard.state import dataset_name, link_docs, model_name, plain, quiet, store, view
from vlprobe.dashboard.widgets import draw_row, error_text, link_page, press
from vlprobe.errors import VlprobeError
from vlprobe.render import charts
from vlprobe.render.html.elements import mark, tag
from vlprobe.render.words import presentations, probe_name
from vlprobe.runs import jobs
from vlprobe.runs.jobs import Job
from vlprobe.runs.profile import SCORING, stage_of
from vlprobe.runs.request import Request
from vlprobe.storage import access
from vlprobe.types.presentation import KindPresentation
from vlprobe.views.changes import change_in_words
from vlprobe.views.filter import Filter
from vlprobe.views.progress import SoFar
from vlprobe.views.records import RunRow
from vlprobe.views.runs import QuestionSet

# Default values, which a run's selection leaves out
EVERY_ITEM = {"item": [], "where": [], "sample": 0}

EVERY_SECONDS = 2
FOOLED_SIDE = 112  # pixels of the last picture that fooled a model
PAST = 12  # maximum number of earlier jobs in the list
State = Literal["done", "running", "waiting", "stopped"]
Standing = tuple[SoFar, KindPresentation]  # partial results, and what the cases ask
STAGES = {  # descriptions of the stages in `profile`
    "read the dataset": "Reading the data",
    "check the data": "Checking the data",
    "make questions": "Making edits",
    "load models": "Loading the model",
    "doctor": "Checking the model",
    "similarity spread": "Measuring the spread of the scores",
    "judge, intervals, write": "Computing intervals",
    SCORING: "Scoring",
}
COUNTED = ("make questions", "doctor", "similarity spread")  # stages that report their progress
TOWERS = {"(images)": "Reading pictures", "(texts)": "Reading captions"}  # by the end of a label


def panel(job: Job) -> None:
    """Draw the progress of a job, updated every 2 seconds while it runs."""
    every = None if job.ended else EVERY_SECONDS
    st.fragment(_panel, run_every=every)(job.id, job.ended, len(stored_runs(job)))


def draw_line(job: Job, text: str, when: str = "") -> None:
    """Draw a line with a job's state, its task and, if it is given, its start."""
    icon, word = STATES[job.state]
    more = f" {tag('small', when, class_='vp-quiet')}" if when else ""
    line = f"{tag('strong', f'{icon} {word}')} {tag('span', text)}{more}"
    st.html(f'<p class="vp-job">{line}</p>')


def reread(job_id: str, ended: bool) -> Job | None:
    """Read a job again for a panel that updates itself. Reruns the page when the job ends, and draws an error and
    returns None if the job is missing.
    """
    try:
        job = jobs.read(store(), job_id)
    except VlprobeError as error:
        st.error(link_docs(str(error)))
        return None
    if job.ended != ended:
        st.rerun()
    return job


def stored_runs(job: Job) -> list[RunRow]:
    """Return the runs that a job has completed, in the order of the job's models and probes."""
    newest = {
        (row.model, row.probe): row
        for row in reversed(view(views.runs.run_rows))
        if any(_is_of(row, job.keys, request) for request in job.requests)
    }
    passed = [(model, probe) for model in job.models[: _place(job)] for probe in job.probes]
    current = job.models[_place(job) : _place(job) + 1]
    passed += [(model, probe) for model in current for probe in job.probes[: job.probes_begun]]
    return [newest[pair] for pair in passed if pair in newest]


def _is_of(row: RunRow, keys: Sequence[str], request: Request) -> bool:
    """Return whether a stored run belongs to a request. If the job has finished, `keys` lists its runs."""
    if keys:
        return row.key in keys
    if any(getattr(row, name) != getattr(request, name) for name in ("probe", "dataset", "limit")):
        return False
    request_items = (sorted(set(request.item)), sorted(set(request.where)), request.sample)
    run_items = (row.selection.get(name, empty) for name, empty in EVERY_ITEM.items())
    is_whole = not (request.without or request.without_tag or request.errata)
    is_alike = is_whole == ("without" not in row.selection)
    return is_alike and request_items == tuple(run_items)


def _place(job: Job) -> int:
    """Return the number of models that are done, judging by the job's label, which names the current model."""
    if job.state == "done":
        return len(job.models)
    positions = [position for position, model in enumerate(job.models) if model in job.label]
    return max(positions, key=lambda position: len(job.models[position]), default=0)


def overall_fraction(job: Job) -> float:
    """Return the finished share of a job, from 0 to 1. All models count equally."""
    return min((_place(job) + _fraction(job)) / len(job.models), 1.0)


def _fraction(job: Job) -> float:
    """Return the finished share of the current model's work, from 0 to 1. Stages before scoring do not count."""
    if job.ended or _is_counted(job):
        return job.fraction
    return job.probes_begun / max(len(job.probes), 1)


def _is_counted(job: Job) -> bool:
    """Return whether the job counts scored cases or training steps now, rather than progress in another stage."""
    return job.request.kind == "training" or stage_of(job.label) == SCORING


def stage(job: Job) -> str:
    """Describe what a job is doing, as in "Reading pictures 120 of 283"."""
    if job.state != "running" or job.request.kind == "training":
        return job.label
    name = next(
        (words for tower, words in TOWERS.items() if job.label.endswith(tower)),
        STAGES[stage_of(job.label)],
    )
    if job.total > 1 and stage_of(job.label) in COUNTED:
        return f"{name} {job.done:,.0f} of {job.total:,.0f}"
    return name


def in_one_line(job: Job) -> str:
    """Describe a job's progress in one line, for the bar at the bottom of other pages."""
    if job.state == "queued":
        return f"{_what(job)}: waiting"
    model = model_name(job.models[min(_place(job), len(job.models) - 1)])
    return f"{model}: {' · '.join(filter(None, [stage(job), _pace(job)]))}"


def _what(job: Job) -> str:
    """Describe a job's tests and datasets in one line."""
    if job.request.kind == "training":
        return f"Training on {dataset_name(job.dataset)}"
    questions = ", ".join(probe_name(probe, "") for probe in job.probes)
    names = (
        f"{dataset_name(each.dataset)}{f' (at most {n:,} pictures)' if (n := each.limit or each.sample) else ''}"
        for each in job.requests
    )
    datasets = ", ".join(dict.fromkeys(names))
    return f"{questions} · {datasets}"


def _panel(job_id: str, ended: bool, n_stored: int) -> None:
    job = reread(job_id, ended)
    if job is None:
        return
    finished = stored_runs(job)
    if len(finished) != n_stored:  # a model is done, and the whole page shows its results
        st.rerun()
    with st.container(border=True, key=f"job_{job.id}"):
        draw_line(job, f"{_what(job)} · {', '.join(map(model_name, job.models))}")
        if job.error:
            st.error(link_docs(error_text(job.failure)))
        _cards(job, finished)
        for reason in job.left_out:
            quiet(f"Left out {reason}")
        if not job.ended:
            waits = f"{job.label}. " if job.state == "queued" else ""
            quiet(f"{waits}{span(time.time() - job.created)} so far. You can leave this page.")
        elif job.label:
            total = span(job.updated - job.created)
            quiet(f"{job.label.rstrip('.')}. It took {total}, with waiting and loading.")
        with st.container(horizontal=True):
            refusal = "Jobs cannot be stopped or started here."
            if job.state != "done" and changes(refusal):
                if job.ended:
                    draw_resume(job, f"resume_{job.id}")
                else:
                    draw_stop(job, "Stopping at the next batch", f"cancel_{job.id}")
            _links(job, finished)
        draw_log(job)


def _cards(job: Job, finished: list[RunRow]) -> None:
    """Draw a card for each model in a job with its progress and the number of cases that fooled it."""
    styles = charts.styles.styles([*view(views.runs.models), *job.models])
    standing = None if job.ended else _standing(job)
    grid = st.grid(min_column_width=240, border=True, gap="small", key=f"models_{job.id}")
    for position, name in enumerate(job.models):
        state, fraction = model_state(job, position)
        runs = {row.probe: row for row in finished if row.model == name}
        with grid.cell():
            st.html(
                f'<p class="vp-job">{mark(styles[name])} {tag("strong", model_name(name))} '
                f"{tag('span', state, class_='vp-quiet vp-small')}</p>"
            )
            st.progress(fraction)
            for line in _lines(job, state, runs, standing):
                quiet(line)
            so_far = standing[0] if standing and state == "running" else None
            if last := _last_fooled(job, so_far, list(runs.values())):
                _draw_last_fooled(*last)


def model_state(job: Job, position: int) -> tuple[State, float]:
    """Return the state of the model at a position in a job's list, and the finished share of its work, 0 to 1."""
    if position < _place(job):
        return "done", 1.0
    if position > _place(job) or job.state == "queued":
        return "waiting", 0.0
    return "stopped" if job.ended else "running", _fraction(job)


def _last_fooled(job: Job, so_far: SoFar | None, runs: Sequence[RunRow]) -> tuple[str, int] | None:
    """Return the question set and the number of the last case that fooled a model; None if none is known.

    Args:
        job: The job.
        so_far: Partial results of the model if it is running now.
        runs: The model's completed runs in the job.
    """
    if so_far and so_far.last_fooled >= 0:
        return job.case_key, so_far.last_fooled
    for row in reversed(runs):
        question_set, kind, presentation = _asked(row)
        if not presentation.is_movement:
            numbers, _, _ = view(views.cases.passing, question_set, Filter(row.model, kind))
            if len(numbers):
                return row.case_key, int(numbers[-1])
    return None


def _draw_last_fooled(case_key: str, number: int) -> None:
    """Draw the picture of a case that fooled a model, and the words that differ."""
    case = view(views.rows.question_rows, case_key, (number,)).iloc[0]
    true_text, *others = case["texts"][:2]
    words = change_in_words(true_text, others[0], others[0]) if others else ""
    source = large_picture(case["images"][0], FOOLED_SIDE) if len(case["images"]) else ""
    if source:
        st.image(source, plain(f"Last fooled: {words}"), width=FOOLED_SIDE)
    elif words:  # the scores came without pictures
        quiet(f"Last fooled: {words}")


def _lines(
    job: Job, state: State, rows: Mapping[str, RunRow], standing: Standing | None
) -> Iterator[str]:
    """Yield one line of progress per probe for a model. If a job has several probes, each line names its probe."""
    for probe_position, probe in enumerate(job.probes or ("",)):
        if probe in rows:
            line = f"{_result(rows[probe])}, in {span(rows[probe].seconds)}"
        elif state == "done":
            line = "done"
        elif state == "waiting" or probe_position > job.probes_begun:
            line = "waiting"
        else:
            line = (
                "finished work is kept"
                if state == "stopped"
                else " · ".join(filter(None, [_fooled_so_far(standing), stage(job), _pace(job)]))
            )
        if any(reason.startswith(f"{probe}: ") for reason in job.left_out):
            line = "left out"
        yield f"{probe_name(probe, '')} · {line}" if len(job.probes) > 1 else line


def _standing(job: Job) -> Standing | None:
    """Return partial results of the current model, and what its cases ask. Returns None for kinds that cannot fool it
    and while they are unknown.
    """
    if not job.run_key or not job.probes:
        return None
    probe = job.probes[job.probes_begun]
    try:
        kind = next(iter(views.runs.list_kinds(store(), job.case_key, probe)), "")
        presentation = presentations()[probe].kind(kind)
        if presentation.is_movement:
            return None
        return views.progress.so_far(store(), job.run_key, job.case_key, kind), presentation
    except VlprobeError:  # its question set is missing; the job will report that
        return None


def _fooled_so_far(standing: Standing | None) -> str:
    """Describe how many wrong captions have fooled the current model in the finished parts of its run.

    Returns "" before the first part is finished, and for kinds that cannot fool a model.
    """
    if standing is None or not standing[0].n_answered:
        return ""
    so_far, presentation = standing
    return (
        f"so far fooled by {so_far.n_fooled:,} of {so_far.n_answered:,} {wrong_captions(presentation)} "
        f"({100 * so_far.n_fooled / so_far.n_answered:.0f} %)"
    )


def _asked(row: RunRow) -> tuple[QuestionSet, str, KindPresentation]:
    """Return the question set of a finished run, the kind of case that describes it, and what they ask."""
    question_set = view(views.runs.question_set, row.case_key)
    kind = view(views.runs.default_kind, question_set, (row.model,))
    return question_set, kind, presentations()[row.probe].kind(kind)


def _result(row: RunRow) -> str:
    """Describe how many wrong captions fooled the model in a finished run, or count its cases if none can."""
    question_set, kind, presentation = _asked(row)
    if presentation.is_movement:
        return f"{row.n_cases:,} cases"
    counted = view(views.cases.outcomes, question_set, Filter(row.model, kind))
    return f"fooled by {counted['fooled']:,} of {counted['all']:,} {wrong_captions(presentation)}"


def _cases(row: RunRow) -> dict[str, str]:
    """Return the URL parameters for the failures in a finished run, or for all its cases if there are none."""
    question_set, kind, _ = _asked(row)
    n_fooled = view(views.cases.outcomes, question_set, Filter(row.model, kind))["fooled"]
    return {"set": row.case_key, "model": row.model, **({} if n_fooled else {"outcome": "all"})}


def _pace(job: Job) -> str:
    """Describe how much work is done, its speed, and how long the rest will take. Returns "" while unknown."""
    spent = job.updated - job.started
    if job.state != "running" or not _is_counted(job) or job.done <= 0 or spent <= 0.5:
        return ""
    rate = job.done / spent
    noun = "steps" if job.request.kind == "training" else "cases"
    phrases = [
        f"{job.done:,.0f} of {job.total:,.0f} {noun}",
        f"{rate:,.{0 if rate >= 10 else 1}f} a second",
    ]
    if rate > 0 and job.done < job.total:
        subject = "test" if len(job.probes) > 1 else "model"
        phrases.append(f"about {span((job.total - job.done) / rate)} left for this {subject}")
    return " · ".join(phrases)


def draw_stop(job: Job, stopping: str, key: str, **settings: str) -> None:
    """Draw a button that stops a job. Once it is pressed, its label changes to `stopping`."""
    is_stopping = st.session_state.get("stopping") == job.id
    settings = {"icon": "stop", "key": key} | settings
    press(stopping if is_stopping else "Cancel", stop, job.id, disabled=is_stopping, **settings)


def draw_resume(job: Job, key: str) -> None:
    """Draw a button that resumes a stopped job."""
    help_ = "Continue from where the job stopped."
    press("Resume", resume, job.id, icon="play_arrow", key=key, help=help_)


def draw_log(job: Job) -> None:
    """Draw the last lines of a job's log in an expander."""
    with st.expander("Log"):
        text = jobs.log(store(), job.id) or "The log is empty."
        st.code(text, language=None, wrap_lines=True)


def stop(job_id: str) -> None:
    """Ask a job to stop, and remember the request so that the button shows it."""
    jobs.cancel(store(), job_id)
    st.session_state["stopping"] = job_id


def resume(job_id: str) -> None:
    """Resume a stopped job."""
    st.session_state.pop("stopping", None)
    jobs.resume(store(), job_id)


def _outcome(job: Job) -> tuple[str, str, str, dict[str, str]]:
    """Describe in one line the result of an ended job, or its models, tests and the reason why it stopped. Also return
    the page, label and URL parameters of a link to its results.
    """
    if job.state == "done" and (finished := stored_runs(job)):
        run, result = finished[-1], _result(finished[-1])
        verb = " is" if result.startswith("fooled") else ":"
        return f"{model_name(run.model)}{verb} {result}.", "explore", "See them", _cases(run)
    text = f"{', '.join(map(model_name, job.models))} · {_what(job)}"
    if job.error:
        text += f". {error_text(job.failure)}"
    if job.state == "done" and job.request.kind == "training":
        return text, "repair", "See the losses", {"training": job.id}
    return text, "run", "Show", {}


def _links(job: Job, finished: list[RunRow]) -> None:
    """Draw links to the results of a job. They appear as soon as the first model is done."""
    if job.request.kind == "training":
        if job.state == "done":
            link_page("repair", "See the losses", {"training": job.id}, icon="build")
        return
    # For each probe, the first model of the job
    first: dict[str, RunRow] = {}
    for run in finished:
        first.setdefault(run.probe, run)
    for probe, run in first.items():
        label = "See the cases" + (f" · {probe_name(probe, '')}" if len(job.probes) > 1 else "")
        link_page("explore", label, _cases(run), icon="image_search")
    if finished:
        query = {"set": finished[0].case_key, "model": finished[-1].model}
        link_page("tradeoff", "See the numbers", query, icon="bar_chart")


OPENED = "opened_job"  # session key: the earlier job that the user opened


def past() -> None:
    """Draw a list of the newest jobs that the page does not show yet, each with a button that opens it."""
    watched = st.query_params.get_all("job")
    opened = st.session_state.get(OPENED)
    earlier = [
        job
        for job in jobs.jobs(store())
        if job.ended or job.id not in watched or job.id == opened  # a resumed one stays in its row
    ][:PAST]
    for error in jobs.damaged(store()):
        st.warning(link_docs(error_text(error)), icon=":material/warning:")
    if not earlier:
        quiet(
            "No earlier run was started from this page. Runs started from the command line and bundled results "
            "are on the other pages."
        )
    for job in earlier:
        with draw_row(f"past_{job.id}"):
            when = time.strftime("%d %b, %H:%M", time.localtime(job.created))
            draw_line(job, f"{', '.join(map(model_name, job.models))} · {_what(job)}", when)
            if job.id not in watched:
                press("Open", _open, job.id, key=f"open_{job.id}")
        if job.id in watched and job.id == opened:
            panel(job)


def _open(job_id: str) -> None:
    """Show an earlier job below its row, where the button was."""
    st.query_params["job"] = st.session_state[OPENED] = job_id


# Session keys: ids of jobs running at the last check, of jobs with a notice, and of jobs that ended on a long page
GOING, ENDED, ANNOUNCED = "jobs_going", "jobs_ended", "jobs_announced"
BAR_SECONDS = 2
MOST = 3  # maximum number of notices at once; the newest are kept


def draw_notices(unfinished: Sequence[Job], is_long: bool) -> None:
    """Draw a notice for each job that has ended without being canceled, unless the page already shows the job's
    progress. On a long page, where that may be out of view, draw the notice of a job that has just ended.
    """
    going = {job.id for job in unfinished}
    just_ended = st.session_state.get(GOING, set()) - going
    ended = [*st.session_state.get(ENDED, ()), *sorted(just_ended)]
    announced = st.session_state.setdefault(ANNOUNCED, set())
    if is_long:
        announced |= just_ended
    shown = set(st.query_params.get_all("job")) - (announced if is_long else set())
    st.session_state[GOING] = going
    st.session_state[ENDED] = [job_id for job_id in ended if job_id not in shown][-MOST:]
    if st.session_state[ENDED]:
        with st.container(key="notices"):
            for job_id in st.session_state[ENDED]:
                try:
                    job = jobs.read(store(), job_id)
                    if job.state == "cancelled":
                        _dismiss(job_id)
                    else:
                        _draw_notice(job)
                except VlprobeError:  # the job was deleted meanwhile
                    _dismiss(job_id)


def _draw_notice(job: Job) -> None:
    """Draw a notice that a job has ended, with its result and a link."""
    icon, word = STATES[job.state]
    text, page, label, query = _outcome(job)
    with st.container(key=f"notice_{job.id}", gap="small"):
        line = f"{tag('strong', f'{icon} {word}:')} {tag('span', text)}"
        st.html(f'<p class="vp-job" role="status">{line}</p>')
        with draw_row():
            # The page behind the link receives the job, so that the notice disappears there.
            link_page(page, label, query | {"job": job.id})
            st.space("stretch")
            press("Dismiss", _dismiss, job.id, key=f"dismiss_{job.id}", type="tertiary")


def _dismiss(job_id: str) -> None:
    st.session_state[ENDED] = [other for other in st.session_state[ENDED] if other != job_id]


def draw_bar(unfinished: Sequence[Job]) -> None:
    """Draw a bar with the current job's progress, updated every 2 seconds, unless the page already shows the job."""
    job = _current_job(unfinished)
    if job is not None and job.id not in st.query_params.get_all("job"):
        with st.bottom:
            draw_state(unfinished)


def draw_state(unfinished: Sequence[Job]) -> None:
    """Draw the current job's progress in one row, updated every 2 seconds, or nothing if no job is unfinished."""
    if unfinished:
        st.fragment(_draw_job, run_every=BAR_SECONDS)()


def _current_job(unfinished: Sequence[Job]) -> Job | None:
    """Return the running job, or else the one that has waited longest. Returns None if no job is unfinished."""
    return min(unfinished, key=lambda job: (job.state != "running", job.queued), default=None)


def _draw_job() -> None:
    job = _current_job(under_way())
    if job is None:  # the job has ended, and the page now shows its results
        st.rerun()
        return
    with draw_row("under_way"):
        st.progress(overall_fraction(job), text=plain(in_one_line(job)))
        if job.id in st.query_params.get_all("job"):
            return  # the page has its panel, with a button that cancels it
        link_page("run", "Show", {"job": job.id}, width="content")
        if not access.read_only():
            draw_stop(job, "Stopping", "stop_under_way", type="tertiary")
