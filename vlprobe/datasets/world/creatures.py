"""The five living things of the demo world, facing right, feet on the line y = 95 of a 100 x 100
square.
"""

from vlprobe.datasets.world.palette import DARK, EYE, LEATHER, PINK, SKIN, WHITE, Tones
from vlprobe.datasets.world.pen import Pen, blob, box, disc, limb, mix, oval, poly

HAIR = (74, 48, 32)
BEAK = (248, 170, 42)


def dog(pen: Pen, c: Tones) -> None:
    """Side view with a hanging ear, a raised tail and a collar."""
    collar = (44, 120, 214) if c.name in ("red", "orange", "pink") else (224, 52, 48)
    pen.body(c.shade, c.ink, limb(9, (34, 66), (35, 91)), limb(9, (66, 66), (65, 91)))
    pen.body(
        c.base,
        c.ink,
        limb(7, (22, 56), (11, 46), (9, 28)),
        blob(
            (17, 62),
            (22, 49),
            (40, 47),
            (60, 46),
            (72, 52),
            (75, 64),
            (68, 74),
            (44, 72),
            (24, 75),
        ),
        limb(10.5, (25, 66), (24, 90), (27, 91)),
        limb(10.5, (72, 62), (72, 90), (75, 91)),
        blob(
            (60, 54),
            (58, 34),
            (66, 20),
            (80, 19),
            (88, 30),
            (97, 36),
            (97, 46),
            (86, 50),
            (76, 58),
            (66, 62),
        ),
    )
    pen.fill(c.light, oval(70, 63, 4, 6), oval(92, 43, 4, 2.5))
    pen.body(collar, c.ink, limb(4, (62, 57), (70, 61), (79, 55)))
    pen.body((252, 206, 60), c.ink, disc(72, 64, 2.4))
    pen.body(
        c.shade,
        c.ink,
        blob((60, 22), (69, 19), (72, 28), (70, 44), (64, 51), (57, 46), (56, 33)),
    )
    pen.fill(DARK, oval(95.5, 36, 4.2, 3.6), limb(1.5, (96, 44), (90, 46), (86, 44)))
    pen.fill(WHITE, disc(81, 31, 4))
    pen.fill(EYE, disc(82, 31.4, 2.7))
    pen.fill(WHITE, disc(82.8, 30.4, 0.9))


def cat(pen: Pen, c: Tones) -> None:
    """Sitting, seen from the front, its tail around the right side."""
    pen.body(c.shade, c.ink, limb(8, (66, 88), (86, 86), (91, 70), (84, 56)))
    pen.body(
        c.base,
        c.ink,
        blob((36, 48), (64, 48), (72, 66), (76, 86), (66, 95), (34, 95), (24, 86), (28, 66)),
        poly((26, 34), (25, 5), (46, 19)),
        poly((74, 34), (75, 5), (54, 19)),
        oval(50, 34, 27, 22),
    )
    pen.fill(PINK, poly((30, 24), (29, 12), (39, 19)), poly((70, 24), (71, 12), (61, 19)))
    pen.fill(
        c.light,
        blob((50, 56), (60, 64), (58, 82), (50, 86), (42, 82), (40, 64)),
        oval(50, 43, 11, 8),
    )
    for x in (42, 58):
        pen.body(
            c.base,
            c.ink,
            blob((x - 6, 90), (x - 4, 82), (x + 4, 82), (x + 6, 90), (x + 4, 95), (x - 4, 95)),
        )
    for x in (39, 61):
        pen.body((178, 222, 80), c.ink, oval(x, 33, 5.4, 6.2))
        pen.fill(EYE, oval(x, 33, 2.2, 5.2))
        pen.fill(WHITE, disc(x + 1.2, 30.8, 1.2))
    pen.fill(
        c.ink,
        limb(1.6, (50, 42), (49, 46), (44, 47)),
        limb(1.6, (50, 42), (51, 46), (56, 47)),
    )
    pen.fill((238, 112, 128), poly((46.5, 39.5), (53.5, 39.5), (50, 43.5)))
    for side in (-1, 1):
        for y, drop in ((40, -2), (43.5, 1)):
            pen.fill(c.ink, limb(1.1, (50 + 13 * side, y), (50 + 34 * side, y + drop)))


def horse(pen: Pen, c: Tones) -> None:
    """Side view with a long neck, a mane and a full tail."""
    hoof = (62, 52, 48) if c.name != "black" else (112, 112, 120)
    for x in (36, 66):
        pen.body(c.shade, c.ink, limb(8, (x, 62), (x + 1, 90)))
        pen.body(hoof, c.ink, box(x - 4, 89, x + 6, 95, 1.5))
    pen.body(
        c.shade,
        c.ink,
        blob((20, 50), (12, 52), (5, 66), (4, 84), (10, 80), (16, 70), (21, 60)),
    )
    pen.body(
        c.base,
        c.ink,
        blob(
            (17, 58),
            (22, 47),
            (40, 46),
            (58, 47),
            (72, 46),
            (77, 56),
            (72, 68),
            (58, 69),
            (42, 69),
            (24, 70),
        ),
        limb(10, (26, 60), (24, 74), (26, 88)),
        limb(10, (71, 58), (73, 74), (72, 88)),
        blob(
            (60, 54),
            (64, 36),
            (70, 18),
            (78, 11),
            (85, 15),
            (90, 24),
            (97, 33),
            (94, 40),
            (88, 40),
            (80, 36),
            (77, 56),
        ),
        poly((74, 14), (75, 3), (82, 12)),
    )
    for x in (26, 72):
        pen.body(hoof, c.ink, box(x - 6, 88, x + 6, 95, 1.5))
    pen.body(
        c.shade,
        c.ink,
        blob(
            (76, 6),
            (79, 14),
            (72, 22),
            (69, 34),
            (66, 46),
            (60, 52),
            (58, 44),
            (62, 28),
            (67, 13),
        ),
    )
    pen.fill(c.light, oval(91, 35, 4, 2.6, 40), oval(46, 53, 16, 3))
    pen.fill(EYE, disc(83, 22.5, 2.6), disc(93.5, 34, 1.1))
    pen.fill(WHITE, disc(83.8, 21.6, 0.9))


def bird(pen: Pen, c: Tones) -> None:
    """Side view, standing, with a folded wing and a fanned tail."""
    for x in (46, 57):
        pen.body(
            BEAK,
            c.ink,
            limb(2.4, (x, 78), (x, 92)),
            limb(2.4, (x - 5, 94), (x, 92), (x + 7, 94)),
        )
    pen.body(c.shade, c.ink, poly((26, 58), (2, 50), (3, 58), (1, 62), (6, 66), (4, 72), (28, 72)))
    pen.body(BEAK, c.ink, poly((86, 29), (100, 36), (86, 41)))
    pen.body(
        c.base,
        c.ink,
        blob(
            (20, 62),
            (40, 50),
            (54, 40),
            (62, 22),
            (76, 15),
            (88, 22),
            (90, 36),
            (84, 50),
            (80, 68),
            (66, 81),
            (44, 82),
            (27, 75),
        ),
    )
    pen.fill(c.light, blob((84, 52), (79, 67), (66, 78), (58, 78), (66, 66), (74, 52)))
    pen.body(
        c.shade,
        c.ink,
        blob((62, 50), (66, 60), (54, 73), (36, 74), (14, 70), (32, 62), (46, 52)),
    )
    pen.fill(
        c.base,
        limb(1.8, (54, 56), (44, 63), (32, 67)),
        limb(1.8, (58, 63), (48, 69), (38, 71)),
    )
    pen.fill(WHITE, disc(78, 29, 4.6))
    pen.fill(EYE, disc(79, 29.2, 3.1))
    pen.fill(WHITE, disc(80, 28, 1))


def person(pen: Pen, c: Tones) -> None:
    """Standing, seen from the front; the colour is that of the clothes."""
    edge = mix(c.ink, DARK, 0.3)
    for side in (-1, 1):
        pen.body(
            LEATHER,
            edge,
            blob(
                (50 + 3 * side, 91),
                (50 + 8 * side, 90),
                (50 + 16 * side, 94),
                (50 + 3 * side, 96),
            ),
        )
        pen.body(SKIN, edge, disc(50 + 22 * side, 62, 4.2))
    pen.body(
        c.shade,
        edge,
        poly((39, 58), (61, 58), (62, 92), (52.5, 92), (50, 68), (47.5, 92), (38, 92)),
    )
    pen.body(
        c.base,
        edge,
        blob((40, 35), (60, 35), (65, 42), (63, 62), (50, 64), (37, 62), (35, 42)),
        limb(9, (37, 41), (30, 50), (28.5, 58)),
        limb(9, (63, 41), (70, 50), (71.5, 58)),
    )
    pen.fill(
        c.shade,
        limb(1.6, (36.5, 48), (36, 60)),
        limb(1.6, (63.5, 48), (64, 60)),
        box(37.5, 58.4, 62.5, 61),
    )
    pen.body(SKIN, edge, box(45.5, 28, 54.5, 37, 3))
    pen.fill(c.light, limb(2, (44, 36.5), (50, 40.5), (56, 36.5)))
    pen.body(HAIR, edge, blob((33, 22), (36, 8), (50, 3), (64, 8), (67, 22), (62, 28), (38, 28)))
    pen.body(
        SKIN,
        edge,
        blob((36, 19), (40, 13), (52, 14), (62, 13), (64, 19), (62, 27), (50, 33), (38, 27)),
    )
    pen.fill(HAIR, blob((36, 17), (42, 9), (58, 9), (64, 17), (56, 15), (46, 14)))
    for x in (44.5, 55.5):
        pen.fill(EYE, oval(x, 21, 1.7, 2.2))
        pen.fill((240, 160, 140), oval(x + (x - 50) * 0.75, 25.5, 2.4, 1.5))
    pen.fill((176, 84, 70), limb(1.5, (46.5, 26.5), (50, 28.3), (53.5, 26.5)))
