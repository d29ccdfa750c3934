"""Data for the Trade-off page, read from the stored results of a question set, and the page's Plotly figure.

The axis ranges cover the real models. Controls, models that failed their checks, and published models do not extend
the ranges; if they fall outside, their names are listed below the figure.
"""

import math
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, replace

import pandas as pd
import plotly.graph_objects as go

from vlprobe import views
from vlprobe.metrics.tie_groups import group_letters
from vlprobe.registry import is_control
from vlprobe.render import findings
from vlprobe.render.attribution import with_source
from vlprobe.render.charts.names import NamedMark, place_names
from vlprobe.render.charts.styles import DISTINCT, Looks, emphasised
from vlprobe.render.charts.theme import QUIET, arms, finished, guessing, safe, ticks, wrapped
from vlprobe.render.numbers import TOO_FEW, as_printed, number, unit_of, with_interval
from vlprobe.render.sentences import joined
from vlprobe.render.symbols import heading
from vlprobe.types import POOLED, Metric
from vlprobe.views.filter import Filter
from vlprobe.views.paired_tests import Leader
from vlprobe.views.records import PointRow, PrintedRow, records
from vlprobe.views.runs import QuestionSet

ROOM = 0.16  # margin on each side, as a share of the range of the marks and their intervals
# Minimum margin, so that a single model also gets a range
LEAST_ROOM = {"rate": 0.01, "cosine": 0.0005, "spread": 0.01}
HEIGHT, PANEL_HEIGHT = 492, 250  # pixels of the figure
MARGINS = {"l": 56, "r": 14, "t": 48, "b": 104}  # pixels; below, two lines for axis and legend each
SIDES = {
    "below": "↓ below the chart",
    "above": "↑ above the chart",
    "left": "← left of the chart",
    "right": "→ right of the chart",
}
BETTER = "better ↗"
WIDE_ONLY = "wide only"  # the name of annotations without room in a narrow figure
PUBLISHED = "published models, on other pictures, averaged per caption"
PUBLISHED_SOURCE = "values that the LGIP paper prints (Lee, arXiv 2511.13494), on other pictures, averaged per caption"
TABLE_NOTE = "LaTeX and Markdown have the rows of the figure, CSV also those by type of edit."
FRONT = "no other model is better on both counts"
# Words for the axes, by the unit of the y axis
UP_WORDS = {"rate": "wrong captions rejected", "cosine": "how far a wrong caption lowers the score"}
Frame = tuple[tuple[float, float], tuple[float, float]]


@dataclass(frozen=True)
class TradeOffData:
    """The models that answered a question set, with their values for both metrics of a trade-off.

    Attributes:
        down: The metric on the x axis.
        up: The metric on the y axis.
        unit: "cosine" or "spread", for metrics that are cosines.
        points: All models, even with unknown values, sorted by the value on the y axis, highest first, controls last.
        front: Models that no other model beats on both metrics.
        fit: Models that are not controls and failed no check.
        printed: Published models from a paper.
        chance: The value of guessing on the y axis; NaN if it is not defined.
        lowest: Which model leads on the x axis, or which models are tied.
        highest: Which model leads on the y axis, or which models are tied.
        shifted_by: The change that should leave the score the same, such as "a rewording", or "".
        averaging: "macro" or "micro".
        frame: The ends of both axes, if several figures share them.
        x_words: The meaning of the x axis; "" for how far `shifted_by` moves the score.
        y_words: The meaning of the y axis; "" for wrong captions rejected.
        changed: What is changed, such as "edited captions"; "" if `other` is None.
        other: The same models where the other side is changed, pictures instead of captions or the reverse, on the
            same axes; None if no model has both or only one side is to be shown.
    """

    down: Metric
    up: Metric
    unit: str
    points: tuple[PointRow, ...]
    front: frozenset[str]
    fit: frozenset[str]
    printed: tuple[PrintedRow, ...]
    chance: float
    lowest: Leader
    highest: Leader
    shifted_by: str = "a rewording"
    averaging: str = POOLED
    frame: Frame | None = None
    x_words: str = ""
    y_words: str = ""
    changed: str = ""
    other: "TradeOffData | None" = None

    @property
    def x_unit(self) -> str:
        """The unit of the x axis."""
        return unit_of(self.down, self.unit)

    @property
    def y_unit(self) -> str:
        """The unit of the y axis."""
        return unit_of(self.up, self.unit)

    @property
    def known(self) -> list[PointRow]:
        """The models whose values for both metrics are known."""
        return [point for point in self.points if not math.isnan(point.x + point.y)]

    def point(self, model: str) -> PointRow:
        """Return a model's point. All its values are NaN if the model was not tested."""
        unknown = PointRow(model, *[math.nan] * 6)
        return next((point for point in self.points if point.model == model), unknown)

    def rows(self, model: str) -> list[tuple[str, tuple[float, float, float, str]]]:
        """Return the values of a model on both axes, and then on those of the other side, if the figure has it.

        Returns:
            Label of the metric, and its value, both ends of the interval, and unit.
        """
        sides = [self, *([self.other] if self.other else [])]
        labels = [metric.label for side in sides for metric in (side.up, side.down)]
        is_unique = len({*labels}) == len(labels)
        rows = []
        for side in sides:
            point, words = side.point(model), "" if is_unique else f" ({side.changed})"
            y = point.y, point.y_low, point.y_high, side.y_unit
            x = point.x, point.x_low, point.x_high, side.x_unit
            rows += [(side.up.label + words, y), (side.down.label + words, x)]
        return rows

    def finding(self, names: Mapping[str, str]) -> findings.Finding:
        """Return the heading for the page and the model that the heading is about."""
        return findings.trade_off(
            findings.Sides(
                self.points,
                self.lowest,
                self.highest,
                self.fit,
                names,
                (self.x_unit, self.y_unit),
                (_in_sentence(self.down), _in_sentence(self.up)),
                self.shifted_by,
                self.down.direction != "down",
            )
        )

    def ranges(self) -> Frame:
        """Return the ranges of both axes, which cover the intervals of all models that passed their checks. If no model
        passed, they cover the intervals of all models.
        """
        if self.frame:
            return self.frame
        known = [*self.known, *(self.other.known if self.other else ())]
        marks = [point for point in known if point.model in self.fit] or known
        xs = [end for mark in marks for end in (mark.x, mark.x_low, mark.x_high)]
        ys = [end for mark in marks for end in (mark.y, mark.y_low, mark.y_high)]
        return _range(xs, self.x_unit), _range(ys, self.y_unit)

    @property
    def papers(self) -> list[str]:
        """Papers whose values are shown (see `attribution.bibliography`)."""
        return ["lgip"] if self.printed else []

    @property
    def rings(self) -> list[PrintedRow]:
        """The published models inside the axes, from left to right."""
        sign = -1 if self.down.direction == "down" else 1
        inside = [ring for ring in self.printed if not self.side(ring)]
        return sorted(inside, key=lambda ring: sign * ring.x)

    def side(self, point: PointRow | PrintedRow) -> str:
        """Return on which side a mark falls outside the axes, as a key of SIDES, or "" if it is inside."""
        (left, right), (bottom, top) = self.ranges()
        if not bottom <= point.y <= top:
            return "below" if point.y < bottom else "above"
        if left <= point.x <= right:
            return ""
        return "left" if (point.x > right) == (self.down.direction == "down") else "right"


def _in_sentence(metric: Metric) -> str:
    """Return a metric's label in lower case, unless it begins with a symbol such as R@1."""
    return metric.label.lower() if metric.label[1:2].islower() else metric.label


def _range(values: Sequence[float], unit: str) -> tuple[float, float]:
    finite = [value for value in values if not math.isnan(value)] or [0.0, 1.0]
    low, high = min(finite), max(finite)
    room = max(ROOM * (high - low), LEAST_ROOM.get(unit, 0.01))
    low = low - room if low < 0 else max(low - room, 0.0)
    if unit == "rate":
        return low, min(min(high, 1.0) + room, 1.0 + room / 3)
    return low, high + room


def trade_off_data(
    question_set: QuestionSet,
    up: str = "",
    averaging: str = POOLED,
    unit: str = "cosine",
    shows_published: bool = True,
    shows_other: bool = True,
) -> TradeOffData:
    """Read the data for the trade-off figure of a question set from the store.

    Args:
        question_set: A question set of a probe that has a trade-off.
        up: Name of the metric on the y axis; if empty, the first one that the probe offers.
        averaging: "macro" or "micro".
        unit: "cosine" or "spread".
        shows_published: Whether to include the models that LGIP publishes, which have only cosines.
        shows_other: Whether to include the other side, if some of the models have it.

    Raises:
        NotFound: The probe has no trade-off, or none with this metric.
    """
    sides = views.tradeoff.trade_off_sides(question_set.probe)
    up = up or sides.ups[0]
    table = views.tradeoff.trade_off(question_set, up, averaging, unit)
    leaders = views.paired_tests.leaders(question_set, averaging, unit)
    is_printed = shows_published and unit == "cosine" and question_set.probe == "lgip"
    trade_off = TradeOffData(
        question_set.metrics[sides.x_metric(up)],
        question_set.metrics[up],
        unit,
        _ordered(table),
        frozenset(table.loc[table["front"].astype(bool), "model"]),
        frozenset(views.paired_tests.fit_models(question_set)),
        tuple(records(PrintedRow, views.tradeoff.published_trade_off(up)) if is_printed else ()),
        views.papers.chances(question_set)[up],
        leaders[sides.x_metric(up)],
        leaders[up],
        sides.shifted_by,
        averaging,
        x_words=sides.x_words,
        y_words=sides.y_words,
    )
    return _with_other_side(question_set, trade_off) if shows_other else trade_off


def _with_other_side(question_set: QuestionSet, trade_off: TradeOffData) -> TradeOffData:
    """Add the other side of the trade-off, if some of its models have it."""
    found = views.tradeoff.other_side(question_set, trade_off.up.name)
    if found is None:
        return trade_off
    questions, side = found
    sides = views.tradeoff.trade_off_sides(side.probe)
    names = sides.x_metric(side.up), side.up
    choices = trade_off.averaging, trade_off.unit
    other = replace(
        trade_off,
        down=views.runs.metrics(side.probe)[names[0]],
        up=views.runs.metrics(side.probe)[names[1]],
        points=_ordered(views.tradeoff.points(questions, side.up, *choices)),
        front=frozenset(),
        printed=(),
        shifted_by=sides.shifted_by,
        changed=side.words,
    )
    own_words = sides.others[side.up].words
    return replace(trade_off, changed=own_words, other=other) if other.known else trade_off


def _ordered(table: pd.DataFrame) -> tuple[PointRow, ...]:
    """Sort the models by their value on the y axis, highest first, with controls last."""
    return tuple(
        sorted(
            records(PointRow, table),
            key=lambda row: (is_control(row.model), math.inf if math.isnan(row.y) else -row.y),
        )
    )


def trade_offs_by_type(question_set: QuestionSet, overall: TradeOffData) -> dict[str, TradeOffData]:
    """Read the data for one trade-off figure per type of case. All figures have the same axes.

    A type is left out if no model has a value for it.

    Args:
        question_set: The question set of `overall`.
        overall: The trade-off of all types.
    """
    choices = overall.up.name, overall.averaging, overall.unit
    table = views.tradeoff.trade_off_by_type(question_set, *choices)
    frame = replace(overall, points=tuple(records(PointRow, table)), other=None).ranges()
    published = views.tradeoff.published_by_type(overall.up.name) if overall.printed else None
    by_type = {}
    for name, of_type in table.dropna(subset=["x"]).groupby("type", sort=False):
        printed: list[PrintedRow] = []
        if published is not None:
            is_type = published["type"] == name
            printed = records(PrintedRow, published.loc[is_type].dropna(subset=["x", "y"]))
        by_type[str(name)] = replace(
            overall,
            points=_ordered(of_type),
            printed=tuple(printed),
            front=frozenset(),
            frame=frame,
            other=None,
        )
    return by_type


def figure_table(
    question_set: QuestionSet, trade_off: TradeOffData, names: Mapping[str, str]
) -> pd.DataFrame:
    """Return the values of the trade-off figure (type "all") and of the figures by type, for export.

    Args:
        question_set: The question set of the trade-off.
        trade_off: The trade-off of all types.
        names: Display names of models.

    Returns:
        type, model, name, source ("run" or "published"), and for each of the two metrics, y axis first, its value in
        a column with the metric's name, and the columns _low, _high and _n (number of pictures) for it. Rows of
        type "all" have the same for the metrics of the other side, if the figure has it.
    """
    figures = {"all": trade_off} | trade_offs_by_type(question_set, trade_off)
    rows = [
        {"type": name, "source": source, **asdict(point)}
        for name, figure in figures.items()
        for source, points in (("run", figure.points), ("published", figure.printed))
        for point in points
    ]
    table = _with_metric_names(rows, trade_off)
    table.insert(2, "name", [names.get(model, model) for model in table["model"]])
    if trade_off.other is None:
        return table
    rows = [{"type": "all", "source": "run", **asdict(point)} for point in trade_off.other.points]
    other = _with_metric_names(rows, trade_off.other)
    return table.merge(other, how="left", on=["type", "model", "source"])


def _with_metric_names(rows: list[dict], trade_off: TradeOffData) -> pd.DataFrame:
    """Return points as a table whose columns x, y and so on have the names of the metrics."""
    ends = ("", "_low", "_high", "_n")
    axes = {"y": trade_off.up.name, "x": trade_off.down.name}
    columns = {f"{axis}{end}": f"{name}{end}" for axis, name in axes.items() for end in ends}
    table = pd.DataFrame(rows).astype({"x_n": "Int64", "y_n": "Int64"})
    return table.loc[:, ["type", "model", "source", *columns]].rename(columns=columns)


def in_columns(trade_off: TradeOffData, names: Mapping[str, str]) -> pd.DataFrame:
    """Return the values of the trade-off figure in words, for a paper: a row for each model and side."""
    sides = [trade_off, trade_off.other] if trade_off.other else [trade_off]

    def cell(point: PointRow | PrintedRow, axis: str, unit: str) -> str:
        value = getattr(point, axis)
        if isinstance(point, PrintedRow):
            column = [getattr(row, axis) for row in trade_off.printed]
            return f"{as_printed(value, unit, column)} (published)"
        ends = getattr(point, f"{axis}_low"), getattr(point, f"{axis}_high")
        return with_interval(value, *ends, unit)

    return pd.DataFrame(
        {
            **({"Changed": side.changed} if sides[1:] else {}),
            "Model": names.get(point.model, point.model),
            trade_off.up.label: cell(point, "y", trade_off.y_unit),
            trade_off.down.label: cell(point, "x", trade_off.x_unit),
        }
        for side in sides
        for point in (*side.points, *side.printed)
    )


def table_text(
    question_set: QuestionSet, trade_off: TradeOffData, names: Mapping[str, str], how: str
) -> str:
    """Format the values of the trade-off figure as "latex" or "markdown", with intervals, averages and sources."""
    down = _in_sentence(trade_off.down)
    table, letters = in_columns(trade_off, names), dict[str, list[str]]()
    metrics = trade_off.up, trade_off.down
    choices = trade_off.averaging, trade_off.unit, [metric.name for metric in metrics]
    groups = views.paired_tests.metric_tie_groups(question_set, *choices)
    for metric in metrics:
        of_models = group_letters(groups.get(metric.name, ()))
        of_points = [of_models.get(point.model, "") for point in trade_off.points]
        letters[metric.label] = of_points + [""] * (len(table) - len(of_points))
    details = joined(
        f"Intervals: resampled by picture. Averages: {trade_off.averaging}.",
        "Tied models share a letter; bold: clearly the best of those with letters (paired tests by picture, Holm).",
        f"Only the rows “{trade_off.changed}” have letters." if trade_off.other else "",
        f"Published: {PUBLISHED_SOURCE}." if trade_off.printed else "",
    )
    caption = f"{trade_off.up.label} and {down}, with 95 % intervals."
    sources, label = (question_set.runs, names), "tradeoff"
    return with_source(table, how, *sources, letters, caption, details, label, trade_off.papers)


def failures(metric: Metric, model: str, subtype: str = "") -> Filter:
    """Build a filter for the cases of a metric that fool a model, limited to one type of edit if `subtype` is given."""
    return Filter.parse(model, metric.kinds[0], subtype=subtype)


def failures_link(n_failures: int, lies: str) -> str:
    """Return the text for a link to the wrong captions, or whatever `lies` names, that fool a model."""
    if n_failures == 1:
        return f"See the {lies.removesuffix('s')} that fools this model"
    return f"See the {n_failures:,} {lies} that fool this model"


def trade_off_figure(
    data: TradeOffData,
    looks: Looks,
    names: Mapping[str, str],
    named: Collection[str] = (),
    is_panel: bool = False,
) -> go.Figure:
    """Draw models as marks with 95 % intervals, published models as rings, and a line through the best models.

    A mark's `customdata` is its model; published models have none.

    Args:
        data: The trade-off.
        looks: Looks of all models.
        names: Display names of all models.
        named: Models to label if there are more than DISTINCT models; otherwise all models are labeled.
        is_panel: Whether this is one of several small figures, which have no labels and titles.
    """
    models = [point.model for point in data.points]
    is_crowded = len(models) > DISTINCT
    looks = emphasised({model: looks[model] for model in models}, named)
    figure = go.Figure()
    rings = data.rings
    _draw_line(figure, data)
    _draw_published(figure, data, rings, is_panel)
    drawn = [point for point in data.known if not data.side(point)]
    for point in drawn:
        _draw_mark(figure, data, point, looks, names[point.model])
    others = [point for point in data.other.known if not data.side(point)] if data.other else []
    _draw_other_side(figure, data, others, looks, names)
    if not is_panel:
        labels = {
            point: names[point.model] for point in drawn if not is_crowded or point.model in named
        }
        unnamed = [point for point in drawn if point not in labels]
        _draw_names(figure, data, labels, [*unnamed, *others, *rings])
    bottom, top = data.ranges()[1]
    if bottom <= data.chance <= top:
        guessing(figure, data.chance)
    _draw_axes(figure, data)
    if is_panel:
        return figure.update_layout(
            height=PANEL_HEIGHT, margin={"t": 8, "b": 28, "r": 4}, showlegend=False
        )
    _draw_titles(figure, data)
    return figure


def place_of_mark(data: TradeOffData, model: str) -> int:
    """Return the position of a model's mark among the figure's traces, counted from 1, or 0 if it has no mark."""
    drawn = [point.model for point in data.known if not data.side(point)]
    if model not in drawn:
        return 0
    n_front = sum(point.model in data.front for point in data.known)
    return (n_front > 1) + bool(data.rings) + drawn.index(model) + 1


def _draw_line(figure: go.Figure, data: TradeOffData) -> None:
    """Draw a dashed line through the models that no other model beats on both metrics."""
    front = sorted((point.x, point.y) for point in data.known if point.model in data.front)
    if len(front) > 1:
        figure.add_scatter(
            x=[x for x, _ in front],
            y=[y for _, y in front],
            mode="lines",
            line={"color": QUIET, "width": 1.5, "dash": "dash"},
            name=FRONT,
            hoverinfo="skip",
        )


def _draw_published(
    figure: go.Figure, data: TradeOffData, rings: Sequence[PrintedRow], is_panel: bool
) -> None:
    if not rings:
        return
    figure.add_scatter(
        x=[ring.x for ring in rings],
        y=[ring.y for ring in rings],
        mode="markers" if is_panel else "markers+text",
        marker={
            "symbol": "circle-open",
            "size": 11 if is_panel else 15,
            "color": QUIET,
            "line": {"width": 1.5},
        },
        text=[str(number) for number in range(1, len(rings) + 1)],
        textfont={"size": 10},
        name=PUBLISHED,
        meta=f"published, on other pictures: {_ring_names(rings)}",  # its name in print
        hovertext=[
            f"<b>{safe(ring.model)}</b> (published, on other pictures)<br>{data.up.label}: "
            f"{as_printed(ring.y, data.y_unit, [each.y for each in rings])}<br>{data.down.label}: "
            f"{as_printed(ring.x, data.x_unit, [each.x for each in rings])}"
            f"{'<br>' + wrapped(ring.note, 60) if ring.note else ''}"
            for ring in rings
        ],
        hovertemplate="%{hovertext}<extra></extra>",
        unselected={"marker": {"opacity": 1}},
    )


def _draw_mark(
    figure: go.Figure, data: TradeOffData, point: PointRow, looks: Looks, name: str
) -> None:
    color, symbol = looks[point.model]
    figure.add_scatter(
        x=[point.x],
        y=[point.y],
        error_x=arms([point.x], [point.x_low], [point.x_high], color),
        error_y=arms([point.y], [point.y_low], [point.y_high], color),
        mode="markers",
        marker={"color": color, "symbol": symbol, "size": 14},
        name=safe(name),
        showlegend=False,
        customdata=[[point.model]],
        text=[described(data, point, safe(name)).replace("; ", "<br>").replace(": ", "<br>", 1)],
        hovertemplate="%{text}<extra></extra>",
        unselected={"marker": {"opacity": 1}},
    )


def _draw_other_side(
    figure: go.Figure,
    data: TradeOffData,
    points: Sequence[PointRow],
    looks: Looks,
    names: Mapping[str, str],
) -> None:
    """Draw each model's open mark for the other side, and a dotted line to it from the model's own mark."""
    if not data.other:
        return
    marks = {point.model: point for point in data.known if not data.side(point)}
    thin = {"thickness": 1}
    for point in points:
        color, symbol = looks[point.model]
        start = marks.get(point.model)
        text = described(data.other, point, safe(names[point.model]))
        figure.add_scatter(
            x=[start.x if start else math.nan, point.x],
            y=[start.y if start else math.nan, point.y],
            error_x=arms([math.nan, point.x], [math.nan, point.x_low], [0, point.x_high], color)
            | thin,
            error_y=arms([math.nan, point.y], [math.nan, point.y_low], [0, point.y_high], color)
            | thin,
            mode="lines+markers",
            line={"color": color, "width": 1, "dash": "dot"},
            # Plotly computes NaN for a mark of size 0 when another one is selected
            marker={"color": color, "symbol": f"{symbol}-open", "size": [0.01, 13]}
            | {"opacity": 1, "line": {"width": 2}},
            showlegend=False,
            customdata=[[point.model], [point.model]],
            text=["", text.replace("; ", "<br>").replace(": ", "<br>", 1)],
            hovertemplate="%{text}<extra></extra>",
            unselected={"marker": {"opacity": 1}},
        )
    figure.add_scatter(
        x=[None],
        y=[None],
        mode="lines+markers",
        line={"color": QUIET, "width": 1, "dash": "dot"},
        marker={"symbol": "square-open", "size": 11, "color": QUIET, "line": {"width": 2}},
        name=(words := f"open: {data.other.changed}; filled: {data.changed}"),
        meta=words,
        hoverinfo="skip",
    )


def described(data: TradeOffData, point: PointRow, name: str) -> str:
    """Describe a mark in words: its name, both values with their intervals, and the number of pictures."""
    if math.isnan(point.x + point.y):
        return f"{name}: not tested on both axes."
    y = with_interval(point.y, point.y_low, point.y_high, data.y_unit)
    x = with_interval(point.x, point.x_low, point.x_high, data.x_unit)
    n_pictures = "" if math.isnan(point.y_n) else f"; {point.y_n:,.0f} pictures"
    return f"{name}: {data.up.label} {y}; {data.down.label} {x}{n_pictures}"


def _draw_names(
    figure: go.Figure,
    data: TradeOffData,
    labels: Mapping[PointRow, str],
    others: Sequence[PointRow | PrintedRow],
) -> None:
    """Draw names next to the marks where there is room. The legend has those of other marks."""
    (left, right), (bottom, top) = data.ranges()
    is_reversed = data.down.direction == "down"

    def across(value: float) -> float:
        share = (value - left) / (right - left)
        return 1 - share if is_reversed else share

    def along(value: float) -> float:
        return (value - bottom) / (top - bottom)

    def mark(row: PointRow | PrintedRow, text: str) -> NamedMark:
        point = row if isinstance(row, PointRow) else None
        x_ends = (point.x_low, point.x_high) if point else (row.x, row.x)
        y_ends = (point.y_low, point.y_high) if point else (row.y, row.y)
        xs = sorted(across(row.x if math.isnan(end) else end) for end in x_ends)
        ys = sorted(along(row.y if math.isnan(end) else end) for end in y_ends)
        other = data.other.point(point.model) if data.other and text and point else None
        end = (across(other.x), along(other.y)) if other and not math.isnan(other.x) else None
        return NamedMark(text, across(row.x), along(row.y), (xs[0], xs[1]), (ys[0], ys[1]), end)

    marks = [mark(row, text) for row, text in labels.items()]
    marks += [mark(point, "") for point in others]
    places = place_names(marks, HEIGHT - MARGINS["t"] - MARGINS["b"], BETTER)
    for (row, text), place in zip(labels.items(), places, strict=False):
        if place:
            figure.add_annotation(
                x=row.x,
                y=row.y,
                text=f"<b>{safe(text)}</b>",
                ax=place.right,
                ay=-place.up,
                arrowhead=0,
                arrowwidth=1,
                arrowcolor=QUIET if place.has_leader else "rgba(0,0,0,0)",
                standoff=7,
                name="" if place.fits_narrow else WIDE_ONLY,
            )
        else:
            figure.update_traces(showlegend=True, selector={"name": safe(text)})


def _draw_axes(figure: go.Figure, data: TradeOffData) -> None:
    (left, right), (bottom, top) = data.ranges()
    is_reversed = data.down.direction == "down"
    finished(figure, HEIGHT)
    figure.update_layout(
        margin=MARGINS | {"autoexpand": False},
        legend={"yref": "container", "y": 0, "yanchor": "bottom", "xref": "container"},
        showlegend=True,
        hovermode="closest",
    )
    common = {"zeroline": False, "automargin": False}
    across = [right, left] if is_reversed else [left, right]
    numbers = {"tickformat": ticks(data.down, right - left), "nticks": 7}
    figure.update_xaxes(range=across, showgrid=False, **numbers, **common)
    numbers = {"tickformat": ticks(data.up, top - bottom), "nticks": 8}
    figure.update_yaxes(range=[bottom, top], **numbers, **common)


def _draw_titles(figure: go.Figure, data: TradeOffData) -> None:
    words = {"xref": "paper", "yref": "paper", "showarrow": False, "align": "left"}
    up = data.y_words or UP_WORDS.get(data.y_unit, UP_WORDS["cosine"])
    better = "lower" if data.down.direction == "down" else "higher"
    shifted_by = " or ".join(filter(None, [data.shifted_by, data.other and data.other.shifted_by]))
    right = data.x_words or f"how far {shifted_by} moves the score"
    start = words | {"x": 0, "xanchor": "left", "xshift": 8 - MARGINS["l"]}
    up_title = f"<b>↑ {heading(data.up, is_html=True)}</b><br>{up}"
    right_title = f"<b>{heading(data.down, is_html=True)}: {better} →</b><br>{right}"
    figure.add_annotation(text=up_title, y=1, yanchor="bottom", yshift=6, **start)
    figure.add_annotation(text=right_title, y=0, yanchor="top", yshift=-26, **start)
    corner = words | {"x": 1, "xanchor": "right", "y": 1, "yanchor": "top"}
    figure.add_annotation(text=f"<b>{BETTER}</b>", **corner)


def short_name(printed: str) -> str:
    """Return a short name for a published model's mark; the tooltip shows the full name.

    >>> short_name("OpenCLIP ViT-H/14 (LAION-2B)"), short_name("EVA02-CLIP L/14")
    ('OpenCLIP H/14', 'EVA02-CLIP L/14')
    """
    return re.sub(r" \(.*\)$", "", printed).replace("ViT-", "")


def edge_notes(data: TradeOffData, names: Mapping[str, str]) -> list[str]:
    """Return a note for each side of the figure beyond which marks fall. It names the models and gives their values;
    published models share one range. The last note names the published models inside by their numbers.
    """
    marks = [(point, " (control)" * is_control(point.model)) for point in data.known]
    if data.other:
        marks += [(point, f" ({data.other.changed})") for point in data.other.known]
    notes = []
    for side, words in SIDES.items():
        is_vertical = side in ("below", "above")
        axis, unit = ("y", data.y_unit) if is_vertical else ("x", data.x_unit)
        phrases = [
            f"{names[point.model]} {number(getattr(point, axis), unit)}{remark}"
            for point, remark in marks
            if data.side(point) == side
        ]
        if rings := [ring for ring in data.printed if data.side(ring) == side]:
            values = [getattr(ring, axis) for ring in rings]
            low, high = (number(end(values), unit) for end in (min, max))
            between = low if low == high else f"{low.removesuffix(' %')} to {high}"
            ring_names = ", ".join(short_name(ring.model) for ring in rings)
            phrases.append(f"{ring_names}, as published, {between}")
        if phrases:
            notes.append(f"{words}: {' · '.join(phrases)}".replace(" %", "\u00a0%"))
    if data.rings:
        notes.append(f"○ published: {_ring_names(data.rings)}")
    return notes


def _ring_names(rings: Sequence[PrintedRow]) -> str:
    """Return the names of published models with the numbers in their rings."""
    names = (f"{number}\u00a0{short_name(ring.model)}" for number, ring in enumerate(rings, 1))
    return ", ".join(names)


def alternative(data: TradeOffData, names: Mapping[str, str]) -> str:
    """Describe the figure in words, for screen readers."""
    if not data.known:
        return "These models have no values for this trade-off."
    best = max(data.known, key=lambda point: point.y)
    sign = 1 if data.down.direction == "down" else -1
    right = min(data.known, key=lambda point: sign * point.x)
    return (
        f"{data.up.label} against {data.down.label} for {len(data.known)} models: {names[best.model]} is highest with "
        f"{number(best.y, data.y_unit)}, and {names[right.model]} is furthest right with "
        f"{number(right.x, data.x_unit)}. "
        f"{other_note(data)}"
        "The list below has them all."
    )


def other_note(data: TradeOffData) -> str:
    """Return a sentence that says what the open marks are, with a space after it, or "" if there are none."""
    if data.other is None:
        return ""
    return (
        f"Filled marks: {data.changed}. Open marks: the same models with {data.other.changed}, "
        f"{len(data.other.known)} of {len(data.points)}. "
    )


def caption(data: TradeOffData, names: Mapping[str, str]) -> str:
    """Return the facts for the figure's caption: the finding, the marks, the intervals and the models outside."""
    finding = data.finding(names)
    notes = [f"{note}." for note in edge_notes(data, names)]
    averages = f"Averages: {data.averaging}."
    return joined(
        *(finding.heading, other_note(data).strip()),
        *(arms_note(data), averages, *notes),
        f"Published: {PUBLISHED_SOURCE}." if data.printed else "",
    )


def arms_note(data: TradeOffData) -> str:
    """Return a note that says what the lines through the marks mean, or why there are none."""
    has_arms = any(not math.isnan(point.x_low + point.y_low) for point in data.points)
    return "Lines are 95 % intervals." if has_arms else f"No 95 % intervals: {TOO_FEW}."
