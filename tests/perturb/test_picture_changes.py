"""Changes of pictures, compared with scipy, plain loops and counts."""

import numpy as np
import pytest
from PIL import Image, ImageOps
from scipy import ndimage

from vlprobe.errors import InvalidInput
from vlprobe.perturb import picture_changes
from vlprobe.perturb.picture_changes import KINDS, SEVERITIES, apply
from vlprobe.types import PictureChange


def picture(width: int = 224, height: int = 224, seed: int = 0) -> Image.Image:
    """Return a picture with edges, gradients and noise."""
    generator = np.random.RandomState(seed)
    rows, columns = np.mgrid[:height, :width]
    pixels = np.stack([rows * 255 / height, columns * 255 / width, 0 * rows + 90], axis=2)
    pixels[height // 4 : height // 2, width // 4 : width // 2] = (200, 30, 60)
    return Image.fromarray(
        np.clip(pixels + generator.normal(0, 8, pixels.shape), 0, 255).astype("uint8")
    )


def distance(first: Image.Image, second: Image.Image) -> float:
    """Return the mean absolute difference of two pictures, 0 to 255."""
    return float(np.abs(np.asarray(first, float) - np.asarray(second, float)).mean())


@pytest.mark.parametrize("kind", KINDS)
def test_a_change_keeps_the_size_and_depends_only_on_its_fields(kind: str):
    image = picture(151, 97)
    content = image.tobytes()
    for severity in SEVERITIES:
        change = PictureChange(kind, severity, 3, "dog")
        changed = apply(image, change)
        assert (changed.size, changed.mode) == (image.size, "RGB")
        assert changed.tobytes() == apply(image, change).tobytes() != content
    assert image.tobytes() == content


@pytest.mark.parametrize(
    "kind", [kind for kind in KINDS if kind not in ("flip", "crop", "rotation", "pixelate")]
)
def test_a_higher_severity_changes_more(kind: str):
    image = picture()
    distances = [
        np.mean(
            [
                distance(image, apply(image, PictureChange(kind, severity, seed, "dog")))
                for seed in range(3)
            ]
        )
        for severity in SEVERITIES
    ]
    assert distances == sorted(distances) and distances[0] < distances[-1]


@pytest.mark.parametrize("kind", KINDS)
def test_a_picture_of_one_pixel_can_be_changed(kind: str):
    image = Image.new("RGB", (1, 1), (10, 20, 30))
    assert apply(image, PictureChange(kind, 5, 0, "dog")).size == (1, 1)


def test_gaussian_noise_has_the_standard_deviation_of_its_severity():
    gray = Image.new("RGB", (224, 224), (128, 128, 128))
    for severity, spread in zip((1, 2), (0.08, 0.12), strict=True):
        pixels = np.asarray(apply(gray, PictureChange("gaussian-noise", severity, 1)), float)
        assert pixels.std() / 255 == pytest.approx(spread, rel=0.03)
        assert pixels.mean() == pytest.approx(128, abs=1)


def test_impulse_noise_changes_its_share_of_the_values():
    gray = Image.new("RGB", (224, 224), (128, 128, 128))
    pixels = np.asarray(apply(gray, PictureChange("impulse-noise", 5, 1)))
    assert np.isin(pixels, (0, 255)).mean() == pytest.approx(0.27, abs=0.01)
    assert (pixels == 0).mean() == pytest.approx((pixels == 255).mean(), abs=0.01)


def test_a_noise_grain_is_as_large_as_a_pixel_at_224():
    gray = Image.new("RGB", (448, 448), (128, 128, 128))
    pixels = np.asarray(apply(gray, PictureChange("gaussian-noise", 3, 1)), int)
    assert (pixels[::2, ::2] == pixels[1::2, 1::2]).all()
    assert (pixels[::2, 0] != pixels[::2, 2]).any()


def test_defocus_is_the_mean_over_a_disk():
    image = picture()
    radius = 4  # for severity 4: half of 8 pixels at 224
    rows, columns = np.mgrid[-radius : radius + 1, -radius : radius + 1]
    disk = (rows**2 + columns**2 <= radius**2).astype(float)
    values = np.asarray(image, float)
    expected = ndimage.convolve(values, (disk / disk.sum())[:, :, None], mode="nearest")
    blurred = np.asarray(apply(image, PictureChange("defocus-blur", 4, 0)), float)
    assert np.abs(blurred - expected).max() <= 0.51


def test_a_blur_does_not_change_a_uniform_picture():
    flat = Image.new("RGB", (90, 60), (7, 77, 177))
    for kind in ("defocus-blur", "motion-blur", "zoom-blur", "pixelate"):
        assert apply(flat, PictureChange(kind, 5, 2)) == flat


def test_pixelation_reduces_the_colors_with_the_severity():
    n_colors = [
        len(
            np.unique(
                np.asarray(apply(picture(), PictureChange("pixelate", severity, 0))).reshape(-1, 3),
                axis=0,
            )
        )
        for severity in SEVERITIES
    ]
    assert n_colors == sorted(n_colors, reverse=True) and n_colors[-1] <= 56**2 < n_colors[0]


def test_mirroring_a_flipped_picture_restores_it():
    image = picture(50, 40)
    assert ImageOps.mirror(apply(image, PictureChange("flip", 1, 0))) == image


def test_full_grayscale_has_three_equal_channels():
    pixels = np.asarray(apply(picture(), PictureChange("grayscale", 5, 0)))
    assert (pixels[..., 0] == pixels[..., 1]).all() and (pixels[..., 1] == pixels[..., 2]).all()


@pytest.mark.parametrize(
    ("severity", "share"), zip(SEVERITIES, (0.05, 0.1, 0.2, 0.3, 0.4), strict=True)
)
def test_the_gray_patch_covers_its_share(severity: int, share: float):
    white = Image.new("RGB", (200, 150), "white")
    pixels = np.asarray(apply(white, PictureChange("occlusion", severity, 4)))
    assert (pixels[..., 0] == 128).mean() == pytest.approx(share, abs=0.01)


def test_a_word_is_written_inside_the_picture():
    gray = Image.new("RGB", (200, 150), (128, 128, 128))
    for seed in range(5):
        pixels = np.asarray(apply(gray, PictureChange("false-word", 3, seed, "bicycle")))[..., 0]
        rows, columns = np.nonzero(pixels != 128)
        assert rows.min() > 0 and rows.max() < 149 and columns.min() > 0 and columns.max() < 199
        assert {0, 255} <= set(np.unique(pixels))


@pytest.mark.parametrize(
    ("kind", "caption", "expected"),
    [
        ("grayscale", "A Red dog.", True),
        ("grayscale", "A dog.", False),
        ("hue", "A grey cat", True),
        ("flip", "A dog left of a cat.", True),
        ("flip", "A sign that says stop.", True),
        ("flip", "A bright dog.", False),
        ("jpeg", "A red dog to the left.", False),
    ],
)
def test_a_change_that_may_contradict_a_caption_is_recognized(
    kind: str, caption: str, expected: bool
):
    assert picture_changes.contradicted(kind, caption) is expected


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (PictureChange("sepia", 1, 0), "Expected one of"),
        (PictureChange("jpeg", 0, 0), "from 1 to 5"),
        (PictureChange("jpeg", 6, 0), "from 1 to 5"),
        (PictureChange("false-word", 3, 0), "Expected 1 to 40"),
        (PictureChange("true-word", 3, 0, "x" * 41), "Expected 1 to 40"),
    ],
)
def test_an_invalid_picture_change_is_refused_in_one_line(change: PictureChange, message: str):
    with pytest.raises(InvalidInput, match=message) as error:
        apply(picture(10, 10), change)
    assert "\n" not in str(error.value)
