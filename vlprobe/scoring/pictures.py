"""Functions that read pictures and check image files."""

import functools
import hashlib
import io
import os
import struct
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Literal

import numpy as np
from PIL import ExifTags, Image, UnidentifiedImageError

from vlprobe import registry
from vlprobe.errors import InvalidInput
from vlprobe.perturb import mix, picture_changes
from vlprobe.storage import containers, files, memo
from vlprobe.storage.access import refuse_outside
from vlprobe.types import Picture

# Just under the size at which PIL begins to warn about a decompression bomb
MAX_PIXELS = 89_000_000
# EPS is not allowed, for example, because PIL passes it to Ghostscript
FORMATS = ("JPEG", "PNG", "WEBP", "GIF", "BMP", "TIFF")
# Errors that PIL's decoders for these formats raised on 27,000 files with random bytes changed or cut off.
DAMAGE = (OSError, SyntaxError, ValueError, TypeError, EOFError, struct.error)
TURNS: dict[object, Image.Transpose] = {  # turns a picture upright, by its EXIF orientation
    2: Image.Transpose.FLIP_LEFT_RIGHT,
    3: Image.Transpose.ROTATE_180,
    4: Image.Transpose.FLIP_TOP_BOTTOM,
    5: Image.Transpose.TRANSPOSE,
    6: Image.Transpose.ROTATE_270,
    7: Image.Transpose.TRANSVERSE,
    8: Image.Transpose.ROTATE_90,
}
BLOCK_PIXELS = 1 << 20  # pixels that are converted at a time
DIGEST_MEMO = "picture-digests.json"
# Most recently used files in the cache, or all files in a single larger call
MOST_DIGESTS = 200_000


def read_bytes(path: Path) -> bytes:
    """Read the bytes of an image file. Synthetic scenes in the bundled results have no file and are drawn instead.

    Raises InvalidInput if the file does not exist, is empty, or may not be read.
    """
    if not path.is_absolute() and (drawing := registry.redrawn(path)):
        return drawing
    refuse_outside(path)
    try:
        if box := containers.crop_box(path):
            return _cropped(path, box)
        content = containers.read(path)
        if content is None:
            content = files.read(path)
    except FileNotFoundError:
        raise InvalidInput(
            f"Image '{path}' does not exist. Add the file or remove its row from the dataset."
        ) from None
    except OSError as error:
        raise InvalidInput(
            f"Image '{path}' cannot be read ({error.strerror}). Check the file and its permissions."
        ) from None
    if not content:
        raise InvalidInput(
            f"Image '{path}' is empty (0 bytes). Download it again or remove its row."
        )
    return content


def _cropped(path: Path, box: tuple[int, int, int, int]) -> bytes:
    """Crop a picture and return it as BMP, which has the same bytes in every version of PIL."""
    left, top, width, height = box
    image = decode(read_bytes(path.parent), str(path.parent))
    edges = (
        max(left, 0),
        max(top, 0),
        min(left + width, image.width),
        min(top + height, image.height),
    )
    if edges[0] >= edges[2] or edges[1] >= edges[3]:
        raise InvalidInput(
            f"The box of '{path}' is outside the picture, which has {image.width} x "
            f"{image.height} pixels. Expected the left, top, width and height of a box within "
            "the picture."
        )
    return encode(image.crop(edges), "BMP")


def encode(image: Image.Image, file_format: Literal["PNG", "BMP"]) -> bytes:
    """Encode an image in a lossless file format."""
    buffer = io.BytesIO()
    image.save(buffer, file_format)
    return buffer.getvalue()


def decode(
    content: bytes, name: str, least_side: int = 0, most_pixels: int = MAX_PIXELS
) -> Image.Image:
    """Decode the first frame of an image file to an upright RGB image. Transparent areas become
    white, and 16 bits per channel are scaled to 8.

    Only thumbnails are decoded at a reduced scale, because scaling changes pixels and scores.

    Args:
        content: The bytes of the file.
        name: The name of the file in error messages.
        least_side: The minimum side in pixels of a JPEG decoded at a reduced scale, or 0 for full size.
        most_pixels: The maximum number of pixels.

    Raises:
        InvalidInput: The file is not an image, is damaged, or has more than `most_pixels` pixels.
    """
    try:
        image = Image.open(io.BytesIO(content), formats=FORMATS)
        if image.width * image.height > most_pixels:
            raise Image.DecompressionBombError(f"{image.width:,} x {image.height:,} pixels")
        if least_side:
            image.draft("RGB", (least_side, least_side))
        image.load()
        turn = TURNS.get(_orientation(image))
        return _rgb(image if turn is None else image.transpose(turn), name)
    except UnidentifiedImageError:
        raise InvalidInput(
            f"'{name}' is not an image that vlprobe can read. Expected one of: {', '.join(FORMATS)}."
        ) from None
    except (Image.DecompressionBombError, Image.DecompressionBombWarning) as error:
        raise InvalidInput(
            f"Image '{name}' is too large ({error}). Expected at most {most_pixels:,} "
            "pixels; resize it first."
        ) from None
    except DAMAGE as error:
        raise InvalidInput(
            f"Image '{name}' is damaged ({error}). Download it again or remove its row."
        ) from None


def _orientation(image: Image.Image) -> object:
    """Read the EXIF orientation, 1 to 8. Return None if it is absent or the EXIF block is damaged.

    `ImageOps.exif_transpose` is not used because it rewrites the entire EXIF block and fails on unusual camera tags.
    """
    try:
        return image.getexif().get(ExifTags.Base.Orientation)
    except DAMAGE:
        return None


def _rgb(image: Image.Image, name: str) -> Image.Image:
    """Convert an image to RGB in blocks of rows, because the intermediate steps take up to 20 bytes per pixel."""
    if image.mode.startswith(("I", "F")):
        convert = functools.partial(_eight_bit, name=name)
    elif image.has_transparency_data:
        convert = _on_white
    else:
        return image.convert("RGB")
    converted = Image.new("RGB", image.size)
    n_rows = max(1, BLOCK_PIXELS // image.width)
    for top in range(0, image.height, n_rows):
        block = image.crop((0, top, image.width, min(top + n_rows, image.height)))
        converted.paste(convert(block), (0, top))
    return converted


def _on_white(image: Image.Image) -> Image.Image:
    white = Image.new("RGBA", image.size, "white")
    return Image.alpha_composite(white, image.convert("RGBA")).convert("RGB")


def _eight_bit(image: Image.Image, name: str) -> Image.Image:
    values = np.asarray(image)
    if image.mode == "F" or values.min() < 0 or values.max() > 65535:
        raise InvalidInput(
            f"Image '{name}' has more than 16 bits per channel (PIL mode {image.mode}). "
            "Expected 8 or 16 bits; convert it."
        )
    return Image.fromarray(np.rint(values / 257).astype(np.uint8)).convert("RGB")


def read(picture: Picture) -> tuple[bytes, ...]:
    """Read the file of a picture and, if the picture is mixed, the file of its partner. Raises InvalidInput."""
    return tuple(map(read_bytes, picture.paths))


def compose(picture: Picture, contents: tuple[bytes, ...]) -> Image.Image:
    """Build a picture from the file contents that `read` returns, and apply its edit. Raises InvalidInput."""
    image = decode(contents[0], str(picture.path))
    if picture.change:
        return picture_changes.apply(image, picture.change)
    if picture.edit is None:
        return image
    return mix.apply(image, decode(contents[1], str(picture.edit.partner)), picture.edit)


def content_key(contents: Sequence[bytes], edit_key: str = "") -> bytes:
    """Return 16 bytes that identify a picture by its file contents and `Picture.edit_key`, not by its path."""
    hasher = hashlib.blake2b(digest_size=16)
    for content in contents:
        hasher.update(hashlib.blake2b(content).digest())
    hasher.update(edit_key.encode())
    return hasher.digest()


def open_picture(picture: Picture) -> Image.Image:
    """Open a picture as an upright RGB image with its edit applied. Raises InvalidInput."""
    return compose(picture, read(picture))


def digest(content: bytes) -> str:
    """Return the digest of `content` as 32 hexadecimal digits."""
    return hashlib.blake2b(content, digest_size=16).hexdigest()


def file_digests(paths: Sequence[Path], cache: Path) -> list[str]:
    """Return a digest of the bytes in each file. Files that have not changed since an earlier call
    (`storage.memo`) are not read again.

    Args:
        paths: Existing files.
        cache: The folder with the digests from earlier calls; a damaged memo is rebuilt.

    Raises:
        InvalidInput: A file cannot be read.
    """
    began = time.time_ns()
    file = cache / DIGEST_MEMO
    keys = [os.path.abspath(path) for path in paths]
    memory = memo.read(file)
    rows = {key: memory[key] for key in keys if _is_row(memory.get(key))}
    stamps = dict(zip(keys, map(_stamp, keys), strict=True))
    unknown = {
        key: path
        for key, path in zip(keys, paths, strict=True)
        if not memo.is_used() or rows.get(key, [])[:-1] != stamps[key]
    }
    digests = {key: rows[key][-1] for key in keys if key not in unknown}
    if unknown:
        with ThreadPoolExecutor() as pool:  # two threads: 150 photographs take 36 ms, not 85 ms
            fresh = pool.map(_file_digest, unknown.values())
            digests |= zip(unknown, fresh, strict=True)
        settled = {
            key: [*stamps[key], digests[key]] for key in keys if memo.is_settled(stamps[key], began)
        }
        others = {key: row for key, row in memory.items() if key not in stamps and _is_row(row)}
        memo.write(file, others | settled, max(MOST_DIGESTS, len(settled)))
    return [digests[key] for key in keys]


def _stamp(key: str) -> memo.Stamp:
    return memo.stamp_of(containers.status(Path(key)))


def _file_digest(path: Path) -> str:
    """Compute the digest of a file. For a crop, hash the bytes of the whole picture and the box, so that no image
    decoder affects the digest."""
    if containers.crop_box(path):
        return digest(read_bytes(path.parent) + path.name.encode())
    return digest(read_bytes(path))


def _is_row(row: object) -> bool:
    """Return whether `row` is a valid memo row, with the stamp of a file and the digest of its bytes."""
    return isinstance(row, list) and len(row) == 5 and isinstance(row[-1], str)
