"""Figures that reproduce a figure from one paper. Nothing here imports Streamlit."""

from collections.abc import Mapping

import pandas as pd
import plotly.graph_objects as go

from vlprobe.render.charts.styles import COLORS, DASHES, Looks
from vlprobe.render.charts.theme import QUIET, arms, finished, safe, stepped_lines
from vlprobe.render.numbers import interval, number

ACROSS = {
    "parameters": "Parameters, in millions",
    "samples": "Pairs in the training data, in millions",
}


def edit_distances(table: pd.DataFrame) -> go.Figure:
    """Draw histograms of the edit distances between captions in triplets, one stepped line per pair (VISLA, figure 8).

    Args:
        table: The table that `views.figures.edit_distances` returns.
    """
    lines = dict(
        zip(dict.fromkeys(table["model"]), zip(COLORS, DASHES, strict=False), strict=False)
    )
    titles = "Letters to change (edit distance)", "Share of triplets"
    return stepped_lines(table, lines, "from %{x} letters: %{y:.1%} of the triplets", titles, 340)


def agreement(table: pd.DataFrame) -> go.Figure:
    """Draw how many encoders agree on a caption's word, as bars with a mark for chance (RoCOCO, figure 11 a).

    Args:
        table: The `agreement` table that `runs.consensus.consensus` returns.
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
        title="Share of captions", tickformat=".0%", rangemode="tozero", zeroline=False
    )
    return finished(figure, 320)


def source_words(table: pd.DataFrame, most: int) -> go.Figure:
    """Draw how often each word is the least influential one, sorted by frequency (RoCOCO, figure 11 b).

    Args:
        table: The `source_words` table that `runs.consensus.consensus` returns.
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
        title="Share of captions", tickformat=".1%", rangemode="tozero", zeroline=False
    )
    return finished(figure, 320)


def turning_point(figure: go.Figure, steps: Mapping[str, str], first_step: str, text: str) -> None:
    """Draw a vertical line before one step in `charts.tradeoff.curves`, with a text that says what changes there."""
    line = {"color": QUIET, "dash": "dot", "width": 1.5}
    annotation = {"text": f"{text} →", "y": 0.01, "yanchor": "bottom", "xanchor": "left"}
    figure.add_vline(x=list(steps).index(first_step) - 0.5, line=line, annotation=annotation)


def sizes(
    table: pd.DataFrame, across: str, styles: Looks, called: Mapping[str, str], chance: float
) -> go.Figure:
    """Draw one mark per model: the user's models with 95 % intervals, and published models as hollow gray marks.

    Args:
        table: The table that `views.figures.sizes` returns.
        across: The x axis, a key of ACROSS.
        called: Display names of the models in the user's runs.
    """
    figure = go.Figure()
    known = table.loc[table[across] > 0]
    published = known.loc[known["source"] == "published"]
    figure.add_scatter(
        x=published[across].tolist(),
        y=published["value"].tolist(),
        mode="markers",
        marker={"symbol": "circle-open", "size": 9, "color": QUIET, "line": {"width": 1.5}},
        name="published",
        text=[
            f"<b>{safe(model)}</b> (published)<br>{number(value, 'rate')}"
            for model, value in zip(published["model"], published["value"], strict=True)
        ],
        hovertemplate="%{text}<extra></extra>",
    )
    for row in known.loc[known["source"] == "run"].to_dict("records"):
        value, low, high, name = row["value"], row["low"], row["high"], safe(called[row["model"]])
        color, symbol = styles[row["model"]]
        words = interval(low, high, "rate")
        figure.add_scatter(
            x=[row[across]],
            y=[value],
            mode="markers",
            marker={"symbol": symbol, "size": 11, "color": color},
            error_y=arms([value], [low], [high], color),
            name=name,
            text=[f"<b>{name}</b><br>{number(value, 'rate')}<br>{words}"],
            hovertemplate="%{text}<extra></extra>",
        )
    figure.add_hline(y=chance, line={"dash": "dot", "color": QUIET, "width": 1})
    figure.update_xaxes(type="log", dtick=1, title=ACROSS[across])
    figure.update_yaxes(title="Accuracy · higher is better", tickformat=".0%", rangemode="tozero")
    return finished(figure, 380)
