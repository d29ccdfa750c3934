"""Figures of pages as files for a paper: light, in the width of a column or of the text, with the facts of a caption.

Plotly draws them as on the page; kaleido, an optional package, renders them with Chrome or Chromium.
"""

from collections.abc import Callable, Mapping
from importlib.util import find_spec
from typing import Literal, cast

import plotly.graph_objects as go

from vlprobe import views
from vlprobe.errors import InvalidInput, MissingDependency, NotFound
from vlprobe.features.tradeoff.data import trade_off_data, trade_off_figure
from vlprobe.render import findings, forest
from vlprobe.render.charts.styles import styles
from vlprobe.render.charts.theme import inked
from vlprobe.render.sentences import sentence_names
from vlprobe.storage import display_names
from vlprobe.storage.store import Store
from vlprobe.types import POOLED
from vlprobe.views.paired_tests import MOST_COMPARED
from vlprobe.views.runs import QuestionSet

Width = Literal["column", "text"]
WIDTHS: Mapping[str, int] = {"column": 336, "text": 672}  # pixels of 1/96 inch: 3.5 and 7 inches
FORMATS = (".svg", ".png", ".pdf")
PNG_SCALE = 4  # 384 dpi
HEIGHT = 420  # pixels, of a figure whose height does not follow from its rows
LINK = " Click a row for its pictures."  # ends a sentence of the page


def trade_off(store: Store, question_set: QuestionSet) -> tuple[go.Figure, str]:
    """Draw the trade-off of Trade-off, and return it with the facts of its caption."""
    trade = trade_off_data(store, question_set)
    names = sentence_names(question_set.models, display_names.read(store))
    finding = trade.finding(names)
    figure = trade_off_figure(trade, styles(views.runs.models(store)), names)
    method = f"Lines: 95 % intervals, resampled by picture. Averages: {POOLED}."
    return figure, f"{finding.heading} {finding.detail} {method}"


def comparison(store: Store, question_set: QuestionSet) -> tuple[go.Figure, str]:
    """Draw the paired differences of Compare between the first models, and return them with the caption's facts."""
    kind = views.runs.choose_kind(store, question_set, "")
    models = question_set.rated_models[:MOST_COMPARED]
    if len(models) < 2:
        raise InvalidInput(
            "A comparison needs two models with the same questions. Name another --set: vlprobe show lists them."
        )
    tests = views.paired_tests.compare_models(store, question_set, models, kind, "cosine")
    presentation = question_set.presentation.kind(kind)
    renamed = display_names.read(store)
    looks = styles(views.runs.models(store))
    finding = findings.verdict(tests, presentation, renamed)
    method = forest.how_to_read(tests).removesuffix(LINK)
    figure = forest.forest_figure(tests, presentation, looks, renamed)
    return (
        figure,
        f"{finding.heading} {finding.detail} {method} Test: paired permutation by picture, Holm.",
    )


FIGURES: Mapping[str, Callable[[Store, QuestionSet], tuple[go.Figure, str]]] = {
    "trade-off": trade_off,
    "compare": comparison,
}


def printed_figure(
    store: Store, question_set: QuestionSet, name: str, width: Width
) -> tuple[go.Figure, str]:
    """Return a figure for print, and the facts of its caption with the number of cases and pictures.

    Args:
        name: One of FIGURES.
        width: "column" or "text".

    Raises:
        NotFound: There is no figure of this name, or not of these questions.
    """
    if name not in FIGURES:
        raise NotFound("figure", name, FIGURES)
    figure, facts = FIGURES[name](store, question_set)
    run = question_set.runs[0]
    figure.update_layout(template="plotly_white", width=WIDTHS[width], paper_bgcolor="white")
    if figure["layout"]["height"] is None:
        figure.update_layout(height=HEIGHT)
    counts = f"n = {run.n_cases:,} cases, {run.n_items:,} items."
    return inked(figure, is_dark=False), " ".join(f"{facts} {counts}".split())


def rendered(figure: go.Figure, suffix: str) -> bytes:
    """Render a figure as the content of a file. Raises MissingDependency or InvalidInput.

    Args:
        suffix: One of FORMATS.
    """
    if find_spec("kaleido") is None:
        raise MissingDependency("vlprobe figure", "kaleido", "'vlprobe[figures]'")
    scale = PNG_SCALE if suffix == ".png" else 1
    try:
        return cast(bytes, figure.to_image(format=suffix[1:], scale=scale))
    except RuntimeError as error:
        if "Chrome" not in str(error):
            raise
        raise InvalidInput(
            "vlprobe figure needs Chrome or Chromium, and neither is installed. Install one, or run plotly_get_chrome."
        ) from None
