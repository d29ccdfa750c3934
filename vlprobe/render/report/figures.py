"""Figures as drawn SVG: a few hundred bytes a mark, no script, sharp on paper, and in the colours of the page.

Plotly's would need its 4.6 MB of script in each file, and a page that runs nothing cannot have them.
"""

import html
import math
from collections.abc import Callable, Mapping, Sequence

import pandas as pd

from vlprobe.render import charts
from vlprobe.render import numbers as render_numbers
from vlprobe.render.charts.styles import Looks
from vlprobe.types import Metric

WIDTH, NAMES, VALUES = 700, 190, 90  # pixels: of the whole, of the models' names, of the numbers at the right
LINE, HEAD = 22, 30  # heights of a model's line and of the heading above
LONGEST = 26  # letters of a name


def rows(
    parts: Mapping[str, pd.DataFrame], metric: Metric, unit: str, looks: Looks, chances: Mapping[str, float]
) -> str:
    """One metric: for each part a line a model, its value as a mark on one axis, with its 95 % interval.

    Args:
        parts: By the part's name in words, top to bottom: model, value, low, high.
        metric: Which one.
        unit: "cosine" or "spread".
        looks: What `charts.styles` returns.
        chances: What guessing gets in each part; NaN or none where that is not defined.
    """
    own = render_numbers.unit_of(metric, unit)
    known = {name: part.dropna(subset=["value"]) for name, part in parts.items()}
    known = {name: part for name, part in known.items() if len(part)}
    every = pd.concat(known.values())
    numbers = [*every["value"], *every["low"].dropna(), *every["high"].dropna()]
    numbers += [chances[name] for name in known if not math.isnan(chances.get(name, math.nan))]
    ticks = _ticks(min(numbers), max(numbers)) if own != "rate" else [0, 0.25, 0.5, 0.75, 1]
    left, right = NAMES, WIDTH - VALUES
    x = _scale(ticks, left, right)
    drawn, top = [], 6
    for name, part in known.items():
        drawn.append(_text(0, top + HEAD / 2, name, css="strong"))
        chance = chances.get(name, math.nan)
        height = LINE * len(part)
        if not math.isnan(chance):
            at = x(chance)
            drawn.append(_line(at, top + HEAD - 2, at, top + HEAD + height, "guess"))
        for place, row in enumerate(sorted(part.itertuples(), key=lambda row: list(looks).index(row.model))):
            y = top + HEAD + LINE * (place + 0.5)
            color, symbol = looks[row.model]
            drawn.append(_text(8, y, _short(row.model)))
            if not math.isnan(row.low) and not math.isnan(row.high):
                drawn.append(f'<path d="M{x(row.low):.1f} {y}H{x(row.high):.1f}" stroke="{color}" stroke-width="2"/>')
            drawn.append(_mark(symbol, x(row.value), y, color))
            drawn.append(_text(WIDTH, y, render_numbers.number(row.value, own), anchor="end"))
        top += HEAD + height + 6
    for tick in ticks:
        drawn.insert(0, _line(x(tick), 8, x(tick), top, "rule"))
        drawn.append(_text(x(tick), top + 12, _tick(tick, own), anchor="middle", css="quiet"))
    told = charts.theme.axis(metric, unit)
    drawn.append(_text((left + right) / 2, top + 34, told, anchor="middle"))
    return _figure(drawn, top + 46, f"{told}, a mark a model; the table has the numbers.")


def scatter(points: pd.DataFrame, across: Metric, up: Metric, unit: str, looks: Looks) -> str:
    """Two metrics against each other, a mark a model, its arms the 95 % intervals.

    Args:
        points: What `views_tradeoff.trade_off` returns.
        across: The metric of the x axis.
        up: The metric of the y axis.
        unit: "cosine" or "spread".
        looks: What `charts.styles` returns.
    """
    known = points.dropna(subset=["x", "y"])
    if known.empty:
        return ""
    units = {"x": render_numbers.unit_of(across, unit), "y": render_numbers.unit_of(up, unit)}
    ends = {axis: [*known[axis], *known[f"{axis}_low"].dropna(), *known[f"{axis}_high"].dropna()] for axis in units}
    ticks = {axis: _ticks(min(found), max(found)) for axis, found in ends.items()}
    height, left, bottom = 420, 70, 360
    x, y = _scale(ticks["x"], left, WIDTH - 170), _scale(ticks["y"], bottom, 16)
    drawn = [_line(x(tick), 16, x(tick), bottom, "rule") for tick in ticks["x"]]
    drawn += [_line(left, y(tick), WIDTH - 170, y(tick), "rule") for tick in ticks["y"]]
    drawn += [_text(x(tick), bottom + 16, _tick(tick, units["x"]), anchor="middle", css="quiet") for tick in ticks["x"]]
    drawn += [_text(left - 8, y(tick), _tick(tick, units["y"]), anchor="end", css="quiet") for tick in ticks["y"]]
    for place, row in enumerate(sorted(known.itertuples(), key=lambda row: list(looks).index(row.model))):
        color, symbol = looks[row.model]
        arms = f"M{x(_or(row.x_low, row.x)):.1f} {y(row.y):.1f}H{x(_or(row.x_high, row.x)):.1f}"
        arms += f"M{x(row.x):.1f} {y(_or(row.y_low, row.y)):.1f}V{y(_or(row.y_high, row.y)):.1f}"
        drawn.append(f'<path d="{arms}" stroke="{color}" stroke-width="2" fill="none"/>')
        drawn.append(_mark(symbol, x(row.x), y(row.y), color))
        drawn += [_mark(symbol, WIDTH - 150, 26 + LINE * place, color)]
        drawn += [_text(WIDTH - 138, 26 + LINE * place, _short(row.model, 20))]
    drawn.append(_text((left + WIDTH - 170) / 2, bottom + 40, charts.theme.axis(across, unit), anchor="middle"))
    turned = f'transform="rotate(-90 14 {bottom / 2:.0f})"'
    drawn.append(_text(14, bottom / 2, charts.theme.axis(up, unit), anchor="middle", more=turned))
    return _figure(drawn, height, f"{across.label} against {up.label}, a mark a model; the table has the numbers.")


def _or(value: float, instead: float) -> float:
    return instead if math.isnan(value) else value


def _ticks(low: float, high: float) -> list[float]:
    """Three to seven round numbers that hold these between them.

    >>> _ticks(0.013, 0.058)
    [0.01, 0.02, 0.03, 0.04, 0.05, 0.06]
    """
    room = (high - low) or abs(high) or 1.0
    size = 10.0 ** math.floor(math.log10(room / 3))
    step = next(size * times for times in (1, 2, 5, 10) if room / (size * times) <= 5)
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    return [round(place * step, 12) for place in range(first, max(last, first + 1) + 1)]


def _scale(ticks: Sequence[float], start: float, end: float) -> Callable[[float], float]:
    return lambda value: start + (value - ticks[0]) / (ticks[-1] - ticks[0]) * (end - start)


def _tick(value: float, unit: str) -> str:
    return f"{100 * value:g} %" if unit == "rate" else f"{value:g}"


def _short(name: str, longest: int = LONGEST) -> str:
    return name if len(name) <= longest else f"{name[: longest // 2 - 1]}…{name[-longest // 2 :]}"


def _line(x: float, y: float, to_x: float, to_y: float, css: str) -> str:
    return f'<line x1="{x:.1f}" y1="{y:.1f}" x2="{to_x:.1f}" y2="{to_y:.1f}" class="{css}"/>'


def _text(x: float, y: float, text: str, anchor: str = "start", css: str = "", more: str = "") -> str:
    given = f'x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" dominant-baseline="central"'
    return f'<text {given} class="{css}" {more}>{html.escape(text)}</text>'


def _mark(symbol: str, x: float, y: float, color: str, size: float = 6) -> str:
    """A model's shape, as in the charts."""
    if symbol == "circle":
        return f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{size}" fill="{color}"/>'
    if symbol == "cross":
        third = size / 3
        return (
            f'<path transform="translate({x:.1f} {y:.1f})" fill="{color}" d="M{-third} {-size}H{third}V{-third}H{size}'
            f'V{third}H{third}V{size}H{-third}V{third}H{-size}V{-third}H{-third}Z"/>'
        )
    corners, turn = {
        "diamond": (4, 0.0),
        "square": (4, 0.5),
        "triangle-up": (3, 0.0),
        "triangle-down": (3, 0.5),
        "triangle-right": (3, 0.75),
        "triangle-left": (3, 2.25),
        "pentagon": (5, 0.0),
        "hexagon": (6, 0.0),
        "star": (10, 0.0),
    }[symbol]
    points = []
    for corner in range(corners):
        angle = 2 * math.pi * (corner + turn) / corners - math.pi / 2
        radius = 1.2 * size * (0.45 if symbol == "star" and corner % 2 else 1)
        points.append(f"{x + radius * math.cos(angle):.1f},{y + radius * math.sin(angle):.1f}")
    return f'<polygon points="{" ".join(points)}" fill="{color}"/>'


def _figure(drawn: Sequence[str], height: float, alt: str) -> str:
    shown = "".join(drawn)
    return (
        f'<svg class="vp-figure" viewBox="0 0 {WIDTH} {height:.0f}" role="img" aria-label="{html.escape(alt)}" '
        f">{shown}</svg>"
    )
