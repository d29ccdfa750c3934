"""Large drawings of demo scenes show the same scene, and equal the file at the size of the file."""

import dataclasses
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from tools.world.contrasts import contrasts
from tools.world.scenes import distinct, draw
from vlprobe.datasets import demo, drawn
from vlprobe.datasets.world.renderer import VERSION, render
from vlprobe.datasets.world.scene import SIZE
from vlprobe.perturb import mix
from vlprobe.scoring import pictures
from vlprobe.types import Picture, PictureEdit

LEVELS = 3  # average difference (0 to 255) between a downscaled large drawing and its file


def downscale(image: Image.Image) -> np.ndarray:
    """Average squares of pixels without Pillow, and return an array of shape (SIZE, SIZE, 3)."""
    scale = image.width // SIZE
    return np.asarray(image, dtype=float).reshape(SIZE, scale, SIZE, scale, 3).mean(axis=(1, 3))


def difference(large: Image.Image, file: Image.Image) -> float:
    return float(np.abs(downscale(large) - np.asarray(file, dtype=float)).mean())


def folder_of_scenes(folder: Path, count: int) -> list[Picture]:
    """Write the first scenes of the test split like the dataset, and return their pictures."""
    parent = folder / f"test-{VERSION}"
    for index, scene in enumerate(distinct("test", count)):
        demo.draw(scene, parent / f"demo-{index:05}.png")
    return [Picture(path) for path in sorted(parent.glob("*.png"))]


@pytest.mark.parametrize("size", [448, 672])
def test_a_large_drawing_downscales_to_the_file(size):
    for scene in distinct("test", 6):
        large = render(scene, size)
        assert large.size == (size, size)
        assert difference(large, render(scene)) < LEVELS


@pytest.mark.full
def test_all_500_large_drawings_downscale_to_their_files():
    differences = [difference(render(scene, 672), render(scene)) for scene in distinct("test", 500)]
    assert np.mean(differences) < LEVELS
    assert max(differences) < LEVELS


def test_a_size_that_is_not_a_multiple_is_drawn_too():
    scene = draw("test", 3)
    large = render(scene, 500)
    assert large.size == (500, 500)
    small = np.asarray(large.resize((SIZE, SIZE), Image.Resampling.BOX), dtype=float)
    assert np.abs(small - np.asarray(render(scene), dtype=float)).mean() < LEVELS


def test_a_demo_picture_is_redrawn_at_its_own_and_a_larger_size(tmp_path):
    for picture in folder_of_scenes(tmp_path, 3):
        file = pictures.open_picture(picture)
        assert drawn.draw(picture).tobytes() == file.tobytes()
        assert difference(drawn.draw(picture, 672), file) < LEVELS


def test_a_demo_picture_is_drawn_even_if_its_file_is_missing(tmp_path):
    picture = folder_of_scenes(tmp_path, 1)[0]
    content = pictures.open_picture(picture).tobytes()
    picture.path.unlink()
    assert drawn.draw(picture).tobytes() == content


def test_pictures_of_pairs_and_triplets_are_found_by_their_names(tmp_path):
    folder = tmp_path / "demo" / f"scenes-{VERSION}"
    contrast = contrasts("color", "test", 2)[1]
    for scene in (contrast.scene, contrast.changed):
        picture = Picture(folder / f"{demo.picture_name(scene)}.png")
        assert (
            drawn.draw(picture).tobytes() == render(scene).tobytes()
        )  # the file does not exist yet
        demo.draw(scene, picture.path)
        assert drawn.scene_of(picture.path) == scene
        assert drawn.draw(picture).tobytes() == render(scene).tobytes()


@pytest.mark.parametrize("kind", ["mix", "patch"])
@pytest.mark.parametrize("lam", [0.9, 0.5])
def test_a_mixed_picture_is_mixed_at_the_larger_size(tmp_path, kind, lam):
    first, second = folder_of_scenes(tmp_path, 2)
    mixed = dataclasses.replace(first, edit=PictureEdit(kind, second.path, lam, seed=7))
    file = pictures.open_picture(mixed)
    assert drawn.draw(mixed).tobytes() == file.tobytes()
    assert difference(drawn.draw(mixed, 672), file) < LEVELS
    assert mix.changes(pictures.open_picture(first), pictures.open_picture(second), mixed.edit)


@pytest.mark.parametrize(
    "name",
    [
        "photos/demo-00001.png",
        f"demo/test-{VERSION}/demo-00001.jpg",
        f"demo/test-{VERSION}/demo-00500.png",
        f"demo/test-{VERSION}/demo-1.png",
        f"demo/val-{VERSION}/demo-00001.png",
        "demo/test-00000000/demo-00001.png",
        f"demo/scenes-{VERSION}/0000000000000000.png",
    ],
)
def test_pictures_with_other_names_are_not_drawn(name):
    assert drawn.scene_of(Path(name)) is None
    assert drawn.draw(Picture(Path(name)), 672) is None


@pytest.mark.parametrize("content", ["photograph", "damaged", "another size"])
def test_a_file_with_other_content_is_not_replaced_by_a_drawing(tmp_path, content):
    picture = folder_of_scenes(tmp_path, 1)[0]
    if content == "damaged":
        picture.path.write_bytes(b"no picture")
    else:
        size = (SIZE, SIZE) if content == "photograph" else (300, 200)
        Image.new("RGB", size, (200, 40, 40)).save(picture.path)
    assert drawn.draw(picture, 672) is None
    mixed = Picture(
        tmp_path / f"test-{VERSION}" / "demo-00001.png", PictureEdit("mix", picture.path, 0.5, 1)
    )
    assert drawn.draw(mixed, 672) is None


def test_scenes_of_the_val_split_are_found_by_name():
    val = drawn.scene_of(Path(f"demo/val-{VERSION}/demo-val-00002.png"))
    assert val == distinct("val", 3)[2]
