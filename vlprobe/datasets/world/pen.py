"""Smooth, outlined shapes on a transparent square, supersampled for soft edges."""

import math
from dataclasses import dataclass
from functools import cached_property

from PIL import Image, ImageDraw

Point = tuple[float, float]
Color = tuple[int, int, int]
LARGER = 4  # how many times larger than the result everything is drawn, unless a pen says otherwise
_MARGIN = 2.5  # units around the 100 x 100, for outlines


@dataclass(frozen=True)
class Shape:
    """A filled outline (width 0) or an open line of that width with round ends, in units of a 100 x
    100 square.
    """

    points: tuple[Point, ...]
    width: float = 0.0


def poly(*points: Point) -> Shape:
    """Straight edges."""
    return Shape(points)


def blob(*points: Point, steps: int = 8) -> Shape:
    """A closed smooth curve through the points (Catmull-Rom)."""
    n = len(points)
    out = []
    for i in range(n):
        a, b, c, d = (points[(i + k) % n] for k in (-1, 0, 1, 2))
        out += [_between(a, b, c, d, s / steps) for s in range(steps)]
    return Shape(tuple(out))


def limb(width: float, *points: Point, steps: int = 8) -> Shape:
    """An open smooth line through the points, with round ends."""
    ends = (points[0], *points, points[-1])
    out = [
        _between(ends[i], ends[i + 1], ends[i + 2], ends[i + 3], s / steps)
        for i in range(len(points) - 1)
        for s in range(steps)
    ]
    return Shape((*out, points[-1]), width)


def oval(x: float, y: float, rx: float, ry: float, turn: float = 0.0) -> Shape:
    """An ellipse around (x, y), turned by degrees."""
    sin, cos = math.sin(math.radians(turn)), math.cos(math.radians(turn))
    angles = [2 * math.pi * k / 40 for k in range(40)]
    arms = [(rx * math.cos(t), ry * math.sin(t)) for t in angles]
    return Shape(tuple((x + u * cos - v * sin, y + u * sin + v * cos) for u, v in arms))


def disc(x: float, y: float, r: float) -> Shape:
    """A circle."""
    return oval(x, y, r, r)


def box(x0: float, y0: float, x1: float, y1: float, r: float = 0.0) -> Shape:
    """A rectangle with corners rounded by r."""
    if not r:
        return poly((x0, y0), (x1, y0), (x1, y1), (x0, y1))
    corners = (
        (x1 - r, y0 + r, -90),
        (x1 - r, y1 - r, 0),
        (x0 + r, y1 - r, 90),
        (x0 + r, y0 + r, 180),
    )
    return Shape(
        tuple(
            (
                x + r * math.cos(math.radians(start + 15 * k)),
                y + r * math.sin(math.radians(start + 15 * k)),
            )
            for x, y, start in corners
            for k in range(7)
        )
    )


def _between(a: Point, b: Point, c: Point, d: Point, t: float) -> Point:
    def axis(k: int) -> float:
        p, q, r, s = a[k], b[k], c[k], d[k]
        return 0.5 * (
            2 * q
            + (r - p) * t
            + (2 * p - 5 * q + 4 * r - s) * t**2
            + (3 * q - p - 3 * r + s) * t**3
        )

    return axis(0), axis(1)


def mix(color: Color, toward: Color, share: float) -> Color:
    """The first colour, moved toward the second by a share of 0 to 1."""
    red, green, blue = (round(a + (b - a) * share) for a, b in zip(color, toward, strict=True))
    return red, green, blue


class Pen:
    """Draws shapes in units of a 100 x 100 square; `image` is the drawing, `size` pixels a side."""

    def __init__(self, size: int, line: float = 2.4, larger: int = LARGER) -> None:
        self.size = size
        self.line = line
        self.unit = size * larger / (100 + 2 * _MARGIN)
        self._larger = larger
        self._canvas = Image.new("RGBA", (size * larger, size * larger), (0, 0, 0, 0))
        self._draw = ImageDraw.Draw(self._canvas)

    def fill(self, color: Color, *shapes: Shape) -> None:
        """Shapes without an outline."""
        for shape in shapes:
            self._put(shape, color, 0)

    def body(self, color: Color, edge: Color, *shapes: Shape) -> None:
        """Shapes that form one body, with a common outline around all of them."""
        for shape in shapes:
            self._put(shape, edge, self.line)
        self.fill(color, *shapes)

    def _put(self, shape: Shape, color: Color, grow: float) -> None:
        points = [((x + _MARGIN) * self.unit, (y + _MARGIN) * self.unit) for x, y in shape.points]
        if not shape.width:
            self._draw.polygon(points, fill=color)
        width = (shape.width + grow) * self.unit
        if width <= 0:
            return
        closed = points if shape.width else [*points, points[0], points[1]]
        self._draw.line(closed, fill=color, width=max(1, round(width)), joint="curve")
        if shape.width:
            r = width / 2
            for x, y in (points[0], points[-1]):
                self._draw.ellipse((x - r, y - r, x + r, y + r), fill=color)

    @cached_property
    def image(self) -> Image.Image:
        """The drawing at its real size, RGBA."""
        return self._canvas.reduce(self._larger)
