"""The Model checks page: a model's metadata, and the results of checks that show whether to trust its scores."""

import math
from collections.abc import Mapping

import pandas as pd
import streamlit as st

from vlprobe import views
from vlprobe.dashboard.export import draw_menu
from vlprobe.dashboard.state import (
    attempt,
    carried,
    carry,
    choose,
    dataset_name,
    model_labels,
    model_name,
    plain,
    quiet,
    store,
    view,
)
from vlprobe.dashboard.tables import show
from vlprobe.dashboard.widgets import link_page
from vlprobe.errors import InvalidInput
from vlprobe.models.doctor.checks import Check
from vlprobe.models.doctor.examine import Examination
from vlprobe.registry import is_control
from vlprobe.render import charts, fitness
from vlprobe.render.attribution import published_line
from vlprobe.render.findings import order_sentences
from vlprobe.render.html.elements import breakable, column_heads, tag
from vlprobe.storage import access, display_names

VERDICTS = {
    True: ("✓", "Passed", "held"),
    False: ("!", "Failed", "fooled"),
    None: ("–", "Not judged", "tied"),
}


def examined() -> Examination:
    """Draw a picker for checked models and return the choice. If there are none, stop the page with instructions."""
    examinations = view(views.fitness.examinations)
    if not examinations:
        st.info(
            "No model has been checked yet; every run checks its models.", icon=":material/info:"
        )
        link_page("home", "Start with the demo", icon="play_arrow")
        st.code("vlprobe doctor demo:softmax", language="sh")
        st.stop()
    by_key = {f"{exam.model_digest[:8]}-{exam.dataset_digest[:8]}": exam for exam in examinations}
    options = {
        key: f"{model_name(exam.model)} on {dataset_name(exam.dataset)}"
        for key, exam in by_key.items()
    }
    # By default the previous page's model, else the latest one that is not a control
    previous = carried("model", {exam.model for exam in examinations}, "")
    ranks = {key: (exam.model != previous, is_control(exam.model)) for key, exam in by_key.items()}
    first = min(by_key, key=ranks.__getitem__)
    key = choose("One model in detail", "model", options, first, always=True)
    carry("model", by_key[key].model)  # other pages use the model's name
    return by_key[key]


def matrix() -> None:
    """Draw a table with the results of all checks for all models."""
    rows = view(views.fitness.matrix)
    if rows:
        styles = charts.styles.styles(view(views.runs.models))
        st.html(fitness.matrix(rows, styles, model_labels(row.model for row in rows)))
        outcomes = ({name: check.outcome for name, check in row.checks.items()} for row in rows)
        table = pd.DataFrame({"model": [row.model for row in rows]}).join(pd.DataFrame(outcomes))
        draw_menu("checks", table=table)
        quiet(
            "✓ passed, ! failed, - not judged (the check does not apply, or no published value "
            "exists). Controls should fail, which shows that the checks can detect a failure."
        )


def verdict(examination: Examination) -> None:
    """Draw a sentence with the outcome of the checks, below a credit if others published the model's answers."""
    digest, called = examination.model_digest, plain(model_name(examination.model))
    runs = [run for run in view(views.runs.run_rows) if run.model_digest == digest]
    if line := published_line(runs[:1]):
        st.html(str(line))
    for run in runs:
        if run.n_orders > 1:
            table = view(views.estimates.estimates, view(views.runs.question_set, run.case_key))
            for sentence in order_sentences(table, {run.model: model_name(run.model)}, [run.model]):
                quiet(f"{dataset_name(run.dataset)}: {sentence}")
    failed = [check.name for check in examination.checks if check.passed is False]
    judged = sum(check.passed is not None for check in examination.checks)
    if failed and is_control(examination.model):
        st.info(
            f"{called} is a control: it {fitness.fails(len(failed), True)}. No metric should "
            "reward it.",
            icon=":material/info:",
        )
    elif failed:
        names = ", ".join(fitness.check_name(name) for name in failed)
        st.error(
            f"{called} failed {len(failed)} of {judged} checks: {plain(names)}. Find the cause "
            "before you use its results.",
            icon=":material/warning:",
        )
    elif not judged:
        st.info(
            "No check applies, because imported answers cannot be recomputed.",
            icon=":material/info:",
        )
    else:
        every = f"all {judged} checks that apply" if judged > 1 else "the one check that applies"
        st.success(f"{called} passed {every}.", icon=":material/check_circle:")


def checks(examination: Examination) -> None:
    """Draw a table of checks with the outcome, the finding, and the result expected from a working model."""
    heads = column_heads(("Check", "Outcome", "Found", "Expected of a working model"))
    rows = [_row(check, is_control(examination.model)) for check in examination.checks]
    show(f"Checks of {model_name(examination.model)}", heads, rows)


def _row(check: Check, of_control: bool) -> str:
    sign, word, css = VERDICTS[check.passed]
    if check.passed is False and of_control:
        word, css = "Failed, as a control may", "quiet"
    value = "-" if math.isnan(check.value) else f"{check.value:.3g}"
    limit = "" if math.isnan(check.limit) else f"<br>{tag('small', f'limit {check.limit:.3g}')}"
    outcome = f'<strong class="vp-{css}">{sign} {word}</strong>'
    name = tag("th", fitness.check_name(check.name), scope="row", title=check.name)
    meaning = f"{tag('span', check.meaning)}<br>{tag('small', check.detail)}"
    return (
        f'<tr class="first">{name}<td>{outcome}</td><td>{value}{limit}</td><td '
        f'class="vp-metric">{meaning}</td></tr>'
    )


def passport(examination: Examination) -> None:
    """Draw a table of every property of the model that can change its scores."""
    rows = [
        f'<tr class="first">{tag("th", name, scope="row")}<td>{breakable(str(value))}</td></tr>'
        for name, value in examination.passport.items()
    ]
    show(f"Metadata of {model_name(examination.model)}", column_heads(("Fact", "Value")), rows)
    quiet(f"Examined on {examination.dataset}, {examination.finished}.")


def erased(examination: Examination) -> None:
    """Draw a table of the edits that never reach the model because its tokenizer undoes them."""
    rows = [
        f'<tr class="first">{tag("th", f"{row.kind}: {row.rule}", scope="row")}'
        f"{tag('td', f'{row.count:,} of {row.of:,}')}{tag('td', row.reason)}</tr>"
        for row in examination.erased
    ]
    if not rows:
        quiet("None: every tested edit reaches the model.")
        return
    show("Erased edits", column_heads(("Edit", "Never reach the model", "Undone by")), rows)


def draw_form() -> None:
    """Draw a form that renames a model or dataset, unless the dashboard is read-only or nothing is stored."""
    called = {name: model_name(name) for name in view(views.runs.models)}
    if access.read_only() or not called:
        return
    datasets = sorted(set(view(views.runs.runs)["dataset"]) - called.keys())
    called |= {name: dataset_name(name) for name in datasets}
    with (
        st.expander("Rename a model or a dataset", icon=":material/edit:", key="renaming"),
        st.form("rename", border=False, clear_on_submit=True),
    ):
        left, right = st.columns(2)
        left.selectbox(
            "Stored as",
            list(called),
            key="rename_stored",
            format_func=lambda name: name if called[name] == name else f"{called[name]} ({name})",
        )
        right.text_input(
            "Called",
            key="rename_display",
            max_chars=display_names.MAX_LENGTH,
            placeholder="Leave empty for the original name",
        )
        st.form_submit_button(
            "Rename", key="rename_submit", on_click=attempt, args=(_rename, called)
        )
        quiet(
            "Changes only the name shown on pages; results, links and commands keep the original name."
        )


def _rename(called: Mapping[str, str]) -> None:
    """Rename the model or dataset entered in the form. Raises InvalidInput if the name is already in use."""
    original_name = str(st.session_state["rename_stored"])
    display = " ".join(str(st.session_state["rename_display"]).split())
    others = [name for name, label in called.items() if name != original_name and label == display]
    if display and others:
        raise InvalidInput(
            f"'{display}' is already the name of '{others[0]}'. Choose another name."
        )
    display_names.rename(store(), original_name, display)
    state = f"is now called {display}" if display else "has its original name again"
    st.toast(plain(f"{original_name} {state}."), icon=":material/edit:")
