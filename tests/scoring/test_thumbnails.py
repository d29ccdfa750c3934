"""Thumbnails are small, uncropped, in the picture's proportions, stored by its bytes, and limited in number."""

import base64
import io
import os
import struct
import warnings
import zlib
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from vlprobe.datasets.world.renderer import VERSION
from vlprobe.errors import InvalidInput
from vlprobe.scoring import pictures, thumbnails
from vlprobe.storage import containers
from vlprobe.storage import thumbnails as stored
from vlprobe.storage.memory import SingleFlightCache
from vlprobe.types import Picture, PictureEdit


def noise(width: int, height: int, seed: int = 0) -> Image.Image:
    values = np.random.default_rng(seed).integers(0, 256, (height, width, 3), dtype=np.uint8)
    return Image.fromarray(values)


def save_image(
    folder: Path, image: Image.Image, name: str = "picture.png", **options: object
) -> Path:
    path = folder / name
    image.save(path, **options)
    return path


def open_content(content: bytes) -> Image.Image:
    image = Image.open(io.BytesIO(content))
    assert image.format == "WEBP"
    return image


@pytest.fixture
def forget(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """Clear the memory of this process, now and on each call of the returned function."""

    def forget_all() -> None:
        monkeypatch.setattr(thumbnails, "_memory", SingleFlightCache(thumbnails.MEMORY, len))

    forget_all()
    return forget_all


@pytest.mark.parametrize(
    ("size", "small"),
    [
        ((640, 480), (240, 180)),
        ((480, 640), (180, 240)),
        ((224, 224), (224, 224)),  # a small picture is not enlarged
        ((3000, 30), (240, 2)),
        ((5000, 1), (240, 1)),
        ((1, 1), (1, 1)),
    ],
)
def test_a_thumbnail_is_the_whole_picture_in_240_pixels(
    tmp_path: Path, size: tuple[int, int], small: tuple[int, int]
):
    content = thumbnails.thumbnail(
        tmp_path, str(save_image(tmp_path, Image.new("RGB", size, "red")))
    )
    assert open_content(content).size == small
    pixels = np.asarray(open_content(content).convert("RGB")).astype(int)
    assert np.abs(pixels - [255, 0, 0]).max() < 12


def test_the_corners_of_a_picture_are_in_its_thumbnail(tmp_path: Path):
    image = Image.new("RGB", (800, 400), "white")
    corners = {(0, 0): "red", (600, 0): "green", (0, 200): "blue", (600, 200): "black"}
    for corner, color in corners.items():
        image.paste(color, (*corner, corner[0] + 200, corner[1] + 200))
    small = open_content(thumbnails.encode(image)).convert("RGB")
    for (left, top), color in corners.items():
        expected = Image.new("RGB", (1, 1), color).getpixel((0, 0))
        found = small.getpixel(((left + 100) * 240 // 800, (top + 100) * 240 // 800))
        assert np.abs(np.subtract(found, expected)).max() < 40


def test_the_least_compressible_picture_takes_at_most_12_kilobytes():
    content = thumbnails.encode(noise(1000, 1000))
    assert len(content) <= stored.MAX_BYTES <= 15_000
    assert open_content(content).width >= 100


def test_sixty_of_the_largest_thumbnails_stay_below_a_megabyte():
    assert 60 * len(base64.b64encode(bytes(stored.MAX_BYTES))) < 1_000_000


def test_a_rotated_photograph_is_upright_and_loses_its_exif_data(tmp_path: Path):
    exif = Image.Exif()
    exif[0x0112] = 6
    exif[0x010E] = "taken at home"
    image = Image.new("RGB", (600, 300), "red")
    image.paste("blue", (0, 0, 300, 300))
    path = save_image(tmp_path, image, "turned.jpg", exif=exif)
    content = thumbnails.thumbnail(tmp_path, str(path))
    small = open_content(content)
    assert small.size == (120, 240) and not small.getexif() and b"home" not in content
    top = small.convert("RGB").getpixel((60, 20))
    assert top[2] > 150 > top[0]


def test_a_large_photograph_looks_like_one_decoded_at_full_size(tmp_path: Path):
    rng = np.random.default_rng(1)
    rough = Image.fromarray(rng.integers(0, 256, (24, 32, 3), dtype=np.uint8))
    path = save_image(tmp_path, rough.resize((2000, 1500), Image.Resampling.BICUBIC), "large.jpg")
    small = open_content(thumbnails.thumbnail(tmp_path, str(path))).convert("RGB")
    whole = Image.open(path).resize(small.size, Image.Resampling.LANCZOS)
    difference = np.asarray(small).astype(int) - np.asarray(whole).astype(int)
    assert np.abs(difference).mean() < 6


def test_two_files_of_the_same_bytes_share_a_thumbnail(tmp_path: Path, forget: Callable[[], None]):
    first = save_image(tmp_path, noise(300, 200))
    second = tmp_path / "copy.png"
    second.write_bytes(first.read_bytes())
    assert thumbnails.thumbnail(tmp_path, str(first)) == thumbnails.thumbnail(tmp_path, str(second))
    assert len(list(stored.paths(tmp_path))) == 1
    assert next(stored.paths(tmp_path)).stem == pictures.digest(first.read_bytes())


def test_a_changed_file_gets_another_thumbnail(tmp_path: Path, forget: Callable[[], None]):
    path = save_image(tmp_path, Image.new("RGB", (300, 200), "red"))
    red = thumbnails.thumbnail(tmp_path, str(path))
    save_image(tmp_path, Image.new("RGB", (301, 200), "blue"))
    assert thumbnails.thumbnail(tmp_path, str(path)) != red


def test_a_damaged_thumbnail_is_rebuilt(tmp_path: Path, forget: Callable[[], None]):
    path = save_image(tmp_path, noise(300, 200))
    content = thumbnails.thumbnail(tmp_path, str(path))
    file = next(stored.paths(tmp_path))
    for damage in (b"", b"<script>", content[:-5], content + bytes(stored.MAX_BYTES)):
        file.write_bytes(damage)
        forget()
        assert thumbnails.thumbnail(tmp_path, str(path)) == content == file.read_bytes()


def test_the_thumbnail_of_a_mixed_picture_is_mixed(tmp_path: Path, forget: Callable[[], None]):
    red = save_image(tmp_path, Image.new("RGB", (300, 200), "red"), "red.png")
    blue = save_image(tmp_path, Image.new("RGB", (300, 200), "blue"), "blue.png")
    picture = Picture(red, PictureEdit("mix", blue, 0.5, 10))
    content = thumbnails.thumbnail(tmp_path, picture.name)
    middle = open_content(content).convert("RGB").getpixel((100, 100))
    assert all(
        abs(value - expected) < 15 for value, expected in zip(middle, (127, 0, 127), strict=True)
    )
    stronger = Picture(red, PictureEdit("mix", blue, 0.9, 10))
    assert thumbnails.thumbnail(tmp_path, stronger.name) != content
    assert len(list(stored.paths(tmp_path))) == 2
    forget()
    assert thumbnails.thumbnail(tmp_path, picture.name) == content


def test_an_address_embeds_the_picture(tmp_path: Path):
    name = str(save_image(tmp_path, noise(50, 50)))
    head, _, body = thumbnails.address(tmp_path, name).partition(",")
    assert head == "data:image/webp;base64"
    assert base64.b64decode(body) == thumbnails.thumbnail(tmp_path, name)


def bomb(side: int) -> bytes:
    """Return a PNG whose header states this many pixels per side."""

    def chunk(kind: bytes, content: bytes) -> bytes:
        checked = kind + content
        return struct.pack(">I", len(content)) + checked + struct.pack(">I", zlib.crc32(checked))

    head = struct.pack(">IIBBBBB", side, side, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", b"") + chunk(b"IEND", b"")


HOSTILE = {
    "bomb.png": bomb(60_000),
    "markup.png": b"<svg onload=alert(1)>",
    "empty.png": b"",
    "postscript.eps": b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 9 9\n",
}


@pytest.mark.parametrize("name", [*HOSTILE, "gone.png", "folder.png", "cut.jpg"])
def test_an_invalid_picture_has_no_thumbnail(tmp_path: Path, name: str):
    whole = save_image(tmp_path, noise(100, 100), "whole.jpg").read_bytes()
    if name == "folder.png":
        (tmp_path / name).mkdir()
    elif name != "gone.png":
        (tmp_path / name).write_bytes(HOSTILE.get(name, whole[:900]))
    bad, good = str(tmp_path / name), str(tmp_path / "whole.jpg")
    with warnings.catch_warnings(), pytest.raises(InvalidInput):
        thumbnails.address(tmp_path, bad)
    found = thumbnails.addresses(tmp_path, [bad, good, bad])
    assert found[bad] == "" and found[good].startswith("data:image/webp;base64,")
    assert [path.stem for path in stored.paths(tmp_path)] == [pictures.digest(whole)]


def test_a_picture_outside_the_roots_is_not_shown_even_with_a_stored_thumbnail(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    path = str(save_image(tmp_path, noise(100, 100)))
    assert thumbnails.address(tmp_path, path)
    (tmp_path / "root").mkdir()
    monkeypatch.setenv("VLPROBE_ROOTS", str(tmp_path / "root"))
    with pytest.raises(InvalidInput, match="outside"):
        thumbnails.thumbnail(tmp_path, path)
    assert thumbnails.addresses(tmp_path, [path]) == {path: ""}


def test_a_read_only_server_creates_thumbnails_in_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, forget: Callable[[], None]
):
    path = save_image(tmp_path, noise(300, 200))
    monkeypatch.setenv("VLPROBE_READ_ONLY", "1")
    assert open_content(thumbnails.thumbnail(tmp_path, str(path))).size == (240, 160)
    assert sorted(tmp_path.iterdir()) == [path]


def test_a_drawn_picture_in_memory_is_not_searched_among_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, forget: Callable[[], None]
):
    name = f"demo/test-{VERSION}/demo-00000.png"
    content = thumbnails.thumbnail(tmp_path, name)
    monkeypatch.setattr(containers, "is_file", lambda path: pytest.fail(f"{path} is looked for"))
    assert thumbnails.thumbnail(tmp_path, name) == content
    assert thumbnails.addresses(tmp_path, [name]) == {name: thumbnails.data_address(content)}


def test_a_run_stores_the_thumbnail_of_a_picture_once(tmp_path: Path, forget: Callable[[], None]):
    path = save_image(tmp_path, noise(300, 200))
    picture = Picture(path)
    contents = pictures.read(picture)
    thumbnails.keep(tmp_path, picture, contents)
    file = next(stored.paths(tmp_path))
    content = file.read_bytes()
    assert thumbnails.make(picture, contents) == content
    inode = file.stat().st_ino
    thumbnails.keep(tmp_path, picture, contents)  # a second model
    assert file.stat().st_ino == inode
    file.unlink()
    thumbnails.keep(tmp_path, Picture(path, PictureEdit("mix", path, 0.5, 1)), contents * 2)
    thumbnails.keep(tmp_path, Picture(tmp_path / "no.png"), (b"no picture",))
    assert list(stored.paths(tmp_path)) == []


def test_the_least_recently_shown_thumbnails_are_deleted_first(tmp_path: Path):
    keys = [f"{number:032x}" for number in range(40)]
    for age, key in enumerate(keys):
        stored.write(tmp_path, key, b"x" * 100)
        os.utime(stored.path_of(tmp_path, key), (1e9 - age, 1e9 - age))
    assert stored.trim(tmp_path) == 0
    stored.read(tmp_path, keys[39])  # the oldest is requested again; a damaged file also counts
    assert stored.trim(tmp_path, max_entries=30) == 13
    left = {path.stem for path in stored.paths(tmp_path)}
    assert left == {keys[39], *keys[:26]}
    assert stored.trim(tmp_path, max_total=1000) == 18
    assert len(list(stored.paths(tmp_path))) == 9


def test_writing_many_thumbnails_trims_regularly(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(stored, "WRITES_BETWEEN_TRIMS", 10)
    monkeypatch.setattr(stored, "trim", lambda root: trimmed.append(root))
    trimmed: list[Path] = []
    for number in range(35):
        stored.write(tmp_path, f"{number:032x}", b"x")
    assert trimmed == [tmp_path] * 3


@pytest.mark.parametrize("key", ["", "../../etc/passwd", "a" * 31, "A" * 32, f"{'a' * 32}x"])
def test_a_path_is_not_a_valid_key(tmp_path: Path, key: str):
    with pytest.raises(ValueError, match="not a valid thumbnail key"):
        stored.read(tmp_path, key)
