"""Redraw scenes from the names of their picture files: at a larger size for people, or because a file is gone.

A file name alone proves nothing: if the file exists, it must show the picture that the renderer draws.
"""

import functools
import re
from pathlib import Path

import numpy as np
from PIL import Image

from vlprobe.datasets import demo
from vlprobe.datasets.world import items
from vlprobe.datasets.world.renderer import VERSION, render
from vlprobe.datasets.world.scene import SIZE, Scene
from vlprobe.errors import InvalidInput
from vlprobe.perturb import mix, picture_changes
from vlprobe.scoring import pictures
from vlprobe.types import Picture

TOLERANCE = 3  # levels of 255: largest mean difference between a large drawing and its file
_FOLDER = "demo"  # folder of drawn pictures in a cache
_PAIRED = ("demo-pairs", "demo-triplets", "demo-series")  # datasets that share a folder of pictures


def draw(picture: Picture, size: int = SIZE) -> Image.Image | None:
    """Draw a picture of the demo datasets as RGB with `size` pixels per side; return None for any other picture.

    At the size of the files, the result equals the file, pixel for pixel. If the picture has an edit, it is
    applied at the larger size. Files are only read to check that they show the scene
    that their name identifies.

    Args:
        picture: A picture as named in cases; its files may be gone.
    """
    scene = _scene_of_file(picture.path)
    if scene is None:
        return None
    if picture.change:  # its lengths scale with the picture
        return picture_changes.apply(render(scene, size), picture.change)
    if picture.edit is None:
        return render(scene, size)
    partner = _scene_of_file(picture.edit.partner)
    if partner is None:
        return None
    scale = max(1, -(-size // SIZE))
    drawings = [render(drawn_scene, SIZE * scale) for drawn_scene in (scene, partner)]
    if picture.edit.kind == "patch":  # its rectangle is drawn for the size of the files
        bounds = mix.box(SIZE, SIZE, picture.edit.lam, picture.edit.seed)
        left, top, right, bottom = (scale * edge for edge in bounds)
        drawings[0].paste(drawings[1].crop((left, top, right, bottom)), (left, top))
        image = drawings[0]
    else:
        image = mix.apply(drawings[0], drawings[1], picture.edit)
    return image if image.width == size else image.resize((size, size), Image.Resampling.LANCZOS)


def redraw(path: Path) -> bytes | None:
    """Draw the scene that a relative file name in the bundled results identifies, and return the bytes of a PNG file.
    Return None if the path is not such a name, or if the file exists.
    """
    if path.is_absolute() or path.parts[:1] != (_FOLDER,) or path.exists():
        return None
    scene = scene_of(path)
    return demo.encode(scene) if scene else None


def scene_of(path: Path) -> Scene | None:
    """Return the scene identified by a file's folder and name; None if they identify no scene."""
    if path.suffix != ".png":
        return None
    match = re.fullmatch(r"demo(?:-(val))?-\d{5}", path.stem)
    if match and path.parent.name == f"{match[1] or 'test'}-{VERSION}":
        return _scenes(f":{match[1]}" if match[1] else "").get(path.stem)
    if path.parent.name == f"scenes-{VERSION}":
        scenes = (_paired_scenes(part).get(path.stem) for part in ("", ":val", ":printed"))
        return next(filter(None, scenes), None)
    return None


def is_drawing(path: Path) -> bool:
    """Return whether a file shows the scene that its name identifies. If the file is gone, the name alone decides."""
    return _scene_of_file(path) is not None


def _scene_of_file(path: Path) -> Scene | None:
    """Return the scene identified by a file name; None if there is none, or if the file shows something else."""
    scene = scene_of(path)
    if scene is None or not path.exists():
        return scene
    try:
        picture_of_file = pictures.open_picture(Picture(path))
    except InvalidInput:
        return None
    if picture_of_file.size != (SIZE, SIZE):
        return None
    shown, drawn = (np.asarray(each, dtype=np.int16) for each in (picture_of_file, render(scene)))
    difference = shown - drawn
    return scene if np.abs(difference).mean() < TOLERANCE else None


@functools.cache  # 18 ms, and each picture needs it
def _scenes(part: str) -> dict[str, Scene]:
    """Return the scenes of `demo` ("") or `demo:val` (":val"), by item id."""
    return {row.id: row.scenes[0] for row in items.read(f"demo{part}")}


@functools.cache  # .16 s, and each picture needs it
def _paired_scenes(part: str) -> dict[str, Scene]:
    """Return every scene in the pairs, triplets and series of a split, by picture name."""
    return {
        demo.picture_name(scene): scene
        for dataset in _PAIRED
        for row in items.read(f"{dataset}{part}")
        for scene in row.scenes
    }
