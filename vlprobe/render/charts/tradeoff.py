"""Small figures of steady against alert, one a type of edit, and curves over what grows."""

import math
from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from vlprobe.render.charts.styles import DISTINCT, Look, Looks, dash, emphasised
from vlprobe.render.charts.theme import (
    QUIET,
    arms,
    axis,
    finished,
    guessing,
    mean_text,
    safe,
    ticks,
    wrapped,
)
from vlprobe.render.numbers import number, unit_of, with_interval
from vlprobe.types import Metric
from vlprobe.views.records import PointRow, PrintedRow, PrintedSliceRow, SliceRow, records

FAINT = 0.45  # opacity
Ranges = tuple[Sequence[float], Sequence[float]]  # of x, the larger end first, and of y


def panel(
    points: pd.DataFrame,
    down: Metric,
    up: Metric,
    unit: str,
    styles: Looks,
    ranges: Ranges,
    printed: pd.DataFrame | None = None,
    names: Mapping[str, str] | None = None,
) -> go.Figure:
    """A small trade-off of one type of edit, on axes that its neighbours share.

    Its marks have no names next to them; those outside of the axes, such as of controls, are left out.

    Args:
        points: model, x, x_low, x_high, y, y_low, y_high.
        down: The metric on the x axis, lower is better and to the right.
        up: The metric on the y axis, higher is better.
        unit: "cosine" or "spread".
        styles: What `styles` returns.
        ranges: What `shared` returns for all panels.
        printed: Printed values of other models, hollow: model, x, y, note.
        names: Display names of models; their stored names if not given.
    """
    figure = go.Figure()
    if printed is not None and len(inside := _inside(printed, ranges)):
        _hollow(figure, records(PrintedRow, inside), (down, up), unit)
    for point in records(PointRow, _inside(points, ranges)):
        name = names.get(point.model, point.model) if names else point.model
        _mark(figure, point, (down, up), unit, styles[point.model], name)
    if ranges[1][0] <= up.chance <= ranges[1][1]:
        guessing(figure, "h", up.chance)
    figure.update_xaxes(
        title=down.label,
        title_standoff=6,
        range=ranges[0],
        tickformat=ticks(down),
        zeroline=False,
        nticks=4,
    )
    figure.update_yaxes(range=ranges[1], tickformat=ticks(up), zeroline=False)
    return finished(figure, 270).update_layout(showlegend=False, margin_t=5)


def shared(points: pd.DataFrame, up: Metric) -> Ranges:
    """Axes that hold all of these points and their intervals."""
    drawn = points.loc[points["x"].notna() & points["y"].notna()]
    return _x_range(drawn), _y_range(drawn, up)


def _inside(points: pd.DataFrame, ranges: Ranges) -> pd.DataFrame:
    (left, right), (bottom, top) = ranges
    return points.loc[points["x"].between(right, left) & points["y"].between(bottom, top)]


def curves(
    table: pd.DataFrame,
    metric: Metric,
    unit: str,
    styles: Looks,
    steps: Mapping[str, str],
    across: str,
    printed: pd.DataFrame | None = None,
    chosen: str = "",
) -> go.Figure:
    """A metric over a quantity that grows from step to step, one line per model with 95 % intervals; of more than
    DISTINCT models all but the chosen one are thin and grey, without intervals.

    Args:
        table: model, slice, value, low, high, n_items, n_cases.
        metric: Which one.
        unit: "cosine" or "spread".
        styles: What `styles` returns.
        steps: Slices from left to right and what they are called.
        across: What grows.
        printed: Printed values of other models, hollow: model, slice, value.
        chosen: The model that the page is about.
    """
    figure = go.Figure()
    positions = {name: float(index) for index, name in enumerate(steps)}
    value_unit = unit_of(metric, unit)
    if printed is not None:
        _printed_curves(figure, printed, steps, value_unit)
    stored = set(table["model"])
    models = [model for model in styles if model in stored]
    styles = emphasised({model: styles[model] for model in models}, {chosen})
    is_crowded = len(models) > DISTINCT
    spacing = 0.0 if is_crowded else 0.05  # of the way from a step to the next
    for index, model in sorted(enumerate(models), key=lambda pair: pair[1] == chosen):
        is_faint = is_crowded and model != chosen
        is_drawn = table["slice"].isin(list(positions)) & table["value"].notna()
        rows = records(SliceRow, table.loc[(table["model"] == model) & is_drawn])
        rows.sort(key=lambda row: positions[row.slice])
        color, symbol = styles[model]
        offset = (index - (len(models) - 1) / 2) * spacing
        values = [row.value for row in rows]
        intervals = arms(values, [row.low for row in rows], [row.high for row in rows], color)
        line_dash = "solid" if is_faint else dash(styles[model])
        figure.add_scatter(
            x=np.array([positions[row.slice] + offset for row in rows]),
            y=np.array(values),
            error_y=None if is_faint else intervals,
            mode="lines+markers",
            opacity=FAINT if is_faint else 1.0,
            line={"color": color, "width": 1 if is_faint else 2, "dash": line_dash},
            marker={"color": color, "symbol": symbol, "size": 5 if is_faint else 11},
            name=safe(model),
            text=[
                f"<b>{safe(model)}</b><br>{safe(steps[row.slice])}: {mean_text(row, value_unit)}"
                for row in rows
            ],
            customdata=[[model, row.slice] for row in rows],
            hovertemplate="%{text}<extra></extra>",
        )
    if not math.isnan(metric.chance):
        guessing(figure, "h", metric.chance)
    figure.update_xaxes(
        title=across,
        tickvals=list(positions.values()),
        ticktext=[wrapped(text, 16) for text in steps.values()],
        range=[-0.3, len(steps) - 0.7],
        showgrid=False,
        zeroline=False,
    )
    figure.update_yaxes(title=axis(metric, unit), tickformat=ticks(metric), zeroline=False)
    return finished(figure, 360)


def _printed_curves(
    figure: go.Figure, printed: pd.DataFrame, steps: Mapping[str, str], unit: str
) -> None:
    """The printed values of a paper over the steps, one thin line with hollow marks per model."""
    order = list(steps)
    rows = records(PrintedSliceRow, printed)
    for index, model in enumerate(dict.fromkeys(row.model for row in rows)):
        curve = [row for row in rows if row.model == model and row.slice in steps]
        curve.sort(key=lambda row: order.index(row.slice))
        figure.add_scatter(
            x=np.array([float(order.index(row.slice)) for row in curve]),
            y=np.array([row.value for row in curve]),
            mode="lines+markers",
            line={"color": QUIET, "width": 1},
            marker={"symbol": "circle-open", "size": 8, "color": QUIET, "line": {"width": 1.5}},
            opacity=0.75,
            name="published",
            legendgroup="published",
            showlegend=index == 0,
            text=[
                f"<b>{safe(model)}</b> (published)<br>"
                f"{safe(steps[row.slice])}: {number(row.value, unit)}"
                for row in curve
            ],
            hovertemplate="%{text}<extra></extra>",
        )


def beside(figure: go.Figure, printed: pd.DataFrame, rows: Sequence[str], unit: str) -> None:
    """Hollow marks of printed numbers under the marks of each row of `charts.dots`.

    Args:
        figure: What `dots` returned.
        printed: model, slice, value.
        rows: The slices of the figure, top to bottom.
        unit: Unit of the values, as `render.numbers.number` takes it.
    """
    drawn = [row for row in records(PrintedSliceRow, printed) if row.slice in rows]
    figure.add_scatter(
        x=np.array([row.value for row in drawn]),
        y=[rows.index(row.slice) + 0.41 for row in drawn],
        mode="markers",
        marker={"symbol": "circle-open", "size": 9, "color": QUIET, "line": {"width": 1.5}},
        name="published",
        text=[
            f"<b>{safe(row.model)}</b> (published)<br>{number(row.value, unit)}" for row in drawn
        ],
        hovertemplate="%{text}<extra></extra>",
    )


def _mark(
    figure: go.Figure,
    point: PointRow,
    metrics: tuple[Metric, Metric],
    unit: str,
    style: Look,
    name: str,
) -> None:
    """A model's mark with its intervals; `metrics` are those of the x and the y axis."""
    down, up = metrics
    lines = [
        f"<b>{safe(name)}</b>",
        _hover_line(down, (point.x, point.x_low, point.x_high), unit),
        _hover_line(up, (point.y, point.y_low, point.y_high), unit),
    ]
    color, symbol = style
    figure.add_scatter(
        x=[point.x],
        y=[point.y],
        error_x=arms([point.x], [point.x_low], [point.x_high], color),
        error_y=arms([point.y], [point.y_low], [point.y_high], color),
        mode="markers",
        marker={
            "color": color,
            "symbol": symbol,
            "size": 13,
            "line": {"width": 1.5, "color": "white"},
        },
        cliponaxis=False,
        name=safe(name),
        customdata=[[point.model]],
        hovertemplate="<br>".join(lines) + "<extra></extra>",
    )


def _hover_line(metric: Metric, bounds: tuple[float, float, float], unit: str) -> str:
    """A metric, its value and its interval; `bounds` are value, low and high."""
    return f"{metric.label}: {with_interval(*bounds, unit_of(metric, unit))}"


def _hollow(
    figure: go.Figure, printed: Sequence[PrintedRow], metrics: tuple[Metric, Metric], unit: str
) -> None:
    """Marks of numbers that this program did not measure."""
    figure.add_scatter(
        x=np.array([row.x for row in printed]),
        y=np.array([row.y for row in printed]),
        mode="markers",
        marker={"symbol": "circle-open", "size": 11, "color": QUIET, "line": {"width": 2}},
        name="published",
        text=[_printed_text(row, metrics, unit) for row in printed],
        hovertemplate="%{text}<extra></extra>",
        cliponaxis=False,
    )


def _printed_text(row: PrintedRow, metrics: tuple[Metric, Metric], unit: str) -> str:
    """The text next to a printed mark: the model, both values, and the paper's note."""
    lines = [f"<b>{safe(row.model)}</b> (published)"]
    lines += [
        f"{metric.label}: {number(value, unit_of(metric, unit))}"
        for metric, value in zip(metrics, (row.x, row.y), strict=True)
    ]
    if row.note:
        lines.append(wrapped(row.note, 60))
    return "<br>".join(lines)


def _x_range(points: pd.DataFrame) -> list[float]:
    if not len(points):
        return [1.0, 0.0]
    return [1.18 * max(points[["x", "x_high"]].max(axis=None, skipna=True), 1e-6), 0.0]


def _y_range(points: pd.DataFrame, up: Metric) -> list[float]:
    low = points[["y", "y_low"]].min(axis=None) if len(points) else 0.0
    high = points[["y", "y_high"]].max(axis=None) if len(points) else 1.0
    if not math.isnan(up.chance):
        low, high = min(low, up.chance), max(high, up.chance)
    if up.unit == "rate":
        high = 1.0
    room = 0.1 * max(high - low, 1e-6)
    return [low - room, high + room]
