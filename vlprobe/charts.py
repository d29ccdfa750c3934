"""Tables in, Plotly figures out; and how a number is written, so that charts and tables agree. No Streamlit here."""

import html
import math
import textwrap
from collections.abc import Mapping, Sequence

import pandas as pd
import plotly.graph_objects as go

from vlprobe.charts_looks import COLORS, DASHES, SYMBOLS, Looks, dash, styles
from vlprobe.types import Metric

__all__ = ["COLORS", "DASHES", "SYMBOLS", "Looks", "styles"]

WAYS = {"up": "higher is better", "down": "lower is better", "none": ""}
QUIET = "#8a94a3"  # lines that are no data: readable on white and on near-black


def unit_of(metric: Metric, unit: str) -> str:
    """The unit that a metric's values are given in: "rate", "correlation", or "cosine" or "spread" as chosen."""
    return unit if metric.unit == "cosine" else metric.unit


def number(value: float, unit: str) -> str:
    """A value as people read it: rates in per cent, cosines with four decimals, others with three; "-" if unknown.

    >>> number(0.5, "rate"), number(0.0135, "cosine"), number(math.nan, "rate")
    ('50.0 %', '0.0135', '-')
    """
    if math.isnan(value):
        return "-"
    if unit == "rate":
        return f"{100 * value:.1f} %"
    return f"{value:.4f}" if unit == "cosine" else f"{value:.3f}"


def interval(low: float, high: float, unit: str) -> str:
    """The 95 % interval in the units of `number`; empty where it is unknown.

    >>> interval(0.25, 0.5, "rate")
    '25.0 to 50.0 %'
    """
    if math.isnan(low) or math.isnan(high):
        return ""
    return f"{number(low, unit).removesuffix(' %')} to {number(high, unit)}"


def safe(text: str) -> str:
    """A name, a caption or a note as text of a figure: Plotly reads elements, and fields in the text beside a mark.

    >>> safe("<b>R&D</b> %{x}")
    '&lt;b&gt;R&amp;D&lt;/b&gt; %&#123;x}'
    """
    return html.escape(text).replace("%{", "%&#123;")


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
    if chances:
        _chances(figure, chances, list(slices))
    elif not math.isnan(metric.chance):
        guessing(figure, "v", metric.chance)
    figure.update_xaxes(title=axis(metric, unit), tickformat=ticks(metric))
    return figure


def headlines(
    table: pd.DataFrame, metrics: Mapping[str, Metric], unit: str, looks: Looks, chances: Mapping[str, float]
) -> go.Figure:
    """One row a metric, one mark a model with its 95 % interval, and what guessing gets; for rates that go one way.

    Args:
        table: model, metric, value, low, high, n_items, n_cases.
        metrics: The rows by name, top to bottom.
        unit: "cosine" or "spread".
        looks: What `styles` returns.
        chances: What guessing gets on each metric; one that is missing or NaN is not drawn.
    """
    figure = _rows(table, "metric", {name: metric.label for name, metric in metrics.items()}, metrics, unit, looks)
    _chances(figure, chances, list(metrics))
    way = {metric.direction for metric in metrics.values()}
    figure.update_xaxes(title=WAYS[way.pop()] if len(way) == 1 else "", tickformat=".0%", range=[-0.02, 1.02])
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
    figure.update_yaxes(title="Share of the cases", tickformat=".0%", rangemode="tozero", zeroline=False)
    return finished(figure, 380)


def _rows(
    table: pd.DataFrame, key: str, names: Mapping[str, str], metrics: Mapping[str, Metric], unit: str, looks: Looks
) -> go.Figure:
    """A row for each of `names`, values of the table's column `key`; `metrics` says what each row measures."""
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
    known = [(place, chances[name]) for place, name in enumerate(rows) if not math.isnan(chances.get(name, math.nan))]
    if known:
        figure.add_scatter(
            x=[value for _, chance in known for value in (chance, chance, None)],
            y=[value for place, _ in known for value in (place - 0.46, place + 0.46, None)],
            mode="lines",
            line={"color": QUIET, "dash": "dot", "width": 2},
            name="guessing",
            hoverinfo="skip",
        )


def arms(value: Sequence[float], low: Sequence[float], high: Sequence[float], color: str) -> dict:
    """95 % intervals as Plotly's error bars."""
    return {
        "type": "data",
        "symmetric": False,
        "array": [top - middle for top, middle in zip(high, value, strict=True)],
        "arrayminus": [middle - bottom for bottom, middle in zip(low, value, strict=True)],
        "color": color,
        "thickness": 1.8,
        "width": 5,
    }


def guessing(figure: go.Figure, way: str, chance: float) -> None:
    """The line on which a model lies that knows nothing."""
    line = {"color": QUIET, "dash": "dot", "width": 1.5}
    if way == "h":
        figure.add_hline(y=chance, line=line, annotation={"text": "guessing", "xanchor": "right"})
    else:
        figure.add_vline(x=chance, line=line, annotation={"text": "guessing", "yanchor": "bottom"})


def axis(metric: Metric, unit: str) -> str:
    """What an axis is called: the metric, its unit and which way is better."""
    told = {"cosine": " (cosine)", "spread": " (in spreads)"}.get(unit_of(metric, unit), "")
    way = WAYS[metric.direction]
    return f"{metric.label}{told} · {way}" if way else f"{metric.label}{told}"


def ticks(metric: Metric) -> str:
    """How an axis writes its numbers."""
    return ".0%" if metric.unit == "rate" else ""


def wrapped(text: str, width: int) -> str:
    """A name as `safe` makes it, broken where people would: after a slash, a colon, a hyphen or a space."""
    spaced = text.replace("/", "/ ").replace(":", ": ").replace("@", "@ ") if len(text) > width else text
    lines = textwrap.wrap(spaced, width, break_long_words=False) or [""]
    joined = "<br>".join(map(safe, lines))
    return joined.replace("/ ", "/").replace(": ", ":").replace("@ ", "@") if len(text) > width else joined


def finished(figure: go.Figure, height: int) -> go.Figure:
    """The figure with the size, margins and legend that all have."""
    figure.update_layout(
        height=height,
        margin={"l": 10, "r": 10, "t": 30, "b": 10},
        dragmode=False,
        legend={"orientation": "h", "yanchor": "bottom", "y": 1.02, "x": 0},
        hoverlabel={"align": "left"},
    )
    figure.update_xaxes(automargin=True)
    figure.update_yaxes(automargin=True)
    return figure
