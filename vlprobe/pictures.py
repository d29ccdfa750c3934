"""Opening a picture: every image file that vlprobe reads goes through here, with the same checks."""

import hashlib
import io
from pathlib import Path

from PIL import Image, ImageOps, UnidentifiedImageError

from vlprobe.errors import InvalidInput
from vlprobe.types import Picture

MAX_PIXELS = 100_000_000  # beyond this a file is taken for a decompression bomb


def read_bytes(path: Path) -> bytes:
    """The file's bytes. Raises InvalidInput where there is no such file."""
    try:
        return path.read_bytes()
    except FileNotFoundError:
        raise InvalidInput(
            f"Image '{path}' does not exist. Expected the file that the dataset names; put it there or drop its row."
        ) from None
    except OSError as error:
        raise InvalidInput(
            f"Image '{path}' cannot be read ({error.strerror}). Check the file and its permissions."
        ) from None


def decode(data: bytes, name: str, shortest: int = 0) -> Image.Image:
    """Bytes to an upright RGB image, first frame only; transparency is laid on white.

    Args:
        data: The file's bytes.
        name: What to call the file in an error.
        shortest: If positive, a JPEG may be decoded at a reduced scale as long as its shorter side keeps at least
            twice this many pixels.

    Raises:
        InvalidInput: not an image, truncated, or more than MAX_PIXELS pixels.
    """
    try:
        image = Image.open(io.BytesIO(data))
        if image.width * image.height > MAX_PIXELS:
            raise InvalidInput(
                f"Image '{name}' has {image.width} x {image.height} pixels, over {MAX_PIXELS:,}. Scale it down first."
            )
        if shortest and image.format == "JPEG":
            image.draft("RGB", (2 * shortest, 2 * shortest))
        image = ImageOps.exif_transpose(image)
        if image.mode in ("RGBA", "LA", "PA") or "transparency" in image.info:
            image = image.convert("RGBA")
            image = Image.alpha_composite(Image.new("RGBA", image.size, "white"), image)
        elif image.mode.startswith("I"):  # 16 and 32 bit grey: PIL would clip at 255 instead of scaling
            image = image.convert("I").point(lambda v: v / 257 if v else 0).convert("L")
        return image.convert("RGB")
    except UnidentifiedImageError:
        raise InvalidInput(
            f"'{name}' is not an image that can be read. Expected a JPEG, PNG, WebP, GIF, BMP or TIFF."
        ) from None
    except Image.DecompressionBombError as error:
        raise InvalidInput(f"Image '{name}' is too large: {error} Scale it down first.") from None
    except (OSError, SyntaxError, ValueError) as error:
        raise InvalidInput(
            f"Image '{name}' is damaged ({error}). Expected a whole file; fetch it again or drop its row."
        ) from None


def open_picture(picture: Picture, shortest: int = 0) -> Image.Image:
    """The picture as an upright RGB image. Raises InvalidInput."""
    return decode(read_bytes(picture.path), str(picture.path), shortest)


def digest(data: bytes) -> str:
    """32 hex digits that name these bytes."""
    return hashlib.blake2b(data, digest_size=16).hexdigest()
