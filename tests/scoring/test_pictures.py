import io
import json
import os
import random
import warnings
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from vlprobe.errors import InvalidInput
from vlprobe.scoring import pictures
from vlprobe.storage import memo
from vlprobe.types import Picture


def encode_image(image: Image.Image, kind: str, **options: object) -> bytes:
    out = io.BytesIO()
    image.save(out, kind, **options)
    return out.getvalue()


def noise(mode: str = "RGB", width: int = 60, height: int = 40) -> Image.Image:
    values = np.random.default_rng(0).integers(0, 256, (height, width, 3), dtype=np.uint8)
    return Image.fromarray(values).convert(mode)


def decode_array(data: bytes) -> np.ndarray:
    return np.asarray(pictures.decode(data, "x"))


def pixel(data: bytes, place: tuple[int, int] = (0, 0)) -> tuple[int, ...]:
    image = pictures.decode(data, "x")
    assert image.mode == "RGB"
    return image.getpixel(place)


@pytest.mark.parametrize("kind", pictures.FORMATS)
def test_every_format_gives_an_rgb_image_of_the_same_size(kind: str):
    image = pictures.decode(encode_image(noise(), kind), "x")
    assert (image.mode, image.size) == ("RGB", (60, 40))


@pytest.mark.parametrize("kind", ["PNG", "BMP", "TIFF"])
def test_lossless_pixels_are_unchanged(kind: str):
    np.testing.assert_array_equal(decode_array(encode_image(noise(), kind)), np.asarray(noise()))


def test_a_jpeg_is_decoded_at_full_size_as_pil_does():
    data = encode_image(noise(width=640, height=480), "JPEG")
    np.testing.assert_array_equal(decode_array(data), np.asarray(Image.open(io.BytesIO(data))))


TURNED = {
    2: Image.Transpose.FLIP_LEFT_RIGHT,
    3: Image.Transpose.ROTATE_180,
    4: Image.Transpose.FLIP_TOP_BOTTOM,
    5: Image.Transpose.TRANSPOSE,
    6: Image.Transpose.ROTATE_270,
    7: Image.Transpose.TRANSVERSE,
    8: Image.Transpose.ROTATE_90,
}


@pytest.mark.parametrize("orientation", range(1, 9))
def test_a_photograph_is_rotated_by_its_exif_orientation(orientation: int):
    exif = Image.Exif()
    exif[0x0112] = orientation
    found = decode_array(encode_image(noise(), "PNG", exif=exif.tobytes()))
    expected = noise().transpose(TURNED[orientation]) if orientation > 1 else noise()
    np.testing.assert_array_equal(found, np.asarray(expected))


def test_transparency_is_blended_with_white():
    half_red = Image.new("RGBA", (2, 1), (255, 0, 0, 128))
    half_red.putpixel((1, 0), (0, 0, 0, 0))
    data = encode_image(half_red, "PNG")
    assert pixel(data) == (255, 127, 127)
    assert pixel(data, (1, 0)) == (255, 255, 255)


def test_a_transparent_palette_color_is_blended_with_white():
    image = Image.new("P", (2, 1))
    image.putpalette([10, 20, 30, 200, 100, 50])
    image.putpixel((1, 0), 1)
    data = encode_image(image, "PNG", transparency=0)
    assert pixel(data) == (255, 255, 255)
    assert pixel(data, (1, 0)) == (200, 100, 50)
    assert pixel(encode_image(image, "PNG")) == (10, 20, 30)


def test_transparent_gray_is_blended_with_white():
    assert pixel(encode_image(Image.new("LA", (1, 1), (40, 0)), "PNG")) == (255, 255, 255)
    assert pixel(encode_image(Image.new("L", (1, 1), 40), "PNG", transparency=40)) == (
        255,
        255,
        255,
    )
    assert pixel(encode_image(Image.new("L", (1, 1), 40), "PNG", transparency=41)) == (40, 40, 40)


@pytest.mark.parametrize("kind", ["PNG", "TIFF"])
def test_sixteen_bits_are_scaled_to_eight_and_not_clipped(kind: str):
    values = np.array([[0, 257, 128 * 257, 65535]], dtype=np.uint16)
    found = decode_array(encode_image(Image.fromarray(values), kind))
    np.testing.assert_array_equal(found[0, :, 0], [0, 1, 128, 255])


@pytest.mark.parametrize(
    "values",
    [np.array([[0.0, 1.0]], dtype=np.float32), np.array([[0, 70000]], dtype=np.int32)],
    ids=["float", "int32"],
)
def test_numbers_whose_range_is_unknown_are_refused(values: np.ndarray):
    with pytest.raises(InvalidInput, match="'x' has more than 16 bits per channel"):
        pictures.decode(encode_image(Image.fromarray(values), "TIFF"), "x")


def test_one_bit_and_cmyk_pictures_become_rgb():
    assert pixel(encode_image(Image.new("1", (1, 1), 1), "PNG")) == (255, 255, 255)
    red, green, blue = pixel(encode_image(Image.new("CMYK", (16, 16), (0, 255, 255, 0)), "JPEG"))
    assert red > 250 and green < 5 and blue < 5


@pytest.mark.parametrize("kind", ["GIF", "WEBP", "PNG"])
def test_an_animation_is_decoded_to_its_first_frame(kind: str):
    frames = [Image.new("RGB", (4, 4), color) for color in ("red", "blue")]
    options = {"lossless": True} if kind == "WEBP" else {}
    data = encode_image(frames[0], kind, save_all=True, append_images=frames[1:], **options)
    assert pixel(data) == (255, 0, 0)


def test_a_picture_of_one_pixel_is_a_picture():
    assert pixel(encode_image(Image.new("RGB", (1, 1), "blue"), "PNG")) == (0, 0, 255)


@pytest.mark.parametrize("kind", ["JPEG", "PNG", "WEBP", "GIF"])
@pytest.mark.parametrize("share", [0.5, 0.9])
def test_a_truncated_file_is_damaged_and_not_half_a_picture(kind: str, share: float):
    data = encode_image(noise(width=300, height=200), kind)
    with pytest.raises(InvalidInput, match=r"(Image 'x' is damaged|'x' is not an image)"):
        pictures.decode(data[: int(share * len(data))], "x")


@pytest.mark.parametrize("side", [9_500, 14_000], ids=["PIL only warns", "PIL refuses"])
def test_a_decompression_bomb_is_refused_before_it_is_decoded(side: int):
    limit = Image.MAX_IMAGE_PIXELS
    data = encode_image(Image.new("1", (side, side)), "PNG")
    assert len(data) < 100_000
    with pytest.raises(InvalidInput, match=r"too large .*Expected at most 89,000,000 pixels"):
        pictures.decode(data, "x")
    with warnings.catch_warnings(), pytest.raises(InvalidInput, match="too large"):
        warnings.simplefilter("ignore")  # as outside of pytest, where PIL's warning is no exception
        pictures.decode(data, "x")
    assert limit == Image.MAX_IMAGE_PIXELS


def test_a_file_with_changed_bytes_gives_an_image_or_one_line():
    draw = random.Random(0)
    whole = {kind: encode_image(noise(), kind) for kind in pictures.FORMATS}
    outcomes = set()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # PIL also warns of odd metadata
        for kind, data in whole.items():
            for _ in range(150):
                changed = bytearray(
                    data[: draw.randrange(1, len(data))] if draw.random() < 0.3 else data
                )
                for _ in range(draw.choice([1, 2, 5, 20])):
                    changed[draw.randrange(min(len(changed), draw.choice([60, 10_000])))] = (
                        draw.randrange(256)
                    )
                try:
                    assert pictures.decode(bytes(changed), kind).mode == "RGB"
                    outcomes.add("image")
                except InvalidInput as error:
                    assert "\n" not in str(error)
                    outcomes.add("error")
    assert outcomes == {"image", "error"}


def test_the_error_names_a_file_that_is_not_an_image(tmp_path: Path):
    for name, content, what in (
        (
            "text.jpg",
            b"hello",
            r"text.jpg' is not an image .* one of: JPEG, PNG, WEBP, GIF, BMP, TIFF",
        ),
        (
            "script.jpg",
            b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 1 1\n",
            r"script.jpg' is not an image",
        ),
        ("empty.jpg", b"", r"empty.jpg' is empty \(0 bytes\)"),
    ):
        (tmp_path / name).write_bytes(content)
        with pytest.raises(InvalidInput, match=what):
            pictures.open_picture(Picture(tmp_path / name))
    (tmp_path / "folder.jpg").mkdir()
    with pytest.raises(InvalidInput, match=r"folder.jpg' cannot be read \(Is a directory\)"):
        pictures.open_picture(Picture(tmp_path / "folder.jpg"))
    with pytest.raises(InvalidInput, match=r"none.jpg' does not exist"):
        pictures.open_picture(Picture(tmp_path / "none.jpg"))


def test_pictures_opened_in_threads_match_those_opened_one_by_one(tmp_path: Path):
    files = [tmp_path / f"{n}.png" for n in range(16)]
    for number, file in enumerate(files):
        file.write_bytes(encode_image(noise(width=20 + number), "PNG"))
    single = [pictures.open_picture(Picture(file)) for file in files]
    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(pictures.open_picture, map(Picture, files))) == single


@pytest.fixture
def files(tmp_path: Path, monkeypatch) -> list[Path]:
    """Return three files that count as settled at once."""
    monkeypatch.setattr(memo, "SETTLED_NS", -(10**18))
    made = [tmp_path / f"{n}.bin" for n in range(3)]
    for number, file in enumerate(made):
        file.write_bytes(bytes([number]) * 10)
    return made


def test_a_file_is_read_once_and_recognized_by_size_times_and_inode(
    files: list[Path], tmp_path: Path, monkeypatch
):
    expected = [pictures.digest(file.read_bytes()) for file in files]
    assert pictures.file_digests(files, tmp_path / "cache") == expected
    read = []
    real = pictures.read_bytes
    monkeypatch.setattr(pictures, "read_bytes", lambda path: read.append(path) or real(path))
    assert pictures.file_digests(files, tmp_path / "cache") == expected
    assert read == []
    files[1].write_bytes(b"x" * 10)
    os.utime(files[1], ns=(1, 1))
    assert pictures.file_digests(files, tmp_path / "cache") == [
        expected[0],
        pictures.digest(b"x" * 10),
        expected[2],
    ]
    assert read == [files[1]]


def test_the_cache_of_digests_is_parsed_once_until_it_changes(
    files: list[Path], tmp_path: Path, monkeypatch
):
    cache = tmp_path / "cache"
    pictures.file_digests(files[:2], cache)
    pictures.file_digests(files[:1], cache)
    parsed: list[bytes] = []
    real = json.loads
    monkeypatch.setattr(memo.json, "loads", lambda text: parsed.append(text) or real(text))
    pictures.file_digests(files[:2], cache)
    assert parsed == []
    expected = pictures.file_digests(files, cache)  # one more digest is written
    assert pictures.file_digests(files[::-1], cache) == expected[::-1]
    assert len(parsed) == 1


@pytest.mark.parametrize("content", ["", "{", "[1]", '{"a": 1}', "\x00"])
def test_a_damaged_cache_of_digests_is_rebuilt(content: str, files: list[Path], tmp_path: Path):
    cache = tmp_path / "cache"
    expected = pictures.file_digests(files, cache)
    (cache / pictures.DIGEST_MEMO).write_text(content)
    assert pictures.file_digests(files, cache) == expected
    assert pictures.file_digests(files, cache) == expected
    assert os.listdir(cache) == [pictures.DIGEST_MEMO]


def test_digests_are_computed_without_a_writable_cache(files: list[Path], tmp_path: Path):
    expected = pictures.file_digests(files, tmp_path / "other")
    (tmp_path / "cache").write_text("a file, not a folder")
    assert pictures.file_digests(files, tmp_path / "cache") == expected
