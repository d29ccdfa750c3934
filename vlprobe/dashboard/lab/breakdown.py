"""Breakdown, top to bottom: where one number of a model comes from, its cases, the figure, the table."""

from collections.abc import Mapping

import pandas as pd
import streamlit as st

from vlprobe import views
from vlprobe.dashboard import export, frame, tables
from vlprobe.dashboard.chart_panels import chart_of_cases
from vlprobe.dashboard.lab import cases, numbers, opening
from vlprobe.dashboard.lab.paper_page import OPENS, capital, how_it_is_measured
from vlprobe.dashboard.state import Questions, counts, model_name, plain, quiet, view
from vlprobe.render import charts, words
from vlprobe.types import Metric
from vlprobe.views.filter import Filter


def draw_page() -> None:
    """The whole page."""
    with st.container(horizontal=True, key="lab_subject"):
        asked = opening.pick()
        model = opening.pick_model(asked)
        metric = frame.metric(asked)
        by = frame.by(asked)
    heading, examples, figure, rows = (st.container() for _ in range(4))
    with how_it_is_measured():
        frame.sentence(asked)
        tables.explain(metric)
        with st.container(horizontal=True):
            unit = frame.unit(asked)
            averaging = frame.averaging(asked)
        quiet(
            "Marks are means, arms are 95 % intervals from resampling pictures: long arms mean few pictures, and where "
            f"arms overlap the order may be chance. {words.AGREED}"
        )
    of_metric = averaging if averaging in metric.averaging else metric.averaging[0]
    table = frame.sliced(asked, metric, by, of_metric, unit)
    names = frame.slice_names(table)
    filters = {name: cases.slice_filter(asked, model, metric.kinds, by, name) for name in names}
    worst = _most_often(asked, filters)
    heading.title(plain(_heading(asked, model, by, worst)), anchor=False)
    chosen = filters.get(worst) or _any(asked, model, metric)
    with examples:
        if chosen:
            opening.draw_examples(asked, chosen)
    with figure:
        shown = charts.dots.dots(table, metric, unit, names, asked.looks)
        alt = f"{metric.label} of each slice, a mark a model; the table has the numbers."
        chart_of_cases(shown, "dots", alt, asked, metric.kinds, by)
        quiet(OPENS if any(filters.values()) else "These parts have no filter in Explore.")
    with rows:
        cases.draw_links(
            asked,
            {_called(by, name): found for name, found in filters.items()},
        )
    with st.expander("The table", icon=":material/table_chart:", key="breakdown_table"):
        _draw_table(asked, metric, unit, by, table, names)
    with st.expander("All numbers", icon=":material/function:", key="all_numbers"):
        _draw_all_numbers(asked, averaging, unit)
    frame.notes(asked)
    tables.about(view(views.runs.facts, asked.question_set))


def _draw_table(
    asked: Questions,
    metric: Metric,
    unit: str,
    by: str,
    table: pd.DataFrame,
    names: Mapping[str, str],
) -> None:
    def address(model: str, name: str) -> str:
        return cases.address(asked, cases.slice_filter(asked, model, metric.kinds, by, name))

    tables.slices(table, metric, unit, names, asked.models, asked.looks, "Part", address)
    quiet(
        "n = 0 and a dash: no case of this slice, so nothing is known. A tie counts as wrong. A model's name opens the "
        "cases of its row."
    )
    export.download(table, "breakdown")


def _draw_all_numbers(asked: Questions, averaging: str, unit: str) -> None:
    """The headline numbers as a figure, every number of every model as a table, and both as files."""
    numbers.draw_headlines(asked, averaging, unit)
    estimates = numbers.draw_table(asked, averaging, unit)
    with st.container(horizontal=True):
        export.download(estimates, "numbers", "All numbers as CSV")
        export.report_button(asked)


def _any(asked: Questions, model: str, metric: Metric) -> Filter | None:
    """All that fools the model, of the first kind that the metric judges."""
    kinds = [kind for kind in opening.stored_kinds(asked) if kind in metric.kinds]
    return opening.Opening(asked, model, kinds[0]).believed if kinds else None


def _called(by: str, name: str) -> str:
    """A slice as a row of links is called."""
    return capital(words.wrong(name)) if by == "subtype" else words.value_label(name)


def _most_often(asked: Questions, filters: Mapping[str, Filter | None]) -> str:
    """The slice whose lies the model believes most often; "" where nobody is fooled, two slices are alike, or no filter
    says a slice.
    """
    shares = {}
    for name, chosen in list(filters.items())[: cases.MOST_LINKS]:
        if chosen is None or chosen.kind in words.movement_kinds():
            continue
        counted = counts(asked, chosen)
        if counted["fooled"]:
            shares[name] = counted["fooled"] / (counted["fooled"] + counted["held"])
    most = [name for name, share in shares.items() if share == max(shares.values())]
    return most[0] if len(most) == 1 else ""


def _heading(asked: Questions, model: str, by: str, worst: str) -> str:
    """The finding, or what the page answers."""
    if not worst:
        return f"Where does the number of {model_name(model)} come from?"
    if by == "subtype":
        return f"{model_name(model)} is fooled most often by {words.wrong(worst)}"
    return f"{model_name(model)} is fooled most often here: {words.value_label(worst)}"
