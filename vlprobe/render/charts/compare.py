"""Two models' margins against each other, and how a difference is written. No Streamlit here."""

import math
from collections.abc import Mapping, Sequence
from types import MappingProxyType

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from vlprobe.render.charts.styles import Looks
from vlprobe.render.charts.theme import QUIET, finished, safe
from vlprobe.render.numbers import interval, number
from vlprobe.views.compare import SIGNIFICANCE

BOTH_FOOLED = "#D13B4A"  # red on white and on near-black


def signed(value: float, unit: str) -> str:
    """A difference as people read it: rates in points, and always with its sign.

    >>> signed(0.038, "rate"), signed(-0.0012, "cosine"), signed(math.nan, "rate")
    ('+3.8 points', '-0.0012', '-')
    """
    if math.isnan(value):
        return "-"
    told = _unsigned_zero(number(value, unit).removesuffix(" %"))
    return ("" if told.startswith("-") else "+") + told + (" points" if unit == "rate" else "")


def between(low: float, high: float, unit: str) -> str:
    """The interval of a difference, without the name of its unit; empty where it is unknown.

    >>> between(0.021, 0.055, "rate"), between(-0.00001, 0.01, "cosine")
    ('2.1 to 5.5', '0.0000 to 0.0100')
    """
    return " to ".join(
        map(_unsigned_zero, interval(low, high, unit).removesuffix(" %").split(" to "))
    )


def _unsigned_zero(told: str) -> str:
    """A number that is written as zero has no sign."""
    return told if told.strip("-0.") else told.removeprefix("-")


def chance(p: float) -> str:
    """A p-value with two or three decimals, and with more where rounding would move it across SIGNIFICANCE.

    >>> chance(0.00005), chance(0.0312), chance(0.62), chance(1.0)
    ('p < .001', 'p = .031', 'p = .62', 'p = 1')
    >>> chance(0.0499), chance(0.04999999), chance(0.05)
    ('p = .0499', 'p < .05', 'p = .050')
    """
    if math.isnan(p):
        return "p unknown"
    if p < 0.001:
        return "p < .001"
    written = (
        f"{p:.2f}"
        if p >= 0.1
        else next((text for text in (f"{p:.3f}", f"{p:.4f}") if _same_side(text, p)), "")
    )
    if not written:
        return f"p < {SIGNIFICANCE:g}".replace("0.", ".")
    return f"p = {written.removeprefix('0')}" if p < 0.995 else "p = 1"


def _same_side(written: str, p: float) -> bool:
    """Whether a rounded p-value leads to the same verdict as the p-value itself."""
    return (float(written) < SIGNIFICANCE) == (p < SIGNIFICANCE)


def margins(
    points: pd.DataFrame,
    first: str,
    second: str,
    looks: Looks,
    subtypes: Mapping[str, str],
    area: Sequence[tuple[float, float]] = (),
    tool: str = "box",
    moved: bool = False,
    names: Mapping[str, str] = MappingProxyType({}),
) -> go.Figure:
    """One mark a case, the first model's margin to the right, the second's upwards; who is fooled by colour and shape.

    Args:
        points: What `views.paired_outcomes.scatter` returns.
        first: The model on the x axis.
        second: The model on the y axis.
        looks: What `charts.styles` returns.
        subtypes: Stored names of what was edited, in words.
        area: Corners of the marked area.
        tool: What dragging draws: "box" or "lasso".
        moved: The margin is how far a score moved: nobody is fooled, and there is one sort of mark.
        names: What models are called, where that is not their stored name.
    """
    figure = go.Figure()
    x, y = points["margin"].to_numpy(), points["other_margin"].to_numpy()
    told = _told(points, subtypes)
    color, symbol = looks[first]
    other_color, other_symbol = looks[second]
    first, second = names.get(first, first), names.get(second, second)
    groups = [
        (np.ones(len(x), dtype=bool), "a case", QUIET, "circle"),
        ((x > 0) & (y > 0), "both held", QUIET, "circle"),
        ((x <= 0) & (y <= 0), "both fooled", BOTH_FOOLED, "x"),
        ((x <= 0) & (y > 0), f"only {first} fooled", color, symbol),
        ((x > 0) & (y <= 0), f"only {second} fooled", other_color, other_symbol),
    ]
    for mask, name, fill, shape in groups[:1] if moved else groups[1:]:
        figure.add_scattergl(
            x=x[mask],
            y=y[mask],
            mode="markers",
            marker={"color": fill, "symbol": shape, "size": 7, "opacity": 0.75},
            name=safe(name),
            showlegend=not moved,
            text=told[mask],
            hovertemplate=f"%{{text}}<br>{safe(first)}: %{{x:.3f}}<br>{safe(second)}: %{{y:.3f}}<extra></extra>",
        )
    if area:
        path = " L ".join(f"{x},{y}" for x, y in area)
        line = {"color": QUIET, "width": 2, "dash": "dash"}
        figure.add_shape(
            type="path", path=f"M {path} Z", line=line, fillcolor="rgba(138, 148, 163, .2)"
        )
    word = "moved (0: not at all)" if moved else "margin"
    zero = {"zeroline": True, "zerolinecolor": QUIET, "zerolinewidth": 2}
    figure.update_xaxes(title=f"{safe(first)} · {word}", **zero)
    figure.update_yaxes(title=f"{safe(second)} · {word}", **zero)
    finished(figure, 480)
    figure.update_layout(
        dragmode="lasso" if tool == "lasso" else "select", newselection={"line": {"color": QUIET}}
    )
    return figure


def _told(points: pd.DataFrame, subtypes: Mapping[str, str]) -> np.ndarray:
    """What stands beside a mark: the type of edit and its words."""
    lines = []
    for row in points.itertuples():
        kind = subtypes.get(row.subtype, row.subtype)
        words = (
            f"{row.source or '(nothing)'} → {row.target or '(nothing)'}"
            if row.source or row.target
            else ""
        )
        lines.append(safe(": ".join(filter(None, [kind, words])) or f"case {row.case}"))
    return np.array(lines, dtype=object)
