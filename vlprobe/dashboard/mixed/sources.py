"""Pictures of the mixed view as data addresses: two large ones, and small ones for the strips."""

import io
import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

from vlprobe.dashboard.state import store
from vlprobe.datasets import drawn
from vlprobe.errors import VlprobeError
from vlprobe.render.html.cards import inline
from vlprobe.scoring import pictures, thumbnails
from vlprobe.storage.memory import SingleFlightCache
from vlprobe.types import Picture

SIDE = 528  # pixels of a large picture: two for each that it takes on a page
KEPT_BYTES = 24 << 20  # of large pictures, as text

_large = SingleFlightCache(KEPT_BYTES, len)
_ahead = ThreadPoolExecutor(1)


class Sources:
    """Collects the pictures that a page shows, each once."""

    def __init__(self, large: Sequence[str]) -> None:
        self._large = set(large)
        self._places: dict[str, int] = {}

    def place(self, name: str) -> int:
        """Where a picture will stand in `addresses`; -1 where it has no name."""
        return self._places.setdefault(name, len(self._places)) if name else -1

    def addresses(self) -> list[str]:
        """The pictures, in the order of their places; "" of one that cannot be read."""
        small = [name for name in self._places if name not in self._large]
        by_name = thumbnails.addresses(store().root, small)
        return [
            large_address(name) if name in self._large else by_name[name] for name in self._places
        ]


def large_address(name: str) -> str:
    """A picture of up to SIDE pixels a side; "" where it cannot be read."""
    picture = Picture.from_name(name)
    try:
        status = os.stat(picture.path)
        version = status.st_size, status.st_mtime_ns
    except OSError:
        version = 0, 0
    return _large.get((name, version), lambda: _drawn_or_opened(name))


def prepare(names: Sequence[str]) -> None:
    """Makes large pictures that will be shown next, while a person looks at others."""
    for name in names:
        _ahead.submit(large_address, name)


def _drawn_or_opened(name: str) -> str:
    path = Picture.from_name(name).path
    try:
        image = drawn.draw(Picture(path), SIDE)
        if image is None:
            image = pictures.decode(pictures.read_bytes(path), str(path), least_side=SIDE)
    except VlprobeError:
        return ""
    image.thumbnail((SIDE, SIDE))
    buffer = io.BytesIO()
    image.save(buffer, "JPEG", quality=86)
    return inline(buffer.getvalue())


def size(name: str) -> tuple[int, int]:
    """Width and height of a picture in pixels; a square where it cannot be read."""
    try:
        return pictures.open_picture(Picture.from_name(name)).size
    except VlprobeError:
        return (1, 1)
