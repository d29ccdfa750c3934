"""Pictures as large as a page shows them; small ones are in `scoring.thumbnails`."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from PIL import Image

from vlprobe.datasets import drawn
from vlprobe.errors import VlprobeError
from vlprobe.scoring import pictures, thumbnails
from vlprobe.storage import containers
from vlprobe.storage.memory import SingleFlightCache
from vlprobe.types import Picture

MAX_BYTES = 120_000  # of one: six of them, as data addresses, stay below 1 MB
QUALITIES = (82, 75, 60, 40)  # of WebP, until one fits
MEMORY = 64 << 20  # bytes of addresses that are kept

_addresses = SingleFlightCache(
    MEMORY, len
)  # 18 ms a picture of 528 pixels; Home and slides show three
_ahead = ThreadPoolExecutor(
    1
)  # 46 ms of CPU for the next mixture, while a person looks at this one


def large_picture(name: str, side: int, drawn_side: int = 0) -> str:
    """A picture as the data address of a WebP; "" if it cannot be read.

    It needs no visitor and may be called in any thread.

    Args:
        name: The picture's, as tables of cases and answers have it.
        side: Maximum pixels of its longer side; none is made larger than its file.
        drawn_side: Drawn side of a scene of the demo, which is drawn again at this size; 0: as large as `side`.
    """
    picture = Picture.from_name(name)
    sides = side, drawn_side or side
    return _addresses.get((name, changed_at(picture), sides), lambda: _address(picture, *sides))


def ahead(task: Callable[..., object], *arguments: object) -> None:
    """Prepare the next expected request while the user views something else; requests run in turn."""
    _ahead.submit(task, *arguments)


def changed_at(picture: Picture) -> tuple[int, ...]:
    """Return when the picture's files were last written, to recognize outdated cached data; 0 without a file."""
    return tuple(
        containers.status(path).st_mtime_ns if containers.is_file(path) else 0
        for path in picture.paths
    )


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
