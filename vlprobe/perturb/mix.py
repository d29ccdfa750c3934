"""Picture edits that take part of the content from another picture, by blending the two or by inserting a patch.

Our boxes lie fully inside the picture and are drawn separately for each picture, as the paper says. RoCOCO's released
code squashes pictures to 384 x 384, draws one box for 64 pictures, allows it to be clipped and leaves some pictures
unmixed; vlprobe does not reproduce these steps. Source: RoCOCO, section 3.3.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Literal

import numpy as np
from PIL import Image

from vlprobe.errors import InvalidInput
from vlprobe.perturb.draws import draw
from vlprobe.types import PictureEdit

LAMBDAS = (0.9, 0.8, 0.7, 0.6)
SEEDS = (1, 10, 100)  # of the released code; the paper averages over three
_STRIP = 16  # rows of a picture that are compared at once
_ASPECT = 2.0  # a patch is at most this many times wider or taller than the picture, by its sides


def partners(ids: Sequence[str], seed: int) -> dict[str, str]:
    """Assign a partner to each picture. The pictures form one random cycle, so that no picture is its own partner and
    every picture is used once. The result depends only on the seed and the set of ids.

    Raises:
        InvalidInput: fewer than two ids, or an id that occurs twice.
    """
    if len(ids) < 2 or len(set(ids)) < len(ids):
        raise InvalidInput(
            f"Cannot pair up {len(ids)} pictures that have {len(set(ids))} distinct ids. "
            "Expected at least 2 pictures, all with different ids."
        )
    ring = sorted(ids, key=lambda item_id: (draw(seed, item_id, 0, "partner"), item_id))
    return dict(zip(ring, [*ring[1:], ring[0]], strict=True))


def picture_edits(
    paths: Mapping[str, Path],
    kind: Literal["mix", "patch"],
    lam: float,
    seed: int,
) -> dict[str, PictureEdit]:
    """Build one edit for each picture, which mixes it with another picture.

    Args:
        paths: Image file of each item, by item id.
        kind: mix or patch.
        lam: Share of the original picture that is kept, above 0 and below 1.
        seed: Seed for partners and boxes. They do not depend on kind and lam, so strengths can be compared.

    Raises:
        InvalidInput: fewer than two pictures, or a lam that is not between 0 and 1.
    """
    if not 0 < lam < 1:
        raise InvalidInput(f"lam is {lam}. Expected a value between 0 and 1, such as 0.9.")
    return {
        item_id: picture_edit(item_id, paths[partner_id], kind, lam, seed)
        for item_id, partner_id in partners(list(paths), seed).items()
    }


def picture_edit(
    item_id: str,
    partner: Path,
    kind: Literal["mix", "patch"],
    lam: float,
    seed: int,
) -> PictureEdit:
    """Build the edit for one item's picture, given its partner from `partners` with the same seed."""
    return PictureEdit(kind, partner, lam, draw(seed, item_id, 0, "box") % 2**31)


def box(width: int, height: int, lam: float, seed: int) -> tuple[int, int, int, int]:
    """Draw the box of a patch, fully inside the picture. Return left, top, right and bottom in pixels.

    Its shape is drawn first, from half to twice as wide as the picture's own shape. Among the whole widths within a
    tenth of the drawn one, the one whose area is nearest to (1 - lam) * width * height is used.
    """
    area = (1 - lam) * width * height
    # A patch of share s lies inside only if neither side is longer than the picture's: shape
    # between s and 1/s.
    reach = min(np.log(_ASPECT), -np.log(1 - lam))
    shape = np.exp((2 * _fraction(seed, "shape") - 1) * reach)
    ideal = width * np.sqrt((1 - lam) * shape)
    sides = []
    for wide in range(
        max(1, int(np.floor(ideal * 0.9))),
        min(width, int(np.ceil(ideal * 1.1))) + 1,
    ):
        tall = min(height, max(1, round(area / wide)))
        sides.append((abs(wide * tall - area), abs(wide - ideal), wide, tall))
    _, _, wide, tall = min(sides)
    left = int(_fraction(seed, "left") * (width - wide + 1))
    top = int(_fraction(seed, "top") * (height - tall + 1))
    return left, top, left + wide, top + tall


def _fraction(seed: int, purpose: str) -> float:
    return (draw(seed, "", 0, purpose) >> 11) / 2**53


def apply(image: Image.Image, partner_image: Image.Image, edit: PictureEdit) -> Image.Image:
    """Mix picture x with its partner x_f. The result is lam * x + (1 - lam) * x_f, or x with a rectangle from x_f in
    the same place.

    The partner is resized to the picture's size (bicubic), whatever its shape.

    Args:
        image: RGB.
        partner_image: RGB.
        edit: A mix or patch edit; `partner_image` must be the picture that it names.

    Returns:
        A new RGB image; values are rounded to the nearest whole number.
    """
    resized = fitted(partner_image, image.size)
    if edit.kind == "patch":
        bounds = box(image.width, image.height, edit.lam, edit.seed)
        out = image.copy()
        out.paste(resized.crop(bounds), bounds[:2])
        return out
    return Image.fromarray(_blended(np.asarray(image), np.asarray(resized), edit.lam))


def changes(image: Image.Image, partner_image: Image.Image, edit: PictureEdit) -> bool:
    """Return whether `apply`, called with the same arguments, would change any pixel of `image`.

    A mixture is computed strip by strip until a pixel differs.
    """
    resized = fitted(partner_image, image.size)
    if edit.kind == "patch":
        bounds = box(image.width, image.height, edit.lam, edit.seed)
        return image.crop(bounds).tobytes() != resized.crop(bounds).tobytes()
    for top in range(0, image.height, _STRIP):
        bounds = (0, top, image.width, min(top + _STRIP, image.height))
        strip, partner_strip = np.asarray(image.crop(bounds)), np.asarray(resized.crop(bounds))
        if not np.array_equal(_blended(strip, partner_strip, edit.lam), strip):
            return True
    return False


def fitted(partner_image: Image.Image, size: tuple[int, int]) -> Image.Image:
    """Resize the partner picture to the size (width, height) in pixels of the picture that it is mixed into."""
    return partner_image.resize(size, Image.Resampling.BICUBIC)


def _blended(pixels: np.ndarray, partner_pixels: np.ndarray, lam: float) -> np.ndarray:
    """Compute lam * pixels + (1 - lam) * partner_pixels, rounded to the nearest uint8. Shapes must be equal."""
    return np.rint(
        lam * pixels.astype(np.float64) + (1 - lam) * partner_pixels.astype(np.float64),
    ).astype(np.uint8)
