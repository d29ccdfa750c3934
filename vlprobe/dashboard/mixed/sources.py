"""Pictures of the mixed view as data addresses: two large ones, and small ones for the strips."""

from collections.abc import Sequence

from vlprobe.dashboard.pictures import large_picture
from vlprobe.dashboard.state import store
from vlprobe.errors import VlprobeError
from vlprobe.scoring import pictures, thumbnails
from vlprobe.types import Picture
from vlprobe.views.mixed.case import MixedCase

SIDE = 528  # pixels of a large picture: two for each that it takes on a page


class Sources:
    """Collects the pictures that a page shows, each once."""

    def __init__(self, large: Sequence[str]) -> None:
        self._large = set(large)
        self._places: dict[str, int] = {}

    def place(self, name: str) -> int:
        """Return the position that a picture will have in `addresses`; -1 if it has no name."""
        return self._places.setdefault(name, len(self._places)) if name else -1

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the pictures, in the order of their places."""
        return tuple(self._places)

    def addresses(self) -> list[str]:
        """The pictures, in the order of their places; "" of one that cannot be read."""
        small = [name for name in self._places if name not in self._large]
        by_name = thumbnails.addresses(store().root, small)
        return [
            large_picture(name, SIDE) if name in self._large else by_name[name]
            for name in self._places
        ]


def prepare(case: MixedCase) -> None:
    """Make the pictures that a case shows, before anyone views it. For any thread."""
    for name in filter(None, (case.right, case.partner)):
        large_picture(name, SIDE)
    candidates = (*case.fronts.clean, *case.fronts.whole) if case.fronts else ()
    small = [candidate.mixture or candidate.picture for candidate in candidates]
    thumbnails.addresses(store().root, list(filter(None, small)))


def size(name: str) -> tuple[int, int]:
    """Width and height of a picture in pixels; a square where it cannot be read."""
    try:
        return pictures.open_picture(Picture.from_name(name)).size
    except VlprobeError:
        return (1, 1)
