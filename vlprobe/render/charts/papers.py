"""Figures of single papers that no other page draws. No Streamlit here."""

from collections.abc import Mapping

import pandas as pd
import plotly.graph_objects as go

from vlprobe.render.charts.styles import COLORS, DASHES
from vlprobe.render.charts.theme import QUIET, finished, safe, stepped_line
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


def agreement(table: pd.DataFrame) -> go.Figure:
    """Count how many encoders name the same word of a caption: bars, and a mark for chance (RoCOCO, figure 11 a).

    Args:
        table: `agreement` of `runs.consensus.consensus`.
    """
    figure = go.Figure()
    names = [f"{count:,}" for count in table["encoders"]]
    captions = [f"{count:,}" for count in table["captions"]]
    hover = "%{x} models: %{customdata} captions, %{y:.1%}<extra></extra>"
    figure.add_bar(
        **{"x": names, "y": table["share"], "customdata": captions, "name": "these models"},
        **{"marker_color": COLORS[0], "hovertemplate": hover, "width": 0.6},
    )
    mark = {"symbol": "line-ew-open", "size": 34, "line": {"width": 3}, "color": QUIET}
    figure.add_scatter(
        **{"x": names, "y": table["by_chance"], "mode": "markers", "marker": mark},
        **{"name": "at random", "hovertemplate": "at random: %{y:.1%}<extra></extra>"},
    )
    figure.update_xaxes(title="Models that name the same word", type="category")
    figure.update_yaxes(
        title="Share of the captions", tickformat=".0%", rangemode="tozero", zeroline=False
    )
    return finished(figure, 320)


def source_words(table: pd.DataFrame, most: int) -> go.Figure:
    """Compute how often each word does least, most frequent first (RoCOCO, figure 11 b).

    Args:
        table: `source_words` of `runs.consensus.consensus`.
        most: Words that are drawn.
    """
    shown_rows = table.head(most)
    hover = "%{x}: %{customdata:,} captions, %{y:.1%}<extra></extra>"
    figure = go.Figure()
    figure.add_bar(
        x=[safe(word) for word in shown_rows["word"]],
        y=shown_rows["share"],
        customdata=shown_rows["captions"],
        marker_color=COLORS[0],
        hovertemplate=hover,
    )
    figure.update_xaxes(type="category", tickangle=-60)
    figure.update_yaxes(
        title="Share of the captions", tickformat=".1%", rangemode="tozero", zeroline=False
    )
    return finished(figure, 320)


def turning_point(figure: go.Figure, steps: Mapping[str, str], before: str, text: str) -> None:
    """A line before one of the steps of `charts.tradeoff.curves`, with what changes there."""
    line = {"color": QUIET, "dash": "dot", "width": 1.5}
    annotation = {"text": f"{text} →", "y": 0.01, "yanchor": "bottom", "xanchor": "left"}
    figure.add_vline(x=list(steps).index(before) - 0.5, line=line, annotation=annotation)
