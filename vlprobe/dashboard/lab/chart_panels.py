"""Figures with their captions: how to read them, and links from a model to its cases."""

from collections.abc import Sequence

import pandas as pd
import plotly.graph_objects as go
import streamlit as st

from vlprobe import views
from vlprobe.dashboard import case_links
from vlprobe.dashboard.chart import ARMS, FigureMaker, chart
from vlprobe.dashboard.state import PageSubject, model_name, plain, quiet, view
from vlprobe.render import charts, numbers
from vlprobe.render.charts.styles import Look, Looks
from vlprobe.render.html.elements import model_label
from vlprobe.render.words import slice_order, value_label
from vlprobe.types import Metric
from vlprobe.views.filter import Filter

GUESSING = "On the dotted line a model only guesses."
WORDS_ALONE = "counting shared words"


def chart_of_cases(
    make: FigureMaker,
    key: str,
    alt: str,
    stored: PageSubject,
    kinds: Sequence[str],
    slicing: str = "subtype",
) -> None:
    """A figure whose marks, of a model and a slice each, open their cases in Explore; it is made from only stored
    results and the URL.
    """

    def named() -> go.Figure:
        return case_links.with_names(make(), stored.models)

    points = chart(named, key, alt, clickable=True)
    case_links.open_clicked(
        points,
        stored,
        lambda model, name: case_links.slice_filter(stored, model, kinds, slicing, name),
    )


def draw_headlines(stored: PageSubject, model: str, averaging: str, unit: str) -> None:
    """The headline numbers, a row each; where there is a trade-off, the way to it."""
    if stored.presentation.trade_off:
        query = {"set": stored.key}
        st.page_link(
            "pages/tradeoff.py",
            label="Steady against alert, as a picture",
            icon=":material/scatter_plot:",
            query_params=query,
        )
    else:
        _headlines(stored, model, averaging, unit)


def _headlines(stored: PageSubject, model: str, averaging: str, unit: str) -> None:
    """The headline numbers, a row each."""
    table = view(views.estimates.estimates, stored.question_set, "all", averaging, unit).dropna(
        subset=["value"]
    )
    with_value = set(table["metric"])
    metrics = {
        name: stored.metrics[name] for name in stored.presentation.headlines if name in with_value
    }
    if not metrics:
        return

    def named() -> go.Figure:
        chances = view(views.papers.chances, stored.question_set)
        styles, labels = emphasis(stored, model)
        figure = charts.dots.headlines(table, metrics, unit, styles, chances, labels)
        return case_links.with_names(figure, stored.models)

    left, right = st.columns([5, 2], gap="medium")
    with left:
        chart(named, "headlines", "A row a number, a mark a model; the table has the numbers.")
    with right:
        links(stored)
        quiet(ARMS + GUESSING)


def links(stored: PageSubject) -> None:
    """Draw the links from models to the cases that fool them."""
    word = "What moves" if stored.presentation.is_movement else "What fools"
    for model in stored.models:
        st.page_link(
            "pages/explore.py",
            label=f"{word} {plain(model_name(model))}",
            icon=":material/image_search:",
            query_params={"set": stored.key, "model": model},
        )


def emphasis(stored: PageSubject, model: str) -> tuple[Looks, dict[str, str]]:
    """Return the marks of models in rows of dots, and the models with names next to their marks: the page's model, the
    others gray, if there are too many for a legend.
    """
    if len(stored.models) <= charts.dots.MANY:
        return stored.looks, {}
    styles = {name: style for name, style in stored.looks.items() if name in stored.models}
    return charts.styles.emphasised(styles, [model]), {model: model_name(model)}


def mentioned(stored: PageSubject, model: str, remark: str = "") -> None:
    """Draw the legend of the models, once for several small figures; with too many models to distinguish, only the
    page's model.
    """
    is_crowded = len(stored.models) > charts.styles.DISTINCT
    named_models = [model] if is_crowded else stored.models
    labels = [model_label(stored.looks[name], model_name(name)) for name in named_models]
    if is_crowded:
        labels.append(f"grey: the {len(stored.models) - 1} other models")
    st.html(f'<p class="vp-small">{" &emsp; ".join([*labels, remark])}</p>')


def by_subtype(stored: PageSubject, metric: Metric) -> None:
    """One metric, a row for each kind of question; nothing where it was not asked."""
    table = view(views.estimates.estimates, stored.question_set, "subtype")
    table = table.loc[table["metric"] == metric.name].dropna(subset=["value"])
    if table.empty:
        quiet(f"{metric.label}: not asked here.")
        return
    names = {name: value_label(name) for name in sorted(table["slice"].unique(), key=slice_order)}
    chance = view(views.papers.chances, stored.question_set)[metric.name]

    def make() -> go.Figure:
        chances = dict.fromkeys(names, chance)
        figure = charts.dots.dots(table, metric, "cosine", names, stored.looks, chances)
        return figure.update_xaxes(title=numbers.WAYS[metric.direction], title_standoff=8)

    st.markdown(f"**{metric.label.rpartition(': ')[2]}**")
    alt = f"{metric.label} by what was asked, a mark a model."
    chart_of_cases(make, metric.name, alt, stored, metric.kinds)


def triplets(stored: PageSubject) -> None:
    """VISLA's accuracies by subset, with what counting shared words gets;
    guessing is one in three.
    """
    table = view(views.estimates.estimates, stored.question_set, "subtype").dropna(subset=["value"])
    measured = [name for name in stored.presentation.headlines if name in set(table["metric"])]
    words = table[(table["metric"] == "words_t2t_accuracy") & (table["model"] == stored.models[0])]
    words = words.assign(metric="t2t_accuracy", model=WORDS_ALONE)
    table = pd.concat([table[table["metric"].isin(measured)], words])
    rows, chances = {}, {}
    for name in measured:
        for subset in sorted(table.loc[table["metric"] == name, "slice"].unique()):
            key = f"{name} {subset}"
            rows[key] = (
                f"{stored.metrics[name].label}, {value_label(subset).lower()}"
                if subset
                else stored.metrics[name].label
            )
            chances[key] = stored.metrics[name].chance
    if not rows:
        return
    table = table.assign(slice=table["metric"] + " " + table["slice"])
    styles = dict(stored.looks) | {WORDS_ALONE: Look(charts.theme.QUIET, "x")}
    figure = charts.dots.dots(table, stored.metrics[measured[0]], "cosine", rows, styles, chances)
    figure.update_xaxes(title="Accuracy · higher is better", range=[-0.02, 1.02])

    def target(model: str, key: str) -> Filter | None:
        name, _, subset = key.partition(" ")
        return case_links.slice_filter(stored, model, stored.metrics[name].kinds, "subtype", subset)

    alt = "Accuracy by subset, a mark a model; the table has the numbers."
    clicked = chart(case_links.with_names(figure, stored.models), "triplets", alt, clickable=True)
    case_links.open_clicked(clicked, stored, target)
    cross = (
        " The grey cross needs no model: it takes the two texts that share most words to mean the "
        "same. A model has to beat it."
    )
    quiet(ARMS + GUESSING + (cross if len(words) else ""))
