"""Figures of single papers that no other page draws. No Streamlit here."""

from collections.abc import Mapping

import pandas as pd
import plotly.graph_objects as go

from vlprobe.render.charts.styles import COLORS, DASHES
from vlprobe.render.charts.theme import QUIET, finished, stepped_line
from vlprobe.views.records import BinRow, records


def edit_distances(table: pd.DataFrame) -> go.Figure:
    """Edit distances of triplets, a stepped line for each two captions (VISLA, figure 8).

    Args:
        table: What `views.figures.edit_distances` returns.
    """
    figure = go.Figure()
    rows = records(BinRow, table)
    for index, name in enumerate(dict.fromkeys(row.model for row in rows)):
        bins = [row for row in rows if row.model == name]
        hover_bin = "from %{x} letters: %{y:.1%} of the triplets"
        stepped_line(figure, bins, COLORS[index], DASHES[index], hover_bin)
    figure.update_xaxes(
        title="Letters to change (edit distance)", rangemode="tozero", zeroline=False
    )
    figure.update_yaxes(
        title="Share of the triplets", tickformat=".0%", rangemode="tozero", zeroline=False
    )
    return finished(figure, 340)


def turning_point(figure: go.Figure, steps: Mapping[str, str], before: str, text: str) -> None:
    """A line before one of the steps of `charts.tradeoff.curves`, with what changes there."""
    line = {"color": QUIET, "dash": "dot", "width": 1.5}
    annotation = {"text": f"{text} →", "y": 0.01, "yanchor": "bottom", "xanchor": "left"}
    figure.add_vline(x=list(steps).index(before) - 0.5, line=line, annotation=annotation)
