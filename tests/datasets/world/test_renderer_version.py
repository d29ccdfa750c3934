"""The version of the renderer identifies the pixels of 20 scenes, which together show everything that can be drawn.

`scenes.json` has the checksum of each scene's pixels, the version of Pillow and the kind of machine that drew them:
with these, the pixels must be identical. Another Pillow can round differently, so other machines compare each scene
with its thumbnail in `scenes.png`. After an intended change, raise `renderer.VERSION`, then rewrite both:

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
# Scenes of the split `test`
INDICES = [0, 1, 2, 3, 4, 6, 7, 9, 15, 16, 21, 25, 32, 56, 69, 724, 960, 1575, 2180, 2912]
REDUCTION = 7  # width in scene pixels of a thumbnail pixel
EDGE = SIZE // REDUCTION
SHEET_COLUMNS = 5
TOLERANCE = 3  # of 255, in any channel of a thumbnail pixel: the mean of 49 pixels that can each be rounded differently
MACHINE = f"Pillow {PIL.__version__} on {platform.machine()}"


def scenes() -> list[Scene]:
    return [draw("test", index) for index in INDICES]


def checksums(images: list[Image.Image]) -> dict[str, str]:
    digests = [hashlib.sha256(image.tobytes()).hexdigest()[:16] for image in images]
    return dict(zip(map(str, INDICES), digests, strict=True))


def thumbnail(image: Image.Image) -> np.ndarray:
    """Average squares of REDUCTION x REDUCTION pixels without Pillow, which can round differently."""
    squares = np.asarray(image, dtype=np.int64).reshape(EDGE, REDUCTION, EDGE, REDUCTION, 3)
    return np.round(squares.mean(axis=(1, 3))).astype(np.int64)


def stored_thumbnails() -> list[np.ndarray]:
    sheet = np.asarray(Image.open(FOLDER / "scenes.png").convert("RGB"), dtype=np.int64)
    rows = sheet.reshape(-1, EDGE, SHEET_COLUMNS, EDGE, 3)
    return list(rows.swapaxes(1, 2).reshape(-1, EDGE, EDGE, 3))


def differing(images: list[Image.Image]) -> list[int]:
    """Return the numbers of the scenes whose thumbnails differ from the stored ones."""
    pairs = zip(INDICES, images, stored_thumbnails(), strict=True)
    return [
        index
        for index, image, stored in pairs
        if np.abs(thumbnail(image) - stored).max() > TOLERANCE
    ]


@pytest.fixture(scope="module")
def renderings() -> list[Image.Image]:
    return [renderer.render(scene) for scene in scenes()]


def test_the_stored_scenes_have_the_version_of_the_renderer():
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


def test_the_thumbnails_detect_a_changed_color_sprite_or_shadow(monkeypatch):
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
    """Store the current drawings of the renderer with its version."""
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
