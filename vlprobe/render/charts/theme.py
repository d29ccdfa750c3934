"""The style that all charts share: colors, marks, axes and text."""

import html
import json
import math
import textwrap
from collections.abc import Callable, Mapping, Sequence

import pandas as pd
import plotly.graph_objects as go
from plotly.basedatatypes import BaseTraceType

from vlprobe.render.charts.styles import DARK
from vlprobe.render.numbers import WAYS, unit_of, with_interval
from vlprobe.render.symbols import heading
from vlprobe.types import Metric
from vlprobe.views.records import BinRow, LevelRow, SliceRow, records

FONT = '"Source Sans 3", "Source Sans", system-ui, sans-serif'
LETTERS = 13  # pixels, the smallest text size on a page
LEAST_LETTERS = 6  # pixels, in print
MOST_TICKS = 8  # on an axis of the trade-off
PAGE = 672, 864  # pixels of 1/96 inch: the text of a page in print, 7 by 9 inches
GRID = "rgba(138,148,163,.25)"  # grid lines
QUIET = "#8a94a3"  # lines that are not data: readable on white and on near-black
# Ends of the color scale of shares. On either page, a higher share has more contrast.
LOW, HIGH = "#f7d9cc", "#b3320b"
ON_DARK = {**DARK, LOW: "#3a2b2a", HIGH: "#ff9466"}
ON_LIGHT = {dark: light for light, dark in ON_DARK.items()}


def recolor(figure: go.Figure, colors: Mapping[str, str]) -> go.Figure:
    """Replace the colors of models and of the scale of shares in a figure, as in ON_DARK or ON_LIGHT."""

    def recolored(value: object) -> object:
        if isinstance(value, str):
            return colors.get(value.lower(), value)
        if isinstance(value, dict):
            return {name: recolored(inner) for name, inner in value.items()}
        return list(map(recolored, value)) if isinstance(value, list | tuple) else value

    def restyle(trace: BaseTraceType) -> None:
        looks = {
            name: recolored(value)
            for name, value in trace.to_plotly_json().items()
            if isinstance(value, str | dict) and "bdata" not in value  # the rest are arrays of data
        }
        trace.update(looks, overwrite=True)

    return figure.for_each_trace(restyle)


def inked(figure: go.Figure, is_dark: bool) -> go.Figure:
    """Set the text colors of a figure so that they are readable on a light or a dark page, and return the figure."""
    ink = "#d5dae2" if is_dark else "#3a4454"
    if is_dark:
        recolor(figure, ON_DARK)
    figure.update_layout(
        font_color=ink, font_size=LETTERS, legend_font_color=ink, hoverlabel_font_color=ink
    )
    figure.update_xaxes(tickfont_color=ink, title_font_color=ink)
    figure.update_yaxes(tickfont_color=ink, title_font_color=ink)
    return figure


def page_figures(
    figure: go.Figure, alternative: str, choice: Callable[[Sequence[str]], str]
) -> dict[str, object]:
    """Return a figure in two versions, for light and dark pages, as input for the Plotly script in an HTML file.

    Args:
        figure: A figure whose marks are identified by their `customdata`.
        choice: Maps the `customdata` of a mark to the URL fragment that the mark links to.
    """
    clear = "rgba(0,0,0,0)"
    figure.update_layout(template="none", font_family=FONT, paper_bgcolor=clear, plot_bgcolor=clear)
    figure.update_xaxes(gridcolor=GRID)
    figure.update_yaxes(gridcolor=GRID)
    figure.for_each_trace(
        lambda trace: trace.update(customdata=list(map(choice, trace.customdata))),
        lambda trace: trace.customdata is not None,
    )
    looks = {}
    for name, paper in (("light", "#ffffff"), ("dark", "#1d232d")):
        drawn = inked(go.Figure(figure), name == "dark")
        drawn.update_layout(hoverlabel={"bgcolor": paper, "bordercolor": QUIET})
        looks[name] = json.loads(str(drawn.to_json()))
    return {"alternative": alternative, **looks}


def safe(text: str) -> str:
    """Escape text for use in a figure, because Plotly interprets HTML elements and template fields.

    >>> safe("<b>R&D</b> %{x}")
    '&lt;b&gt;R&amp;D&lt;/b&gt; %&#123;x}'
    """
    return html.escape(text).replace("%{", "%&#123;")


def arms(
    values: Sequence[float], lows: Sequence[float], highs: Sequence[float], color: str
) -> dict[str, object]:
    """Return 95 % intervals as error bars for Plotly."""
    return {
        "type": "data",
        "symmetric": False,
        "array": [high - value for high, value in zip(highs, values, strict=True)],
        "arrayminus": [value - low for low, value in zip(lows, values, strict=True)],
        "color": color,
        "thickness": 1.8,
        "width": 5,
    }


def row_arms(rows: Sequence[SliceRow] | Sequence[LevelRow], color: str) -> dict[str, object]:
    """Return the 95 % intervals of estimates as error bars for Plotly."""
    lows, highs = [row.low for row in rows], [row.high for row in rows]
    return arms([row.value for row in rows], lows, highs, color)


def guessing(figure: go.Figure, chance: float) -> None:
    """Draw a horizontal line at the value that a guessing model has."""
    line = {"color": QUIET, "dash": "dot", "width": 1.5}
    figure.add_hline(y=chance, line=line, annotation={"text": "guessing", "xanchor": "right"})


def named_rows(figure: go.Figure, labels: Sequence[str], width: int) -> None:
    """Label rows at heights 0, 1 and so on, from top to bottom, and draw thin lines between the rows.

    Args:
        width: Number of characters after which a label is wrapped.
    """
    line = {"color": QUIET, "width": 0.5}
    ends = {"type": "line", "xref": "x domain", "x0": 0, "x1": 1, "yref": "y", "line": line}
    heights = [row - 0.5 for row in range(1, len(labels))]
    # All at once, because repeated `add_hline` calls are slow
    figure.update_layout(shapes=[ends | {"y0": height, "y1": height} for height in heights])
    figure.update_yaxes(
        tickvals=list(range(len(labels))),
        ticktext=[wrapped(label, width) for label in labels],
        range=[len(labels) - 0.5, -0.5],
        showgrid=False,
        zeroline=False,
    )


def mean_text(row: SliceRow, unit: str) -> str:
    """Return the hover text for a mean: the value, the interval, and the numbers of pictures and cases."""
    value = with_interval(row.value, row.low, row.high, unit)
    return f"{value}<br>{row.n_items:,} pictures, {row.n_cases:,} cases"


def stepped_lines(
    table: pd.DataFrame,
    lines: Mapping[str, tuple[str, str]],
    hover_bin: str,
    titles: tuple[str, str],
    height: int,
) -> go.Figure:
    """Draw the distribution of each model as a stepped line.

    Args:
        table: Columns model, left and right (the edges of a bin, from left to right), and share.
        lines: Color and dash of the models' lines, as Plotly names them.
        hover_bin: Hover text for a bin, a Plotly template.
        titles: Titles of the x axis and the y axis.
    """
    figure, rows = go.Figure(), records(BinRow, table)
    for name, (color, dash) in lines.items():
        bins, model = [row for row in rows if row.model == name], safe(name)
        figure.add_scatter(
            x=[*(row.left for row in bins), bins[-1].right],
            y=[*(row.share for row in bins), bins[-1].share],
            mode="lines",
            line={"color": color, "shape": "hv", "width": 2, "dash": dash},
            name=model,
            hovertemplate=f"<b>{model}</b><br>{hover_bin}<extra></extra>",
        )
    figure.update_xaxes(title=titles[0], rangemode="tozero", zeroline=False)
    figure.update_yaxes(title=titles[1], tickformat=".0%", rangemode="tozero", zeroline=False)
    return finished(figure, height)


def axis(metric: Metric, unit: str) -> str:
    """Return the title for an axis: the metric, its unit, and whether higher or lower is better."""
    suffix = {"cosine": " (cosine)", "spread": " (in spreads)"}.get(unit_of(metric, unit), "")
    way = WAYS[metric.direction]
    name = heading(metric, is_html=True)
    return f"{name}{suffix} · {way}" if way else f"{name}{suffix}"


def ticks(metric: Metric, span: float = math.nan) -> str:
    """Return the tick format for a metric's axis: whole percentages for rates, otherwise Plotly's default.

    Args:
        span: Length of the axis. If it is given, all ticks have as many decimals as their steps need.
    """
    if math.isnan(span):
        return ".0%" if metric.unit == "rate" else ""
    # Plotly rounds a step up to 1, 2 or 5
    decimals = -math.floor(math.log10(2 * span / MOST_TICKS))
    return f".{max(decimals - 2, 0)}%" if metric.unit == "rate" else f".{max(decimals, 0)}f"


def tick_step(low: float, high: float) -> float:
    """Return the longest step of 1, 2 or 5 times a power of ten that has two ticks between both ends.

    >>> tick_step(0.17, 0.42), tick_step(3, 27)
    (0.2, 10.0)
    """
    most = 10.0 ** math.ceil(math.log10(high - low))
    steps = (most * part for part in (1, 0.5, 0.2, 0.1, 0.05, 0.02))
    return next(step for step in steps if math.floor(high / step) > math.ceil(low / step))


def wrapped(text: str, width: int) -> str:
    """Escape a name with `safe`, and wrap it after slashes, colons, at signs, hyphens and spaces."""
    signs = "/:@" if len(text) > width else ""
    for sign in signs:
        text = text.replace(sign, f"{sign} ")
    joined = "<br>".join(map(safe, textwrap.wrap(text, width, break_long_words=False) or [""]))
    for sign in signs:
        joined = joined.replace(f"{sign} ", sign)
    return joined


def finished(figure: go.Figure, height: int) -> go.Figure:
    """Set the height of a figure, and the margins and the legend that all figures share."""
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
