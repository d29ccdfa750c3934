"""Large pictures of the pages: their size, changed files, and unreadable files."""

import base64
import io
import os
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from tests.datasets.test_drawn import folder_of_scenes
from vlprobe.dashboard import pictures
from vlprobe.dashboard.pictures import large_picture
from vlprobe.storage.memory import SingleFlightCache
from vlprobe.types import Picture, PictureEdit


@pytest.fixture(autouse=True)
def fresh(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pictures, "_addresses", SingleFlightCache(1 << 24, len))


def open_address(address: str) -> Image.Image:
    head, _, content = address.partition(",")
    assert head == "data:image/webp;base64"
    return Image.open(io.BytesIO(base64.b64decode(content))).convert("RGB")


def write(path: Path, color: str, size: tuple[int, int] = (90, 60), time: int = 1) -> str:
    Image.new("RGB", size, color).save(path)
    os.utime(path, ns=(time, time))
    return str(path)


def test_a_picture_fits_its_place_and_a_small_one_is_not_made_larger(tmp_path: Path):
    name = write(tmp_path / "wide.png", "red", (900, 600))
    assert open_address(large_picture(name, 300)).size == (300, 200)
    assert open_address(large_picture(name, 2000)).size == (900, 600)


def test_a_large_picture_is_compressed_below_the_size_limit(tmp_path: Path):
    noise = np.random.default_rng(0).integers(0, 256, (1000, 1000, 3), np.uint8)
    Image.fromarray(noise).save(tmp_path / "noise.png")
    address = large_picture(str(tmp_path / "noise.png"), 1000)
    assert len(base64.b64decode(address.partition(",")[2])) <= pictures.MAX_BYTES
    assert 6 * len(address) < 1_000_000


def test_a_drawn_scene_is_drawn_at_the_requested_size(tmp_path: Path):
    (scene,) = folder_of_scenes(tmp_path, 1)
    assert open_address(large_picture(scene.name, 860, 672)).size == (672, 672)
    assert open_address(large_picture(scene.name, 300)).size == (300, 300)


def test_a_changed_picture_file_is_read_again(tmp_path: Path):
    name = write(tmp_path / "a.png", "red")
    before = large_picture(name, 60)
    assert large_picture(name, 60) is before
    write(tmp_path / "a.png", "blue", time=2)
    assert open_address(large_picture(name, 60)).getpixel((5, 5))[2] > 200


def test_a_replaced_picture_with_the_same_time_is_read_again(tmp_path: Path):
    name = write(tmp_path / "a.png", "red")
    large_picture(name, 60)
    write(tmp_path / "a.png", "blue", (901, 600))
    assert open_address(large_picture(name, 60)).getpixel((5, 5))[2] > 200


def test_a_mixed_picture_is_mixed_again_when_its_partner_changes(tmp_path: Path):
    write(tmp_path / "a.png", "red")
    write(tmp_path / "b.png", "red")
    edit = PictureEdit("mix", tmp_path / "b.png", lam=0.5, seed=0)
    name = Picture(tmp_path / "a.png", edit).name
    assert open_address(large_picture(name, 60)).getpixel((5, 5))[2] < 50
    write(tmp_path / "b.png", "blue", time=2)
    assert open_address(large_picture(name, 60)).getpixel((5, 5))[2] > 80


@pytest.mark.parametrize("name", ["gone.png", "text.png"])
def test_a_picture_that_cannot_be_read_has_no_address(tmp_path: Path, name: str):
    (tmp_path / "text.png").write_text("no picture")
    assert large_picture(str(tmp_path / name), 100) == ""
