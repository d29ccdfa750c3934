"""Figures of a fine-tuning: each number before, in the control and after; and the losses step by step."""

from collections.abc import Mapping

import pandas as pd
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from vlprobe.render.charts.styles import Looks
from vlprobe.render.charts.theme import QUIET, arms, finished, safe, wrapped
from vlprobe.render.numbers import interval, number

TRAINING, HELD_OUT = "#0072B2", "#D55E00"
Rows = Mapping[tuple[str, str], tuple[str, str]]  # probe and metric; label and unit


def dumbbells(
    levels: pd.DataFrame, rows: Rows, names: Mapping[str, str], looks: Looks
) -> go.Figure:
    """A row a number: before, control and after from top to bottom, each with its 95 % interval, joined by a line.

    Args:
        levels: What `views_repair.repair_levels` returns.
        rows: What is drawn, top to bottom; all in one unit.
        names: Before, control and after, and what each is called in the legend.
        looks: What `charts.styles` returns.
    """
    places = {pair: place for place, pair in enumerate(rows)}
    own = levels[[pair in places for pair in zip(levels["probe"], levels["metric"], strict=True)]]
    own = own.dropna(subset=["value"])
    row = pd.Series(
        [places[pair] for pair in zip(own["probe"], own["metric"], strict=True)],
        own.index,
        dtype=float,
    )
    order = {model: place for place, model in enumerate(names)}
    own = own.assign(y=row + 0.24 * (own["model"].map(order).astype(float) - 1), row=row)
    figure = go.Figure()
    joined = own.sort_values(["row", "y"])
    figure.add_scatter(
        x=[x for _, one in joined.groupby("row") for x in (*one["value"], None)],
        y=[y for _, one in joined.groupby("row") for y in (*one["y"], None)],
        mode="lines",
        line={"color": QUIET, "width": 1.5},
        hoverinfo="skip",
        showlegend=False,
    )
    for model, name in names.items():
        part = own[own["model"] == model]
        color, symbol = looks[model]
        figure.add_scatter(
            x=part["value"],
            y=part["y"],
            error_x=arms(part["value"], part["low"], part["high"], color),
            mode="markers",
            marker={"color": color, "symbol": symbol, "size": 10},
            name=safe(name),
            text=[_told(one, *rows[one.probe, one.metric], name) for one in part.itertuples()],
            hovertemplate="%{text}<extra></extra>",
        )
    for place in range(1, len(rows)):
        figure.add_hline(y=place - 0.5, line={"color": QUIET, "width": 0.5})
    figure.update_yaxes(
        tickvals=list(places.values()),
        ticktext=[wrapped(label, 26) for label, _ in rows.values()],
        range=[len(rows) - 0.5, -0.5],
        showgrid=False,
        zeroline=False,
    )
    unit = next(iter(rows.values()))[1]
    figure.update_xaxes(title="" if unit == "rate" else "In spreads", zeroline=False)
    figure.update_xaxes(tickformat=".4~%" if unit == "rate" else "")
    return finished(figure, 110 + 54 * len(rows))


def _told(row: object, label: str, unit: str, name: str) -> str:
    around = interval(row.low, row.high, unit)
    return (
        f"<b>{safe(name)}</b><br>{label}<br>{number(row.value, unit)}{f' ({around})' if around else ''}"
        f"<br>{row.n_items:,} pictures"
    )


def losses(table: pd.DataFrame, parts: Mapping[str, str], steps: int) -> go.Figure:
    """A panel a part of the loss, each on its own scale: a line for the batches, marks for what is held out.

    Args:
        table: What `views_repair.losses` returns.
        parts: Which parts, top to bottom, in words.
        steps: How many there are to be.
    """
    titles = [wrapped(text, 44) for text in parts.values()]
    figure = make_subplots(
        rows=len(parts), cols=1, shared_xaxes=True, vertical_spacing=0.28 / len(parts)
    )
    for place, part in enumerate(parts, 1):
        own = table[table["part"] == part]
        for side, color, mode in (
            ("training", TRAINING, "lines"),
            ("held out", HELD_OUT, "lines+markers"),
        ):
            line = own[own["side"] == side]
            figure.add_scatter(
                x=line["step"],
                y=line["value"],
                mode=mode,
                line={"color": color, "width": 1.5 if mode == "lines" else 2.5},
                marker={"symbol": "diamond", "size": 9},
                name="each batch of the training" if side == "training" else "held out",
                legendgroup=side,
                showlegend=place == 1,
                hovertemplate=f"step %{{x}}, {side}: %{{y:.4f}}<extra></extra>",
                row=place,
                col=1,
            )
        figure.add_annotation(
            text=titles[place - 1],
            x=0,
            y=1.02,
            xref=f"x{place if place > 1 else ''} domain",
            yref=f"y{place if place > 1 else ''} domain",
            xanchor="left",
            yanchor="bottom",
            showarrow=False,
            align="left",
        )
    figure.update_xaxes(range=[-0.02 * steps, 1.02 * steps], zeroline=False)
    figure.update_xaxes(title="Step", row=len(parts), col=1)
    figure.update_yaxes(rangemode="tozero", zeroline=False, nticks=5)
    finished(figure, 110 + 170 * len(parts))
    return figure.update_layout(legend={"y": 1, "yref": "container", "yanchor": "top"}, margin_t=70)
