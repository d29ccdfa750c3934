"""The frame around every page, and page elements that several pages share. A page first calls `frame.enter()`."""

import contextvars
from collections.abc import Mapping, Sequence

import streamlit as st

from vlprobe import __version__, views
from vlprobe.dashboard import lookup, navigation, tables
from vlprobe.dashboard.access import admit
from vlprobe.dashboard.jobs import all_watched, probe_button, under_way, watched
from vlprobe.dashboard.run import progress
from vlprobe.dashboard.run.progress import panel
from vlprobe.dashboard.state import (
    PageSubject,
    choose,
    fix_store_version,
    link_docs,
    model_name,
    pick_question_set,
    plain,
    quiet,
    renamed,
    store,
    view,
    warn_of_missing,
)
from vlprobe.dashboard.widgets import draw_error, draw_row, left_out, link_page, way_out
from vlprobe.errors import VlprobeError, plugin_errors
from vlprobe.models.published import NOTE
from vlprobe.render import fitness
from vlprobe.render.attribution import published_line
from vlprobe.render.html.elements import tag
from vlprobe.render.html.style import style
from vlprobe.render.sentences import drawn_only, sentence_names
from vlprobe.render.words import presentations
from vlprobe.types import AS_PAPER, POOLED, Metric

UNITS = {"cosine": "Cosine", "spread": "Spreads"}
DRAWN = "demo"  # prefix of drawn datasets, and of models trained only on drawn pictures
AVERAGING = {POOLED: "Cases pooled", AS_PAPER: "As in the paper (macro)"}
_framed = contextvars.ContextVar("framed", default=False)


def main() -> None:
    """Draw the current page and the frame around it."""
    version_text = f"vlprobe {__version__}. Results are in {plain(store().address)}."
    st.set_page_config(page_icon="🔎", menu_items={"About": version_text})
    page = navigation.current_page()
    st.set_page_config(page_title=f"{page.title} · vlprobe")
    st.html(style(st.context.theme.type))
    colors = navigation.DARK if st.context.theme.type == "dark" else navigation.LIGHT
    st.logo(navigation.LOGO.format(**colors), size="large")
    admit()
    token = _framed.set(True)
    try:
        if problem := st.session_state.pop("problem", ""):
            st.error(link_docs(problem), icon=":material/error:")
        with plugin_errors(), fix_store_version():
            if unreached := store().connection_error:
                st.warning(
                    f"Only the results on this machine are shown. {plain(unreached)}",
                    icon=":material/cloud_off:",
                )
            lookup.draw()
            left_out()
            if name := navigation.BELOW.get(page.url_path):
                with draw_row("way_back"):
                    st.page_link(navigation.page_file("lab"), label="Lab", width="content")
                    here = tag("span", name, **{"aria-current": "page"})
                    st.html(f'<p class="vp-quiet"><span aria-hidden="true">/</span> {here}</p>')
            with warn_of_missing():
                page.run()
            unfinished = under_way()
            progress.draw_bar(unfinished)
            progress.draw_notices(unfinished, is_long=page.url_path == "run")
    except VlprobeError as error:
        draw_error(error)
        way_out(error)
    finally:
        _framed.reset(token)


def enter() -> None:
    """Begin a page. If Streamlit ran it without the frame, as after a link to a new server, draw the frame first."""
    if not _framed.get():
        main()
        st.stop()


def begin(probe: str) -> PageSubject:
    """Draw a picker for a probe's question sets. If there are none, describe the probe, draw a button that runs it, and
    stop the page.
    """
    exists = probe in set(view(views.runs.question_sets)["probe"])
    if not exists:
        st.markdown(presentations()[probe].sentence)
    job = watched()
    if job is not None and probe not in job.probes:
        job = None
    if job is not None and job.state != "done":
        panel(job)
    if exists:
        return pick_question_set(probe)
    if job is None:
        st.info("No model has run this test yet.", icon=":material/info:")
        probe_button(probe)
    st.stop()


def sentence(subject: PageSubject, kind: str = "") -> None:
    """Draw the description of a probe, or the description of one kind of question if the kind has one."""
    presentation = subject.presentation
    of_kind = presentation.kinds.get(kind)
    st.markdown((of_kind and of_kind.sentence) or presentation.sentence)


def unit(subject: PageSubject, *names: str) -> str:
    """Draw a picker for cosine or spread units, unless none of the named metrics (all by default) is a known cosine."""
    known = view(views.estimates.estimates, subject.question_set).dropna(subset=["value"])
    shown = set(known["metric"]) & set(names or subject.metrics)
    if not any(subject.metrics[name].unit == "cosine" for name in shown):
        return "cosine"
    help_ = (
        "Models have different cosine ranges. Spread units divide each difference by the standard "
        "deviation of the model's similarity over mismatched pairs, so that models can be compared."
    )
    return choose("Unit of differences", "unit", UNITS, "cosine", segments=True, help_=help_)


def averaging(subject: PageSubject, metric: Metric | None = None) -> str:
    """Draw a picker for the averaging, unless the metric has only one or both agree. Returns the choice."""
    if metric is not None and len(metric.averaging) == 1:
        return metric.averaging[0]
    if not view(views.estimates.averaging_matters, subject.question_set):
        return POOLED
    help_ = (
        "Pooled (micro): every case counts equally, as on the other pages. As in the paper "
        "(macro): the mean of the per-caption means, so every caption counts equally."
    )
    return choose("Average", "average", AVERAGING, POOLED, segments=True, help_=help_)


def watched_job(besides: str = "") -> None:
    """Draw the progress of each job that the URL names, except the one drawn elsewhere on the page."""
    for job in all_watched():
        if job.id != besides:
            panel(job)


def say_strangers(
    subject: PageSubject,
    models: Sequence[str] = (),
    others: Sequence[PageSubject] = (),
    names: Mapping[str, str] | None = None,
) -> None:
    """Draw a note if others published some of the answers, and a note if models for drawn scenes ran on photographs.

    Args:
        subject: The question set.
        models: The models whose answers are shown; by default all models except controls.
        others: Other question sets on the page.
        names: Names by model, if the page has others.
    """
    runs = [
        run
        for each in (subject, *others)
        for run in each.question_set.runs
        if run.model in (models or each.question_set.rated_models)
    ]
    if line := published_line(runs, renamed() if names is None else names):
        # Folded on Present, where names are long
        st.html(
            str(line)
            if names is None
            else f"<details class='vp-quiet'><summary>{NOTE}</summary>{line}</details>"
        )
    on_pictures = (run.model for run in runs if not run.dataset.startswith(DRAWN))
    asked_models = list(dict.fromkeys(on_pictures))
    toys = [name for name in asked_models if name.startswith(f"{DRAWN}:")]
    toy_names = sentence_names(toys, renamed())
    if note := drawn_only([toy_names[name] for name in toys], len(asked_models)):
        quiet(note)


def draw_details(subject: PageSubject) -> None:
    """Draw cautions about the models' numbers, and an expander with details on the question set."""
    notes(subject)
    tables.draw_set_details(subject.question_set)


def notes(subject: PageSubject) -> None:
    """Draw cautions about a model's numbers, for example that the model was never trained."""
    if versions := view(views.runs.version_notes, subject.question_set):
        st.warning("\n".join(f"- {plain(note)}" for note in versions), icon=":material/history:")
    if warned := view(views.fitness.warned, subject.question_set):
        lines = [f"- {plain(fitness.warning(row, model_name(row.model)))}" for row in warned]
        st.info("\n".join(lines), icon=":material/info:")
        link_page("models", "The checks and what they mean", icon="health_and_safety")
