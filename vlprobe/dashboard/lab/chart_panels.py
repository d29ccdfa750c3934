"""Figures and what belongs beside them: how to read them, and links from a model to its cases."""

from collections.abc import Sequence

import pandas as pd
import plotly.graph_objects as go
import streamlit as st

from vlprobe import views
from vlprobe.dashboard.chart import ARMS, chart
from vlprobe.dashboard.lab import cases
from vlprobe.dashboard.state import Questions, model_name, plain, quiet, view
from vlprobe.render import charts, numbers
from vlprobe.render.html.elements import breakable, mark
from vlprobe.render.words import presentations, slice_order, value_label
from vlprobe.types import Metric
from vlprobe.views.filter import Filter

GUESSING = "On the dotted line a model only guesses."
WORDS_ALONE = "counting shared words"


def chart_of_cases(
    figure: go.Figure,
    key: str,
    alt: str,
    asked: Questions,
    kinds: Sequence[str],
    by: str = "subtype",
) -> None:
    """A figure whose marks, of a model and a slice each, open their cases in Explore."""
    points = chart(cases.with_names(figure, asked.models), key, alt, chosen=True)
    cases.open_clicked(
        points,
        asked,
        lambda model, name: cases.slice_filter(asked, model, kinds, by, name),
    )


def headlines(asked: Questions, averaging: str, unit: str) -> None:
    """The headline numbers, a row each."""
    table = view(views.estimates.estimates, asked.question_set, "all", averaging, unit).dropna(
        subset=["value"]
    )
    there = set(table["metric"])
    metrics = {
        name: asked.metrics[name]
        for name in presentations()[asked.probe].headlines
        if name in there
    }
    if not metrics:
        return
    figure = charts.dots.headlines(
        table, metrics, unit, asked.looks, view(views.papers.chances, asked.question_set)
    )
    left, right = st.columns([5, 2], gap="medium")
    with left:
        chart(
            cases.with_names(figure, asked.models),
            "headlines",
            "A row a number, a mark a model; the table has the numbers.",
        )
    with right:
        links(asked)
        quiet(ARMS + GUESSING)


def links(asked: Questions) -> None:
    """From a model to what fools it."""
    word = "What moves" if presentations()[asked.probe].is_movement else "What fools"
    for model in asked.models:
        st.page_link(
            "pages/explore.py",
            label=f"{word} {plain(model_name(model))}",
            icon=":material/image_search:",
            query_params={"set": asked.key, "model": model},
        )


def mentioned(asked: Questions, more: str = "") -> None:
    """Which mark is which model, once for several small figures."""
    names = [f"{mark(asked.looks[model])} {breakable(model_name(model))}" for model in asked.models]
    st.html(f'<p class="vp-small">{" &emsp; ".join([*names, more])}</p>')


def by_subtype(asked: Questions, metric: Metric) -> None:
    """One metric, a row for each kind of question; nothing where it was not asked."""
    table = view(views.estimates.estimates, asked.question_set, "subtype")
    table = table[table["metric"] == metric.name].dropna(subset=["value"])
    if table.empty:
        quiet(f"{metric.label}: not asked here.")
        return
    names = {name: value_label(name) for name in sorted(table["slice"].unique(), key=slice_order)}
    known = view(views.papers.chances, asked.question_set)[metric.name]
    figure = charts.dots.dots(
        table, metric, "cosine", names, asked.looks, dict.fromkeys(names, known)
    )
    figure.update_xaxes(title=numbers.WAYS[metric.direction], title_standoff=8)
    st.markdown(f"**{metric.label.rpartition(': ')[2]}**")
    alt = f"{metric.label} by what was asked, a mark a model."
    chart_of_cases(figure, metric.name, alt, asked, metric.kinds)


def triplets(asked: Questions) -> None:
    """VISLA's accuracies by subset, with what counting shared words gets; guessing is one in three."""
    table = view(views.estimates.estimates, asked.question_set, "subtype").dropna(subset=["value"])
    measured = [
        name for name in presentations()[asked.probe].headlines if name in set(table["metric"])
    ]
    words = table[(table["metric"] == "words_t2t_accuracy") & (table["model"] == asked.models[0])]
    words = words.assign(metric="t2t_accuracy", model=WORDS_ALONE)
    table = pd.concat([table[table["metric"].isin(measured)], words])
    rows, known = {}, {}
    for name in measured:
        for part in sorted(table.loc[table["metric"] == name, "slice"].unique()):
            key = f"{name} {part}"
            rows[key] = (
                f"{asked.metrics[name].label}, {value_label(part).lower()}"
                if part
                else asked.metrics[name].label
            )
            known[key] = asked.metrics[name].chance
    if not rows:
        return
    table = table.assign(slice=table["metric"] + " " + table["slice"])
    looks = dict(asked.looks) | {WORDS_ALONE: (charts.theme.QUIET, "x")}
    figure = charts.dots.dots(table, asked.metrics[measured[0]], "cosine", rows, looks, known)
    figure.update_xaxes(title="Accuracy · higher is better", range=[-0.02, 1.02])

    def target(model: str, key: str) -> Filter | None:
        name, _, part = key.partition(" ")
        return cases.slice_filter(asked, model, asked.metrics[name].kinds, "subtype", part)

    alt = "Accuracy by subset, a mark a model; the table has the numbers."
    clicked = chart(cases.with_names(figure, asked.models), "triplets", alt, chosen=True)
    cases.open_clicked(clicked, asked, target)
    quiet(
        ARMS
        + GUESSING
        + " The grey cross needs no model: it takes the two texts that share most words to mean the "
        "same. A model has to beat it."
    )
