"""Transparent pictures of single things, cached by object, colour, size and direction."""

import functools

import numpy as np
from PIL import Image, ImageFilter, ImageOps

from vlprobe.datasets.world.creatures import bird, cat, dog, horse, person
from vlprobe.datasets.world.palette import tones
from vlprobe.datasets.world.pen import Pen
from vlprobe.datasets.world.vehicles import bicycle, boat, bus, car, train, truck

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


@functools.lru_cache(maxsize=6000)
def sprite(name: str, color: str, size: int, faces_left: bool) -> Image.Image:
    """The thing in a square of `size` pixels, with a thin pale rim that lifts it off any
    background.
    """
    if faces_left:
        return ImageOps.mirror(sprite(name, color, size, False))
    return _drawn(name, color, Pen(size), 1)


@functools.lru_cache(maxsize=32)  # a scene shows a thing up to five times; they are large
def large_sprite(name: str, color: str, size: int, faces_left: bool, scale: int) -> Image.Image:
    """Return `sprite` in a square of `size * scale` pixels."""
    image = _drawn(name, color, Pen(size * scale, larger=_LARGER), scale)
    return ImageOps.mirror(image) if faces_left else image


def _drawn(name: str, color: str, pen: Pen, rim: int) -> Image.Image:
    """The thing as the pen draws it, facing right, with a rim of `rim` pixels."""
    _DRAW[name](pen, tones(color))
    drawn = pen.image
    widened = _widened(drawn.getchannel("A"), rim)
    rim_alpha = widened.point([alpha * 150 // 255 for alpha in range(256)])
    below = Image.new("RGBA", drawn.size, (255, 255, 255, 0))
    below.putalpha(rim_alpha)
    return Image.alpha_composite(below, drawn)


def _widened(alpha: Image.Image, rim: int) -> Image.Image:
    """The largest value within `rim` pixels either way: Pillow's MaxFilter, by rows and then by
    columns where it is wide, which takes a tenth of the time.
    """
    if rim == 1:
        return alpha.filter(ImageFilter.MaxFilter(3))
    pixels = np.asarray(alpha)
    for _ in range(2):
        padded = np.pad(pixels, ((rim, rim), (0, 0)))
        shifted = [padded[start : start + len(pixels)] for start in range(2 * rim + 1)]
        pixels = np.maximum.reduce(shifted).T
    return Image.fromarray(np.ascontiguousarray(pixels))
