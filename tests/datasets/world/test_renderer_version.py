"""The renderer's version stands for the pixels of 20 scenes, which together show everything that can be drawn.

`scenes.json` has the checksum of each scene's pixels, and which Pillow drew them on what kind of machine: there the
pixels must be the same to the bit. Another Pillow may round otherwise, so that everywhere else each scene is held
against its thumbnail in `scenes.png`. After a change that is meant, raise `renderer.VERSION`, then write both anew:

    python -m tests.datasets.world.test_renderer_version
"""

import hashlib
import json
import platform
from pathlib import Path

import numpy as np
import PIL
import pytest
from PIL import Image

from tools.world.scenes import BACKGROUNDS, COLORS, COUNTS, OBJECTS, RELATIONS, draw
from vlprobe.datasets.world import renderer, sprites
from vlprobe.datasets.world.scene import SIZE, Scene, facing, placements

FOLDER = Path(__file__).parent
# Of the split `test`
INDICES = [0, 1, 2, 3, 4, 6, 7, 9, 15, 16, 21, 25, 32, 56, 69, 724, 960, 1575, 2180, 2912]
REDUCTION = 7  # pixels a side of the scene that become one of the thumbnail
EDGE = SIZE // REDUCTION
SHEET_COLUMNS = 5
TOLERANCE = 3  # levels of 255 in any channel of a thumbnail: the mean of 49 pixels that are each rounded otherwise
MACHINE = f"Pillow {PIL.__version__} on {platform.machine()}"


def scenes() -> list[Scene]:
    return [draw("test", index) for index in INDICES]


def checksums(images: list[Image.Image]) -> dict[str, str]:
    digests = [hashlib.sha256(image.tobytes()).hexdigest()[:16] for image in images]
    return dict(zip(map(str, INDICES), digests, strict=True))


def thumbnail(image: Image.Image) -> np.ndarray:
    """Means of squares of REDUCTION pixels a side, by arithmetic of our own: Pillow's may round otherwise."""
    squares = np.asarray(image, dtype=np.int64).reshape(EDGE, REDUCTION, EDGE, REDUCTION, 3)
    return np.round(squares.mean(axis=(1, 3))).astype(np.int64)


def stored_thumbnails() -> list[np.ndarray]:
    sheet = np.asarray(Image.open(FOLDER / "scenes.png").convert("RGB"), dtype=np.int64)
    rows = sheet.reshape(-1, EDGE, SHEET_COLUMNS, EDGE, 3)
    return list(rows.swapaxes(1, 2).reshape(-1, EDGE, EDGE, 3))


def differing(images: list[Image.Image]) -> list[int]:
    """The numbers of the scenes whose thumbnails are not as stored."""
    pairs = zip(INDICES, images, stored_thumbnails(), strict=True)
    return [
        index
        for index, image, stored in pairs
        if np.abs(thumbnail(image) - stored).max() > TOLERANCE
    ]


@pytest.fixture(scope="module")
def renderings() -> list[Image.Image]:
    return [renderer.render(scene) for scene in scenes()]


def test_the_version_is_that_of_the_pictures_that_caches_hold():
    stored = json.loads((FOLDER / "scenes.json").read_text())
    assert stored["version"] == renderer.VERSION


def test_the_scenes_show_everything_that_can_be_drawn():
    groups = [group for scene in scenes() for group in scene.groups]
    assert {group.object for group in groups} == set(OBJECTS)
    assert {group.color for group in groups} == set(COLORS)
    assert {group.count for group in groups} == set(COUNTS)
    assert {scene.background for scene in scenes()} == set(BACKGROUNDS)
    assert {scene.relation for scene in scenes()} == {"", *RELATIONS}
    assert {facing(scene) for scene in scenes()} == {"left", "right", "mixed"}
    sides = {
        (scene.groups[placement.group].object, placement.faces_left)
        for scene in scenes()
        for placement in placements(scene)
    }
    assert len(sides) == 2 * len(OBJECTS)


def test_the_same_pillow_draws_the_same_pixels_under_one_version(renderings):
    stored = json.loads((FOLDER / "scenes.json").read_text())
    if stored["drawn_by"] != MACHINE:
        pytest.skip(
            f"{MACHINE} may round otherwise than {stored['drawn_by']}; the thumbnails are compared"
        )
    assert checksums(renderings) == stored["pixels"]


def test_any_pillow_draws_the_same_scenes_under_one_version(renderings):
    assert differing(renderings) == []


def test_a_changed_color_sprite_or_shadow_is_noticed_by_the_thumbnails(monkeypatch):
    palette = sprites.palette

    def redrawn() -> list[int]:
        sprites._small_sprite.cache_clear()
        return differing([renderer.render(scene) for scene in scenes()])

    try:
        with monkeypatch.context() as patch:
            patch.setattr(
                sprites, "palette", lambda color: palette("pink" if color == "red" else color)
            )
            reds = {
                index
                for index, scene in zip(INDICES, scenes(), strict=True)
                if "red" in {group.color for group in scene.groups}
            }
            assert set(redrawn()) == reds != set()
        with monkeypatch.context() as patch:
            patch.setattr(renderer, "_ground", lambda scene, placement: "")
            assert redrawn()
    finally:
        sprites._small_sprite.cache_clear()


def write() -> None:
    """Stores what the renderer draws now, under its version."""
    images = [renderer.render(scene) for scene in scenes()]
    described = {"version": renderer.VERSION, "drawn_by": MACHINE, "pixels": checksums(images)}
    (FOLDER / "scenes.json").write_text(json.dumps(described, indent=1) + "\n")
    rows = np.stack([thumbnail(image) for image in images]).reshape(
        -1, SHEET_COLUMNS, EDGE, EDGE, 3
    )
    sheet = rows.swapaxes(1, 2).reshape(-1, SHEET_COLUMNS * EDGE, 3).astype(np.uint8)
    Image.fromarray(sheet).save(FOLDER / "scenes.png", optimize=True)


if __name__ == "__main__":
    write()
