"""Malicious pictures: each is decoded to the correct RGB image or refused with a one-line error."""

import io
import struct
import subprocess
import sys
import zlib
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from PIL import Image

from tests.conftest import tiers
from vlprobe.errors import InvalidInput
from vlprobe.runs import exhibits
from vlprobe.scoring import pictures

pytestmark = pytest.mark.filterwarnings(
    "ignore::UserWarning:PIL"
)  # about EXIF that Pillow cannot read
RED, BLUE = (200, 10, 30), (10, 30, 200)
SVG = '<svg xmlns="http://www.w3.org/2000/svg" width="9" height="9"><script>alert(1)</script></svg>'


def saved(image: Image.Image, kind: str, **options) -> bytes:
    buffer = io.BytesIO()
    image.save(buffer, kind, **options)
    return buffer.getvalue()


def plain(mode: str = "RGB", size: tuple[int, int] = (6, 4), color: object = RED) -> Image.Image:
    return Image.new(mode, size, color)


def turned(orientation: int) -> bytes:
    """Return a JPEG, stored with red on the left and blue on the right, with this EXIF orientation."""
    image = plain(size=(32, 16))
    image.paste(BLUE, (16, 0, 32, 16))
    exif = Image.Exif()
    exif[0x0112] = orientation
    return saved(image, "JPEG", exif=exif, quality=95, subsampling=0)


def png(width: int, height: int, data: bytes = b"", *chunks: tuple[bytes, bytes]) -> bytes:
    """Return an 8-bit gray PNG that declares this size, whatever data it contains."""

    def chunk(name: bytes, body: bytes) -> bytes:
        return (
            struct.pack(">I", len(body)) + name + body + struct.pack(">I", zlib.crc32(name + body))
        )

    head = chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0))
    body = b"".join(chunk(*one) for one in chunks)
    return (
        b"\x89PNG\r\n\x1a\n"
        + head
        + body
        + chunk(b"IDAT", zlib.compress(data, 9))
        + chunk(b"IEND", b"")
    )


def palette(transparent: bool = False) -> bytes:
    image = plain("P", color=0)
    image.putpalette([*RED] * 256)
    return saved(image, "PNG", **({"transparency": 0} if transparent else {}))


def animated(kind: str) -> bytes:
    frames = [plain(color=color) for color in (RED, BLUE)]
    return saved(
        frames[0],
        kind,
        save_all=True,
        append_images=frames[1:],
        **({"lossless": True} if kind == "WEBP" else {}),
    )


SHOWN = {  # pictures that are decoded, and the color of their first pixel
    "1 x 1": (saved(plain(size=(1, 1)), "PNG"), RED),
    "1 x 1 in grey": (saved(plain("L", (1, 1), 77), "PNG"), (77, 77, 77)),
    "black and white": (saved(plain("1", color=1), "PNG"), (255, 255, 255)),
    "16 bits": (saved(Image.fromarray(np.full((4, 6), 25700, np.uint16)), "PNG"), (100, 100, 100)),
    "16 bits, the largest": (
        saved(Image.fromarray(np.full((4, 6), 65535, np.uint16)), "PNG"),
        (255, 255, 255),
    ),
    "CMYK": (saved(plain("CMYK", (16, 16), (0, 0, 0, 255)), "JPEG", quality=95), (0, 0, 0)),
    "a palette": (palette(), RED),
    "a palette, all of it clear": (palette(True), (255, 255, 255)),
    "clear pixels": (saved(plain("RGBA", color=(*RED, 0)), "PNG"), (255, 255, 255)),
    "grey and clear": (saved(plain("LA", color=(9, 0)), "PNG"), (255, 255, 255)),
    "a moving GIF": (animated("GIF"), RED),
    "a moving WebP": (animated("WEBP"), RED),
    "a TIFF of two pages": (
        saved(plain(), "TIFF", save_all=True, append_images=[plain(color=BLUE)]),
        RED,
    ),
    "a GIF that is a script": (b"GIF89a/*" + saved(plain(), "GIF")[8:] + b"*/=1;alert(1)//", None),
    "a PNG with a ZIP behind it": (saved(plain(), "PNG") + b"PK\x03\x04../../evil", RED),
    "a PNG with HTML in its text": (
        saved(plain(), "PNG", pnginfo=None) + b"<script>alert(1)</script>",
        RED,
    ),
    "a PNG by the name of a JPEG": (saved(plain(), "PNG"), RED),
    "a BMP": (saved(plain(), "BMP"), RED),
    "30,000 pixels wide": (png(30_000, 2, b"\0" * 60_002), (0, 0, 0)),
    "30,000 pixels tall": (png(2, 30_000, b"\0" * 90_000), (0, 0, 0)),
    "fewer rows than it says, which are black": (png(100, 100, b"\0" * 101), (0, 0, 0)),
    "an endless color profile": (saved(plain(), "PNG", icc_profile=b"x" * 1_000_000), RED),
    "a color profile that is none": (
        saved(plain(size=(16, 16)), "JPEG", icc_profile=b"\xff" * 500, quality=100),
        None,
    ),
    "EXIF that is none": (saved(plain(), "PNG", exif=b"Exif\0\0MM\0*\xff\xff\xff\xff"), RED),
    **{f"turned, EXIF {number}": (turned(number), None) for number in range(1, 9)},
    "turned, EXIF 99": (turned(99), None),
}
REFUSED = {
    "nothing": (b"", "not an image"),
    "an SVG with a script": (SVG.encode(), "not an image"),
    "an SVG that reads a file": (
        b'<!DOCTYPE s [<!ENTITY x SYSTEM "file:///etc/passwd">]>' + SVG.encode(),
        "not an image",
    ),
    "HTML": (b"<html><img src=x onerror=alert(1)>", "not an image"),
    "PostScript, which runs": (
        b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 9 9\n(x) run\n",
        "not an image",
    ),
    "a PDF": (b"%PDF-1.7\n", "not an image"),
    "an icon": (saved(plain(size=(16, 16)), "ICO"), "not an image"),
    "a Photoshop file": (b"8BPS\0\x01" + b"\0" * 60, "not an image"),
    "a film": (b"\0\0\0\x18ftypmp42" + b"\0" * 60, "not an image"),
    "a picture of floats": (
        saved(Image.fromarray(np.ones((3, 3), np.float32)), "TIFF"),
        "more than 16 bits per channel",
    ),
    "a picture of 32 bits": (
        saved(Image.fromarray(np.full((3, 3), 70_000, np.int32)), "TIFF"),
        "more than 16 bits",
    ),
    "a bomb of 30,000 x 30,000": (png(30_000, 30_000, b"\0" * 1_000), "too large"),
    "a bomb of 2 G x 2 G": (png(2**31 - 1, 2**31 - 1), "too large|damaged|not an image"),
    "no pixels at all": (png(0, 0), "damaged|not an image"),
    "an endless comment": (
        png(4, 4, b"\0" * 20, (b"zTXt", b"x\0\0" + zlib.compress(b"\0" * 80_000_000))),
        "damaged",
    ),
    "a GIF's head": (b"GIF89a", "damaged|not an image"),
    "a GIF of 65,535 x 65,535": (
        b"GIF89a\xff\xff\xff\xff\0\0\0,\0\0\0\0\xff\xff\xff\xff\0\x02\0;",
        "too large",
    ),
    "a JPEG's head": (b"\xff\xd8\xff\xe0", "damaged|not an image"),
    "a TIFF that leads to itself": (b"II*\0\x08\0\0\0\0\0\x08\0\0\0", "damaged|not an image"),
    "a WebP that lies of its size": (
        b"RIFF\xff\xff\xff\xffWEBPVP8L\xff\xff\xff\xff/",
        "damaged|not an image",
    ),
    "a BMP that lies of its size": (
        b"BM\xff\xff\xff\xff\0\0\0\0\x36\0\0\0(\0\0\0\xff\xff\xff\x7f\xff\xff\xff\x7f\x01\0\x18\0",
        ".",
    ),
    **{
        f"half of a {kind}": (saved(plain(size=(64, 64)), kind)[:-40], "damaged")
        for kind in ("PNG", "JPEG", "WEBP")
    },
}


def odd(orientation: int, *entries: bytes) -> bytes:
    """Return a JPEG whose EXIF has an orientation and then these entries of 12 bytes each."""
    first = struct.pack("<HHIHH", 0x0112, 3, 1, orientation, 0)
    exif = b"Exif\0\0II*\0\x08\0\0\0" + struct.pack("<H", 1 + len(entries)) + first
    return saved(plain(size=(32, 16)), "JPEG", exif=exif + b"".join(entries) + bytes(4))


ODD_TAGS = {  # Pillow reads these tags but cannot write them
    "a maker's note that is a number": struct.pack("<HHII", 0x927C, 4, 1, 5),
    "a comment that is a number": struct.pack("<HHII", 0x9286, 3, 1, 7),
    "a block of GPS that is a text": struct.pack("<HHI4s", 0x8825, 2, 4, b"abc\0"),
    "a block of EXIF that is a text": struct.pack("<HHI4s", 0x8769, 2, 4, b"abc\0"),
    "a number below 0 that must not be": struct.pack("<HHIi", 0x0100, 9, 1, -5),
    "a text where a number is expected": struct.pack("<HHI4s", 0x0103, 2, 4, b"abc\0"),
    "letters where a fraction is expected": struct.pack("<HHI4s", 0x011A, 2, 4, b"abc\0"),
}


@pytest.mark.parametrize("what", ODD_TAGS)
def test_a_picture_with_odd_exif_is_rotated_by_its_orientation(what: str):
    """The pixels equal those of the same picture without the odd tag."""
    expected = pictures.decode(odd(6), "a.jpg")
    image = pictures.decode(odd(6, ODD_TAGS[what]), "a.jpg")
    assert image.size == (16, 32) and image.tobytes() == expected.tobytes()


DECODE = """
import re, sys
from pathlib import Path
from vlprobe.scoring import pictures

def kibibytes(field):
    return int(re.search(field + r":\\s+([0-9]+)", Path("/proc/self/status").read_text())[1])

content = Path(sys.argv[1]).read_bytes()
Path("/proc/self/clear_refs").write_text("5")  # resets the peak
before = kibibytes("VmRSS")
image = pictures.decode(content, "x")
print(image.width * image.height, 1024 * (kibibytes("VmHWM") - before))
"""
BITS = np.full((4000, 4000), 25700, np.uint16)
COSTLY = {
    "16 bits": Image.fromarray(BITS),
    "transparency": Image.new("RGBA", BITS.shape, (*RED, 9)),
    "grey and clear": Image.new("LA", BITS.shape, (9, 9)),
}


@pytest.mark.parametrize("kind", tiers(COSTLY, ("transparency",)))
def test_decoding_takes_less_than_10_bytes_of_memory_per_pixel(kind: str, tmp_path: Path):
    """The file's own bytes and Pillow's four bytes per RGB pixel. An earlier version used 12 to 20 bytes per pixel."""
    (tmp_path / "a.png").write_bytes(saved(COSTLY[kind], "PNG"))
    command = [sys.executable, "-c", DECODE, str(tmp_path / "a.png")]
    ended = subprocess.run(command, capture_output=True, text=True, check=True)
    pixels, n_bytes = map(int, ended.stdout.split())
    assert pixels == BITS.size and n_bytes < 10 * pixels


def test_the_pixel_limit_of_an_upload_is_lower_than_that_of_a_file():
    assert exhibits.UPLOAD_PIXELS < pictures.MAX_PIXELS
    with pytest.raises(InvalidInput, match=r"8,000 x 6,500 pixels\)\. Expected at most 51,000,000"):
        exhibits.uploaded(png(8_000, 6_500), "a.png")


def test_uploads_are_decoded_one_at_a_time(monkeypatch: pytest.MonkeyPatch):
    decode, inside, most = pictures.decode, [], []

    def watched(*arguments: Any, **options: Any) -> Image.Image:
        inside.append(1)
        most.append(len(inside))
        image = decode(*arguments, **options)
        inside.pop()
        return image

    monkeypatch.setattr(pictures, "decode", watched)
    content = saved(Image.fromarray(BITS[:2000, :2000]), "PNG")
    with ThreadPoolExecutor(4) as pool:
        drawn = list(pool.map(lambda number: exhibits.uploaded(content, f"{number}.png"), range(4)))
    assert max(most) == 1 and {canvas.draw().size for canvas in drawn} == {(1024, 1024)}


@pytest.mark.parametrize("what", SHOWN)
def test_an_unusual_picture_is_decoded_to_rgb_with_the_right_color(tmp_path: Path, what: str):
    data, color = SHOWN[what]
    (tmp_path / "a.jpg").write_bytes(data)
    image = pictures.decode(pictures.read_bytes(tmp_path / "a.jpg"), "a.jpg")
    assert image.mode == "RGB"
    if color:
        assert np.abs(np.array(image.getpixel((0, 0))) - color).max() <= 2


@pytest.mark.parametrize("what", REFUSED)
def test_bytes_that_are_not_a_picture_are_refused_in_one_line(what: str):
    data, expected = REFUSED[what]
    with pytest.raises(InvalidInput, match=expected) as caught:
        pictures.decode(data, "a\n<b>.png")
    assert str(caught.value).isprintable()


@pytest.mark.parametrize("number", range(1, 9))
def test_a_picture_is_rotated_by_its_exif_orientation(number: int):
    """The expected side is from the EXIF standard: where the stored left side (red) is displayed."""
    image = pictures.decode(turned(number), "a.jpg")
    side = {
        1: "left",
        2: "right",
        3: "right",
        4: "left",
        5: "top",
        6: "top",
        7: "bottom",
        8: "bottom",
    }[number]
    assert image.size == ((32, 16) if number < 5 else (16, 32))
    place = {"left": (2, 8), "right": (29, 8), "top": (8, 2), "bottom": (8, 29)}[side]
    assert np.abs(np.array(image.getpixel(place)) - RED).max() < 12


@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    st.binary(max_size=300),
    st.sampled_from(
        [b"", b"GIF89a", b"BM", b"\x89PNG\r\n\x1a\n", b"\xff\xd8\xff", b"II*\0", b"RIFF"]
    ),
)
def test_random_bytes_are_decoded_or_refused_in_one_line(data: bytes, head: bytes):
    try:
        assert pictures.decode(head + data, "x").mode == "RGB"
    except InvalidInput as error:
        assert str(error).isprintable()
