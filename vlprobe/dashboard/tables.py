"""Tables on pages, which screen readers can read and narrow screens can scroll, and buttons for downloads."""

import html
import math
from collections.abc import Callable, Mapping, Sequence

import pandas as pd
import streamlit as st

from vlprobe import views
from vlprobe.dashboard.state import PageSubject, model_name, plain, quiet, renamed, view
from vlprobe.datasets import bundled
from vlprobe.render import numbers as render_numbers
from vlprobe.render import symbols
from vlprobe.render.html import elements, tables
from vlprobe.render.html.elements import breakable, mark, tag
from vlprobe.render.sentences import sentence_names
from vlprobe.render.words import AVERAGED
from vlprobe.types import Metric
from vlprobe.views.records import EstimateRow, records
from vlprobe.views.runs import QuestionFacts, QuestionSet


def all_numbers(subject: PageSubject, averaging: str, unit: str) -> pd.DataFrame:
    """Draw a table of all metrics for all models, with intervals, picture counts and ties. Returns the estimates."""
    estimates = view(views.estimates.estimates, subject.question_set, "all", averaging, unit)
    body, unasked = tables.headline(
        estimates,
        subject.metrics,
        unit,
        sentence_names(subject.models, renamed()),
        subject.looks,
        view(views.papers.chances, subject.question_set),
        view(views.paired_tests.leaders, subject.question_set, averaging, unit),
    )
    st.html(body)
    if unasked:
        quiet(f"Not measured here, or unknown for these models: {', '.join(unasked)}.")
    quiet(f"{AVERAGED[averaging]} {tables.READING}")
    return estimates


def slices(
    subject: PageSubject,
    table: pd.DataFrame,
    metric: Metric,
    unit: str,
    names: Mapping[str, str],
    address: Callable[[str, str], str],
) -> None:
    """Draw a table with a metric's value, interval, pictures, cases and ties for each slice and model; "-" if unknown.

    `address` returns a URL for the cases in a model's slice, which the model's name links to, or "" for no link.
    """
    cells = {(row.slice, row.model): row for row in records(EstimateRow, table)}
    titles = ("Part", "Model", metric.label, "95 % interval", "Pictures", "Cases", "Ties")
    value_unit = render_numbers.unit_of(metric, unit)
    rows = []
    for name, words in names.items():
        heading = tag("th", words, scope="rowgroup", rowspan=str(len(subject.models)))
        for index, model in enumerate(subject.models):
            estimate = cells.get((name, model))
            values = ["-", "-", "0", "0", "0"]
            if estimate is not None:
                values = [
                    render_numbers.number(estimate.value, value_unit),
                    render_numbers.interval(estimate.low, estimate.high, value_unit)
                    or ("-" if math.isnan(estimate.value) else f"- ({render_numbers.TOO_FEW})"),
                ]
                values += [
                    f"{count:,}" for count in (estimate.n_items, estimate.n_cases, estimate.ties)
                ]
            numbers = "".join(tag("td", value) for value in values)
            model_label = breakable(model_name(model))
            if cases := address(model, name):
                model_label = f'<a href="{html.escape(cases)}">{model_label}</a>'
            rows.append(
                f"<tr{'' if index else ' class=first'}>{'' if index else heading}"
                f'<th scope="row" title="{html.escape(model)}">{mark(subject.looks[model])} '
                f"{model_label}</th>{numbers}</tr>"
            )
    show(f"{metric.label} by part", elements.column_heads(titles), rows)


def show(name: str, head: str, rows: Sequence[str], css: str = "") -> None:
    """Draw a table that narrow screens can scroll. `name` describes it for screen readers."""
    st.html(elements.table(name, head, rows, css))


def explain(metric: Metric) -> None:
    """Draw an explanation of a metric: meaning, better direction, chance level, a worked example and the formula."""
    scale = tables.scale_text(metric, metric.unit, metric.chance)
    name, example = plain(symbols.heading(metric)), symbols.example(metric)
    parts = [f"**{name}.** {metric.help} ({scale}. Source: {metric.source})"]
    if example:
        arithmetic, _, value = example.rpartition(" = ")
        parts.append(f"Example: `{arithmetic}` = {value}.")
    if page := symbols.formula_page(metric):
        parts.append(f"[Formula and example](docs?page={page})")
    st.markdown("\n\n".join(parts))


def cards(*metrics: Metric) -> None:
    """Draw a button for each metric that opens a card with an explanation of the metric."""
    with st.container(horizontal=True, gap="small"):
        for metric in metrics:
            name = plain(symbols.heading(metric))
            with st.popover(name, icon=":material/info:", type="tertiary"):
                explain(metric)


def draw_set_details(question_set: QuestionSet) -> None:
    """Draw an expander with details on a question set: size, dropped edits with reasons, and defects in the data."""
    facts: QuestionFacts = view(views.runs.facts, question_set)
    sizes = [views.runs.extent(facts["n_items"], question_set.runs[0].n_units)]
    if views.rows.keeps_unpictured(question_set):
        n_pictures, n_here = view(views.rows.count_pictures, question_set)
        sizes += [f"{n_pictures:,} pictures, {n_here:,} of them on this machine"]
        notes = [note for note in facts["notes"] if not note.endswith(bundled.PICTURED_NOTE)]
        # The removed note counts the pictures that were here when the questions were stored
        facts = {**facts, "notes": notes}
    if facts["n_cases"] != facts["n_items"]:
        sizes += [f"{facts['n_cases']:,} cases"]
    with st.expander(f"About the questions: {', '.join(sizes)}"):
        st.html(tables.facts(facts))
