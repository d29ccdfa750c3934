"""Thumbnails of pictures for the dashboard pages. They are never cropped and have no camera metadata.

Thumbnails are stored (`storage.thumbnails`) under the digest of the file or, for a mixed picture, a digest of both
files and the edit. Pictures are opened with the same checks as for a model.
"""

import base64
import contextlib
import functools
import io
import os
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from PIL import Image

from vlprobe.errors import InvalidInput
from vlprobe.scoring import pictures
from vlprobe.storage import access, containers, shipped
from vlprobe.storage import thumbnails as thumbnail_store
from vlprobe.storage.memory import SingleFlightCache
from vlprobe.types import Picture

QUALITIES = (75, 60, 45, 30, 15, 5, 0)  # WebP qualities, tried in this order until one fits
MEMORY = 48 << 20  # bytes of thumbnails in a process: about 6,000

# With a read-only cache, the 48 pictures on a page would be made again with each click, which takes 1.5 s.
_memory = SingleFlightCache(MEMORY, len)
# Pillow decodes without holding the interpreter's lock; each of the 48 pictures takes 30 ms.
_makers = ThreadPoolExecutor(min(4, os.cpu_count() or 1))


def encode(
    image: Image.Image,
    side: int = thumbnail_store.SIDE,
    max_bytes: int = thumbnail_store.MAX_BYTES,
    qualities: Sequence[int] = QUALITIES,
) -> bytes:
    """Encode a picture as WebP within a maximum side length and file size, keeping its aspect
    ratio. Smaller pictures keep their size. The defaults are the limits for thumbnails.
    """
    small = image.copy()
    while True:
        small.thumbnail((side, side), Image.Resampling.LANCZOS, reducing_gap=3.0)
        for quality in qualities:
            buffer = io.BytesIO()
            small.save(buffer, "WEBP", quality=quality, method=2)
            if buffer.tell() <= max_bytes:
                return buffer.getvalue()
        side = side * 3 // 4


def make(picture: Picture, contents: tuple[bytes, ...]) -> bytes:
    """Make the thumbnail of a picture from the contents that `pictures.read` returns. Raises InvalidInput."""
    if not picture.edit_key:
        name = str(picture.path)
        return encode(pictures.decode(contents[0], name, least_side=2 * thumbnail_store.SIDE))
    return encode(pictures.compose(picture, contents))


def keep(root: Path, picture: Picture, contents: tuple[bytes, ...]) -> None:
    """Make and store the thumbnail of a picture that a run has read. Mixed pictures, pictures that cannot be
    opened, and pictures that already have a thumbnail are skipped.
    """
    if picture.edit_key:
        return
    key = pictures.digest(contents[0])
    if not thumbnail_store.holds(root, key):
        with contextlib.suppress(InvalidInput):  # the request for the picture reports it
            thumbnail_store.write(root, key, make(picture, contents))


def thumbnail(root: Path, name: str) -> bytes:
    """Return the thumbnail of a picture as WebP. A new thumbnail is stored if possible.

    Args:
        root: The cache folder.
        name: The name of the picture in the case and answer tables.

    Raises:
        InvalidInput: The picture is missing, damaged or outside the readable folders.
    """
    picture = Picture.from_name(name)
    paths, place = picture.paths, (root, name)
    has_file = (path.is_absolute() or containers.is_file(path) for path in paths)
    if place in _memory or not any(has_file):  # a drawn scene, which has no file
        key = name_key(picture)
        return _memory.get(
            place, lambda: shipped.thumbnail(key) or _stored_or_made(root, picture, key)
        )
    for path in paths:
        access.refuse_outside(path)
    key = _key(picture, digests_of(root, paths))
    return _memory.get((root, key), lambda: _stored_or_made(root, picture, key))


def address(root: Path, name: str) -> str:
    """Return the thumbnail of a picture as a data URL for an <img>. Raises InvalidInput like `thumbnail`."""
    return data_address(thumbnail(root, name))


def data_address(content: bytes) -> str:
    """Encode a WebP image as a data URL for an <img>."""
    return f"data:image/webp;base64,{base64.b64encode(content).decode()}"


def addresses(root: Path, names: Iterable[str]) -> dict[str, str]:
    """Return the thumbnails of pictures as data URLs, by name. The URL is "" if a picture cannot be read."""
    distinct = list(dict.fromkeys(names))
    with contextlib.suppress(InvalidInput, OSError):  # reported for each picture below
        readable = [Picture.from_name(name).path for name in distinct]
        files = [path for path in readable if path.is_absolute() and containers.is_file(path)]
        digests_of(root, files)  # reads new files in parallel
    sources = _makers.map(functools.partial(_address_or_none, root), distinct)
    return dict(zip(distinct, sources, strict=True))


def digests_of(root: Path, paths: Sequence[Path]) -> list[str]:
    """Return a digest of the bytes in each file. Only new or changed files are read. Raises InvalidInput."""
    for path in paths:
        try:
            containers.status(path)
        except (OSError, ValueError):
            pictures.read_bytes(path)  # reports the problem
            raise InvalidInput(f"Image '{path}' cannot be read. Check the file.") from None
    return pictures.file_digests(paths, root)


def _key(picture: Picture, digests: Sequence[str]) -> str:
    if not picture.edit_key:
        return digests[0]
    fields = " ".join([*digests, picture.edit_key])
    return pictures.digest(fields.encode()) + thumbnail_store.MIXED


def _stored_or_made(root: Path, picture: Picture, key: str) -> bytes:
    content = thumbnail_store.read(root, key)
    if content is None:
        content = make(picture, pictures.read(picture))
        thumbnail_store.write(root, key, content)
    return content


def name_key(picture: Picture) -> str:
    """Return the thumbnail key for a drawn scene in the bundled results, without reading a file."""
    return pictures.digest(picture.name.encode()) + (
        thumbnail_store.MIXED if picture.edit_key else ""
    )


def _address_or_none(root: Path, name: str) -> str:
    try:
        return address(root, name)
    except InvalidInput:
        return ""
