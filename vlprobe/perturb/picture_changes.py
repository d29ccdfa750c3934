"""Changes to pictures with a severity from 1 to 5: noise, blur, digital, weather, geometry, occlusion, and words
written on the picture.

The changes use Pillow and numpy, which are installed anyway, and whole numbers where sums are long, because with the
floating-point versions in torchvision and kornia the pixels depend on the processor. Lengths are in units of 1/224 of
the picture's shorter side, so that a severity means the same at every size. The amounts for noise, blur and digital
changes are those in ImageNet-C. Source: Hendrycks and Dietterich 2019 (ImageNet-C); Qiu et al. 2022 (MMRB, arXiv
2212.08044); Goh et al. 2021 (typographic attacks).
"""

import io
import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
from PIL import Image, ImageDraw, ImageEnhance, ImageFont, ImageOps

from vlprobe.errors import InvalidInput
from vlprobe.perturb import flips, mix
from vlprobe.perturb.tokens import words
from vlprobe.types import PictureChange

SEVERITIES = (1, 2, 3, 4, 5)
BIN = "severity-"  # begins the stored name of a severity
BINS = {severity: f"{BIN}{severity}" for severity in SEVERITIES}
UNIT_SIDE = 224  # pixels of the shorter side at which a length of 1 is one pixel
COLORS = frozenset(flips.VOCABULARY["color"]) | {"grey", "colorful", "colourful", "dark", "bright"}
SIDES = frozenset({"left", "right"})
# A caption with one of these may quote text of the picture, which a mirror makes illegible.
TEXTS = words(
    "sign signs says saying reads reading word words letter letters text writing written number numbers logo"
)
LONGEST_WORD = 40  # characters that an overlay writes
_WORD = re.compile(r"\w+")

Generator = np.random.RandomState  # its streams are frozen: numpy never changes them
Function = Callable[[Image.Image, float, Generator], Image.Image]


@dataclass(frozen=True, slots=True)
class ChangeKind:
    """A kind of picture change.

    Attributes:
        label: Name shown to users.
        family: Group of related kinds, such as blur.
        amounts: Strength of the change at each severity.
        function: Function that applies the change; None if the change writes a word.
        contradicts: Caption words that the change may make wrong.
    """

    label: str
    family: str
    amounts: tuple[float, ...]
    function: Function | None = None  # None: the change writes a word
    contradicts: frozenset[str] = frozenset()


def apply(image: Image.Image, change: PictureChange) -> Image.Image:
    """Apply a change to a picture.

    Args:
        image: RGB image of any size.
        change: The kind, severity, seed and word of the change.

    Returns:
        A new RGB image with the same size.

    Raises:
        InvalidInput: The kind is unknown, the severity is not from 1 to 5, or an overlay has no word.
    """
    check(change)
    kind, generator = KINDS[change.kind], Generator(change.seed)
    amount = kind.amounts[change.severity - 1]
    if kind.function is None:
        return _write(image, amount, generator, change.word)
    return kind.function(image, amount, generator)


def check(change: PictureChange) -> None:
    """Raise InvalidInput for an unknown kind, a severity outside of 1 to 5, or an overlay without a word."""
    if change.kind not in KINDS:
        raise InvalidInput(
            f"'{change.kind}' is not a picture change. Expected one of: {', '.join(KINDS)}."
        )
    check_severity(change.severity)
    if KINDS[change.kind].function is None and not 0 < len(change.word) <= LONGEST_WORD:
        raise InvalidInput(
            f"The word for '{change.kind}' has {len(change.word)} characters. Expected 1 to "
            f"{LONGEST_WORD}."
        )


def check_severity(severity: int) -> None:
    """Raise InvalidInput for a severity outside of 1 to 5."""
    if severity not in SEVERITIES:
        raise InvalidInput(f"Severity {severity} is out of range. Expected an integer from 1 to 5.")


def contradicted(kind: str, caption: str) -> bool:
    """Return whether a change may make a caption wrong. For example, a gray picture no longer fits "a red dog"."""
    return bool(KINDS[kind].contradicts & set(_WORD.findall(caption.lower())))


def _unit(image: Image.Image) -> float:
    """Return the length of one unit in pixels; see the module's docstring."""
    return min(image.size) / UNIT_SIDE


def _clipped(pixels: np.ndarray) -> Image.Image:
    return Image.fromarray(np.clip(np.rint(pixels), 0, 255).astype(np.uint8))


def _noisy(image: Image.Image, noise: Callable[[np.ndarray], np.ndarray]) -> Image.Image:
    """Add noise whose grains are squares with a side of one unit.

    Args:
        image: RGB.
        noise: Function that takes pixel values from 0 to 1, of shape (rows, columns, 3), and returns the values to add.
    """
    cell = max(1, round(_unit(image)))
    size = (max(1, -(-image.width // cell)), max(1, -(-image.height // cell)))
    small = image if cell == 1 else image.resize(size, Image.Resampling.BOX)
    grains = np.rint(255 * noise(np.asarray(small) / 255))
    enlarged = np.repeat(np.repeat(grains, cell, axis=0), cell, axis=1)
    return _clipped(np.asarray(image) + enlarged[: image.height, : image.width])


def _gaussian_noise(image: Image.Image, spread: float, generator: Generator) -> Image.Image:
    return _noisy(image, lambda values: generator.normal(scale=spread, size=values.shape))


def _shot_noise(image: Image.Image, photons: float, generator: Generator) -> Image.Image:
    return _noisy(image, lambda values: generator.poisson(values * photons) / photons - values)


def _impulse_noise(image: Image.Image, share: float, generator: Generator) -> Image.Image:
    def noise(values: np.ndarray) -> np.ndarray:
        number = generator.uniform(size=values.shape)
        return np.where(number < share / 2, -1.0, np.where(number < share, 1.0, 0.0))

    return _noisy(image, noise)


def _shifted_mean(image: Image.Image, shifts: list[tuple[int, int]]) -> Image.Image:
    """Average copies of the picture that are shifted by the given (rows, columns). Edge pixels are repeated."""
    reach = max(max(abs(row), abs(column)) for row, column in shifts)
    padded = np.pad(
        np.asarray(image).astype(np.int32), ((reach, reach), (reach, reach), (0, 0)), "edge"
    )
    total = np.zeros((image.height, image.width, 3), dtype=np.int32)
    for row, column in shifts:
        total += padded[
            reach + row : reach + row + image.height, reach + column : reach + column + image.width
        ]
    return _clipped(total / len(shifts))


def _defocus_blur(image: Image.Image, amount: float, generator: Generator) -> Image.Image:
    """Blur the picture: average a disk around each pixel, using running sums over rows."""
    radius = max(1, round(amount * _unit(image) * 0.5))
    padded = np.pad(
        np.asarray(image).astype(np.int32), ((radius, radius), (radius + 1, radius), (0, 0)), "edge"
    )
    sums = padded.cumsum(axis=1, dtype=np.int32)
    total = np.zeros((image.height, image.width, 3), dtype=np.int32)
    n_pixels = 0
    for row in range(-radius, radius + 1):
        half = math.isqrt(radius * radius - row * row)
        rows = sums[radius + row : radius + row + image.height]
        first = radius - half
        total += rows[:, first + 2 * half + 1 : first + 2 * half + 1 + image.width]
        total -= rows[:, first : first + image.width]
        n_pixels += 2 * half + 1
    return _clipped(total / n_pixels)


def _motion_blur(image: Image.Image, amount: float, generator: Generator) -> Image.Image:
    length = amount * _unit(image)
    angle = generator.uniform(-math.pi / 4, math.pi / 4)
    steps = np.linspace(-length / 2, length / 2, max(2, round(length)) + 1)
    shifts = [(round(step * math.sin(angle)), round(step * math.cos(angle))) for step in steps]
    return _shifted_mean(image, list(dict.fromkeys(shifts)))


def _zoom_blur(image: Image.Image, largest: float, generator: Generator) -> Image.Image:
    n_zooms = 10
    total = np.asarray(image).astype(np.int32)
    for number in range(1, n_zooms + 1):
        margin = (1 - 1 / (1 + largest * number / n_zooms)) / 2
        left, top = image.width * margin, image.height * margin
        box = (left, top, image.width * (1 - margin), image.height * (1 - margin))
        total = total + np.asarray(image.resize(image.size, Image.Resampling.BILINEAR, box))
    return _clipped(total / (n_zooms + 1))


def _jpeg(image: Image.Image, amount: float, generator: Generator) -> Image.Image:
    buffer = io.BytesIO()
    image.save(buffer, "JPEG", quality=amount)
    return Image.open(buffer).convert("RGB")


def _pixelate(image: Image.Image, amount: float, generator: Generator) -> Image.Image:
    share = amount / max(1.0, _unit(image))
    size = (max(1, round(image.width * share)), max(1, round(image.height * share)))
    return image.resize(size, Image.Resampling.BOX).resize(image.size, Image.Resampling.NEAREST)


def _brightness(image: Image.Image, amount: float, generator: Generator) -> Image.Image:
    hue, saturation, value = image.convert("HSV").split()
    added = round(255 * amount)
    lighter = ImageOps.grayscale(value.point([min(255, level + added) for level in range(256)]))
    return Image.merge("HSV", (hue, saturation, lighter)).convert("RGB")


def _contrast(image: Image.Image, amount: float, generator: Generator) -> Image.Image:
    return ImageEnhance.Contrast(image).enhance(amount)


def _saturation(image: Image.Image, amount: float, generator: Generator) -> Image.Image:
    return ImageEnhance.Color(image).enhance(amount)


def _hue(image: Image.Image, amount: float, generator: Generator) -> Image.Image:
    hue, saturation, value = image.convert("HSV").split()
    turn = round(256 * amount)
    turned = hue.point([(level + turn) % 256 for level in range(256)])
    return Image.merge("HSV", (turned, saturation, value)).convert("RGB")


def _mean_color(image: Image.Image) -> tuple[int, ...]:
    return tuple(int(level) for level in np.rint(np.asarray(image).mean(axis=(0, 1))))


def _rotation(image: Image.Image, amount: float, generator: Generator) -> Image.Image:
    angle = amount * (1 if generator.randint(2) else -1)
    return image.rotate(angle, Image.Resampling.BICUBIC, fillcolor=_mean_color(image))


def _crop(image: Image.Image, share: float, generator: Generator) -> Image.Image:
    width, height = max(1, round(image.width * share)), max(1, round(image.height * share))
    left = generator.randint(image.width - width + 1)
    top = generator.randint(image.height - height + 1)
    box = (left, top, left + width, top + height)
    return image.resize(image.size, Image.Resampling.BICUBIC, box)


def _flip(image: Image.Image, amount: float, generator: Generator) -> Image.Image:
    """Mirror the picture. The severity has no effect."""
    return ImageOps.mirror(image)


def _perspective(image: Image.Image, reach: float, generator: Generator) -> Image.Image:
    corners = np.array([(0, 0), (1, 0), (1, 1), (0, 1)]) * image.size
    inward = np.array([(1, 1), (-1, 1), (-1, -1), (1, -1)]) * image.size
    moved = corners + inward * generator.uniform(0, reach, (4, 2))
    equations = []
    for (x, y), (u, v) in zip(moved, corners, strict=True):
        equations += [[x, y, 1, 0, 0, 0, -u * x, -u * y], [0, 0, 0, x, y, 1, -v * x, -v * y]]
    coefficients = np.linalg.solve(np.array(equations), corners.reshape(-1))
    return image.transform(
        image.size,
        Image.Transform.PERSPECTIVE,
        [round(float(value), 9) for value in coefficients],
        Image.Resampling.BICUBIC,
        fillcolor=_mean_color(image),
    )


def _clouds(size: tuple[int, int], generator: Generator) -> np.ndarray:
    """Return a random cloud pattern with details at every scale: values from 0 to 1, of shape (rows, columns)."""
    field = np.zeros((size[1], size[0]))
    for octave in range(6):
        n_cells = 2 ** (octave + 1)
        cells = Image.fromarray(generator.randint(0, 256, (n_cells, n_cells)).astype(np.uint8))
        field += np.asarray(cells.resize(size, Image.Resampling.BICUBIC)) / 2.0**octave
    return (field - field.min()) / max(float(np.ptp(field)), 1e-9)


def _fog(image: Image.Image, amount: float, generator: Generator) -> Image.Image:
    veil = amount * (0.5 + _clouds(image.size, generator))[:, :, None]
    veil = np.minimum(veil, 0.95)
    return _clipped((1 - veil) * np.asarray(image) + veil * 235)


def _snow(image: Image.Image, share: float, generator: Generator) -> Image.Image:
    cell = max(1, round(_unit(image)))
    rows, columns = -(-image.height // cell), -(-image.width // cell)
    flakes = Image.fromarray(
        ((generator.uniform(size=(rows, columns)) < share) * 255).astype("uint8")
    )
    layer = np.asarray(flakes.resize((columns * cell, rows * cell), Image.Resampling.NEAREST))
    fallen = Image.fromarray(layer[: image.height, : image.width]).convert("RGB")
    shifts = [(step, step // 2) for step in range(max(2, 4 * cell))]
    streaks = np.minimum(np.asarray(_shifted_mean(fallen, shifts)).astype(np.float64) * 2.5, 255)
    return _clipped(np.maximum(0.85 * np.asarray(image) + 0.15 * 255, streaks))


def _occlusion(image: Image.Image, share: float, generator: Generator) -> Image.Image:
    out = image.copy()
    out.paste((128, 128, 128), mix.box(*image.size, 1 - share, generator.randint(2**31)))
    return out


def _write(image: Image.Image, amount: float, generator: Generator, word: str) -> Image.Image:
    """Write a word on the picture in white with a black outline, fully inside the picture if it fits."""
    out = image.copy()
    height = amount * min(image.size)
    draw = ImageDraw.Draw(out)
    while True:
        font = ImageFont.load_default(max(4.0, height))
        edge = max(1, round(height / 14))
        left, top, right, bottom = draw.textbbox((0, 0), word, font, stroke_width=edge)
        if right - left <= image.width or height <= 4:
            break
        height *= 0.9
    x = generator.randint(max(1, int(image.width - (right - left)) + 1)) - left
    y = generator.randint(max(1, int(image.height - (bottom - top)) + 1)) - top
    draw.text((x, y), word, "white", font, stroke_width=edge, stroke_fill="black")
    return out


WORD_HEIGHTS = (0.08, 0.11, 0.15, 0.2, 0.26)  # shares of the shorter side
KINDS: Mapping[str, ChangeKind] = {
    "gaussian-noise": ChangeKind(
        "Gaussian noise", "noise", (0.08, 0.12, 0.18, 0.26, 0.38), _gaussian_noise
    ),
    "shot-noise": ChangeKind("Shot noise", "noise", (60, 25, 12, 5, 3), _shot_noise),
    "impulse-noise": ChangeKind(
        "Impulse noise", "noise", (0.03, 0.06, 0.09, 0.17, 0.27), _impulse_noise
    ),
    "defocus-blur": ChangeKind("Defocus blur", "blur", (3, 4, 6, 8, 10), _defocus_blur),
    "motion-blur": ChangeKind("Motion blur", "blur", (5, 8, 11, 15, 20), _motion_blur),
    "zoom-blur": ChangeKind("Zoom blur", "blur", (0.11, 0.16, 0.21, 0.26, 0.31), _zoom_blur),
    "jpeg": ChangeKind("JPEG compression", "digital", (25, 18, 15, 10, 7), _jpeg),
    "pixelate": ChangeKind("Pixelate", "digital", (0.6, 0.5, 0.4, 0.3, 0.25), _pixelate),
    "brightness": ChangeKind(
        "Brightness", "digital", (0.1, 0.2, 0.3, 0.4, 0.5), _brightness, COLORS
    ),
    "contrast": ChangeKind("Low contrast", "digital", (0.4, 0.3, 0.2, 0.1, 0.05), _contrast),
    "saturation": ChangeKind("Saturation", "digital", (1.5, 2.0, 3.0, 5.0, 8.0), _saturation),
    "grayscale": ChangeKind("Grayscale", "digital", (0.8, 0.6, 0.4, 0.2, 0.0), _saturation, COLORS),
    "hue": ChangeKind("Hue", "digital", (0.05, 0.1, 0.2, 0.35, 0.5), _hue, COLORS),
    "rotation": ChangeKind("Rotation", "geometry", (5, 10, 15, 20, 30), _rotation),
    "crop": ChangeKind("Crop", "geometry", (0.9, 0.8, 0.7, 0.6, 0.5), _crop),
    "flip": ChangeKind("Flip", "geometry", (1, 1, 1, 1, 1), _flip, SIDES | TEXTS),
    "perspective": ChangeKind(
        "Perspective", "geometry", (0.05, 0.1, 0.15, 0.2, 0.25), _perspective
    ),
    "fog": ChangeKind("Fog", "weather", (0.3, 0.4, 0.5, 0.6, 0.7), _fog),
    "snow": ChangeKind("Snow", "weather", (0.01, 0.02, 0.035, 0.05, 0.08), _snow),
    "occlusion": ChangeKind("Gray patch", "occlusion", (0.05, 0.1, 0.2, 0.3, 0.4), _occlusion),
    "true-word": ChangeKind("The true word written on it", "text", WORD_HEIGHTS),
    "false-word": ChangeKind("A false word written on it", "text", WORD_HEIGHTS),
}
FALSE_WORD = "false-word"  # the only kind that supports the wrong caption
