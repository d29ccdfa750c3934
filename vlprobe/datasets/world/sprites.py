"""Draw single objects for the demo world as smooth, outlined shapes on a transparent square.

The file figures.toml lists the shapes of each object and all colors, and describes its format. Each of the
eleven colors of objects has a shade, a light and an ink for outlines. Shapes are supersampled for soft edges.
Pictures are cached by object, color, size and direction.
"""

import functools
import math
import tomllib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from PIL import Image, ImageDraw, ImageFilter, ImageOps

Point = tuple[float, float]
Color = tuple[int, int, int]
LARGER = 4  # how many times larger than the result everything is drawn, unless a pen says otherwise
_MARGIN = 2.5  # units around the 100 x 100, for outlines
_OUTLINE = 2.4  # units, half of them outside of the shape


@dataclass(frozen=True)
class Shape:
    """A filled outline (if the width is 0) or an open line with round ends. Units are those of a 100 x 100 square."""

    points: tuple[Point, ...]
    width: float = 0.0


def poly(points: Sequence[Point]) -> Shape:
    """Return a polygon with the given corners."""
    return Shape(tuple(points))


def blob(points: Sequence[Point], steps: int = 8) -> Shape:
    """Return a closed smooth curve through the points (Catmull-Rom), with `steps` lines between two points."""
    n = len(points)
    out = []
    for i in range(n):
        a, b, c, d = (points[(i + k) % n] for k in (-1, 0, 1, 2))
        out += [_between(a, b, c, d, s / steps) for s in range(steps)]
    return Shape(tuple(out))


def limb(points: Sequence[Point], width: float, steps: int = 8) -> Shape:
    """Return an open smooth line through the points, with round ends and `steps` lines between two points."""
    ends = (points[0], *points, points[-1])
    out = [
        _between(ends[i], ends[i + 1], ends[i + 2], ends[i + 3], s / steps)
        for i in range(len(points) - 1)
        for s in range(steps)
    ]
    return Shape((*out, points[-1]), width)


def ring(x: float, y: float, r: float, width: float) -> Shape:
    """Return a circular line."""
    return limb([*disc(x, y, r).points, (x + r, y)], width)


def oval(x: float, y: float, rx: float, ry: float, turn: float = 0.0) -> Shape:
    """Return an ellipse around (x, y), rotated by `turn` degrees."""
    sin, cos = math.sin(math.radians(turn)), math.cos(math.radians(turn))
    angles = [2 * math.pi * k / 40 for k in range(40)]
    arms = [(rx * math.cos(t), ry * math.sin(t)) for t in angles]
    return Shape(tuple((x + u * cos - v * sin, y + u * sin + v * cos) for u, v in arms))


def disc(x: float, y: float, r: float) -> Shape:
    """Return a circle."""
    return oval(x, y, r, r)


def box(x0: float, y0: float, x1: float, y1: float, r: float = 0.0) -> Shape:
    """Return a rectangle with corners rounded by r."""
    if not r:
        return poly([(x0, y0), (x1, y0), (x1, y1), (x0, y1)])
    corners = (
        (x1 - r, y0 + r, -90),
        (x1 - r, y1 - r, 0),
        (x0 + r, y1 - r, 90),
        (x0 + r, y0 + r, 180),
    )
    arcs = [(x, y, math.radians(start + 15 * k)) for x, y, start in corners for k in range(7)]
    return Shape(tuple((x + r * math.cos(t), y + r * math.sin(t)) for x, y, t in arcs))


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
    """Mix the first color with a share (0 to 1) of the second."""
    red, green, blue = (round(a + (b - a) * share) for a, b in zip(color, toward, strict=True))
    return red, green, blue


class Pen:
    """Draws shapes in units of a 100 x 100 square; `image` is the drawing, `size` pixels per side."""

    def __init__(self, size: int, larger: int = LARGER) -> None:
        self._unit = size * larger / (100 + 2 * _MARGIN)
        self._larger = larger
        self._canvas = Image.new("RGBA", (size * larger, size * larger), (0, 0, 0, 0))
        self._draw = ImageDraw.Draw(self._canvas)

    def draw(self, shapes: Sequence[Shape], color: Color, edge: Color | None) -> None:
        """Draw shapes. If there is an edge, they form one body, with one outline around all of them."""
        if edge:
            for shape in shapes:
                self._put(shape, edge, _OUTLINE)
        for shape in shapes:
            self._put(shape, color, 0)

    def _put(self, shape: Shape, color: Color, grow: float) -> None:
        points = [((x + _MARGIN) * self._unit, (y + _MARGIN) * self._unit) for x, y in shape.points]
        if not shape.width:
            self._draw.polygon(points, fill=color)
        width = (shape.width + grow) * self._unit
        if width <= 0:
            return
        closed = points if shape.width else [*points, points[0], points[1]]
        self._draw.line(closed, fill=color, width=max(1, round(width)), joint="curve")
        if shape.width:
            r = width / 2
            for x, y in (points[0], points[-1]):
                self._draw.ellipse((x - r, y - r, x + r, y + r), fill=color)

    @property
    def image(self) -> Image.Image:
        """Return the drawing as RGBA at its final size."""
        return self._canvas.reduce(self._larger)


_SHAPES: dict[str, Callable[..., Shape]] = {
    function.__name__: function for function in (poly, blob, limb, ring, oval, disc, box)
}


@dataclass(frozen=True, slots=True)
class Step:
    """Shapes that are drawn in one color. If there is an edge, they form a body with an outline in that color."""

    shapes: tuple[Shape, ...]
    color: str
    edge: str


def _parse_step(text: str) -> Step:
    """Parse a step in figures.toml."""
    head, _, shapes = text.partition(": ")
    kind, _, colors = head.partition(" ")
    color, _, edge = colors.partition(", ")
    edge = (edge or "ink") if kind == "body" else ""
    return Step(tuple(map(_parse_shape, shapes.split("; "))), color, edge)


def _parse_shape(text: str) -> Shape:
    name, *words = text.split()
    pairs = (word.split(",") for word in words if "," in word)
    points = [(float(x), float(y)) for x, y in pairs]
    numbers = [int(word) if word.isdigit() else float(word) for word in words if "," not in word]
    return _SHAPES[name](*([points] if points else []), *numbers)


@functools.cache
def _tables() -> dict[str, dict]:
    path = Path(__file__).with_name("figures.toml")
    return tomllib.loads(path.read_text(encoding="utf-8"))


@functools.cache
def _figure(name: str) -> list[Step]:
    return list(map(_parse_step, _tables()["figures"][name]))


@functools.cache
def palette(color: str) -> dict[str, Color]:
    """Return the colors of the parts of an object in a color, by name, including its base, shade, light and ink."""
    tables = _tables()
    base = _rgb(tables["bases"][color])
    derived = {
        "base": base,
        "shade": mix(base, (24, 16, 40), 0.26),
        "light": mix(base, (255, 255, 255), 0.42),
        "ink": mix(base, (20, 16, 34), 0.68),
    }
    codes = tables["colors"] | tables["colors_of"].get(color, {})
    return derived | {name: _rgb(code) for name, code in codes.items()}


def _rgb(code: str) -> Color:
    red, green, blue = bytes.fromhex(code.removeprefix("#"))
    return red, green, blue


def _color(spec: str, colors: dict[str, Color]) -> Color:
    """Return the color for a name, or for a mixture such as `ink dark 0.5`."""
    name, *mixture = spec.split()
    if not mixture:
        return colors[name]
    return mix(colors[name], colors[mixture[0]], float(mixture[1]))


_LARGER = 2  # of large sprites, whose edges are fine already


def sprite(name: str, color: str, size: int, faces_left: bool, scale: int = 1) -> Image.Image:
    """Draw an object in a square of `size * scale` pixels, with a thin pale rim for contrast with any background."""
    if scale == 1:
        image = _small_sprite(name, color, size)
    else:
        image = _drawn(name, color, Pen(size * scale, larger=_LARGER), scale)
    return ImageOps.mirror(image) if faces_left else image


@functools.lru_cache(maxsize=6000)  # 6 ms, and a scene shows up to five of a few thousand
def _small_sprite(name: str, color: str, size: int) -> Image.Image:
    return _drawn(name, color, Pen(size), 1)


def _drawn(name: str, color: str, pen: Pen, rim: int) -> Image.Image:
    """Draw an object with the pen, facing right, and surround it with a rim that is `rim` pixels wide."""
    colors = palette(color)
    for step in _figure(name):
        edge = _color(step.edge, colors) if step.edge else None
        pen.draw(step.shapes, _color(step.color, colors), edge)
    drawn = pen.image
    widened = _widened(drawn.getchannel("A"), rim)
    rim_alpha = widened.point([alpha * 150 // 255 for alpha in range(256)])
    below = Image.new("RGBA", drawn.size, (255, 255, 255, 0))
    below.putalpha(rim_alpha)
    return Image.alpha_composite(below, drawn)


def _widened(alpha: Image.Image, rim: int) -> Image.Image:
    """Return the maximum within `rim` pixels in each direction. The result equals that of Pillow's MaxFilter, but for
    wide rims it is computed by rows and then by columns, which takes a tenth of the time.
    """
    if rim == 1:
        return alpha.filter(ImageFilter.MaxFilter(3))
    pixels = np.asarray(alpha)
    for _ in range(2):
        padded = np.pad(pixels, ((rim, rim), (0, 0)))
        shifted = [padded[start : start + len(pixels)] for start in range(2 * rim + 1)]
        pixels = np.maximum.reduce(shifted).T
    return Image.fromarray(np.ascontiguousarray(pixels))
