"""Pictures of one color each: `swatches`, or `swatches:N` for the first N."""

from PIL import Image

from vlprobe.datasets.validation import validated
from vlprobe.types import Item, Picture

COLORS = ("red", "green", "blue", "white")


def load(name, cache):
    folder = cache / "swatches"
    folder.mkdir(parents=True, exist_ok=True)
    items = []
    for color in COLORS[: int(name.partition(":")[2] or len(COLORS))]:
        path = folder / f"{color}.png"
        Image.new("RGB", (32, 32), color).save(path)
        items.append(Item(color, Picture(path), (f"A {color} square is on the wall.",)))
    return validated(name, items, cache)
