"""Pictures of the mixed view as data addresses: two large ones, and small ones for the strips."""

from collections.abc import Sequence

from vlprobe.dashboard.pictures import ahead, large_picture
from vlprobe.dashboard.state import store
from vlprobe.errors import VlprobeError
from vlprobe.scoring import pictures, thumbnails
from vlprobe.types import Picture

SIDE = 528  # pixels of a large picture: two for each that it takes on a page


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
            large_picture(name, SIDE) if name in self._large else by_name[name]
            for name in self._places
        ]


def prepare(names: Sequence[str]) -> None:
    """Makes large pictures that will be shown next, while a person looks at others."""
    for name in names:
        ahead(large_picture, name, SIDE)


def size(name: str) -> tuple[int, int]:
    """Width and height of a picture in pixels; a square where it cannot be read."""
    try:
        return pictures.open_picture(Picture.from_name(name)).size
    except VlprobeError:
        return (1, 1)
