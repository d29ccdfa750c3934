"""Small figures of steady against alert, one a type of edit, and curves over what grows. No Streamlit here."""

import math
from collections.abc import Mapping, Sequence

import pandas as pd
import plotly.graph_objects as go

from vlprobe.render.charts.styles import Looks, dash
from vlprobe.render.charts.theme import QUIET, arms, axis, finished, guessing, safe, ticks, wrapped
from vlprobe.render.numbers import interval, number, unit_of
from vlprobe.types import Metric

Ranges = tuple[Sequence[float], Sequence[float]]  # of x, the larger end first, and of y


def panel(
    points: pd.DataFrame,
    down: Metric,
    up: Metric,
    unit: str,
    looks: Looks,
    ranges: Ranges,
    printed: pd.DataFrame | None = None,
    names: Mapping[str, str] | None = None,
) -> go.Figure:
    """A small trade-off, of one type of edit, on axes that its neighbours share; without names beside the marks.

    Marks outside of the axes, such as those of controls, are left out.

    Args:
        points: model, x, x_low, x_high, y, y_low, y_high.
        down: The metric on the x axis, lower is better and to the right.
        up: The metric on the y axis, higher is better.
        unit: "cosine" or "spread".
        looks: What `styles` returns.
        ranges: What `shared` returns for all panels.
        printed: What a paper prints of other models, hollow: model, x, y, note.
        names: What models are called; as they are stored, if not given.
    """
    figure = go.Figure()
    if printed is not None and len(inside := _inside(printed, ranges)):
        _hollow(figure, inside, down, up, unit)
    for point in _inside(points, ranges).itertuples():
        _mark(figure, point, down, up, unit, looks, (names or {}).get(point.model, point.model))
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
    known = points.dropna(subset=["x", "y"])
    return _x_range(known), _y_range(known, up)


def _inside(points: pd.DataFrame, ranges: Ranges) -> pd.DataFrame:
    (left, right), (bottom, top) = ranges
    return points[points["x"].between(right, left) & points["y"].between(bottom, top)]


def curves(
    table: pd.DataFrame,
    metric: Metric,
    unit: str,
    looks: Looks,
    steps: Mapping[str, str],
    across: str,
    printed: pd.DataFrame | None = None,
) -> go.Figure:
    """A metric over what grows from step to step, a line a model with 95 % intervals.

    Args:
        table: model, slice, value, low, high, n_items, n_cases.
        metric: Which one.
        unit: "cosine" or "spread".
        looks: What `styles` returns.
        steps: Slices from left to right and what they are called.
        across: What grows.
        printed: What a paper prints of other models, hollow: model, slice, value.
    """
    figure = go.Figure()
    places = {name: float(place) for place, name in enumerate(steps)}
    told = unit_of(metric, unit)
    for first, (model, own) in enumerate(
        [] if printed is None else printed.groupby("model", sort=False)
    ):
        own = own[own["slice"].isin(places)].sort_values(
            "slice", key=lambda names: names.map(places)
        )
        figure.add_scatter(
            x=own["slice"].map(places),
            y=own["value"],
            mode="lines+markers",
            line={"color": QUIET, "width": 1},
            marker={"symbol": "circle-open", "size": 8, "color": QUIET, "line": {"width": 1.5}},
            opacity=0.75,
            name="published",
            legendgroup="published",
            showlegend=first == 0,
            text=[
                f"<b>{safe(model)}</b> (published)<br>{safe(steps[row.slice])}: {number(row.value, told)}"
                for row in own.itertuples()
            ],
            hovertemplate="%{text}<extra></extra>",
        )
    shown = [model for model in looks if model in set(table["model"])]
    for place, model in enumerate(shown):
        own = table[(table["model"] == model) & table["slice"].isin(places)].dropna(
            subset=["value"]
        )
        own = own.sort_values("slice", key=lambda names: names.map(places))
        color, symbol = looks[model]
        figure.add_scatter(
            x=own["slice"].map(places).astype(float) + (place - (len(shown) - 1) / 2) * 0.05,
            y=own["value"],
            error_y=arms(own["value"], own["low"], own["high"], color),
            mode="lines+markers",
            line={"color": color, "width": 2, "dash": dash(looks[model])},
            marker={"color": color, "symbol": symbol, "size": 11},
            name=safe(model),
            text=[
                f"<b>{safe(model)}</b><br>{safe(steps[row.slice])}: {number(row.value, told)} "
                f"({interval(row.low, row.high, told)})<br>{row.n_items:,} pictures, {row.n_cases:,} cases"
                for row in own.itertuples()
            ],
            customdata=[[model, name] for name in own["slice"]],
            hovertemplate="%{text}<extra></extra>",
        )
    if not math.isnan(metric.chance):
        guessing(figure, "h", metric.chance)
    figure.update_xaxes(
        title=across,
        tickvals=list(places.values()),
        ticktext=[wrapped(text, 16) for text in steps.values()],
        range=[-0.3, len(steps) - 0.7],
        showgrid=False,
        zeroline=False,
    )
    figure.update_yaxes(title=axis(metric, unit), tickformat=ticks(metric), zeroline=False)
    return finished(figure, 360)


def beside(figure: go.Figure, printed: pd.DataFrame, rows: Sequence[str], told: str) -> None:
    """Hollow marks of printed numbers under the marks of each row of `charts.dots`.

    Args:
        figure: What `dots` returned.
        printed: model, slice, value.
        rows: The slices of the figure, top to bottom.
        told: The unit of the values, as `charts.number` takes it.
    """
    own = printed[printed["slice"].isin(rows)]
    figure.add_scatter(
        x=own["value"],
        y=[rows.index(name) + 0.41 for name in own["slice"]],
        mode="markers",
        marker={"symbol": "circle-open", "size": 9, "color": QUIET, "line": {"width": 1.5}},
        name="published",
        text=[
            f"<b>{safe(row.model)}</b> (published)<br>{number(row.value, told)}"
            for row in own.itertuples()
        ],
        hovertemplate="%{text}<extra></extra>",
    )


def _mark(
    figure: go.Figure,
    point: object,
    down: Metric,
    up: Metric,
    unit: str,
    looks: Looks,
    name: str,
) -> None:
    color, symbol = looks[point.model]
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
        hovertemplate=_hover(name, ((down, point, "x"), (up, point, "y")), unit),
    )


def _hollow(figure: go.Figure, printed: pd.DataFrame, down: Metric, up: Metric, unit: str) -> None:
    """Marks of numbers that this program did not measure."""
    figure.add_scatter(
        x=printed["x"],
        y=printed["y"],
        mode="markers",
        marker={"symbol": "circle-open", "size": 11, "color": QUIET, "line": {"width": 2}},
        name="published",
        text=[
            f"<b>{safe(row.model)}</b> (published)<br>{down.label}: {number(row.x, unit_of(down, unit))}<br>"
            f"{up.label}: {number(row.y, unit_of(up, unit))}{'<br>' + wrapped(row.note, 60) if row.note else ''}"
            for row in printed.itertuples()
        ],
        hovertemplate="%{text}<extra></extra>",
        cliponaxis=False,
    )


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


def _hover(model: str, sides: Sequence[tuple[Metric, object, str]], unit: str) -> str:
    lines = [f"<b>{safe(model)}</b>"]
    for metric, point, side in sides:
        value, low, high = (getattr(point, side + end) for end in ("", "_low", "_high"))
        own = unit_of(metric, unit)
        lines.append(f"{metric.label}: {number(value, own)} ({interval(low, high, own)})")
    return "<br>".join(lines) + "<extra></extra>"
