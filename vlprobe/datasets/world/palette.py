"""The eleven colours of the demo world, each with a shade, a light and an ink for outlines."""

from dataclasses import dataclass

from vlprobe.datasets.world.pen import Color, mix

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
    """One colour as a thing wears it."""

    name: str
    base: Color
    shade: Color
    light: Color
    ink: Color


def tones(name: str) -> Tones:
    """Black and white get tones of their own, so that their parts stay visible."""
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
