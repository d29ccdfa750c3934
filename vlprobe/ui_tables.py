"""Tables as HTML: sizes that suit numbers with intervals, readable by screen readers, narrow screens scroll."""

import html
from collections.abc import Mapping, Sequence

import pandas as pd
import streamlit as st

from vlprobe import charts, markup, markup_tables
from vlprobe.charts import Looks
from vlprobe.markup import breakable, mark, tag
from vlprobe.types import Metric
from vlprobe.ui_state import quiet


def headline(
    table: pd.DataFrame,
    metrics: Mapping[str, Metric],
    unit: str,
    models: Sequence[str],
    looks: Looks,
    chances: Mapping[str, float],
) -> None:
    """The table of `markup_tables.headline`, and below it what nobody was asked."""
    shown, unasked = markup_tables.headline(table, metrics, unit, models, looks, chances)
    st.html(shown)
    if unasked:
        quiet(f"Not asked here, or unknown for these models: {', '.join(unasked)}.")


def slices(
    table: pd.DataFrame,
    metric: Metric,
    unit: str,
    names: Mapping[str, str],
    models: Sequence[str],
    looks: Looks,
    what: str,
) -> None:
    """A row a slice and model: the value, its interval, pictures, cases and ties; "-" where nothing is known."""
    cells = {(row.slice, row.model): row for row in table.itertuples()}
    titles = (what, "Model", metric.label, "95 % interval", "Pictures", "Cases", "Ties")
    head = "".join(tag("th", title, scope="col") for title in titles)
    own = charts.unit_of(metric, unit)
    rows = []
    for name, words in names.items():
        for place, model in enumerate(models):
            found = cells.get((name, model))
            first = tag("th", words, scope="rowgroup", rowspan=str(len(models))) if place == 0 else ""
            values = ["-", "-", "0", "0", "0"]
            if found is not None:
                values = [charts.number(found.value, own), charts.interval(found.low, found.high, own) or "-"]
                values += [f"{count:,}" for count in (found.n_items, found.n_cases, found.ties)]
            numbers = "".join(tag("td", value) for value in values)
            rows.append(
                f"<tr{'' if place else ' class=first'}>{first}"
                f'<th scope="row">{mark(looks[model])} {breakable(model)}</th>{numbers}</tr>'
            )
    show(f"{metric.label} by {what.lower()}", head, rows)


def show(name: str, head: str, rows: Sequence[str], css: str = "") -> None:
    """A table with a name for those who do not see it; narrow screens scroll it."""
    st.html(markup.table(name, head, rows, css))


def reading(points: pd.DataFrame, down: Metric, up: Metric, unit: str) -> None:
    """What the trade-off says, as a sentence or two."""
    known = points.dropna(subset=["x", "y"])
    if len(known) < 2:
        return
    steady, alert = known.loc[known["x"].idxmin()], known.loc[known["y"].idxmax()]
    best_x = charts.number(steady["x"], charts.unit_of(down, unit))
    best_y = charts.number(alert["y"], charts.unit_of(up, unit))
    lines = [("Steadiest", steady["model"], f"{down.label.lower()} {best_x}")]
    lines += [("Most alert", alert["model"], f"{up.label.lower()} {best_y}")]
    found = "".join(
        f"<p>{html.escape(word)}: {tag('strong', model)}<br><small>{html.escape(told)}</small></p>"
        for word, model, told in lines
    )
    st.html(f'<div class="vp-reading">{found}</div>')


def explain(metric: Metric) -> None:
    """What a metric means, which way is better, and what guessing gets."""
    told = markup_tables.told(metric, metric.unit, metric.chance)
    st.markdown(f"**{metric.label}.** {metric.help} ({told}. Source: {metric.source})")


def about(facts: Mapping[str, object]) -> None:
    """What is known of the questions themselves: how many, which edits were left out and why, what the data gets wrong.

    Args:
        facts: What `views.facts` returns.
    """
    with st.expander(f"About the questions: {facts['n_items']:,} pictures, {facts['n_cases']:,} cases"):
        st.html(markup_tables.facts(facts))
