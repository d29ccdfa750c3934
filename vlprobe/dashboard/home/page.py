"""Home, top to bottom: running jobs, the failure, the figures, and the subject."""

import streamlit as st

from vlprobe import views
from vlprobe.dashboard import frame
from vlprobe.dashboard.home import figures, hero, sets
from vlprobe.dashboard.home.subject import home_subject
from vlprobe.dashboard.jobs import demo_button, watched
from vlprobe.dashboard.navigation import page_file
from vlprobe.dashboard.run.progress import panel
from vlprobe.dashboard.state import (
    PageSubject,
    dataset_name,
    mark_picked,
    pick_question_set,
    quiet,
    store,
    view,
)
from vlprobe.render.sentences import count_word, counted
from vlprobe.runs import jobs
from vlprobe.storage.access import read_only

EVERY_SECONDS = 2
LEADING = "home_leading"  # in the session: the most complete question set at the last look


def draw_page() -> None:
    """The whole page; above it the run that the URL names, until it has succeeded."""
    job = watched()
    if job is not None and job.state != "done":
        panel(job)
    if view(views.runs.question_sets).empty:
        if job is None:
            _draw_nothing()
        return
    _show_new_results()
    body, foot = st.container(key="home"), st.container(key="home_foot")
    with foot:
        sets.draw_sets()
    with foot, st.container(horizontal=True, vertical_alignment="center", gap="small"):
        about_slot = st.container(width="content")
        if not read_only():
            st.page_link(page_file("run"), label="Test your own model", width="content")
        with st.popover("Change", type="tertiary"):
            about = home_subject(pick_question_set())
    with about_slot:
        quiet(_about(about))
        frame.say_strangers(about)
    with body:
        hero.draw_hero(about)
        figures.draw_figures(about)


def _show_new_results() -> None:
    """Show the most complete question set where it has changed since the last look, unless the
    visitor chose another one; look again during a run.
    """
    leading = next(iter(view(views.runs.question_sets)["case_key"]), "")
    earlier = st.session_state.get(LEADING, leading)
    if leading != earlier and st.query_params.get("set", earlier) == earlier:
        mark_picked()
        st.query_params.clear()
        st.query_params["set"] = leading
    st.session_state[LEADING] = leading
    if jobs.going(store()):
        st.fragment(_look, run_every=EVERY_SECONDS)(store().version())


def _look(version: str) -> None:
    if store().version() != version:
        st.rerun()


def _draw_nothing() -> None:
    """Draw the empty page, without own or bundled results: one button fills it."""
    st.title("No results yet", anchor=False)
    quiet(
        "The demo tests three tiny models on 500 drawn scenes. It takes a minute or two "
        "and works offline."
    )
    demo_button()
    if not read_only():
        st.page_link(page_file("run"), label="Or test your own model", icon=":material/tune:")


def _about(about: PageSubject) -> str:
    """Describe the subject of the page, in a line."""
    question_set = about.question_set
    run = question_set.runs[0]
    models = len(question_set.rated_models)
    model_count = f"{count_word(models)} {'model' if models == 1 else 'models'}"
    if question_set.shipped and question_set.probe == "lgip":
        return (
            f"Bundled results: {count_word(models)} small models, {run.n_items:,} drawn scenes. No download and no "
            "setup needed."
        )
    whose = "Bundled results" if question_set.shipped else "Your results"
    name = question_set.presentation.name
    unit = "picture" if run.n_items == run.n_units else "question"
    pictures = f"{dataset_name(run.dataset)}, {counted(run.n_items, unit)}"
    return f"{whose} · {name} · {pictures} · {model_count}"
