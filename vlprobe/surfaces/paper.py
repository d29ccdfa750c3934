"""Create figure files for a paper: light, as wide as a column or the text, and with facts for the caption.

Plotly draws the same figures as on the pages. The optional package kaleido renders them with Chrome or Chromium.
"""

import functools
import html
import io
import math
import re
import textwrap
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from importlib.util import find_spec
from typing import Any, Literal, cast

import pandas as pd
import plotly.graph_objects as go
from PIL import Image

from vlprobe import views
from vlprobe.errors import InvalidInput, MissingDependency, NotFound
from vlprobe.features.compare.data import GOOD_LANE, Scorecard
from vlprobe.features.tradeoff.data import caption as trade_off_caption
from vlprobe.features.tradeoff.data import (
    trade_off_data,
    trade_off_figure,
)
from vlprobe.render import charts, forest
from vlprobe.render.attribution import source_line
from vlprobe.render.charts.styles import PAIRS, SHIPPED, styles
from vlprobe.render.charts.theme import (
    LEAST_LETTERS,
    LETTERS,
    ON_LIGHT,
    PAGE,
    inked,
    recolor,
    safe,
)
from vlprobe.render.numbers import RESAMPLED
from vlprobe.render.sentences import counted, joined, sentence_names
from vlprobe.render.words import dataset_name, edit_title, slice_order
from vlprobe.storage import display_names
from vlprobe.views.filter import STRENGTH
from vlprobe.views.paired_tests import MOST_COMPARED
from vlprobe.views.runs import QuestionSet

Width = Literal["column", "text"]
Drawing = tuple[go.Figure, str]  # a figure, and the facts for its caption
WIDTHS: Mapping[str, int] = {"column": PAGE[0] // 2, "text": PAGE[0]}  # 3.5 and 7 inches
FORMATS = (".svg", ".png", ".pdf")
PNG_SCALE = 4  # 384 dpi
HEIGHT = 420  # pixels, for figures whose height does not depend on rows
SMALL = LETTERS - 2  # pixels of the letters in a column
WIDE = 0.55  # width of a letter in sizes of its font
LEGEND_LINE, LEGEND_MARK = 20, 45  # pixels of a line, and of a mark with the space around it
MARK, LINE = 8, 1.2  # most pixels of a mark, which hides no interval, and of an interval's line
SMALL_MARK = 5  # in a forest plot for a column
MOST_NAMED = 6  # columns that a scorecard leaves out
FOREST_TOP = 66  # pixels above the rows of a forest plot


def trade_off(question_set: QuestionSet) -> Drawing:
    """Draw the figure from the Trade-off page."""
    trade = trade_off_data(question_set)
    if not trade.known:
        raise InvalidInput(
            "No model has values for both metrics of this trade-off. Use --set to choose another question set."
        )
    names = sentence_names(question_set.models, display_names.read(question_set.store))
    figure = trade_off_figure(trade, styles(views.runs.models(question_set.store)), names)
    return figure, trade_off_caption(trade, names)


def strength(question_set: QuestionSet) -> Drawing:
    """Draw the metric that should be high for each strength (weak, medium, strong) or severity of the change."""
    trade = trade_off_data(question_set)
    if STRENGTH not in views.estimates.slices(question_set):
        raise NotFound("figure for this question set", "strength", available(question_set))
    table = views.estimates.estimates(question_set, STRENGTH)
    names = sentence_names(question_set.models, display_names.read(question_set.store))
    looks = styles(views.runs.models(question_set.store))
    figure = charts.tradeoff.by_strength(table, trade.up, "cosine", looks, names)
    return figure, f"{trade.up.label} by the strength of the change. {RESAMPLED}"


def steps(question_set: QuestionSet) -> Drawing:
    """Draw the main metric of a training over its steps, with one line for all cases and one per type of case."""
    trainings = views.training_steps.trainings(question_set)
    if len(trainings) != 1:
        raise InvalidInput(
            "This figure needs at least two steps of one training run, that is, models named "
            "NAME@STEP. Choose the training run with --model NAME. Training runs chosen: "
            f"{', '.join(trainings) or 'none'}."
        )
    ((training, models),) = trainings.items()
    is_typed = "subtype" in views.estimates.slices(question_set)
    table = pd.concat(
        views.training_steps.curves(question_set, models, breakdown)
        for breakdown in ("all", *["subtype"] * is_typed)
    )
    measured = set(table["metric"])
    metrics = question_set.metrics
    ordered = dict.fromkeys([*question_set.presentation.main_metrics, *metrics])
    metric = metrics[next(name for name in ordered if name in measured)]
    table = table.loc[table["metric"] == metric.name]
    types = sorted(set(table["slice"]) - {""}, key=slice_order)
    lines = {"": "All", **{name: edit_title(name) for name in types}}
    drawn = table.assign(model=table["slice"].map(lines), slice=table["step"].astype(str))
    figure = charts.tradeoff.curves(
        drawn,
        metric,
        "cosine",
        dict(zip(lines.values(), (*SHIPPED.values(), *PAIRS), strict=False)),
        {str(step): f"{step:,}" for step in models},
        "Training step",
        chosen=lines[""],
    )
    n_cases = table.loc[table["slice"] == "", "n_cases"].max()
    facts = (
        f"{metric.label} of {training} by training step, on {n_cases:,} of the cases. {RESAMPLED}"
    )
    return figure, facts


def comparison(question_set: QuestionSet) -> Drawing:
    """Draw the paired differences from the Compare page. The first model is the baseline."""
    kind, models = _compared(question_set, MOST_COMPARED)
    tests = views.paired_tests.compare_models(question_set, models, kind, "cosine")
    presentation = question_set.presentation.kind(kind)
    renamed = display_names.read(question_set.store)
    dataset = dataset_name(question_set.runs[0].dataset, renamed)
    facts = forest.caption(tests, presentation, renamed, dataset)
    figure = forest.forest_figure(
        tests, presentation, styles(views.runs.models(question_set.store)), renamed
    )
    return figure, f"{facts} Test: paired permutation test by picture, Holm-corrected."


def case_map(question_set: QuestionSet) -> Drawing:
    """Draw two models' margins against each other, with one mark per case."""
    kind, (first, second) = _compared(question_set, 2)
    points, total = views.paired_outcomes.scatter(question_set, first, second, kind)
    names = sentence_names(question_set.models, display_names.read(question_set.store))
    figure = charts.compare.margins(
        points,
        first,
        second,
        styles(views.runs.models(question_set.store)),
        {name: edit_title(name) for name in points["subtype"].unique()},
        moved=question_set.presentation.kind(kind).is_movement,
        names=names,
    )
    return (
        figure,
        f"Margins of {names[first]} and {names[second]}; a margin of 0 or less is a failure. "
        f"{len(points):,} of {total:,} cases are drawn.",
    )


def scorecard(question_set: QuestionSet, width: Width = "text") -> Drawing:
    """Draw the scorecard from the Compare page: all models, with a letter for each group of tied models."""
    renamed = display_names.read(question_set.store)
    columns = views.leaderboard.leaderboard(question_set, by="edit")
    names = sentence_names(question_set.models, renamed)
    card = Scorecard(columns, names, styles(views.runs.models(question_set.store)), renamed=renamed)
    card, left_out = fitted_scorecard(card, width)
    return card.figure(WIDTHS[width]), joined(card.caption(), left_out)


def fitted_scorecard(card: Scorecard, width: Width) -> tuple[Scorecard, str]:
    """Return a scorecard whose figure fits a page with readable text, and a sentence that says what it leaves out, or
    "".

    The last columns are left out, and if only one is left, the last models.
    """
    shown = card
    while shown.arrangement(WIDTHS[width])[1] < GOOD_LANE:
        columns = shown.columns[:-1] or [shown.columns[0].narrowed(shown.rows[:-1])]
        sort = min(card.sort, len(columns)) % len(columns)
        shown = replace(card, columns=columns, sort=sort, every=card.columns)
    missing = [f"“{head}”" for head in card.heads()[len(shown.columns) :]]
    if len(missing) > MOST_NAMED:
        missing = [f"the last {len(missing)} columns"]
    if n_models := len(card.rows) - len(shown.rows):
        missing.append(counted(n_models, "model"))
    words = f"the figure leaves out {', '.join(missing)}. The table has everything."
    return shown, f"For lack of room, {words}" if missing else ""


FIGURES: Mapping[str, Callable[..., Drawing]] = {
    "trade-off": trade_off,
    "strength": strength,
    "steps": steps,
    "compare": comparison,
    "scorecard": scorecard,
    "map": case_map,
}
MOST_MODELS = {"compare": MOST_COMPARED, "map": 2}  # per figure; other figures draw all models


def available(question_set: QuestionSet) -> list[str]:
    """Return the names of the figures that can be drawn for a question set."""
    missing: set[str] = set()
    if question_set.presentation.trade_off is None:
        missing |= {"trade-off", "strength"}
    if not views.training_steps.trainings(question_set):
        missing |= {"steps"}
    return [name for name in FIGURES if name not in missing]


def default_models(question_set: QuestionSet, name: str) -> tuple[str, ...]:
    """Return the models that a figure shows if none are chosen: all models, or the first ones that are not controls."""
    if name == "steps":
        first, *_ = views.training_steps.trainings(question_set).values()
        return tuple(first.values())
    most = MOST_MODELS.get(name)
    return question_set.rated_models[:most] if most else question_set.ordered_models


def printed_figure(
    question_set: QuestionSet, name: str, width: Width, models: Sequence[str] = ()
) -> Drawing:
    """Draw a figure for print. Also return facts for its caption, including its source (`source_line`).

    Args:
        name: Name of the figure, a key of FIGURES.
        width: "column" or "text".
        models: The models to draw, in order. If empty, the result of `default_models`.

    Raises:
        NotFound: The figure or a model does not exist, or the figure cannot be drawn for the question set.
        InvalidInput: The figure needs a different number of models.
    """
    if name not in available(question_set):
        raise NotFound("figure for this question set", name, available(question_set))
    drawn = dict.fromkeys(models or default_models(question_set, name))
    chosen = replace(question_set, runs=tuple(question_set.run(model) for model in drawn))
    figure, facts = FIGURES[name](chosen, *[width] * (name == "scorecard"))
    renamed = display_names.read(question_set.store)
    return print_style(figure, width), joined(
        facts, source_line(chosen.runs, renamed, is_full=True)
    )


def print_style(figure: go.Figure, width: Width = "text") -> go.Figure:
    """Set the colors, text size and width of a figure for print, and return it. WebGL marks become vector marks."""
    traces: Any = go.Figure(figure).data  # a copy, because the page keeps its figure
    marks: list[Any] = [
        go.Scatter(trace.to_plotly_json() | {"type": "scatter"})
        if trace.type == "scattergl"
        else trace
        for trace in traces
    ]
    layout: Any = go.Layout(figure.layout)
    letters = LETTERS if width == "text" else SMALL
    if width == "column":
        # The legend has all names, because one mark is too close to the next one's name
        unlisted = {f"<b>{trace.name}</b>": trace for trace in marks if trace.showlegend is False}
        for trace in (unlisted[note.text] for note in layout.annotations if note.text in unlisted):
            trace.showlegend = True
        layout.annotations = [note for note in layout.annotations if note.text not in unlisted]
    for trace in marks:
        if trace.meta:
            # In a column, the caption has the names of published models
            name = trace.meta if width == "text" else trace.meta.partition(", ")[0]
            lines = textwrap.wrap(name, int((WIDTHS[width] - 50) / (WIDE * letters)))
            trace.name = "<br>".join(map(safe, lines))
        if isinstance(trace.marker.size, int | float) and trace.mode != "markers+text":
            trace.marker.size = min(trace.marker.size, MARK)
            trace.update(error_x_thickness=LINE, error_y_thickness=LINE)
        elif isinstance(trace.marker.size, tuple):
            trace.marker.size = [min(size, MARK) for size in trace.marker.size]
    figure = go.Figure(_rings_above_intervals(marks), layout)
    layout = figure.layout
    figure.update_layout(template="plotly_white", width=WIDTHS[width], paper_bgcolor="white")
    figure.update_xaxes(title_font_size=letters)
    figure.update_yaxes(title_font_size=letters)
    inked(figure, is_dark=False)
    figure.update_layout(font_size=letters)
    if layout.height is None:
        layout.height = HEIGHT
    margin, legend = layout.margin, layout.legend
    if layout.xaxis.side == "top":
        letters = _fit_forest(figure, letters)
    elif margin.autoexpand is False and legend.y == 0:  # below the plot, with room for a phone
        names = [trace.name for trace in marks if trace.showlegend is not False and trace.name]
        n_lines = _n_legend_lines(names, letters, layout.width - margin.l - margin.r)
        below = margin.b - 2 * LEGEND_LINE + n_lines * LEGEND_LINE + 8
        figure.update_layout(height=layout.height - margin.b + below, margin_b=below)
    if layout.height > PAGE[1]:
        low, high = layout.yaxis.domain or (0, 1)
        room = (PAGE[1] - margin.t - margin.b) * (high - low)
        row = room / max(layout.yaxis.range or [1])
        letters = max(LEAST_LETTERS, min(letters, round(row) - 2))
        figure.update_layout(height=PAGE[1], font_size=letters)
        if letters < LETTERS:
            figure.update_traces(marker={"size": min(letters, MARK), "line_width": 1})
    return figure


def _n_legend_lines(names: Sequence[str], letters: int, width: float) -> int:
    """Return the number of lines of a legend: one, or as many as names fit below each other in equal columns."""
    entries = [WIDE * letters * _longest([name]) + LEGEND_MARK for name in names]
    if sum(entries) <= width:
        return 1
    per_line = max(1, int(width / max(entries)))
    return math.ceil(sum(1 + name.count("<br>") for name in names) / per_line)


def _longest(texts: Sequence[str]) -> int:
    """Return the number of letters in the longest line of texts for Plotly."""
    lines = (line for text in texts for line in re.sub("<(?!br)[^>]*>", "", text).split("<br>"))
    return max((len(html.unescape(line)) for line in lines), default=1)


def _rings_above_intervals(traces: Sequence[Any]) -> list[Any]:
    """Order traces so that no interval crosses the number in a ring: intervals, then white rings, then marks."""
    if all(trace.mode != "markers+text" for trace in traces):
        return list(traces)
    rings: list[Any] = [go.Scatter(trace) for trace in traces if trace.mode == "markers+text"]
    for ring in rings:
        ring.marker.update(symbol="circle", color="white", line_color=ring.marker.color)
    marks = [go.Scatter(trace) for trace in traces if trace.error_x.array is not None]
    for mark in marks:
        mark.update(error_x_visible=False, error_y_visible=False, showlegend=False)
    return [*(trace for trace in traces if trace.mode != "markers+text"), *rings, *marks]


def _fit_forest(figure: go.Figure, letters: int) -> int:
    """Set the margins and the height of a forest plot, so that its rows fit their text and the figure fits a page.
    Return the size of its letters.
    """
    layout: Any = figure.layout
    traces: Any = figure.data
    names = [trace.name for trace in traces if trace.showlegend is not False and trace.name]
    lanes, width = layout.yaxis.range[0], layout.width
    values = [note.text for note in layout.annotations if note.xref == "paper" and note.x == 1]
    right = WIDE * letters * _longest(values) + 12
    in_legend = letters if width == PAGE[0] else SMALL - 2  # so that two names fit a line
    below = LEGEND_LINE * (1 + _n_legend_lines(names, in_legend, width - right))
    lane = min(letters + 4, (PAGE[1] - FOREST_TOP - below) / lanes)
    letters = max(LEAST_LETTERS, min(letters, int(lane) - 1))
    left, right = (
        WIDE * letters * _longest(texts) + 12 for texts in (layout.yaxis.ticktext, values)
    )
    figure.update_layout(
        height=round(FOREST_TOP + lane * lanes + below),
        margin={"t": FOREST_TOP, "l": left, "r": right, "b": below},
        font_size=letters,
        # Left of the plot, so that Plotly also uses the left margin for the legend
        legend={"xref": "paper", "x": max(-2, -left / (width - left - right)), "xanchor": "left"}
        | {"font_size": min(letters, in_legend)},
    )
    most = SMALL_MARK if layout.width == WIDTHS["column"] else MARK
    size = {"size": min(most, 0.7 * lane), "line_width": LINE}
    figure.update_traces(marker=size, error_x_width=lane / 4)
    return letters


def _compared(question_set: QuestionSet, most: int) -> tuple[str, tuple[str, ...]]:
    """Return the kind of case and the models for a comparison. Raises InvalidInput for too few or too many models."""
    models = question_set.models
    if not 2 <= len(models) <= most:
        expected = "two models" if most == 2 else f"two to {most} models"
        raise InvalidInput(
            f"This figure compares {expected} on the same questions. Models chosen: "
            f"{len(models)}. Use --model to choose other models, or --set to choose another "
            "question set."
        )
    return views.runs.choose_kind(question_set, ""), models


@functools.cache  # looks for a browser: 1 ms of file access for each figure of a page
def can_render() -> bool:
    """Return whether `rendered` works: kaleido and a browser that it can use are installed."""
    if find_spec("kaleido") is None:
        return False
    from choreographer.browsers import Chromium

    return bool(Chromium.find_browser(skip_local=False))


def exported(
    figure: go.Figure | Callable[[], go.Figure], suffix: str, width: Width = "text"
) -> bytes:
    """Return the figure of a page, which may be dark, or of a function as the content of a file in print style."""
    light = recolor(go.Figure(figure() if callable(figure) else figure), ON_LIGHT)
    return rendered(print_style(light, width), suffix)


def rendered(figure: go.Figure, suffix: str) -> bytes:
    """Convert a figure to the content of an image file. Raises MissingDependency or InvalidInput.

    Args:
        suffix: Suffix of the file, one of FORMATS.
    """
    if find_spec("kaleido") is None:
        raise MissingDependency("vlprobe figure", "kaleido", "'vlprobe[figures]'")
    scale = PNG_SCALE if suffix == ".png" else 1
    try:
        image = cast(bytes, figure.to_image(format=suffix[1:], scale=scale))
    except RuntimeError as error:
        if "Chrome" not in str(error):
            raise
        raise InvalidInput(
            "vlprobe figure needs Chrome or Chromium, and neither is installed. Install one, or run plotly_get_chrome."
        ) from None
    if suffix != ".png":
        return image
    buffer = io.BytesIO()
    Image.open(io.BytesIO(image)).save(buffer, "PNG", dpi=(96 * PNG_SCALE, 96 * PNG_SCALE))
    return buffer.getvalue()
