"""Transparent pictures of single things, cached by object, colour, size and direction."""

import functools

from PIL import Image, ImageFilter, ImageOps

from vlprobe.datasets.world.creatures import bird, cat, dog, horse, person
from vlprobe.datasets.world.palette import tones
from vlprobe.datasets.world.pen import Pen
from vlprobe.datasets.world.vehicles import bicycle, boat, bus, car, train, truck

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
    pen = Pen(size)
    _DRAW[name](pen, tones(color))
    drawn = pen.image
    rim = (
        drawn.getchannel("A")
        .filter(ImageFilter.MaxFilter(3))
        .point([alpha * 150 // 255 for alpha in range(256)])
    )
    below = Image.new("RGBA", drawn.size, (255, 255, 255, 0))
    below.putalpha(rim)
    return Image.alpha_composite(below, drawn)
