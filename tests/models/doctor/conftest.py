"""Thirty-two pictures of a colored square, used to test the model checks."""

from types import SimpleNamespace

import pytest
from PIL import Image, ImageDraw

from vlprobe.types import Item, Picture

COLORS = ("red", "green", "blue", "yellow", "black", "white", "purple", "orange")
PLACES = {
    "left": (2, 10, 14, 22),
    "right": (18, 10, 30, 22),
    "top": (10, 2, 22, 14),
    "bottom": (10, 18, 22, 30),
}


@pytest.fixture(scope="session")
def data(tmp_path_factory: pytest.TempPathFactory) -> SimpleNamespace:
    """Draw thirty-two pictures of a colored square at one of four places, each with its caption."""
    folder = tmp_path_factory.mktemp("squares")
    items = []
    for color in COLORS:
        for place, box in PLACES.items():
            image = Image.new("RGB", (32, 32), "gray")
            ImageDraw.Draw(image).rectangle(box, fill=color)
            path = folder / f"{color}-{place}.png"
            image.save(path)
            items.append(Item(path.stem, Picture(path), (f"A {color} square at the {place}.",)))
    return SimpleNamespace(name="squares", digest="d" * 32, items=items)
