"""The six vehicles of the demo world, facing right, in a square of 100 x 100, bottom at y = 95."""

from vlprobe.datasets.world.palette import DARK, GLASS, LAMP, METAL, TYRE, WHITE, WOOD, Tones
from vlprobe.datasets.world.pen import Pen, blob, box, disc, limb, mix, oval, poly


def _wheel(pen: Pen, c: Tones, x: float, y: float, r: float) -> None:
    pen.body(TYRE, c.ink, disc(x, y, r))
    pen.fill(METAL, disc(x, y, r * 0.56))
    pen.fill((120, 126, 134), disc(x, y, r * 0.2))


def _windows(pen: Pen, c: Tones, y0: float, y1: float, *spans: tuple[float, float]) -> None:
    for x0, x1 in spans:
        pen.body(GLASS, c.ink, box(x0, y0, x1, y1, 1.8))
        pen.fill(
            WHITE,
            poly(
                (x0 + 1.5, y1 - 3),
                (x1 - 2.5, y0 + 1.5),
                (x1 - 0.8, y0 + 1.5),
                (x0 + 1.5, y1 - 0.8),
            ),
        )


def car(pen: Pen, c: Tones) -> None:
    """A small saloon."""
    pen.body(METAL, c.ink, box(1, 78, 10, 84, 2), box(90, 78, 99, 84, 2))
    pen.body(
        c.base,
        c.ink,
        blob(
            (4, 82),
            (3, 68),
            (12, 62),
            (23, 59),
            (33, 44),
            (48, 39),
            (62, 42),
            (76, 58),
            (92, 63),
            (97, 70),
            (97, 82),
            (50, 84),
        ),
    )
    pen.fill(c.shade, poly((4, 77), (97, 77), (96, 84), (5, 84)))
    pen.fill(c.light, limb(2, (14, 65.5), (50, 64.5), (84, 65.5)))
    pen.body(GLASS, c.ink, poly((28, 59), (36, 46), (46, 44), (46, 59)))
    pen.body(GLASS, c.ink, poly((51, 59), (51, 44), (59, 46), (69, 59)))
    pen.fill(
        WHITE,
        poly((34, 56), (41, 47), (43, 47), (36, 56)),
        poly((56, 56), (56, 48), (58, 48), (58, 56)),
    )
    pen.fill(
        c.ink,
        limb(1.2, (48.5, 61), (48.5, 78)),
        limb(1.8, (53, 68), (58, 68)),
        limb(1.8, (33, 68), (38, 68)),
    )
    pen.body(LAMP, c.ink, oval(94, 70, 3, 4))
    pen.body((226, 58, 50), c.ink, box(3, 67, 7.5, 74, 1.5))
    for x in (25, 76):
        _wheel(pen, c, x, 84, 11)


def bus(pen: Pen, c: Tones) -> None:
    """A long box full of windows."""
    pen.body(c.shade, c.ink, box(22, 22, 58, 30, 3))
    pen.body(c.base, c.ink, box(3, 28, 97, 86, 6))
    pen.fill(c.shade, box(4, 77, 96, 85, 4))
    pen.fill(c.light, box(4, 62, 84, 67), limb(2, (10, 31.5), (88, 31.5)))
    _windows(pen, c, 36, 57, (8, 21), (25, 38), (42, 55), (59, 72))
    pen.body(GLASS, c.ink, box(77, 36, 87, 82, 2))
    pen.fill(c.ink, limb(1.2, (82, 37), (82, 81)))
    pen.body(GLASS, c.ink, poly((91, 36), (97, 37), (97, 64), (91, 64)))
    pen.body(LAMP, c.ink, disc(94, 74, 3.2))
    for x in (24, 65):
        _wheel(pen, c, x, 85.5, 9.5)


def truck(pen: Pen, c: Tones) -> None:
    """A cab and a closed, ribbed load."""
    pen.body((70, 74, 82), c.ink, box(6, 76, 92, 84, 2))
    pen.body(c.base, c.ink, box(2, 26, 63, 78, 3))
    pen.fill(c.light, box(3.5, 27.5, 61.5, 33))
    for x in (12, 22, 32, 42, 52):
        pen.fill(c.shade, limb(1.8, (x, 36), (x, 73)))
    pen.body(
        c.base,
        c.ink,
        blob(
            (67, 42),
            (70, 40),
            (85, 40),
            (89, 44),
            (92, 58),
            (98, 62),
            (98, 80),
            (67, 80),
            (67, 60),
            steps=3,
        ),
    )
    pen.fill(c.shade, box(68.5, 72, 96.5, 79))
    pen.body(GLASS, c.ink, poly((74, 46), (84, 46), (89, 60), (74, 60)))
    pen.fill(WHITE, poly((76, 58), (81, 47.5), (83, 47.5), (78, 58)))
    pen.fill(c.ink, limb(1.8, (73, 66), (78, 66)))
    pen.body(LAMP, c.ink, disc(95, 69, 3))
    pen.body(METAL, c.ink, box(90, 79, 100, 84, 2))
    for x in (15, 37, 80):
        _wheel(pen, c, x, 85, 10)


def train(pen: Pen, c: Tones) -> None:
    """A steam locomotive on a piece of rail."""
    pen.body((106, 100, 96), mix(c.ink, DARK, 0.5), box(0, 94, 100, 97))
    pen.body(c.shade, c.ink, poly((84, 78), (100, 92), (80, 92)))
    pen.body(c.shade, c.ink, box(67, 30, 77, 48), poly((63, 20), (81, 20), (78, 30), (66, 30)))
    pen.body(
        c.base,
        c.ink,
        blob((45, 46), (46, 36), (52, 33), (58, 36), (59, 46), steps=4),
        box(30, 44, 86, 74, 7),
    )
    pen.fill(c.light, limb(3, (40, 50), (82, 50)))
    pen.body(c.base, c.ink, box(6, 24, 38, 80, 2))
    pen.body(c.shade, c.ink, box(2, 16, 42, 26, 4), box(4, 72, 90, 82, 2), box(83, 47, 90, 72, 3))
    pen.body(GLASS, c.ink, box(13, 32, 31, 51, 2))
    pen.fill(WHITE, poly((15, 48), (27, 34), (29, 34), (17, 48)))
    pen.fill((244, 198, 70), box(48, 44, 51, 73), box(66, 44, 69, 73))
    pen.body(LAMP, c.ink, disc(92, 56, 3.8))
    for x, r in ((18, 11), (43, 11), (64, 7.5), (80, 7.5)):
        y = 94 - r
        pen.body(mix(c.shade, TYRE, 0.55), c.ink, disc(x, y, r))
        pen.fill(METAL, disc(x, y, r * 0.62))
        pen.fill(mix(c.shade, TYRE, 0.55), disc(x, y, r * 0.42))
    pen.body(METAL, c.ink, limb(2.2, (18, 83), (43, 83), (64, 86)))


def boat(pen: Pen, c: Tones) -> None:
    """A sailing boat: hull and both sails in its colour."""
    pen.body(WOOD, mix(c.ink, DARK, 0.5), box(47.5, 6, 51.5, 74))
    pen.body(c.base, c.ink, poly((51, 6), (68, 11), (51, 16)))
    pen.body(
        mix(c.base, c.light, 0.55),
        c.ink,
        blob((55, 18), (55, 40), (55, 65), (75, 65), (94, 65), (80, 42), (66, 26), steps=4),
    )
    pen.body(
        c.light,
        c.ink,
        blob((44, 22), (34, 36), (22, 52), (12, 65), (28, 65), (44, 65), (44, 44), steps=4),
    )
    pen.fill(
        c.base,
        limb(2, (58, 56), (86, 56)),
        limb(2, (58, 46), (79, 46)),
        limb(2, (22, 56), (41, 56)),
    )
    pen.body(
        c.base,
        c.ink,
        blob(
            (3, 70),
            (50, 73),
            (97, 70),
            (90, 84),
            (78, 94),
            (50, 95),
            (24, 94),
            (10, 84),
            steps=4,
        ),
    )
    pen.fill(c.shade, blob((15, 87), (50, 88), (85, 87), (77, 93), (50, 94), (25, 93), steps=4))
    pen.fill(WHITE, limb(2.4, (8, 76), (50, 78.5), (92, 76)))
    for x in (30, 50, 70):
        pen.body(GLASS, c.ink, disc(x, 83.5, 2.6))


def bicycle(pen: Pen, c: Tones) -> None:
    """Frame and rims in its colour, tyres and saddle dark."""
    dark = mix(c.ink, TYRE, 0.6)
    for x in (22, 78):
        pen.fill(dark, *(limb(5, *_circle(x, 74, 19.5)),))
        pen.fill(c.base, *(limb(2.6, *_circle(x, 74, 15.6)),))
        for x0, y0, x1, y1 in (
            (0, -14, 0, 14),
            (-14, 0, 14, 0),
            (-10, -10, 10, 10),
            (-10, 10, 10, -10),
        ):
            pen.fill((150, 156, 164), limb(1, (x + x0, 74 + y0), (x + x1, 74 + y1)))
    frame = (
        limb(5, (22, 74), (36, 46), (68, 46), (48, 75), steps=1),
        limb(5, (22, 74), (48, 75), (33, 38), steps=1),
        limb(5, (78, 74), (66, 36), steps=1),
    )
    pen.body(c.base, c.ink, *frame)
    pen.fill(c.light, limb(1.4, (38, 45.4), (66, 45.4)))
    pen.body(dark, c.ink, blob((22, 35), (30, 32), (42, 34), (42, 37), (32, 40), (24, 39)))
    pen.body(dark, c.ink, limb(4, (65, 33), (72, 29), (80, 31), (82, 37)))
    pen.body(METAL, c.ink, disc(48, 75, 5))
    pen.body(dark, c.ink, limb(2.6, (48, 75), (54, 86)), limb(3, (50, 87), (58, 87)))
    for x in (22, 78):
        pen.body(METAL, c.ink, disc(x, 74, 2.8))


def _circle(x: float, y: float, r: float) -> list[tuple[float, float]]:
    return [*oval(x, y, r, r).points, (x + r, y)]
