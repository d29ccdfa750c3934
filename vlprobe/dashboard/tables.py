"""Tables as HTML: sizes that suit numbers with intervals, readable by screen readers, narrow
screens scroll.
"""

import html
from collections.abc import Callable, Mapping, Sequence

import pandas as pd
import streamlit as st

from vlprobe.dashboard.state import model_name, quiet
from vlprobe.render import numbers as render_numbers
from vlprobe.render.charts.styles import Looks
from vlprobe.render.html import elements, tables
from vlprobe.render.html.elements import breakable, mark, tag
from vlprobe.types import Metric
from vlprobe.views.leaders import Leader
from vlprobe.views.records import EstimateRow, records
from vlprobe.views.runs import QuestionFacts


def headline(
    table: pd.DataFrame,
    metrics: Mapping[str, Metric],
    unit: str,
    models: Sequence[str],
    styles: Looks,
    chances: Mapping[str, float],
    leaders: Mapping[str, Leader],
) -> None:
    """The table of `render.html.tables.headline`, and below it what nobody was asked."""
    body, unasked = tables.headline(table, metrics, unit, models, styles, chances, leaders)
    st.html(body)
    if unasked:
        quiet(f"Not asked here, or unknown for these models: {', '.join(unasked)}.")


def slices(
    table: pd.DataFrame,
    metric: Metric,
    unit: str,
    names: Mapping[str, str],
    models: Sequence[str],
    styles: Looks,
    slicing: str,
    address: Callable[[str, str], str] = lambda model, name: "",
) -> None:
    """A row a slice and model: the value, its interval, pictures, cases and ties; "-" where nothing
    is known.

    `address` says where the cases of a model and slice are, "" where nowhere; the model's name
    leads there.
    """
    cells = {(row.slice, row.model): row for row in records(EstimateRow, table)}
    titles = (slicing, "Model", metric.label, "95 % interval", "Pictures", "Cases", "Ties")
    head = elements.column_heads(titles)
    value_unit = render_numbers.unit_of(metric, unit)
    rows = []
    for name, words in names.items():
        for index, model in enumerate(models):
            estimate = cells.get((name, model))
            heading = (
                tag("th", words, scope="rowgroup", rowspan=str(len(models))) if index == 0 else ""
            )
            values = ["-", "-", "0", "0", "0"]
            if estimate is not None:
                values = [
                    render_numbers.number(estimate.value, value_unit),
                    render_numbers.interval(estimate.low, estimate.high, value_unit) or "-",
                ]
                values += [
                    f"{count:,}" for count in (estimate.n_items, estimate.n_cases, estimate.ties)
                ]
            numbers = "".join(tag("td", value) for value in values)
            model_label = breakable(model_name(model))
            if cases := address(model, name):
                model_label = f'<a href="{html.escape(cases)}">{model_label}</a>'
            rows.append(
                f"<tr{'' if index else ' class=first'}>{heading}"
                f'<th scope="row" title="{html.escape(model)}">{mark(styles[model])} '
                f"{model_label}</th>{numbers}</tr>"
            )
    show(f"{metric.label} by {slicing.lower()}", head, rows)


def show(name: str, head: str, rows: Sequence[str], css: str = "") -> None:
    """A table with a name for those who do not see it; narrow screens scroll it."""
    st.html(elements.table(name, head, rows, css))


def explain(metric: Metric) -> None:
    """What a metric means, which way is better, and what guessing gets."""
    scale = tables.scale_text(metric, metric.unit, metric.chance)
    st.markdown(f"**{metric.label}.** {metric.help} ({scale}. Source: {metric.source})")


def about(facts: QuestionFacts) -> None:
    """What is known of the questions themselves: how many, which edits were left out and why, what
    the data gets wrong.

    Args:
        facts: What `views.facts` returns.
    """
    with st.expander(
        f"About the questions: {facts['n_items']:,} pictures, {facts['n_cases']:,} cases"
    ):
        st.html(tables.facts(facts))
