"""Pictures as large as Home shows them, as data addresses; drawn scenes are drawn at that size."""

import base64
import io

from PIL import Image

from vlprobe.datasets import drawn
from vlprobe.errors import InvalidInput
from vlprobe.scoring import pictures
from vlprobe.storage.memory import SingleFlightCache
from vlprobe.types import Picture

DRAWN_SIDE = 672  # pixels of a drawn scene: three times those that models see
SIDE = 860  # pixels of a photograph, at most: twice those of its place on the page
QUALITY = 82  # of WebP
MEMORY = 24 << 20  # bytes of addresses that are kept

_addresses = SingleFlightCache(MEMORY, len)


def address(name: str) -> str:
    """The picture of this name as a data address; "" where it cannot be read."""
    picture = Picture.from_name(name)
    return _addresses.get((name, _times(picture)), lambda: _encoded(picture))


def _times(picture: Picture) -> tuple[int, ...]:
    """When the files of a picture were last written; 0 where there is none."""
    paths = [picture.path] if picture.edit is None else [picture.path, picture.edit.partner]
    return tuple(path.stat().st_mtime_ns if path.exists() else 0 for path in paths)


def _encoded(picture: Picture) -> str:
    try:
        image = _opened(picture)
    except InvalidInput:
        return ""
    buffer = io.BytesIO()
    image.save(buffer, "WEBP", quality=QUALITY, method=2)
    return f"data:image/webp;base64,{base64.b64encode(buffer.getvalue()).decode()}"


def _opened(picture: Picture) -> Image.Image:
    if scene := drawn.draw(picture, DRAWN_SIDE):
        return scene
    contents = pictures.read(picture)
    if picture.edit is None:
        image = pictures.decode(contents[0], str(picture.path), least_side=SIDE)
    else:
        image = pictures.compose(picture, contents)
    image.thumbnail((SIDE, SIDE), Image.Resampling.LANCZOS, reducing_gap=3.0)
    return image
