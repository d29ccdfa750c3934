"""Draw a scene: first the background, then everything in it, starting with the farthest.

Each of the six backgrounds has several variants. None of them shows an object that a scene can contain.
"""

import functools
import random
from collections.abc import Callable

from PIL import Image, ImageDraw, ImageFilter

from vlprobe.datasets.world.scene import HORIZON, SIZE, Placement, Scene, pick, placements, stream
from vlprobe.datasets.world.sprites import Color, mix, sprite

VARIANTS = 12  # of each background
_LARGER = 3
_WHITE = (255, 255, 255)


class _Canvas:
    """Canvas that is `larger` times as large as the finished picture, but takes coordinates in its pixels."""

    def __init__(self, larger: int) -> None:
        self._larger = larger
        self.image = Image.new("RGB", (SIZE * larger, SIZE * larger))
        self._draw = ImageDraw.Draw(self.image)

    def gradient(self, top: float, bottom: float, above: Color, below: Color) -> None:
        for y in range(int(top * self._larger), int(bottom * self._larger)):
            share = (y / self._larger - top) / (bottom - top)
            self._draw.line((0, y, SIZE * self._larger, y), fill=mix(above, below, share))

    def box(self, x0: float, y0: float, x1: float, y1: float, color: Color, r: float = 0) -> None:
        bounds = [round(v * self._larger) for v in (x0, y0, x1, y1)]
        self._draw.rounded_rectangle(bounds, radius=r * self._larger, fill=color)

    def oval(self, x: float, y: float, rx: float, ry: float, color: Color) -> None:
        self._draw.ellipse([v * self._larger for v in (x - rx, y - ry, x + rx, y + ry)], fill=color)

    def ring(self, x: float, y: float, rx: float, ry: float, color: Color, width: float) -> None:
        bounds = [v * self._larger for v in (x - rx, y - ry, x + rx, y + ry)]
        self._draw.ellipse(bounds, outline=color, width=round(width * self._larger))

    def poly(self, color: Color, *points: tuple[float, float]) -> None:
        self._draw.polygon([(x * self._larger, y * self._larger) for x, y in points], fill=color)

    def line(self, color: Color, width: float, *points: tuple[float, float]) -> None:
        scaled = [(x * self._larger, y * self._larger) for x, y in points]
        self._draw.line(
            scaled, fill=color, width=max(1, round(width * self._larger)), joint="curve"
        )

    def arc(
        self, x: float, y: float, rx: float, ry: float, start: float, end: float, color: Color
    ) -> None:
        bounds = [v * self._larger for v in (x - rx, y - ry, x + rx, y + ry)]
        self._draw.arc(bounds, start, end, fill=color, width=self._larger)


@functools.lru_cache(maxsize=6 * VARIANTS)  # 9 ms, and hundreds of scenes have the same
def background(name: str, variant: int) -> Image.Image:
    """Return a background in one variant (0 to VARIANTS - 1) as RGB, SIZE pixels per side. Copy it to draw on it."""
    return _drawn(name, variant, _LARGER).reduce(_LARGER)


def _drawn(name: str, variant: int, larger: int) -> Image.Image:
    canvas = _Canvas(larger)
    _DRAW[name](canvas, stream("background", name, variant))
    return canvas.image


def _sky(c: _Canvas, rng: random.Random, bottom: float, clouds: int) -> None:
    top, low = pick(
        rng,
        (
            ((116, 184, 240), (214, 238, 252)),
            ((134, 196, 240), (226, 242, 250)),
            ((122, 182, 236), (236, 240, 246)),
        ),
    )
    c.gradient(0, bottom, top, low)
    if rng.random() < 0.4:
        x, y = 20 + 180 * rng.random(), 18 + 10 * rng.random()
        c.oval(x, y, 19, 19, mix(top, (255, 240, 170), 0.45))
        c.oval(x, y, 15, 15, (255, 232, 130))
    for k in range(clouds):
        x = (k + 0.15 + 0.7 * rng.random()) * SIZE / clouds
        _cloud(c, x, (0.12 + 0.6 * rng.random()) * bottom, 8 + 4 * rng.random())


def _cloud(c: _Canvas, x: float, y: float, r: float) -> None:
    for tint, drop in (((222, 234, 244), 1.6), (_WHITE, 0)):
        c.oval(x - 1.2 * r, y + drop, 0.8 * r, 0.6 * r, tint)
        c.oval(x, y - 0.5 * r + drop, 1.0 * r, 0.85 * r, tint)
        c.oval(x + 1.2 * r, y - 0.1 * r + drop, 0.9 * r, 0.7 * r, tint)
        c.box(x - 1.9 * r, y - 0.15 * r + drop, x + 2.0 * r, y + 0.55 * r + drop, tint, 0.35 * r)


def _street(c: _Canvas, rng: random.Random) -> None:
    ground = HORIZON["street"]
    _sky(c, rng, ground, 2)
    x = -8.0
    while x < SIZE:
        width, height = 20 + 16 * rng.random(), 26 + 44 * rng.random()
        wall = pick(
            rng,
            ((208, 200, 206), (196, 206, 216), (216, 208, 194), (198, 192, 206), (206, 214, 210)),
        )
        c.box(x, ground - 10 - height, x + width, ground, wall)
        c.box(
            x, ground - 10 - height, x + width, ground - 7 - height, mix(wall, (90, 90, 110), 0.25)
        )
        for column in range(int((width - 4) // 6)):
            for row in range(int((height - 6) // 8)):
                lit = (246, 234, 190) if rng.random() < 0.25 else mix(wall, (120, 140, 170), 0.45)
                left, top = x + 3.5 + 6 * column, ground - 4 - height + 8 * row
                c.box(left, top, left + 3.2, top + 4.4, lit)
        x += width + (3 if rng.random() < 0.3 else 0)
    c.box(0, ground - 9, SIZE, ground, (206, 200, 192))
    c.box(0, ground - 2, SIZE, ground, (162, 158, 154))
    c.gradient(ground, SIZE, (112, 114, 122), (88, 90, 98))
    shift = 40 * rng.random()
    for k in range(-1, 6):
        c.poly(
            (236, 232, 214),
            *((48 * k + shift + dx, y) for dx, y in ((4, 166), (28, 166), (24, 172), (0, 172))),
        )
    c.box(0, SIZE - 5, SIZE, SIZE, (206, 200, 192))


def _room(c: _Canvas, rng: random.Random) -> None:
    ground = HORIZON["room"]
    wall = pick(
        rng, ((238, 230, 214), (224, 234, 226), (232, 226, 240), (222, 232, 242), (244, 228, 222))
    )
    c.gradient(0, ground, wall, mix(wall, (200, 190, 190), 0.12))
    for k in range(9):
        c.line(mix(wall, _WHITE, 0.45), 2, (28 * k + 6, 0), (28 * k + 6, ground))
    left = pick(rng, (22, 62, 120, 150))
    c.box(left - 4, 16, left + 50, 74, (250, 250, 250), 2)
    c.box(left, 20, left + 46, 70, (176, 216, 244))
    _cloud(c, left + 24, 40, 6)
    hills = ((0, 60), (12, 57), (28, 60), (46, 56), (46, 70), (0, 70))
    c.poly((164, 208, 150), *((left + dx, y) for dx, y in hills))
    c.box(left + 21.5, 18, left + 24.5, 72, (250, 250, 250))
    c.box(left - 2, 43.5, left + 48, 46.5, (250, 250, 250))
    frame = (left + 76) % 170 + 18
    frame = frame if not left - 30 < frame < left + 58 else (left + 120) % 180 + 10
    c.box(frame, 26, frame + 28, 60, (158, 112, 72), 1)
    c.box(frame + 3, 29, frame + 25, 57, (252, 246, 234))
    c.oval(frame + 14, 43, 6, 7, (212, 176, 160))
    c.box(0, ground - 8, SIZE, ground, (250, 248, 244))
    c.box(0, ground - 1.5, SIZE, ground, (206, 194, 180))
    c.gradient(ground, SIZE, (206, 158, 110), (184, 132, 88))
    for row, y in enumerate((ground + 12, ground + 28, ground + 50, ground + 78)):
        c.line((172, 122, 80), 0.9, (0, y), (SIZE, y))
        for k in range(4):
            x = (60 * k + 37 * row) % 240
            c.line((172, 122, 80), 0.9, (x, y), (x, y - 12 - 3 * row))
    rug = pick(rng, ((176, 196, 182), (206, 180, 176), (176, 190, 212), (214, 200, 168)))
    x = 80 + 64 * rng.random()
    c.oval(x, 178, 74, 30, mix(rug, (90, 80, 80), 0.25))
    c.oval(x, 177, 72, 28, rug)
    c.ring(x, 177, 62, 23, mix(rug, _WHITE, 0.6), 1.6)


def _meadow(c: _Canvas, rng: random.Random) -> None:
    ground = HORIZON["meadow"]
    _sky(c, rng, ground + 20, 3)
    x = 60 * rng.random()
    c.oval(x, ground + 36, 110, 52, (150, 204, 124))
    c.oval(x + 170, ground + 40, 130, 50, (138, 196, 114))
    for k in range(3):
        tx = (70 * k + 60 * rng.random()) % SIZE
        c.box(tx - 1.5, ground - 10, tx + 1.5, ground + 4, (134, 104, 76))
        c.oval(tx, ground - 16, 9, 11, (112, 176, 104))
        c.oval(tx - 3, ground - 19, 5, 6, (132, 192, 120))
    c.gradient(ground, SIZE, (150, 206, 112), (104, 178, 84))
    c.oval(SIZE / 2, ground + 6, 150, 11, (150, 206, 112))
    for _ in range(70):
        gx, gy = SIZE * rng.random(), ground + 8 + (SIZE - ground - 10) * rng.random()
        blade = (86, 158, 72) if rng.random() < 0.7 else (170, 218, 128)
        c.line(blade, 0.9, (gx - 2, gy - 3.5), (gx, gy), (gx + 2, gy - 3.5))
    for _ in range(16):
        gx, gy = SIZE * rng.random(), ground + 12 + (SIZE - ground - 16) * rng.random()
        petal = pick(rng, (_WHITE, (255, 246, 196), (250, 226, 236)))
        for dx, dy in ((-1.4, 0), (1.4, 0), (0, -1.4), (0, 1.4)):
            c.oval(gx + dx, gy + dy, 1.1, 1.1, petal)
        c.oval(gx, gy, 0.8, 0.8, (244, 206, 90))


def _beach(c: _Canvas, rng: random.Random) -> None:
    ground = HORIZON["beach"]
    _sky(c, rng, ground - 26, 2)
    c.gradient(ground - 28, ground + 8, (58, 152, 196), (122, 208, 214))
    for k in range(7):
        y = ground - 22 + 3.6 * k
        x = SIZE * rng.random()
        c.line((176, 226, 232), 0.9, (x, y), (x + 16 + 10 * rng.random(), y))
    tilt = 8 * rng.random() - 4
    edge = [
        (8 * k, ground + 1 + tilt * (k - 14) / 14 + 2.4 * ((k % 6) - 2.5) / 2.5) for k in range(30)
    ]
    c.poly(_WHITE, *((x, y - 2.5) for x, y in edge), (SIZE + 8, SIZE), (0, SIZE))
    c.poly((226, 200, 146), *edge, (SIZE + 8, SIZE), (0, SIZE))
    c.poly((244, 222, 172), *((x, y + 3) for x, y in edge), (SIZE + 8, SIZE), (0, SIZE))
    for _ in range(90):
        gx, gy = SIZE * rng.random(), ground + 12 + (SIZE - ground - 14) * rng.random()
        c.oval(gx, gy, 0.8, 0.6, (222, 194, 138))
    x = pick(rng, (12, 26, 198, 212))
    lean = 5 if x < SIZE / 2 else -5
    for k in range(9):
        middle, top = x + lean * (k / 9) ** 2, ground - 4 * k + 2
        c.box(middle - 2.6, top, middle + 2.6, top + 4.5, (166, 122, 82), 1)
    for dx, dy in ((-24, 6), (-20, -8), (-6, -15), (10, -14), (21, -6), (23, 8)):
        hx, hy = x + lean, ground - 34
        upper, lower = (hx + dx * 0.55, hy + dy - 5), (hx + dx * 0.5, hy + dy * 0.6)
        c.poly((84, 168, 104), (hx, hy), upper, (hx + dx, hy + dy), lower)
    if rng.random() < 0.5:
        gx, gy = 30 + 160 * rng.random(), SIZE - 8
        for k in range(5):
            turn = ((0, -5), (4.8, -1.6), (3, 4), (-3, 4), (-4.8, -1.6))[k]
            c.line((236, 178, 150), 2.2, (gx, gy), (gx + turn[0], gy + turn[1]))


def _sea(c: _Canvas, rng: random.Random) -> None:
    horizon = HORIZON["sea"]
    _sky(c, rng, horizon, 3)
    x = SIZE * rng.random()
    island = ((-44, 0), (-22, 9), (-4, 15), (16, 6), (40, 0))
    c.poly((150, 178, 186), *((x + dx, horizon - height) for dx, height in island))
    c.gradient(horizon, SIZE, (96, 178, 216), (44, 118, 176))
    for _ in range(42):
        y = horizon + 5 + (SIZE - horizon - 8) * rng.random() ** 1.2
        reach = 3 + 7 * (y - horizon) / (SIZE - horizon)
        x = SIZE * rng.random()
        tint = mix((150, 208, 234), (110, 176, 216), (y - horizon) / (SIZE - horizon))
        for k in range(2):
            c.arc(x + 1.7 * reach * k, y, reach * 0.9, reach * 0.55, 200, 340, tint)


def _clouds(c: _Canvas, rng: random.Random) -> None:
    _sky(c, rng, SIZE, 1)
    for k in range(5):
        _cloud(c, SIZE * rng.random(), 30 + 42 * k + 14 * rng.random(), 9 + 7 * rng.random())


_DRAW: dict[str, Callable[[_Canvas, random.Random], None]] = {
    "street": _street,
    "room": _room,
    "meadow": _meadow,
    "beach": _beach,
    "sea": _sea,
    "sky": _clouds,
}


# Part of the folder names of drawn pictures, `cache/demo/*-<version>`. Raise it whenever the pixels of a
# scene change, so that old pictures are not reused;
# tests/datasets/world/test_renderer_version.py fails until then.
VERSION = "3c69a21e"


def render(scene: Scene, size: int = SIZE) -> Image.Image:
    """Draw a scene as RGB, `size` pixels per side. The same scene always gives the same pixels.

    Models see scenes at the default size. A larger picture is for people: it is drawn at the next larger multiple of
    224 and scaled down. Reduced to 224 pixels, it differs by less than 3 of 255 levels on average.
    """
    scale = max(1, -(-size // SIZE))
    variant = pick(stream(scene.seed, "background"), range(VARIANTS))
    if scale == 1:
        image = background(scene.background, variant).copy()
    else:
        image = _drawn(scene.background, variant, 2 * scale).reduce(2)
    for placement in placements(scene):
        group = scene.groups[placement.group]
        pictures = [sprite(group.object, group.color, placement.size, placement.faces_left, scale)]
        if ground := _ground(scene, placement):
            pictures.insert(0, _ground_mark(placement.size, ground, scale))
        for picture in pictures:
            image.paste(picture, (placement.x * scale, placement.y * scale), picture)
    return image if image.width == size else image.resize((size, size), Image.Resampling.LANCZOS)


def _ground(scene: Scene, placement: Placement) -> str:
    """Return the kind of mark under an object: a shadow on the ground, a ripple on water, "" in the air."""
    if placement.y + placement.size <= HORIZON[scene.background] + 4 or scene.background == "sky":
        return ""
    return "ripple" if scene.background == "sea" else "shadow"


def _ground_mark(size: int, kind: str, scale: int) -> Image.Image:
    """Draw the mark under an object that is `size` pixels large in a picture of 224 pixels, enlarged by `scale`."""
    line = scale * max(1, size // 50)
    size *= scale
    mark = Image.new(
        "RGBA", (size, size), (20, 24, 40, 0) if kind == "shadow" else (235, 248, 255, 0)
    )
    draw = ImageDraw.Draw(mark)
    height = 0.055 * size
    middle = 0.93 * size
    if kind == "shadow":
        draw.ellipse(
            (0.08 * size, middle - height, 0.92 * size, middle + height), fill=(20, 24, 40, 90)
        )
        return mark.filter(ImageFilter.GaussianBlur(0.012 * size))
    for reach in (0.46, 0.36):
        left, right, rise = size * (0.5 - reach), size * (0.5 + reach), height * reach * 2
        bounds = left, middle - rise, right, middle + rise
        draw.ellipse(bounds, outline=(235, 248, 255, 170), width=line)
    return mark.filter(ImageFilter.GaussianBlur(0.5 * scale))
