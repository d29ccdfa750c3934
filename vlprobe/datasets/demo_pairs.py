"""Minimal pairs in the demo world: two scenes that differ in one property, drawn on first use.

    demo-pairs          300 pairs in each subset: object, color, number, location, swap
    demo-pairs:val      the same for the split on which the bundled models were selected
    demo-pairs:printed  the test split with captions in the templates of EqBen's figures 14 and 15

No scene in either split was used for training. An item is image I1, captions (T1,), foil_image I2, foils
(T2,).
"""

import hashlib
from pathlib import Path

from vlprobe.datasets import demo
from vlprobe.datasets.validation import LoadedDataset, validated
from vlprobe.datasets.world.contrasts import KINDS, Contrast, contrasts, in_print
from vlprobe.datasets.world.renderer import VERSION
from vlprobe.datasets.world.scene import Scene
from vlprobe.errors import NotFound
from vlprobe.types import Item, Picture

PREFIX = "demo-pairs"
NAMES = (PREFIX,)
SIZE = 300  # pairs of each subset
SPLITS = ("test", "val")
PRINTED = "printed"


def load(name: str, cache: Path) -> LoadedDataset:
    """Load the pairs. On first use, draw their pictures into `cache/demo/`, which takes about 20 seconds.

    Raises:
        NotFound: the split is neither test nor val.
        InvalidInput: the cache folder cannot be written.
    """
    check_name(name)
    part = name.partition(":")[2] or "test"
    split = "test" if part == PRINTED else part
    return validated(name, minimal_pairs(PREFIX, part, split, SIZE, cache), cache)


def minimal_pairs(prefix: str, part: str, split: str, size: int, cache: Path) -> list[Item]:
    """Build `size` pairs of each kind from the scenes in a split. `part` is the middle of their ids (see `item_id`)."""
    folder = picture_folder(cache)
    items = []
    for kind in KINDS:
        for index, contrast in enumerate(contrasts(kind, split, size)):
            if part == PRINTED:
                contrast = in_print(contrast)
            images = picture(contrast.scene, folder), picture(contrast.changed, folder)
            caption, foil = contrast.captions
            key = item_id(prefix, part, kind, index)
            items.append(Item(key, images[0], (caption,), tags(contrast), (foil,), images[1]))
    return items


def split_in(name: str) -> str:
    """Return the split that a dataset name selects; test if it selects none. Raises NotFound."""
    prefix, _, split = name.partition(":")
    if (split or "test") not in SPLITS:
        raise NotFound("dataset", name, [prefix, *(f"{prefix}:{split}" for split in SPLITS)])
    return split or "test"


def check_name(name: str) -> None:
    """Check the part of a name after the prefix: a split, or PRINTED. Raises NotFound."""
    if name.partition(":")[2] != PRINTED:
        split_in(name)


def item_id(prefix: str, split: str, kind: str, index: int) -> str:
    """Build an item id. It contains the name of the split, except for the test split."""
    return "-".join([prefix, *([] if split == "test" else [split]), kind, f"{index:03}"])


def tags(contrast: Contrast) -> dict[str, str]:
    """Return the tags of a contrast: the kind of change, the background, and the original relation of the groups."""
    scene = contrast.scene
    return {
        "subset": contrast.kind,
        "background": scene.background,
        "relation": scene.relation or "none",
    }


def picture_folder(cache: Path) -> Path:
    """Return the cache folder for the pictures of pairs and triplets. Each renderer version has its own folder."""
    return cache / "demo" / f"scenes-{VERSION}"


def picture(scene: Scene, folder: Path) -> Picture:
    """Return the picture of a scene. Draw its file first if it is missing. Raises InvalidInput."""
    path = folder / f"{picture_name(scene)}.png"
    if not path.exists():
        demo.draw(scene, path)
    return Picture(path)


def picture_name(scene: Scene) -> str:
    """Return the file name for a scene's picture: a hash of everything that affects its pixels, so that pairs and
    triplets that show the same scene share one file.
    """
    return hashlib.blake2b(repr(scene).encode(), digest_size=8).hexdigest()
