"""Charts of means with their intervals, and distributions."""

import math
from collections.abc import Mapping, Sequence

import pandas as pd
import plotly.graph_objects as go

from vlprobe.render.charts.styles import Looks, dash
from vlprobe.render.charts.theme import QUIET, arms, axis, finished, safe, ticks, wrapped
from vlprobe.render.numbers import WAYS, interval, number, unit_of
from vlprobe.types import Metric


def dots(
    table: pd.DataFrame,
    metric: Metric,
    unit: str,
    slices: Mapping[str, str],
    looks: Looks,
    chances: Mapping[str, float] | None = None,
) -> go.Figure:
    """One row a slice, one mark a model with its 95 % interval.

    Args:
        table: model, slice, value, low, high, n_items, n_cases of one metric.
        metric: Which one.
        unit: "cosine" or "spread".
        slices: Each slice's name in words, top to bottom.
        looks: What `styles` returns.
        chances: What guessing gets in each slice, where that is not the metric's own chance.
    """
    figure = _rows(table, "slice", slices, dict.fromkeys(slices, metric), unit, looks)
    _chances(figure, chances or dict.fromkeys(slices, metric.chance), list(slices))
    figure.update_xaxes(title=axis(metric, unit), tickformat=ticks(metric))
    return figure


def headlines(
    table: pd.DataFrame,
    metrics: Mapping[str, Metric],
    unit: str,
    looks: Looks,
    chances: Mapping[str, float],
) -> go.Figure:
    """One row a metric, one mark a model with its 95 % interval, and what guessing gets; for rates that go one way.

    Args:
        table: model, metric, value, low, high, n_items, n_cases.
        metrics: The rows by name, top to bottom.
        unit: "cosine" or "spread".
        looks: What `styles` returns.
        chances: What guessing gets on each metric; one that is missing or NaN is not drawn.
    """
    figure = _rows(
        table,
        "metric",
        {name: metric.label for name, metric in metrics.items()},
        metrics,
        unit,
        looks,
    )
    _chances(figure, chances, list(metrics))
    way = {metric.direction for metric in metrics.values()}
    figure.update_xaxes(
        title=WAYS[way.pop()] if len(way) == 1 else "", tickformat=".0%", range=[-0.02, 1.02]
    )
    return figure


def distribution(table: pd.DataFrame, metric: Metric, unit: str, looks: Looks) -> go.Figure:
    """How a metric is spread over the cases, a stepped line a model.

    Args:
        table: model, left, right (edges of a bin), share (of the model's cases).
        metric: Which one.
        unit: "cosine" or "spread".
        looks: What `styles` returns.
    """
    figure = go.Figure()
    for model in [model for model in looks if model in set(table["model"])]:
        own = table[table["model"] == model]
        figure.add_scatter(
            x=[*own["left"], own["right"].iloc[-1]],
            y=[*own["share"], own["share"].iloc[-1]],
            mode="lines",
            line={"color": looks[model][0], "shape": "hv", "width": 2, "dash": dash(looks[model])},
            name=safe(model),
            hovertemplate=f"<b>{safe(model)}</b><br>from %{{x:.3f}}: %{{y:.1%}} of the cases<extra></extra>",
        )
    figure.update_xaxes(title=axis(metric, unit), rangemode="tozero", zeroline=False)
    figure.update_yaxes(
        title="Share of the cases", tickformat=".0%", rangemode="tozero", zeroline=False
    )
    return finished(figure, 380)


def _rows(
    table: pd.DataFrame,
    key: str,
    names: Mapping[str, str],
    metrics: Mapping[str, Metric],
    unit: str,
    looks: Looks,
) -> go.Figure:
    """A row for each of `names`, values of the table's column `key`; `metrics` says what each row measures.

    Each mark has its model and its row's key as `customdata`.
    """
    figure = go.Figure()
    shown = [model for model in looks if model in set(table["model"])]
    rows = {name: place for place, name in enumerate(names)}
    step = 0.7 / max(len(shown), 1)
    for place, model in enumerate(shown):
        own = table[(table["model"] == model) & table[key].isin(rows)].dropna(subset=["value"])
        color, symbol = looks[model]
        hover = []
        for row in own.itertuples():
            name = getattr(row, key)
            told = unit_of(metrics[name], unit)
            hover.append(
                f"<b>{safe(model)}</b><br>{safe(names[name])}<br>{number(row.value, told)} "
                f"({interval(row.low, row.high, told)})<br>{row.n_items:,} pictures, {row.n_cases:,} cases"
            )
        figure.add_scatter(
            x=own["value"],
            y=own[key].map(rows).astype(float) + (place - (len(shown) - 1) / 2) * step,
            error_x=arms(own["value"], own["low"], own["high"], color),
            mode="markers",
            marker={"color": color, "symbol": symbol, "size": 11},
            name=safe(model),
            text=hover,
            customdata=[[model, name] for name in own[key]],
            hovertemplate="%{text}<extra></extra>",
        )
    for place in range(1, len(rows)):
        figure.add_hline(y=place - 0.5, line={"color": QUIET, "width": 0.5})
    figure.update_yaxes(
        tickvals=list(rows.values()),
        ticktext=[wrapped(text, 24) for text in names.values()],
        range=[len(rows) - 0.5, -0.5],
        showgrid=False,
        zeroline=False,
    )
    figure.update_xaxes(zeroline=False)
    return finished(figure, 130 + len(rows) * (26 + 16 * len(shown)))


def _chances(figure: go.Figure, chances: Mapping[str, float], rows: Sequence[str]) -> None:
    """A dotted line a row where a model lies that only guesses; one entry of the legend for all."""
    known = [
        (place, chances[name])
        for place, name in enumerate(rows)
        if not math.isnan(chances.get(name, math.nan))
    ]
    if known:
        figure.add_scatter(
            x=[value for _, chance in known for value in (chance, chance, None)],
            y=[value for place, _ in known for value in (place - 0.46, place + 0.46, None)],
            mode="lines",
            line={"color": QUIET, "dash": "dot", "width": 2},
            name="guessing",
            hoverinfo="skip",
        )
