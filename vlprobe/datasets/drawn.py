"""Drawn scenes by the names of their files: drawn large for people to look at, and drawn again where a file is gone.

A name alone is no proof: where the file is there, it has to show what the renderer draws.
"""

import functools
import re
from pathlib import Path

import numpy as np
from PIL import Image

from vlprobe.datasets import demo, demo_pairs, drawn_series
from vlprobe.datasets.world.contrasts import KINDS, contrasts
from vlprobe.datasets.world.renderer import VERSION, render, render_large
from vlprobe.datasets.world.scene import SIZE, Scene, distinct
from vlprobe.errors import InvalidInput
from vlprobe.perturb import mix, picture_changes
from vlprobe.scoring import pictures
from vlprobe.types import Picture

TOLERANCE = 3  # levels of 255, on average: what a large drawing may differ from its file by
_FOLDER = "demo"  # of a cache: what drawn pictures are kept in
_LARGEST_SUBSET = 400  # contrasts of one kind in any demo dataset


def draw(picture: Picture, size: int = SIZE) -> Image.Image | None:
    """A picture of the demo datasets as RGB, `size` pixels a side; None where it is another picture.

    With the size of the files, what the file holds, to the pixel. An edited picture is edited at
    the larger size. No file is read but to see whether it shows the scene that its name says.

    Args:
        picture: A picture as cases name it; its files may be gone.
        size: Pixels a side.
    """
    scene = _scene_of_file(picture.path)
    if scene is None:
        return None
    if picture.change:  # its lengths grow with the picture
        drawing = render(scene) if size == SIZE else render_large(scene, size)
        return picture_changes.apply(drawing, picture.change)
    if picture.edit is None:
        return render(scene) if size == SIZE else render_large(scene, size)
    partner = _scene_of_file(picture.edit.partner)
    if partner is None:
        return None
    scale = max(1, -(-size // SIZE))
    drawings = [
        render(drawn_scene) if scale == 1 else render_large(drawn_scene, SIZE * scale)
        for drawn_scene in (scene, partner)
    ]
    if picture.edit.kind == "patch":  # its rectangle is drawn for the size of the files
        bounds = mix.box(SIZE, SIZE, picture.edit.lam, picture.edit.seed)
        left, top, right, bottom = (scale * edge for edge in bounds)
        drawings[0].paste(drawings[1].crop((left, top, right, bottom)), (left, top))
        image = drawings[0]
    else:
        image = mix.apply(drawings[0], drawings[1], picture.edit)
    return image if image.width == size else image.resize((size, size), Image.Resampling.LANCZOS)


def redraw(path: Path) -> bytes | None:
    """The PNG file of a drawn scene by its relative name, as shipped results have it: as it would be
    in the folder `demo` of a cache. None where the path is no such name, or a file is there.
    """
    if path.is_absolute() or path.parts[:1] != (_FOLDER,) or path.exists():
        return None
    scene = scene_of(path)
    return _encoded(scene) if scene else None


def scene_of(path: Path) -> Scene | None:
    """The scene that a file's folder and name stand for; None where they stand for none."""
    if path.suffix != ".png":
        return None
    match = re.fullmatch(r"demo(?:-(val))?-(\d{5})", path.stem)
    if match and path.parent.name == f"{match[1] or 'test'}-{VERSION}":
        scenes, number = _scenes(match[1] or "test"), int(match[2])
        return scenes[number] if number < len(scenes) else None
    if path.parent.name == f"scenes-{VERSION}":
        return next(
            (
                _contrasts(split)[path.stem]
                for split in demo_pairs.SPLITS
                if path.stem in _contrasts(split)
            ),
            None,
        )
    return None


def is_drawing(path: Path) -> bool:
    """Return whether a file shows what its name says that the renderer drew, or would, where it is gone."""
    return _scene_of_file(path) is not None


def _scene_of_file(path: Path) -> Scene | None:
    """The scene of a name whose file, if there is one, shows it."""
    scene = scene_of(path)
    if scene is None or not path.exists():
        return scene
    try:
        stored = pictures.open_picture(Picture(path))
    except InvalidInput:
        return None
    if stored.size != (SIZE, SIZE):
        return None
    difference = np.asarray(stored, dtype=np.int16) - np.asarray(render(scene), dtype=np.int16)
    return scene if np.abs(difference).mean() < TOLERANCE else None


@functools.lru_cache(maxsize=64)
def _encoded(scene: Scene) -> bytes:
    return demo.encode(scene)


@functools.cache
def _scenes(split: str) -> list[Scene]:
    return distinct(split, demo.SIZES[split])


@functools.cache
def _contrasts(split: str) -> dict[str, Scene]:
    """Every scene of the pairs, triplets and series of a split, by the name of its picture's file."""
    scenes = [
        scene
        for kind in KINDS
        for contrast in contrasts(kind, split, _LARGEST_SUBSET)
        for scene in (contrast.scene, contrast.changed)
    ]
    scenes += [scene for series in drawn_series.drawn(split) for scene in series.scenes]
    return {demo_pairs.picture_name(scene): scene for scene in scenes}
