"""Figures as drawn SVG: a few hundred bytes a mark, no script, sharp on paper, and in the colours
of the page.

Plotly's would need its 4.6 MB of script in each file, and a page that runs nothing cannot have
them.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import TypeVar

import htpy
import pandas as pd

from vlprobe.render import charts
from vlprobe.render import numbers as render_numbers
from vlprobe.render.charts.styles import Looks
from vlprobe.types import Metric
from vlprobe.views.records import IntervalRow, PointRow, records

# Pixels: of the whole, of the models' names, of the numbers at the right.
WIDTH, NAMES, VALUES = 700, 190, 90
LINE, HEAD = 22, 30  # heights of a model's line and of the heading above
LONGEST = 26  # letters of a name
SCATTER_HEIGHT, SCATTER_LEFT, SCATTER_BOTTOM, SCATTER_TOP, LEGEND = 420, 70, 360, 16, 170
# Of symbols: corners, and by how much of the angle between two corners they are turned.
POLYGONS = {
    "diamond": (4, 0.0),
    "square": (4, 0.5),
    "triangle-up": (3, 0.0),
    "triangle-down": (3, 0.5),
    "triangle-right": (3, 0.75),
    "triangle-left": (3, 2.25),
    "pentagon": (5, 0.0),
    "hexagon": (6, 0.0),
    "star": (10, 0.0),
}
CROSS = "M{minus_third} {minus_size}H{third}V{minus_third}H{size}V{third}H{third}V{size}H{minus_third}V{third}"
CROSS += "H{minus_size}V{minus_third}H{minus_third}Z"
ModelRow = TypeVar("ModelRow", IntervalRow, PointRow)


def rows(
    groups: Mapping[str, pd.DataFrame],
    metric: Metric,
    unit: str,
    styles: Looks,
    chances: Mapping[str, float],
) -> htpy.Element:
    """One metric: for each group one line per model, its value as a mark on one axis, with its 95 %
    interval.

    Args:
        groups: By the group's name in words, top to bottom: model, value, low, high.
        metric: Which one.
        unit: "cosine" or "spread".
        styles: Styles of the models.
        chances: What guessing gets in each group; NaN or none where that is not defined.
    """
    value_unit = render_numbers.unit_of(metric, unit)
    return shares(groups, charts.theme.axis(metric, unit), value_unit, styles, chances)


def shares(
    groups: Mapping[str, pd.DataFrame],
    title: str,
    value_unit: str,
    styles: Looks,
    chances: Mapping[str, float],
    names: Mapping[str, str] = MappingProxyType({}),
) -> htpy.Element:
    """Draw `rows` for values that are not a metric.

    Args:
        groups: By the group's name in words, top to bottom; "" for a single one: model, value, low, high.
        title: Title of the axis.
        value_unit: "rate", "cosine" or "spread".
        styles: Styles of the models.
        chances: What guessing gets in each group; NaN or none where that is not defined.
        names: Display names of models, if different from their stored names.
    """
    intervals_of = {
        name: records(
            IntervalRow,
            table.dropna(subset=["value"]),
        )
        for name, table in groups.items()
    }
    intervals_of = {name: intervals for name, intervals in intervals_of.items() if intervals}
    numbers = [
        number
        for intervals in intervals_of.values()
        for row in intervals
        for number in (row.value, row.low, row.high)
    ]
    numbers += [chances.get(name, math.nan) for name in intervals_of]
    numbers = [number for number in numbers if not math.isnan(number)]
    ticks = [0, 0.25, 0.5, 0.75, 1] if value_unit == "rate" else _ticks(min(numbers), max(numbers))
    left, right = NAMES, WIDTH - VALUES
    x = _scale(ticks, left, right)
    shapes: list[htpy.Node] = []
    top = 6.0
    for name, intervals in intervals_of.items():
        shapes.append(_text(0, top + HEAD / 2, name, css="strong"))
        height = LINE * len(intervals)
        chance = chances.get(name, math.nan)
        if not math.isnan(chance):
            shapes.append(_line(x(chance), top + HEAD - 2, x(chance), top + HEAD + height, "guess"))
        for index, row in enumerate(_by_style(intervals, styles)):
            name_of_model = names.get(row.model, row.model)
            y = top + HEAD + LINE * (index + 0.5)
            shapes += _interval(row, name_of_model, x, y, value_unit, styles)
        top += HEAD + height + 6
    grid = [_line(x(tick), 8, x(tick), top, "rule") for tick in ticks]
    labels = [
        _text(
            x(tick),
            top + 12,
            _tick(tick, value_unit),
            anchor="middle",
            css="quiet",
        )
        for tick in ticks
    ]
    labels.append(_text((left + right) / 2, top + 34, title, anchor="middle"))
    return _figure(
        [*grid, *shapes, *labels],
        top + 46,
        f"{title}, a mark a model; the table has the numbers.",
    )


def _by_style(model_rows: Sequence[ModelRow], styles: Looks) -> list[ModelRow]:
    """Rows in the order that models have in every chart."""
    return sorted(model_rows, key=lambda row: list(styles).index(row.model))


def _interval(
    row: IntervalRow,
    name: str,
    x: Callable[[float], float],
    y: float,
    unit: str,
    styles: Looks,
) -> list[htpy.Element]:
    """A model's line: name, interval, mark and value."""
    color, symbol = styles[row.model].css, styles[row.model].symbol
    shapes = [_text(8, y, _short(name))]
    if not math.isnan(row.low) and not math.isnan(row.high):
        shapes.append(
            htpy.path(
                d=f"M{x(row.low):.1f} {y}H{x(row.high):.1f}",
                style=f"stroke:{color}",
                stroke_width="2",
            )
        )
    shapes.append(_mark(symbol, x(row.value), y, color))
    shapes.append(_text(WIDTH, y, render_numbers.number(row.value, unit), anchor="end"))
    return shapes


def scatter(
    points: pd.DataFrame,
    across: Metric,
    up: Metric,
    unit: str,
    styles: Looks,
) -> htpy.Element | None:
    """Two metrics against each other, one mark per model, its arms the 95 % intervals; None if nothing is known.

    Args:
        points: What `views.tradeoff.trade_off` returns.
        across: The metric of the x axis.
        up: The metric of the y axis.
        unit: "cosine" or "spread".
        styles: Styles of the models.
    """
    model_points = records(PointRow, points.dropna(subset=["x", "y"]))
    if not model_points:
        return None
    x_unit, y_unit = render_numbers.unit_of(across, unit), render_numbers.unit_of(up, unit)
    x_ticks = _ticks_of(
        [number for row in model_points for number in (row.x, row.x_low, row.x_high)]
    )
    y_ticks = _ticks_of(
        [number for row in model_points for number in (row.y, row.y_low, row.y_high)]
    )
    left, right, bottom = SCATTER_LEFT, WIDTH - LEGEND, SCATTER_BOTTOM
    x, y = _scale(x_ticks, left, right), _scale(y_ticks, bottom, SCATTER_TOP)
    shapes = [_line(x(tick), SCATTER_TOP, x(tick), bottom, "rule") for tick in x_ticks]
    shapes += [_line(left, y(tick), right, y(tick), "rule") for tick in y_ticks]
    shapes += [
        _text(
            x(tick),
            bottom + 16,
            _tick(tick, x_unit),
            anchor="middle",
            css="quiet",
        )
        for tick in x_ticks
    ]
    shapes += [
        _text(
            left - 8,
            y(tick),
            _tick(tick, y_unit),
            anchor="end",
            css="quiet",
        )
        for tick in y_ticks
    ]
    for index, row in enumerate(_by_style(model_points, styles)):
        color, symbol = styles[row.model].css, styles[row.model].symbol
        arms = f"M{x(_or(row.x_low, row.x)):.1f} {y(row.y):.1f}H{x(_or(row.x_high, row.x)):.1f}"
        arms += f"M{x(row.x):.1f} {y(_or(row.y_low, row.y)):.1f}V{y(_or(row.y_high, row.y)):.1f}"
        shapes.append(htpy.path(d=arms, style=f"stroke:{color}", stroke_width="2", fill="none"))
        shapes.append(_mark(symbol, x(row.x), y(row.y), color))
        shapes.append(_mark(symbol, right + 20, 26 + LINE * index, color))
        shapes.append(_text(right + 32, 26 + LINE * index, _short(row.model, 20)))
    shapes.append(
        _text(
            (left + right) / 2,
            bottom + 40,
            charts.theme.axis(across, unit),
            anchor="middle",
        )
    )
    upwards = f"rotate(-90 14 {bottom / 2:.0f})"
    shapes.append(
        _text(
            14,
            bottom / 2,
            charts.theme.axis(up, unit),
            anchor="middle",
            transform=upwards,
        )
    )
    summary = f"{across.label} against {up.label}, a mark a model; the table has the numbers."
    return _figure(shapes, SCATTER_HEIGHT, summary)


def _or(value: float, default: float) -> float:
    return default if math.isnan(value) else value


def _ticks_of(numbers: Sequence[float]) -> list[float]:
    """Ticks around all numbers that are not NaN."""
    finite = [number for number in numbers if not math.isnan(number)]
    return _ticks(min(finite), max(finite))


def _ticks(low: float, high: float) -> list[float]:
    """Three to seven round numbers that hold these between them.

    >>> _ticks(0.013, 0.058)
    [0.01, 0.02, 0.03, 0.04, 0.05, 0.06]
    """
    extent = (high - low) or abs(high) or 1.0
    size = 10.0 ** math.floor(math.log10(extent / 3))
    step = next(size * times for times in (1, 2, 5, 10) if extent / (size * times) <= 5)
    start, stop = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    return [round(multiple * step, 12) for multiple in range(start, max(stop, start + 1) + 1)]


def _scale(ticks: Sequence[float], start: float, end: float) -> Callable[[float], float]:
    return lambda value: start + (value - ticks[0]) / (ticks[-1] - ticks[0]) * (end - start)


def _tick(value: float, unit: str) -> str:
    return f"{100 * value:g} %" if unit == "rate" else f"{value:g}"


def _short(name: str, longest: int = LONGEST) -> str:
    return name if len(name) <= longest else f"{name[: longest // 2 - 1]}…{name[-longest // 2 :]}"


def _line(x: float, y: float, to_x: float, to_y: float, css: str) -> htpy.Element:
    return htpy.line(x1=f"{x:.1f}", y1=f"{y:.1f}", x2=f"{to_x:.1f}", y2=f"{to_y:.1f}", class_=css)


def _text(
    x: float,
    y: float,
    text: str,
    anchor: str = "start",
    css: str = "",
    transform: str | None = None,
) -> htpy.Element:
    position = {
        "x": f"{x:.1f}",
        "y": f"{y:.1f}",
        "text-anchor": anchor,
        "dominant-baseline": "central",
    }
    return htpy.text(position, class_=css, transform=transform)[text]


def _mark(symbol: str, x: float, y: float, color: str, size: float = 6) -> htpy.Element:
    """A model's shape, as in the charts."""
    if symbol == "circle":
        return htpy.circle(cx=f"{x:.1f}", cy=f"{y:.1f}", r=str(size), style=f"fill:{color}")
    if symbol == "cross":
        third = size / 3
        outline = CROSS.format(third=third, size=size, minus_third=-third, minus_size=-size)
        return htpy.path(transform=f"translate({x:.1f} {y:.1f})", style=f"fill:{color}", d=outline)
    corners, turn = POLYGONS[symbol]
    points = []
    for corner in range(corners):
        angle = 2 * math.pi * (corner + turn) / corners - math.pi / 2
        radius = 1.2 * size * (0.45 if symbol == "star" and corner % 2 else 1)
        points.append(f"{x + radius * math.cos(angle):.1f},{y + radius * math.sin(angle):.1f}")
    return htpy.polygon(points=" ".join(points), style=f"fill:{color}")


def _figure(shapes: Sequence[htpy.Node], height: float, alt: str) -> htpy.Element:
    view_box = {"viewBox": f"0 0 {WIDTH} {height:.0f}"}
    return htpy.svg(".vp-figure", view_box, role="img", aria_label=alt)[shapes]
