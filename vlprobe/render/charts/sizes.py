"""Accuracy over the size of a model, or over what it was trained on (VISLA, tables 5 to 9)."""

import math
from collections.abc import Mapping

import pandas as pd
import plotly.graph_objects as go

from vlprobe.render.charts.styles import Looks
from vlprobe.render.charts.theme import QUIET, arms, finished, safe
from vlprobe.render.numbers import interval, number
from vlprobe.views.records import SizeRow, records

ACROSS = {
    "parameters": "Parameters, in millions",
    "samples": "Pairs that it was trained on, in millions",
}


def sizes(
    table: pd.DataFrame, across: str, styles: Looks, called: Mapping[str, str], chance: float
) -> go.Figure:
    """One mark per model: the user's with 95 % intervals, the printed ones hollow and gray.

    Args:
        table: What `views.sizes.sizes` returns.
        across: One of ACROSS.
        styles: What `styles` returns.
        called: Display names of the runs' models.
        chance: What guessing gets.
    """
    figure = go.Figure()
    rows = [
        (getattr(row, across), row)
        for row in records(SizeRow, table)
        if not math.isnan(getattr(row, across)) and getattr(row, across) > 0
    ]
    published = [(x, row) for x, row in rows if row.source == "published"]
    figure.add_scatter(
        x=[x for x, _ in published],
        y=[row.value for _, row in published],
        mode="markers",
        marker={"symbol": "circle-open", "size": 9, "color": QUIET, "line": {"width": 1.5}},
        name="published",
        text=[
            f"<b>{safe(row.model)}</b> (published)<br>{number(row.value, 'rate')}"
            for _, row in published
        ],
        hovertemplate="%{text}<extra></extra>",
    )
    for x, row in rows:
        if row.source != "run":
            continue
        color, symbol = styles[row.model]
        words = interval(row.low, row.high, "rate")
        figure.add_scatter(
            x=[x],
            y=[row.value],
            mode="markers",
            marker={"symbol": symbol, "size": 11, "color": color},
            error_y=arms([row.value], [row.low], [row.high], color),
            name=safe(called[row.model]),
            text=[f"<b>{safe(called[row.model])}</b><br>{number(row.value, 'rate')}<br>{words}"],
            hovertemplate="%{text}<extra></extra>",
        )
    figure.add_hline(y=chance, line={"dash": "dot", "color": QUIET, "width": 1})
    figure.update_xaxes(type="log", dtick=1, title=ACROSS[across])
    figure.update_yaxes(title="Accuracy · higher is better", tickformat=".0%", rangemode="tozero")
    return finished(figure, 380)
