"""Minimal pairs of the demo world: two drawn scenes that differ in one thing, created on first use.

    demo-pairs          300 pairs of each subset: object, color, number, location, swap
    demo-pairs:val      the same of the split that the shipped models were chosen on

No scene of either split was used for training. An item is image I1, captions (T1,), other I2, foils
(T2,).
"""

import hashlib
from pathlib import Path

from vlprobe.datasets import demo
from vlprobe.datasets.validation import LoadedDataset, validated
from vlprobe.datasets.world.contrasts import KINDS, Contrast, contrasts
from vlprobe.datasets.world.renderer import VERSION
from vlprobe.datasets.world.scene import Scene
from vlprobe.errors import NotFound
from vlprobe.types import Item, Picture

PREFIX = "demo-pairs"
SIZE = 300  # pairs of each subset
SPLITS = ("test", "val")


def names() -> list[str]:
    """Return the name of the test split."""
    return [PREFIX]


def check_name(name: str) -> None:
    """Check a name and the head of its file before loading. Raises NotFound or InvalidInput."""
    split_in(name)


def load(name: str, cache: Path) -> LoadedDataset:
    """Load the pairs, drawing missing pictures into `cache/demo/` (about 20 seconds, once).

    Raises:
        NotFound: the split is neither test nor val.
        InvalidInput: the cache folder cannot be written.
    """
    split, folder = split_in(name), picture_folder(cache)
    items = []
    for kind in KINDS:
        for index, contrast in enumerate(contrasts(kind, split, SIZE)):
            images = picture(contrast.scene, folder), picture(contrast.changed, folder)
            caption, foil = contrast.captions
            key = item_id(PREFIX, split, kind, index)
            items.append(Item(key, images[0], (caption,), tags(contrast), (foil,), images[1]))
    return validated(name, items, cache)


def split_in(name: str) -> str:
    """Return the split in a dataset's name. Raises NotFound."""
    prefix, _, split = name.partition(":")
    if (split or "test") not in SPLITS:
        raise NotFound("dataset", name, [prefix, *(f"{prefix}:{split}" for split in SPLITS)])
    return split or "test"


def item_id(prefix: str, split: str, kind: str, index: int) -> str:
    """Return the id of an item, with its split unless that is test."""
    return "-".join([prefix, *([] if split == "test" else [split]), kind, f"{index:03}"])


def tags(contrast: Contrast) -> dict[str, str]:
    """Return what changes, its position, and the original relation of the groups."""
    scene = contrast.scene
    return {
        "subset": contrast.kind,
        "background": scene.background,
        "relation": scene.relation or "none",
    }


def picture_folder(cache: Path) -> Path:
    """Return the folder for pictures of pairs and triplets, a new one for each renderer version."""
    return cache / "demo" / f"scenes-{VERSION}"


def picture(scene: Scene, folder: Path) -> Picture:
    """Return the scene's picture, drawing it if it is missing. Raises InvalidInput."""
    path = folder / f"{picture_name(scene)}.png"
    if not path.exists():
        demo.draw(scene, path)
    return Picture(path)


def picture_name(scene: Scene) -> str:
    """Return a name for a scene's picture that depends on everything that affects its pixels, so that pairs and
    triplets share pictures.
    """
    return hashlib.blake2b(repr(scene).encode(), digest_size=8).hexdigest()
