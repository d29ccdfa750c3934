"""Charts of means with intervals, and of distributions."""

import math
from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from vlprobe.render.charts.styles import Looks, dash
from vlprobe.render.charts.theme import (
    QUIET,
    axis,
    finished,
    mean_text,
    named_rows,
    row_arms,
    safe,
    stepped_lines,
    ticks,
    wrapped,
)
from vlprobe.render.numbers import WAYS, unit_of
from vlprobe.types import Metric
from vlprobe.views.records import SliceRow, records

MANY = 14  # with more models, marks are smaller and sorted by value in each row


def dots(
    table: pd.DataFrame,
    metric: Metric,
    unit: str,
    slices: Mapping[str, str],
    styles: Looks,
    chances: Mapping[str, float] | None = None,
    labels: Mapping[str, str] | None = None,
) -> go.Figure:
    """Draw one row per slice, with a mark and a 95 % interval for each model.

    Args:
        table: Columns model, slice, value, low, high, n_items, n_cases for one metric.
        unit: "cosine" or "spread".
        slices: Display names of the slices, from top to bottom.
        chances: The value of guessing in each slice, if it differs from the metric's own chance level.
        labels: Models whose names are shown next to their marks if there are more than MANY models.
    """
    figure = _rows(
        table, "slice", slices, dict.fromkeys(slices, metric), unit, styles, labels or {}
    )
    _chances(figure, chances or dict.fromkeys(slices, metric.chance), list(slices))
    figure.update_xaxes(title=axis(metric, unit), tickformat=ticks(metric))
    return figure


def headlines(
    table: pd.DataFrame,
    metrics: Mapping[str, Metric],
    unit: str,
    styles: Looks,
    chances: Mapping[str, float],
    labels: Mapping[str, str] | None = None,
) -> go.Figure:
    """Draw one row per metric, with a mark and a 95 % interval for each model, and a line for the value of guessing.

    Args:
        table: Columns model, metric, value, low, high, n_items, n_cases.
        metrics: Metrics by name, top to bottom. All are rates with the same better direction.
        unit: "cosine" or "spread".
        chances: The value of guessing for each metric. A missing or NaN value is not drawn.
    """
    names = {name: metric.label for name, metric in metrics.items()}
    figure = _rows(table, "metric", names, metrics, unit, styles, labels or {})
    _chances(figure, chances, list(metrics))
    way = {metric.direction for metric in metrics.values()}
    figure.update_xaxes(
        title=WAYS[way.pop()] if len(way) == 1 else "", tickformat=".0%", range=[-0.02, 1.02]
    )
    return figure


def distribution(table: pd.DataFrame, metric: Metric, unit: str, styles: Looks) -> go.Figure:
    """Draw the distribution of a metric over cases as one stepped line per model.

    Args:
        table: Columns model, left and right (the edges of a bin), and share (of the model's cases).
        unit: "cosine" or "spread".
    """
    drawn_models = set(table["model"])
    lines = {
        model: (look.color, dash(look)) for model, look in styles.items() if model in drawn_models
    }
    hover_bin = "from %{x:.3f}: %{y:.1%} of the cases"
    return stepped_lines(table, lines, hover_bin, (axis(metric, unit), "Share of cases"), 380)


def _rows(
    table: pd.DataFrame,
    key: str,
    names: Mapping[str, str],
    metrics: Mapping[str, Metric],
    unit: str,
    styles: Looks,
    labels: Mapping[str, str],
) -> go.Figure:
    """Draw one row for each entry in `names`, using the table rows whose column `key` equals the entry's name.

    `metrics` gives the metric for each row. A mark's `customdata` is its model and the key of its row.
    """
    figure = go.Figure()
    drawn_models = set(table["model"])
    models = [model for model in styles if model in drawn_models]
    heights = {name: index for index, name in enumerate(names)}
    is_crowded = len(models) > MANY
    table = table.loc[table[key].isin(list(heights)) & table["value"].notna()]
    if is_crowded:
        models.sort(key=labels.__contains__)  # draw labeled marks on top
        ranks = table.groupby(key)["value"].rank(method="first", ascending=False)
        table = table.assign(lane=ranks - 1)
    lane_step = (0.84 if is_crowded else 0.7) / max(len(models), 1)
    for index, model in enumerate(models):
        drawn = table.loc[table["model"] == model]
        keys = drawn[key].tolist()
        lanes = drawn["lane"].to_numpy() if is_crowded else np.full(len(keys), index)
        offsets = (lanes - (len(models) - 1) / 2) * lane_step
        rows = records(SliceRow, drawn.assign(slice=keys))
        places = np.array([float(heights[name]) for name in keys]) + offsets
        color, symbol = styles[model]
        figure.add_scatter(
            x=drawn["value"],
            y=places,
            error_x=row_arms(rows, color),
            mode="markers",
            marker={"color": color, "symbol": symbol, "size": 8 if is_crowded else 11},
            name=safe(model),
            text=[
                f"<b>{safe(model)}</b><br>{safe(names[row.slice])}<br>"
                f"{mean_text(row, unit_of(metrics[row.slice], unit))}"
                for row in rows
            ],
            customdata=[[model, name] for name in keys],
            hovertemplate="%{text}<extra></extra>",
        )
        if is_crowded and model in labels:
            middle = float(table["value"].to_numpy().mean())
            _label(figure, labels[model], rows, places, middle)
    named_rows(figure, list(names.values()), 24)
    figure.update_xaxes(zeroline=False)
    lane_height = 7 if is_crowded else 16
    return finished(figure, 130 + len(names) * (26 + lane_height * len(models)))


def _label(
    figure: go.Figure,
    label: str,
    rows: Sequence[SliceRow],
    heights: Sequence[float] | np.ndarray,
    middle: float,
) -> None:
    """Write a model's name next to each of its intervals, on the side that is closer to the middle of the chart."""
    for row, height in zip(rows, heights, strict=True):
        is_left = row.value > middle
        end = row.low if is_left else row.high
        figure.add_annotation(
            x=row.value if math.isnan(end) else end,
            y=height,
            text=f"<b>{wrapped(label, 24)}</b>",
            showarrow=False,
            xanchor="right" if is_left else "left",
            xshift=-8 if is_left else 8,
        )


def _chances(figure: go.Figure, chances: Mapping[str, float], rows: Sequence[str]) -> None:
    """Draw a dotted line in each row at the value of guessing. All lines share one legend entry."""
    levels = [
        (height, chances[name])
        for height, name in enumerate(rows)
        if not math.isnan(chances.get(name, math.nan))
    ]
    if levels:
        figure.add_scatter(
            x=[value for _, chance in levels for value in (chance, chance, None)],
            y=[end for height, _ in levels for end in (height - 0.46, height + 0.46, None)],
            mode="lines",
            line={"color": QUIET, "dash": "dot", "width": 2},
            name="guessing",
            hoverinfo="skip",
        )
