"""A Plotly figure as SVG, for pages that do without Plotly's script of 4.8 MB.

Horizontal positions are percentages and vertical ones pixels, so one drawing fits every window. It has scatter traces
with marks, lines and intervals, shapes, annotations, and a legend below.
"""

import html
import math
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import htpy
import plotly.graph_objects as go

from vlprobe.render.charts.styles import DARK, PATHS, SIZE

LINE = 17  # pixels of a line of text
LETTER = 7.8  # pixels: the mean width of a letter in the widest of usual fonts
RISE = 13  # pixels from the top of a line to its baseline
GAP = 8  # pixels between the plot and the labels left of it
MOST_TICKS = 7
TOUCH = 12  # pixels: half of the smallest area that a finger hits
DASHES = {"dash": "6 5", "dot": "2 4"}
ANCHORS = {"left": "start", "right": "end"}
SWATCH = 28  # pixels: width of a legend's sign

Link = Callable[[Sequence[str]], str]


@dataclass(frozen=True)
class Plot:
    """The area of the axes: the values at its edges, and its height in pixels."""

    left: float
    right: float
    bottom: float
    top: float
    height: float

    def across(self, value: float, is_share: bool = False) -> str:
        """Return the position of a value, or of a share of the width, in percent of the width."""
        share = value if is_share else (value - self.left) / (self.right - self.left)
        return f"{100 * share:.2f}%"

    def along(self, value: float, is_share: bool = False) -> float:
        """Return the distance of a value, or of a share of the height, from the top in pixels."""
        share = value if is_share else (value - self.bottom) / (self.top - self.bottom)
        return round(self.height * (1 - share), 1)


def figure_html(
    figure: go.Figure, alternative: str, link: Link = lambda values: ""
) -> htpy.Element:
    """Draw a figure with fixed ranges of both axes.

    Args:
        figure: A figure of this package; all its texts are escaped.
        alternative: A description in words.
        link: Returns the address that a mark leads to, by its `customdata`; "" if it has none. The keyboard
            does not stop at marks: a page that links them has the same links in a table or in pickers.
    """
    layout: Any = figure.layout
    margin = layout.margin
    height = layout.height - margin.t - margin.b
    (left, right), (bottom, top) = layout.xaxis.range, layout.yaxis.range
    plot = Plot(left, right, bottom, top, height)
    is_below = layout.legend.yanchor == "top"
    labels = _plain("<br>".join(_tick_texts(layout.yaxis)[1])).split("\n")
    indent = max(margin.l, round(LETTER * max(map(len, labels), default=0)) + GAP)
    padding = f"padding:{margin.t}px {margin.r}px {0 if is_below else margin.b}px {indent}px"
    return htpy.figure(".vp-chart", aria_label=alternative)[
        htpy.div(style=padding)[
            htpy.svg(width="100%", height=height, aria_hidden="true")[
                (_shape(shape, plot) for shape in layout.shapes),
                _x_axis(layout.xaxis, plot),
                _y_axis(layout.yaxis, plot),
                htpy.svg(width="100%", height=height, overflow="hidden")[
                    (
                        _trace(trace, plot, layout.yaxis.tickvals is not None, link)
                        for trace in figure.data
                    )
                ],
                (_annotation(annotation, plot) for annotation in layout.annotations),
            ]
        ],
        _legend(figure, layout),
    ]


def _color(color: str | None) -> str:
    """A color on light and on dark pages."""
    if not color:
        return "currentColor"
    dark = DARK.get(color.lower())
    return f"light-dark({color}, {dark})" if dark else color


def _stroke(line: Any) -> dict[str, Any]:
    """The attributes of a line."""
    dashes = {"stroke_dasharray": DASHES[line.dash]} if line.dash in DASHES else {}
    return {"stroke": _color(line.color), "stroke_width": line.width or 1, **dashes}


def _lines(text: str) -> list[list[tuple[str, bool]]]:
    """Split a text into lines of runs, each with whether it is bold.

    >>> _lines("<b>R&amp;D</b> up<br>more")
    [[('R&D', True), (' up', False)], [('more', False)]]
    """
    lines: list[list[tuple[str, bool]]] = [[]]
    is_bold = False
    for piece in re.split(r"(</?b>|<br>)", text):
        if piece == "<br>":
            lines.append([])
        elif piece in ("<b>", "</b>"):
            is_bold = piece == "<b>"
        elif piece:
            lines[-1].append((html.unescape(piece), is_bold))
    return lines


def _plain(text: str) -> str:
    """A text without elements, a line each."""
    return "\n".join("".join(run for run, _ in line) for line in _lines(text))


def _text(text: str, x: float, top: float, anchor: str = "middle", style: str = "") -> htpy.Element:
    """A text below `top`, in pixels."""
    return htpy.text(class_=style, text_anchor=anchor)[
        (
            htpy.tspan(x=f"{x:g}", y=f"{top + RISE + LINE * number:g}")[
                (htpy.tspan(font_weight=650)[run] if is_bold else run for run, is_bold in line)
            ]
            for number, line in enumerate(_lines(text))
        )
    ]


def _element(name: str, *content: htpy.Node, **values: str | float | None) -> htpy.Element:
    """An element of a drawing."""
    attributes = {
        key: f"{value:g}" if isinstance(value, float) else value for key, value in values.items()
    }
    return htpy.Element(name)(**attributes)[content]


def _spot(x: str, y: float, *content: htpy.Node) -> htpy.Element:
    """A place in the plot, where its content has the origin."""
    return _element("svg", *content, x=x, y=y, overflow="visible")


def _shape(shape: Any, plot: Plot) -> htpy.Element:
    """A line, or a rectangle."""
    is_share = shape.xref != "x"
    ends = [plot.across(x, is_share) for x in (shape.x0, shape.x1)]
    ys = [plot.along(y, shape.yref in ("paper", "y domain")) for y in (shape.y0, shape.y1)]
    if shape.type == "line":
        return _element("line", x1=ends[0], x2=ends[1], y1=ys[0], y2=ys[1], **_stroke(shape.line))
    width = f"{float(ends[1][:-1]) - float(ends[0][:-1]):.2f}%"
    area = {"x": ends[0], "y": min(ys), "width": width, "height": abs(ys[1] - ys[0])}
    return _element("rect", **area, fill="none", **_stroke(shape.line))


def ticks(low: float, high: float) -> list[float]:
    """Round numbers inside of a range, zero among them.

    >>> [round(value, 2) for value in ticks(-0.145, 0.165)]
    [-0.1, -0.05, 0.0, 0.05, 0.1, 0.15]
    """
    rough = (high - low) / MOST_TICKS
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(factor * power for factor in (1, 2, 5, 10) if factor * power >= rough)
    return [n * step for n in range(math.ceil(low / step), math.floor(high / step) + 1)]


def _tick_texts(axis: Any) -> tuple[Sequence[float], Sequence[str]]:
    """The values of an axis and their labels: those that it names, else round ones in its format."""
    if axis.tickvals is not None:
        return axis.tickvals, axis.ticktext
    values = ticks(*sorted(axis.range))
    is_percent, is_signed = axis.tickformat == ".0%", "+" in (axis.tickformat or "")
    scaled = [100 * value for value in values] if is_percent else values
    step = abs(scaled[1] - scaled[0]) if len(scaled) > 1 else 1.0
    n_decimals = max(0, -math.floor(math.log10(step) + 1e-9))
    sign = "+" if is_signed else ""
    texts = [
        f"{value:{sign if round(value, n_decimals) else ''}.{n_decimals}f}{'%' if is_percent else ''}"
        for value in scaled
    ]
    return values, [text.replace("-", "−") for text in texts]


def _x_axis(axis: Any, plot: Plot) -> htpy.Node:
    """Labels above or below the plot, every second one only where there is room; and lines."""
    top = -22 if axis.side == "top" else plot.height + 6
    for number, (value, text) in enumerate(zip(*_tick_texts(axis), strict=True)):
        x = plot.across(value)
        if axis.showgrid is not False:
            yield _element("line", class_="grid", x1=x, x2=x, y2=plot.height)
        yield _spot(x, 0, _text(text, 0, top, style="wide" if number % 2 else ""))
    if axis.zeroline and plot.left < 0 < plot.right:
        x = plot.across(0)
        stroke = {"stroke": axis.zerolinecolor, "stroke_width": axis.zerolinewidth}
        yield _element("line", x1=x, x2=x, y2=plot.height, **stroke)


def _y_axis(axis: Any, plot: Plot) -> htpy.Node:
    """Labels left of the plot, and lines."""
    for value, text in zip(*_tick_texts(axis), strict=True):
        y = plot.along(value)
        if axis.showgrid is not False:
            yield _element("line", class_="grid", x2="100%", y1=y, y2=y)
        yield _text(text, -GAP, y - LINE * len(_lines(text)) / 2, "end")


def _trace(trace: Any, plot: Plot, has_rows: bool, link: Link) -> htpy.Node:
    """A line through the points, and a mark with its intervals at each."""
    if "lines" in trace.mode:
        for start, end in zip(_points(trace), _points(trace)[1:], strict=False):
            if start and end:
                (x1, y1), (x2, y2) = start, end
                ends = {"x1": plot.across(x1), "x2": plot.across(x2)}
                yield _element(
                    "line", **ends, y1=plot.along(y1), y2=plot.along(y2), **_stroke(trace.line)
                )
    if "markers" not in trace.mode:
        return
    for number, point in enumerate(_points(trace)):
        if not point:
            continue
        values = trace.customdata[number] if trace.customdata is not None else ()
        address = link(values) if len(values) else ""
        x, y = plot.across(point[0]), plot.along(point[1])
        hit = (
            _element("rect", width="100%", y=y - TOUCH, height=2 * TOUCH, fill="transparent")
            if has_rows and address
            else _spot(x, y, htpy.circle(r=TOUCH, fill="transparent"))
        )
        content = [
            htpy.title[_plain(trace.text[number])],
            hit,
            _interval(trace.error_x, number, point[0], lambda value, y=y: (plot.across(value), y)),
            _interval(trace.error_y, number, point[1], lambda value, x=x: (x, plot.along(value))),
            _spot(x, y, _mark(trace.marker, number)),
        ]
        yield htpy.a(href=address, tabindex=-1)[content] if address else htpy.g[content]


def _points(trace: Any) -> list[tuple[float, float] | None]:
    """The known points of a trace, None for a gap."""
    pairs = zip(trace.x, trace.y, strict=True)
    return [
        None if x is None or y is None or math.isnan(x + y) else (float(x), float(y))
        for x, y in pairs
    ]


def _interval(
    bars: Any, number: int, value: float, place: Callable[[float], tuple[str, float]]
) -> htpy.Node:
    """Draw the interval of a point with a stop at both ends; nothing where it is unknown."""
    if bars.array is None or math.isnan(bars.array[number]):
        return
    stroke = {"stroke": _color(bars.color), "stroke_width": bars.thickness}
    (x1, y1), (x2, y2) = place(value - bars.arrayminus[number]), place(value + bars.array[number])
    yield _element("line", x1=x1, x2=x2, y1=y1, y2=y2, **stroke)
    half = (
        {"x1": -bars.width, "x2": bars.width} if x1 == x2 else {"y1": -bars.width, "y2": bars.width}
    )
    yield (_spot(x, y, _element("line", **half, **stroke)) for x, y in ((x1, y1), (x2, y2)))


def _mark(marker: Any, number: int) -> htpy.Element:
    """A mark in the middle of its place."""
    symbol = marker.symbol if isinstance(marker.symbol, str) else marker.symbol[number]
    is_open = symbol.endswith("-open")
    color, scale = _color(marker.color), round(marker.size / 12, 2)
    line = (marker.line.width or 0) / scale if is_open else 0
    return _element(
        "path",
        d=PATHS[symbol.removesuffix("-open")],
        transform=f"scale({scale}) translate(-{SIZE // 2} -{SIZE // 2})",
        fill="var(--vp-bg)" if is_open else color,
        stroke=color if is_open else None,
        stroke_width=round(line, 2) or None,
    )


def _annotation(annotation: Any, plot: Plot) -> htpy.Node:
    """A text at its place, or next to a mark with a line to it."""
    x = plot.across(annotation.x, annotation.xref not in (None, "x"))
    y = plot.along(annotation.y, annotation.yref in ("paper", "y domain"))
    height = LINE * len(_lines(annotation.text))
    if annotation.showarrow is not False:
        right, down = annotation.ax, annotation.ay
        leader = _element("line", x2=right, y2=down, stroke=annotation.arrowcolor)
        return _spot(x, y, leader, _text(annotation.text, right, down - height / 2))
    above = {"bottom": height, "top": 0}.get(annotation.yanchor, height / 2)
    top = -above - (annotation.yshift or 0)
    anchor = ANCHORS.get(annotation.xanchor, "middle")
    return _spot(x, y, _text(annotation.text, annotation.xshift or 0, top, anchor))


def _legend(figure: go.Figure, layout: Any) -> htpy.Node:
    """The names of the traces with their signs."""
    traces: Any = figure.data
    named = [trace for trace in traces if trace.name and trace.showlegend is not False]
    if not named or layout.showlegend is False:
        return None
    return htpy.p(".vp-legend")[(_entry(trace) for trace in named)]


def _entry(trace: Any) -> htpy.Element:
    middle = SWATCH // 2
    sign: Iterable[htpy.Element] = [
        _element("line", x2=SWATCH, **_stroke(trace.line))
        if "lines" in trace.mode
        else _spot(str(middle), 0, _mark(trace.marker, 0))
    ]
    return htpy.span[
        htpy.svg(width=SWATCH, height=14, viewBox=f"0 -7 {SWATCH} 14", aria_hidden="true")[sign],
        _plain(trace.name),
    ]
