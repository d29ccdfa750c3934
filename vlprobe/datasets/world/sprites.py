"""Draw single objects for the demo world as smooth, outlined shapes on a transparent square.

Six vehicles and five living things face right in a square of 100 x 100, with their lowest point at y = 95. Each of
the eleven colors has a shade, a light and an ink for outlines. Shapes are supersampled for soft edges. Pictures are
cached by object, color, size and direction.
"""

import functools
import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from PIL import Image, ImageDraw, ImageFilter, ImageOps

Point = tuple[float, float]
Points = str | Sequence[Point]  # a text has pairs as in SVG: "4,82 3,68"
Color = tuple[int, int, int]
LARGER = 4  # how many times larger than the result everything is drawn, unless a pen says otherwise
_MARGIN = 2.5  # units around the 100 x 100, for outlines


@dataclass(frozen=True)
class Shape:
    """A filled outline (if the width is 0) or an open line with round ends. Units are those of a 100 x 100 square."""

    points: tuple[Point, ...]
    width: float = 0.0


def _parse_points(points: Points) -> tuple[Point, ...]:
    if not isinstance(points, str):
        return tuple(points)
    pairs = (pair.split(",") for pair in points.split())
    return tuple((float(x), float(y)) for x, y in pairs)


def poly(points: Points) -> Shape:
    """Return a polygon with the given corners."""
    return Shape(_parse_points(points))


def blob(points: Points, steps: int = 8) -> Shape:
    """Return a closed smooth curve through the points (Catmull-Rom)."""
    points = _parse_points(points)
    n = len(points)
    out = []
    for i in range(n):
        a, b, c, d = (points[(i + k) % n] for k in (-1, 0, 1, 2))
        out += [_between(a, b, c, d, s / steps) for s in range(steps)]
    return Shape(tuple(out))


def limb(width: float, points: Points, steps: int = 8) -> Shape:
    """Return an open smooth line through the points, with round ends."""
    points = _parse_points(points)
    ends = (points[0], *points, points[-1])
    out = [
        _between(ends[i], ends[i + 1], ends[i + 2], ends[i + 3], s / steps)
        for i in range(len(points) - 1)
        for s in range(steps)
    ]
    return Shape((*out, points[-1]), width)


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

    def __init__(self, size: int, line: float = 2.4, larger: int = LARGER) -> None:
        self.size = size
        self.line = line
        self.unit = size * larger / (100 + 2 * _MARGIN)
        self._larger = larger
        self._canvas = Image.new("RGBA", (size * larger, size * larger), (0, 0, 0, 0))
        self._draw = ImageDraw.Draw(self._canvas)

    def fill(self, color: Color, *shapes: Shape) -> None:
        """Draw shapes without an outline."""
        for shape in shapes:
            self._put(shape, color, 0)

    def body(self, color: Color, edge: Color, *shapes: Shape) -> None:
        """Draw shapes that form one body, with one outline around all of them."""
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

    @property
    def image(self) -> Image.Image:
        """Return the drawing as RGBA at its final size."""
        return self._canvas.reduce(self._larger)


WHITE = (255, 255, 255)
DARK = (34, 36, 44)
EYE = (28, 28, 34)
TYRE = (46, 48, 56)
METAL = (204, 210, 216)
GLASS = (190, 226, 246)
LAMP = (255, 236, 150)
WOOD = (142, 98, 62)
SKIN = (244, 200, 164)
LEATHER = (66, 54, 50)
PINK = (246, 172, 176)
_BASE: dict[str, Color] = {
    "red": (216, 38, 42),
    "blue": (38, 96, 220),
    "green": (42, 158, 66),
    "yellow": (250, 212, 44),
    "black": (44, 45, 52),
    "white": (250, 250, 250),
    "brown": (128, 78, 44),
    "gray": (146, 150, 156),
    "orange": (248, 134, 28),
    "pink": (248, 144, 190),
    "purple": (124, 60, 188),
}


@dataclass(frozen=True, slots=True)
class Tones:
    """The color tones used to draw a thing in one color."""

    name: str
    base: Color
    shade: Color
    light: Color
    ink: Color


def tones(name: str) -> Tones:
    """Return the tones of a color. Black and white have special tones, so that all parts of an object stay visible."""
    base = _BASE[name]
    if name == "black":
        return Tones(name, base, (26, 26, 32), (88, 90, 100), (10, 10, 14))
    if name == "white":
        return Tones(name, base, (206, 211, 220), (255, 255, 255), (84, 90, 104))
    return Tones(
        name,
        base,
        mix(base, (24, 16, 40), 0.26),
        mix(base, WHITE, 0.42),
        mix(base, (20, 16, 34), 0.68),
    )


def _wheel(pen: Pen, c: Tones, x: float, y: float, r: float) -> None:
    pen.body(TYRE, c.ink, disc(x, y, r))
    pen.fill(METAL, disc(x, y, r * 0.56))
    pen.fill((120, 126, 134), disc(x, y, r * 0.2))


def car(pen: Pen, c: Tones) -> None:
    """Draw a small sedan."""
    pen.body(METAL, c.ink, box(1, 78, 10, 84, 2), box(90, 78, 99, 84, 2))
    pen.body(
        c.base, c.ink, blob("4,82 3,68 12,62 23,59 33,44 48,39 62,42 76,58 92,63 97,70 97,82 50,84")
    )
    pen.fill(c.shade, poly("4,77 97,77 96,84 5,84"))
    pen.fill(c.light, limb(2, "14,65.5 50,64.5 84,65.5"))
    pen.body(GLASS, c.ink, poly("28,59 36,46 46,44 46,59"))
    pen.body(GLASS, c.ink, poly("51,59 51,44 59,46 69,59"))
    pen.fill(WHITE, poly("34,56 41,47 43,47 36,56"), poly("56,56 56,48 58,48 58,56"))
    pen.fill(
        c.ink, limb(1.2, "48.5,61 48.5,78"), limb(1.8, "53,68 58,68"), limb(1.8, "33,68 38,68")
    )
    pen.body(LAMP, c.ink, oval(94, 70, 3, 4))
    pen.body((226, 58, 50), c.ink, box(3, 67, 7.5, 74, 1.5))
    for x in (25, 76):
        _wheel(pen, c, x, 84, 11)


def bus(pen: Pen, c: Tones) -> None:
    """Draw a bus as a long box full of windows."""
    pen.body(c.shade, c.ink, box(22, 22, 58, 30, 3))
    pen.body(c.base, c.ink, box(3, 28, 97, 86, 6))
    pen.fill(c.shade, box(4, 77, 96, 85, 4))
    pen.fill(c.light, box(4, 62, 84, 67), limb(2, "10,31.5 88,31.5"))
    for x0, x1 in ((8, 21), (25, 38), (42, 55), (59, 72)):
        pen.body(GLASS, c.ink, box(x0, 36, x1, 57, 1.8))
        glint = [(x0 + 1.5, 54), (x1 - 2.5, 37.5), (x1 - 0.8, 37.5), (x0 + 1.5, 57 - 0.8)]
        pen.fill(WHITE, poly(glint))
    pen.body(GLASS, c.ink, box(77, 36, 87, 82, 2))
    pen.fill(c.ink, limb(1.2, "82,37 82,81"))
    pen.body(GLASS, c.ink, poly("91,36 97,37 97,64 91,64"))
    pen.body(LAMP, c.ink, disc(94, 74, 3.2))
    for x in (24, 65):
        _wheel(pen, c, x, 85.5, 9.5)


def truck(pen: Pen, c: Tones) -> None:
    """Draw a truck with a cab and a closed, ribbed load."""
    pen.body((70, 74, 82), c.ink, box(6, 76, 92, 84, 2))
    pen.body(c.base, c.ink, box(2, 26, 63, 78, 3))
    pen.fill(c.light, box(3.5, 27.5, 61.5, 33))
    for x in (12, 22, 32, 42, 52):
        pen.fill(c.shade, limb(1.8, [(x, 36), (x, 73)]))
    pen.body(c.base, c.ink, blob("67,42 70,40 85,40 89,44 92,58 98,62 98,80 67,80 67,60", steps=3))
    pen.fill(c.shade, box(68.5, 72, 96.5, 79))
    pen.body(GLASS, c.ink, poly("74,46 84,46 89,60 74,60"))
    pen.fill(WHITE, poly("76,58 81,47.5 83,47.5 78,58"))
    pen.fill(c.ink, limb(1.8, "73,66 78,66"))
    pen.body(LAMP, c.ink, disc(95, 69, 3))
    pen.body(METAL, c.ink, box(90, 79, 100, 84, 2))
    for x in (15, 37, 80):
        _wheel(pen, c, x, 85, 10)


def train(pen: Pen, c: Tones) -> None:
    """Draw a steam locomotive on a piece of rail."""
    pen.body((106, 100, 96), mix(c.ink, DARK, 0.5), box(0, 94, 100, 97))
    pen.body(c.shade, c.ink, poly("84,78 100,92 80,92"))
    pen.body(c.shade, c.ink, box(67, 30, 77, 48), poly("63,20 81,20 78,30 66,30"))
    pen.body(c.base, c.ink, blob("45,46 46,36 52,33 58,36 59,46", steps=4), box(30, 44, 86, 74, 7))
    pen.fill(c.light, limb(3, "40,50 82,50"))
    pen.body(c.base, c.ink, box(6, 24, 38, 80, 2))
    pen.body(c.shade, c.ink, box(2, 16, 42, 26, 4), box(4, 72, 90, 82, 2), box(83, 47, 90, 72, 3))
    pen.body(GLASS, c.ink, box(13, 32, 31, 51, 2))
    pen.fill(WHITE, poly("15,48 27,34 29,34 17,48"))
    pen.fill((244, 198, 70), box(48, 44, 51, 73), box(66, 44, 69, 73))
    pen.body(LAMP, c.ink, disc(92, 56, 3.8))
    for x, r in ((18, 11), (43, 11), (64, 7.5), (80, 7.5)):
        y = 94 - r
        pen.body(mix(c.shade, TYRE, 0.55), c.ink, disc(x, y, r))
        pen.fill(METAL, disc(x, y, r * 0.62))
        pen.fill(mix(c.shade, TYRE, 0.55), disc(x, y, r * 0.42))
    pen.body(METAL, c.ink, limb(2.2, "18,83 43,83 64,86"))


def boat(pen: Pen, c: Tones) -> None:
    """Draw a sailboat whose hull and two sails have the color."""
    pen.body(WOOD, mix(c.ink, DARK, 0.5), box(47.5, 6, 51.5, 74))
    pen.body(c.base, c.ink, poly("51,6 68,11 51,16"))
    jib = blob("55,18 55,40 55,65 75,65 94,65 80,42 66,26", steps=4)
    pen.body(mix(c.base, c.light, 0.55), c.ink, jib)
    pen.body(c.light, c.ink, blob("44,22 34,36 22,52 12,65 28,65 44,65 44,44", steps=4))
    pen.fill(c.base, limb(2, "58,56 86,56"), limb(2, "58,46 79,46"), limb(2, "22,56 41,56"))
    pen.body(c.base, c.ink, blob("3,70 50,73 97,70 90,84 78,94 50,95 24,94 10,84", steps=4))
    pen.fill(c.shade, blob("15,87 50,88 85,87 77,93 50,94 25,93", steps=4))
    pen.fill(WHITE, limb(2.4, "8,76 50,78.5 92,76"))
    for x in (30, 50, 70):
        pen.body(GLASS, c.ink, disc(x, 83.5, 2.6))


def bicycle(pen: Pen, c: Tones) -> None:
    """Draw a bicycle whose frame and rims have the color, with dark tires and saddle."""
    dark = mix(c.ink, TYRE, 0.6)
    for x in (22, 78):
        pen.fill(dark, limb(5, _circle(x, 74, 19.5)))
        pen.fill(c.base, limb(2.6, _circle(x, 74, 15.6)))
        for dx, dy in ((0, 14), (14, 0), (10, 10), (10, -10)):
            pen.fill((150, 156, 164), limb(1, [(x - dx, 74 - dy), (x + dx, 74 + dy)]))
    frame = (
        limb(5, "22,74 36,46 68,46 48,75", steps=1),
        limb(5, "22,74 48,75 33,38", steps=1),
        limb(5, "78,74 66,36", steps=1),
    )
    pen.body(c.base, c.ink, *frame)
    pen.fill(c.light, limb(1.4, "38,45.4 66,45.4"))
    pen.body(dark, c.ink, blob("22,35 30,32 42,34 42,37 32,40 24,39"))
    pen.body(dark, c.ink, limb(4, "65,33 72,29 80,31 82,37"))
    pen.body(METAL, c.ink, disc(48, 75, 5))
    pen.body(dark, c.ink, limb(2.6, "48,75 54,86"), limb(3, "50,87 58,87"))
    for x in (22, 78):
        pen.body(METAL, c.ink, disc(x, 74, 2.8))


def _circle(x: float, y: float, r: float) -> list[tuple[float, float]]:
    return [*oval(x, y, r, r).points, (x + r, y)]


HAIR = (74, 48, 32)
BEAK = (248, 170, 42)


def dog(pen: Pen, c: Tones) -> None:
    """Draw a dog from the side, with a hanging ear, a raised tail and a collar."""
    collar = (44, 120, 214) if c.name in ("red", "orange", "pink") else (224, 52, 48)
    pen.body(c.shade, c.ink, limb(9, "34,66 35,91"), limb(9, "66,66 65,91"))
    pen.body(
        c.base,
        c.ink,
        limb(7, "22,56 11,46 9,28"),
        blob("17,62 22,49 40,47 60,46 72,52 75,64 68,74 44,72 24,75"),
        limb(10.5, "25,66 24,90 27,91"),
        limb(10.5, "72,62 72,90 75,91"),
        blob("60,54 58,34 66,20 80,19 88,30 97,36 97,46 86,50 76,58 66,62"),
    )
    pen.fill(c.light, oval(70, 63, 4, 6), oval(92, 43, 4, 2.5))
    pen.body(collar, c.ink, limb(4, "62,57 70,61 79,55"))
    pen.body((252, 206, 60), c.ink, disc(72, 64, 2.4))
    pen.body(c.shade, c.ink, blob("60,22 69,19 72,28 70,44 64,51 57,46 56,33"))
    pen.fill(DARK, oval(95.5, 36, 4.2, 3.6), limb(1.5, "96,44 90,46 86,44"))
    pen.fill(WHITE, disc(81, 31, 4))
    pen.fill(EYE, disc(82, 31.4, 2.7))
    pen.fill(WHITE, disc(82.8, 30.4, 0.9))


def cat(pen: Pen, c: Tones) -> None:
    """Draw a sitting cat from the front, with its tail around the right side."""
    pen.body(c.shade, c.ink, limb(8, "66,88 86,86 91,70 84,56"))
    pen.body(
        c.base,
        c.ink,
        blob("36,48 64,48 72,66 76,86 66,95 34,95 24,86 28,66"),
        poly("26,34 25,5 46,19"),
        poly("74,34 75,5 54,19"),
        oval(50, 34, 27, 22),
    )
    pen.fill(PINK, poly("30,24 29,12 39,19"), poly("70,24 71,12 61,19"))
    pen.fill(c.light, blob("50,56 60,64 58,82 50,86 42,82 40,64"), oval(50, 43, 11, 8))
    for x in (42, 58):
        paw = [(x - 6, 90), (x - 4, 82), (x + 4, 82), (x + 6, 90), (x + 4, 95), (x - 4, 95)]
        pen.body(c.base, c.ink, blob(paw))
    for x in (39, 61):
        pen.body((178, 222, 80), c.ink, oval(x, 33, 5.4, 6.2))
        pen.fill(EYE, oval(x, 33, 2.2, 5.2))
        pen.fill(WHITE, disc(x + 1.2, 30.8, 1.2))
    pen.fill(c.ink, limb(1.6, "50,42 49,46 44,47"), limb(1.6, "50,42 51,46 56,47"))
    pen.fill((238, 112, 128), poly("46.5,39.5 53.5,39.5 50,43.5"))
    for side in (-1, 1):
        for y, drop in ((40, -2), (43.5, 1)):
            pen.fill(c.ink, limb(1.1, [(50 + 13 * side, y), (50 + 34 * side, y + drop)]))


def horse(pen: Pen, c: Tones) -> None:
    """Draw a horse from the side, with a long neck, a mane and a full tail."""
    hoof = (62, 52, 48) if c.name != "black" else (112, 112, 120)
    for x in (36, 66):
        pen.body(c.shade, c.ink, limb(8, [(x, 62), (x + 1, 90)]))
        pen.body(hoof, c.ink, box(x - 4, 89, x + 6, 95, 1.5))
    pen.body(c.shade, c.ink, blob("20,50 12,52 5,66 4,84 10,80 16,70 21,60"))
    pen.body(
        c.base,
        c.ink,
        blob("17,58 22,47 40,46 58,47 72,46 77,56 72,68 58,69 42,69 24,70"),
        limb(10, "26,60 24,74 26,88"),
        limb(10, "71,58 73,74 72,88"),
        blob("60,54 64,36 70,18 78,11 85,15 90,24 97,33 94,40 88,40 80,36 77,56"),
        poly("74,14 75,3 82,12"),
    )
    for x in (26, 72):
        pen.body(hoof, c.ink, box(x - 6, 88, x + 6, 95, 1.5))
    pen.body(c.shade, c.ink, blob("76,6 79,14 72,22 69,34 66,46 60,52 58,44 62,28 67,13"))
    pen.fill(c.light, oval(91, 35, 4, 2.6, 40), oval(46, 53, 16, 3))
    pen.fill(EYE, disc(83, 22.5, 2.6), disc(93.5, 34, 1.1))
    pen.fill(WHITE, disc(83.8, 21.6, 0.9))


def bird(pen: Pen, c: Tones) -> None:
    """Draw a standing bird from the side, with a folded wing and a fanned tail."""
    for x in (46, 57):
        leg, toes = [(x, 78), (x, 92)], [(x - 5, 94), (x, 92), (x + 7, 94)]
        pen.body(BEAK, c.ink, limb(2.4, leg), limb(2.4, toes))
    pen.body(c.shade, c.ink, poly("26,58 2,50 3,58 1,62 6,66 4,72 28,72"))
    pen.body(BEAK, c.ink, poly("86,29 100,36 86,41"))
    outline = "20,62 40,50 54,40 62,22 76,15 88,22 90,36 84,50 80,68 66,81 44,82 27,75"
    pen.body(c.base, c.ink, blob(outline))
    pen.fill(c.light, blob("84,52 79,67 66,78 58,78 66,66 74,52"))
    pen.body(c.shade, c.ink, blob("62,50 66,60 54,73 36,74 14,70 32,62 46,52"))
    pen.fill(c.base, limb(1.8, "54,56 44,63 32,67"), limb(1.8, "58,63 48,69 38,71"))
    pen.fill(WHITE, disc(78, 29, 4.6))
    pen.fill(EYE, disc(79, 29.2, 3.1))
    pen.fill(WHITE, disc(80, 28, 1))


def person(pen: Pen, c: Tones) -> None:
    """Draw a standing person from the front. The color is that of the clothes."""
    edge = mix(c.ink, DARK, 0.3)
    for side in (-1, 1):
        shoe = [(50 + x * side, y) for x, y in ((3, 91), (8, 90), (16, 94), (3, 96))]
        pen.body(LEATHER, edge, blob(shoe))
        pen.body(SKIN, edge, disc(50 + 22 * side, 62, 4.2))
    pen.body(c.shade, edge, poly("39,58 61,58 62,92 52.5,92 50,68 47.5,92 38,92"))
    pen.body(
        c.base,
        edge,
        blob("40,35 60,35 65,42 63,62 50,64 37,62 35,42"),
        limb(9, "37,41 30,50 28.5,58"),
        limb(9, "63,41 70,50 71.5,58"),
    )
    pen.fill(
        c.shade, limb(1.6, "36.5,48 36,60"), limb(1.6, "63.5,48 64,60"), box(37.5, 58.4, 62.5, 61)
    )
    pen.body(SKIN, edge, box(45.5, 28, 54.5, 37, 3))
    pen.fill(c.light, limb(2, "44,36.5 50,40.5 56,36.5"))
    pen.body(HAIR, edge, blob("33,22 36,8 50,3 64,8 67,22 62,28 38,28"))
    pen.body(SKIN, edge, blob("36,19 40,13 52,14 62,13 64,19 62,27 50,33 38,27"))
    pen.fill(HAIR, blob("36,17 42,9 58,9 64,17 56,15 46,14"))
    for x in (44.5, 55.5):
        pen.fill(EYE, oval(x, 21, 1.7, 2.2))
        pen.fill((240, 160, 140), oval(x + (x - 50) * 0.75, 25.5, 2.4, 1.5))
    pen.fill((176, 84, 70), limb(1.5, "46.5,26.5 50,28.3 53.5,26.5"))


_LARGER = 2  # of large sprites, whose edges are fine already
_DRAW = {
    "dog": dog,
    "cat": cat,
    "horse": horse,
    "car": car,
    "bus": bus,
    "train": train,
    "person": person,
    "bird": bird,
    "boat": boat,
    "bicycle": bicycle,
    "truck": truck,
}


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
    _DRAW[name](pen, tones(color))
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
