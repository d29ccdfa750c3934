"""The shape of a model's mark as an SVG path; one table for pages, components, charts and exports."""

import math
from collections.abc import Mapping

from vlprobe.render.charts.styles import Look

SIZE = 14  # side of the square that a shape is drawn in


def _polygon(corners: int, radius: float, turn: float = -90.0) -> str:
    """A regular polygon around the middle; `turn` is the angle of its first corner, in degrees."""
    return _closed([_at(radius, turn + 360.0 * corner / corners) for corner in range(corners)])


def _at(radius: float, degrees: float) -> tuple[float, float]:
    angle = math.radians(degrees)
    return SIZE / 2 + radius * math.cos(angle), SIZE / 2 + radius * math.sin(angle)


def _closed(points: list[tuple[float, float]]) -> str:
    return "M" + " L".join(f"{x:.2f} {y:.2f}" for x, y in points) + " Z"


def _star() -> str:
    radii = (6.9, 3.0)
    return _closed([_at(radii[corner % 2], -90 + 36 * corner) for corner in range(10)])


PATHS: Mapping[str, str] = {
    "circle": "M1.5 7 a5.5 5.5 0 1 0 11 0 a5.5 5.5 0 1 0 -11 0 Z",
    "diamond": _polygon(4, 6.9),
    "square": "M1.9 1.9 H12.1 V12.1 H1.9 Z",
    "triangle-up": "M7 1 L13.5 12.1 H0.5 Z",
    "triangle-down": "M7 13 L0.5 1.9 H13.5 Z",
    "triangle-left": "M1 7 L12.1 0.5 V13.5 Z",
    "triangle-right": "M13 7 L1.9 13.5 V0.5 Z",
    "star": _star(),
    "cross": "M4.84 1 h4.32 v3.84 H13 v4.32 H9.16 V13 H4.84 V9.16 H1 V4.84 h3.84 Z",
    "hexagon": _polygon(6, 6.4),
    "pentagon": _polygon(5, 6.7),
}


def mark_values(look: Look) -> dict[str, str]:
    """The input of a component that draws a mark: the shape's path and the colour on light and dark pages."""
    return {"path": PATHS[look.symbol], "color": look.css}


def html(look: Look) -> str:
    """A mark without SVG, which Streamlit takes out: a box of 14 pixels cut to the shape."""
    return (
        f'<span class="vp-mark" aria-hidden="true" style="display:inline-block;width:{SIZE}px;height:{SIZE}px;'
        f"background:{look.css};clip-path:path('{PATHS[look.symbol]}')\"></span>"
    )
