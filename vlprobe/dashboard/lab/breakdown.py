"""The Breakdown page: a model's metric by slice, with example cases, a figure and a table."""

import math
from collections.abc import Mapping
from functools import partial

import pandas as pd
import streamlit as st

from vlprobe import views
from vlprobe.dashboard import case_links, export, frame, tables
from vlprobe.dashboard.lab import figures, papers
from vlprobe.dashboard.lab.papers import OPENS, how_it_is_measured
from vlprobe.dashboard.sentence import list_kinds
from vlprobe.dashboard.state import PageSubject, choose, counts, model_name, plain, quiet, view
from vlprobe.render import charts, words
from vlprobe.render.wall import n_fooled
from vlprobe.types import Metric
from vlprobe.views.filter import Filter


def draw_page() -> None:
    """Draw the whole Breakdown page."""
    with st.container(horizontal=True, key="lab_subject"):
        subject = papers.pick()
        model = papers.pick_model(subject)
        estimates = view(views.estimates.estimates, subject.question_set)
        with_value = set(estimates.dropna(subset=["value"])["metric"])
        every = {name: each.label for name, each in subject.metrics.items() if name in with_value}
        main = [name for name in subject.presentation.main_metrics if name in every]
        metric = subject.metrics[choose("Metric", "metric", every, [*main, *every][0])]
        slicings = {
            name: words.breakdown_label(subject.probe, name)
            for name in view(views.estimates.slices, subject.question_set)
        }
        slicing = choose("Break down by", "by", slicings, next(iter(slicings)))
    heading, examples, figure, rows = (st.container() for _ in range(4))
    with how_it_is_measured():
        frame.sentence(subject, metric.kinds[0] if len(metric.kinds) == 1 else "")
        tables.explain(metric)
        with st.container(horizontal=True):
            unit = frame.unit(subject)
            averaging = frame.averaging(subject)
        quiet(
            "Marks are means, and lines are 95 % intervals from resampling pictures. Long "
            "lines mean few pictures; where lines overlap, the order may be due to "
            f"chance. {words.AVERAGED[averaging]} {words.INTERVALS}"
        )
    of_metric = averaging if averaging in metric.averaging else metric.averaging[0]
    table = _sliced(subject, metric, slicing, of_metric, unit)
    slices = sorted(table["slice"].unique(), key=words.slice_order)
    title = words.edit_title if slicing == "subtype" else words.value_label
    names = {name: title(name) for name in slices}
    filters = {
        name: case_links.slice_filter(subject, model, metric.kinds, slicing, name) for name in names
    }
    worst = _most_often(subject, filters)
    if slicing == "subtype":  # worst first, beginning with the type of edit in the heading
        known = table.loc[table["model"] == model].dropna(subset=["value"])
        sign = -1 if metric.direction == "down" else 1
        values = dict(zip(known["slice"], sign * known["value"], strict=True))
        order = sorted(names, key=lambda name: (name != worst, values.get(name, math.inf)))
        names = {name: names[name] for name in order}
    heading.title(plain(_heading(subject, model, slicing, worst)), anchor=False)
    kinds = [kind for kind in list_kinds(subject) if kind in metric.kinds]
    with examples:
        frame.say_strangers(subject)
        if worst or kinds:
            example_filter = filters.get(worst) or papers.cases_of(model, kinds[0])
            papers.draw_examples(subject, example_filter)
    with figure:
        styles, labels = figures.emphasis(subject, model)
        if labels:
            figures.mentioned(subject, model, "The table lists every model.")
        dots = partial(charts.dots.dots, table, metric, unit, names, styles, labels=labels)
        tables.cards(metric)
        alt = f"{metric.label} for each slice, one mark per model; the table has the numbers."
        figures.chart_of_slices(dots, "dots", alt, subject, metric.kinds, slicing)
        quiet(OPENS if any(filters.values()) else "Explore has no filter for these groups.")
    with rows:
        case_links.draw_links(subject, {names[name]: filters[name] for name in names})
    with st.expander("The table", icon=":material/table_chart:", key="breakdown_table"):
        _draw_table(subject, metric, unit, slicing, table, names)
    with st.expander("All numbers", icon=":material/function:", key="all_numbers"):
        figures.draw_headlines(subject, model, averaging, unit)
        estimates = tables.all_numbers(subject, averaging, unit)
        with st.container(horizontal=True):
            export.draw_menu("numbers", table=estimates)
            export.report_button(subject)
    frame.draw_details(subject)


def _draw_table(
    subject: PageSubject,
    metric: Metric,
    unit: str,
    slicing: str,
    table: pd.DataFrame,
    names: Mapping[str, str],
) -> None:
    def address(model: str, name: str) -> str:
        return case_links.address(
            subject, case_links.slice_filter(subject, model, metric.kinds, slicing, name)
        )

    tables.slices(subject, table, metric, unit, names, address)
    quiet("- = no cases. A tie counts as wrong. Click a model's name to see the cases in its row.")
    export.draw_menu("breakdown", table=table)


def _most_often(subject: PageSubject, filters: Mapping[str, Filter | None]) -> str:
    """Return the slice whose cases fool the model most often, or "" if several slices tie or none can be filtered."""
    shares, n_orders = {}, {run.model: run.n_orders for run in subject.question_set.runs}
    for name, slice_filter in list(filters.items())[: case_links.MOST_LINKS]:
        if slice_filter is None or slice_filter.kind in words.movement_kinds():
            continue
        counted = counts(subject, slice_filter)
        if counted["fooled"]:
            shares[name] = n_fooled(counted, n_orders[slice_filter.model]) / (
                counted["fooled"] + counted["held"]
            )
    worst_slices = [name for name, share in shares.items() if share == max(shares.values())]
    return worst_slices[0] if len(worst_slices) == 1 else ""


def _heading(subject: PageSubject, model: str, slicing: str, worst: str) -> str:
    """Return a heading that names the worst slice, or a general question if there is no single worst slice."""
    if not worst:
        return f"Where does the number for {model_name(model)} come from?"
    if slicing == "subtype":
        return f"{model_name(model)} is fooled most often by {words.wrong(worst)}"
    return f"{model_name(model)} is fooled most often in the group “{words.value_label(worst)}”"


def _sliced(
    subject: PageSubject, metric: Metric, slicing: str, averaging: str, unit: str
) -> pd.DataFrame:
    """Return the estimates for one metric, with one row per model and slice. Stops the page if there are none."""
    table = view(views.estimates.estimates, subject.question_set, slicing, averaging, unit)
    table = table.loc[table["metric"] == metric.name]
    if table.empty:
        st.info(f"{metric.label} has no breakdown of this kind. Choose another breakdown.")
        st.stop()
    return table
