"""Pictures in the size in which a page shows them. For small pictures, see `scoring.thumbnails`."""

from pathlib import Path

from PIL import Image

from vlprobe.datasets import drawn
from vlprobe.errors import VlprobeError
from vlprobe.scoring import pictures, thumbnails
from vlprobe.storage import containers
from vlprobe.storage.memory import SingleFlightCache
from vlprobe.types import Picture

MAX_BYTES = 120_000  # per picture, so that six pictures stay below 1 MB as data URLs
QUALITIES = (82, 75, 60, 40)  # WebP qualities, tried until one fits
MEMORY = 64 << 20  # bytes of cached data URLs

# 18 ms for a picture of 528 pixels; Home and slides show three
_addresses = SingleFlightCache(MEMORY, len)


def large_picture(name: str, side: int, drawn_side: int = 0) -> str:
    """Return a picture as a data URL in WebP format, or "" if the picture cannot be read.

    The result is the same for all visitors. Can be called from any thread.

    Args:
        name: The picture's name, as in tables of cases and answers.
        side: Maximum length of the longer side in pixels; a picture is never enlarged.
        drawn_side: Side length of a demo scene, which is drawn again at that size; 0 means `side`.
    """
    picture = Picture.from_name(name)
    sides = side, drawn_side or side
    return _addresses.get((name, changed_at(picture), sides), lambda: _address(picture, *sides))


def changed_at(picture: Picture) -> tuple[tuple[int, int], ...]:
    """Return the modification time and the size of each file of a picture, as part of a cache key. A missing file gives
    zeros.
    """
    return tuple(map(_stamp, picture.paths))


def _stamp(path: Path) -> tuple[int, int]:
    try:
        status = containers.status(path)
    except OSError:
        return 0, 0
    return status.st_mtime_ns, status.st_size


def _address(picture: Picture, side: int, drawn_side: int) -> str:
    try:
        scene = drawn.draw(picture, drawn_side)
        image, most_pixels = (scene, drawn_side) if scene else (_opened(picture, side), side)
    except VlprobeError:
        return ""
    return thumbnails.data_address(thumbnails.encode(image, most_pixels, MAX_BYTES, QUALITIES))


def _opened(picture: Picture, side: int) -> Image.Image:
    contents = pictures.read(picture)
    if not picture.edit_key:
        return pictures.decode(contents[0], str(picture.path), least_side=side)
    return pictures.compose(picture, contents)
