"""Figures of single papers that no other page draws. No Streamlit here."""

from collections.abc import Mapping

import pandas as pd
import plotly.graph_objects as go

from vlprobe.render.charts.styles import COLORS, DASHES
from vlprobe.render.charts.theme import QUIET, finished, safe


def edit_distances(table: pd.DataFrame) -> go.Figure:
    """How far the captions of triplets are apart in letters, a stepped line each two of them (VISLA, figure 8).

    Args:
        table: What `views_figures.edit_distances` returns.
    """
    figure = go.Figure()
    for place, (name, own) in enumerate(table.groupby("model", sort=False)):
        figure.add_scatter(
            x=[*own["left"], own["right"].iloc[-1]],
            y=[*own["share"], own["share"].iloc[-1]],
            mode="lines",
            line={"color": COLORS[place], "shape": "hv", "width": 2, "dash": DASHES[place]},
            name=safe(name),
            hovertemplate=f"<b>{safe(name)}</b><br>from %{{x}} letters: %{{y:.1%}} of the triplets<extra></extra>",
        )
    figure.update_xaxes(
        title="Letters to change (edit distance)", rangemode="tozero", zeroline=False
    )
    figure.update_yaxes(
        title="Share of the triplets", tickformat=".0%", rangemode="tozero", zeroline=False
    )
    return finished(figure, 340)


def turning_point(figure: go.Figure, steps: Mapping[str, str], before: str, text: str) -> None:
    """A line before one of the steps of `charts_tradeoff.curves`, with what changes there."""
    line = {"color": QUIET, "dash": "dot", "width": 1.5}
    annotation = {"text": f"{text} →", "y": 0.01, "yanchor": "bottom", "xanchor": "left"}
    figure.add_vline(x=list(steps).index(before) - 0.5, line=line, annotation=annotation)
