"""The passport of a model and what the doctor found: is it fit to be believed?"""

import math

import streamlit as st

from vlprobe import views
from vlprobe.dashboard.state import choose, plain, quiet, tag, view
from vlprobe.dashboard.tables import breakable, show
from vlprobe.models.doctor.checks import Check
from vlprobe.models.doctor.examine import Examination

VERDICTS = {
    True: ("✓", "Passed", "held"),
    False: ("✗", "Failed", "fooled"),
    None: ("–", "Not judged", "tied"),
}


def examined() -> Examination:
    """A picker of what was examined. Without any, says how to begin and stops."""
    found = view(views.runs.examinations)
    if not found:
        st.info(
            "No model has been examined yet: every run examines its models.", icon=":material/info:"
        )
        st.page_link("pages/home.py", label="Begin with the demo", icon=":material/play_arrow:")
        st.code("vlprobe doctor demo:softmax", language="sh")
        st.stop()
    by_key = {f"{one.model_digest[:8]}-{one.dataset_digest[:8]}": one for one in found}
    options = {key: f"{one.model} on {one.dataset}" for key, one in by_key.items()}
    return by_key[choose("Model", "model", options, next(iter(options)), always=True)]


def verdict(found: Examination) -> None:
    """The outcome in a sentence."""
    failed = [check.name for check in found.checks if check.passed is False]
    judged = sum(check.passed is not None for check in found.checks)
    if failed:
        st.error(
            f"{plain(found.model)} failed {len(failed)} of {judged} checks: {plain(', '.join(failed))}. "
            "Do not believe its numbers before you know why.",
            icon=":material/warning:",
        )
    else:
        st.success(
            f"{plain(found.model)} passed all {judged} checks that apply.",
            icon=":material/check_circle:",
        )


def checks(found: Examination) -> None:
    """A row a check: outcome, what was found, and what a healthy model does."""
    head = "".join(
        tag("th", title, scope="col")
        for title in ("Check", "Outcome", "Found", "What a healthy model does")
    )
    show(f"Checks of {found.model}", head, [_row(check) for check in found.checks])


def _row(check: Check) -> str:
    sign, word, css = VERDICTS[check.passed]
    value = "-" if math.isnan(check.value) else f"{check.value:.3g}"
    limit = "" if math.isnan(check.limit) else f"<br>{tag('small', f'limit {check.limit:.3g}')}"
    outcome = f'<strong class="vp-{css}">{sign} {word}</strong>'
    name = tag("th", check.name.replace("_", " "), scope="row")
    told = f"{tag('span', check.meaning)}<br>{tag('small', check.detail)}"
    return f'<tr class="first">{name}<td>{outcome}</td><td>{value}{limit}</td><td class="vp-metric">{told}</td></tr>'


def passport(found: Examination) -> None:
    """Everything about the model that can change a number."""
    rows = [
        f'<tr class="first">{tag("th", name, scope="row")}<td>{breakable(str(value))}</td></tr>'
        for name, value in found.passport.items()
    ]
    show(
        f"Passport of {found.model}",
        tag("th", "Fact", scope="col") + tag("th", "Value", scope="col"),
        rows,
    )
    quiet(f"Examined on {found.dataset}, {found.finished}.")


def erased(found: Examination) -> None:
    """Edits that never reach the model."""
    rows = [
        f'<tr class="first">{tag("th", f"{row.kind}: {row.rule}", scope="row")}'
        f"{tag('td', f'{row.count:,} of {row.of:,}')}{tag('td', row.reason)}</tr>"
        for row in found.erased
    ]
    if not rows:
        quiet("None: every edit that was tried reaches the model.")
        return
    head = "".join(
        tag("th", title, scope="col") for title in ("Edit", "Never reach the model", "Undone by")
    )
    show("Erased edits", head, rows)
