"""Scenes of the demo world to train on: drawn on first use, of the split that no probe asks about.

    demo-train          3,000 scenes behind those that the shipped models were trained on, with eight captions each
    demo-train:pairs    300 minimal pairs of each kind, as `demo-pairs` has them: two pictures an item

A split owns what is shown, not how it is drawn: nothing here is shown by an item of `demo`,
`demo-pairs` or `demo-triplets` either.
"""

from pathlib import Path

from vlprobe.datasets import demo_pairs
from vlprobe.datasets.validation import LoadedDataset, validated
from vlprobe.datasets.world.captions import captions
from vlprobe.datasets.world.contrasts import KINDS, contrasts
from vlprobe.datasets.world.scene import draw
from vlprobe.errors import NotFound
from vlprobe.types import Item

PREFIX = "demo-train"
SCENES = 3000
PAIRS = 300  # of each kind
_FIRST_INDEX = 20_000  # the shipped models were trained on the scenes before
_CAPTIONS = 8


def names() -> list[str]:
    """None: what is for training is not offered to the probes."""
    return []


def load(name: str, cache: Path) -> LoadedDataset:
    """The items, their pictures drawn into `cache/demo/` where they are not there yet (under a
    minute, once).

    Raises:
        NotFound: neither of the two.
        InvalidInput: the cache folder cannot be written.
    """
    subset, folder = name.partition(":")[2], demo_pairs.picture_folder(cache)
    if subset not in ("", "pairs"):
        raise NotFound("dataset", name, [PREFIX, f"{PREFIX}:pairs"])
    items = []
    if not subset:
        for index in range(_FIRST_INDEX, _FIRST_INDEX + SCENES):
            scene = draw("train", index)
            picture = demo_pairs.picture(scene, folder)
            items.append(
                Item(f"{PREFIX}-{index:05}", picture, captions(scene, _CAPTIONS, "training")),
            )
        return validated(name, items, cache)
    for kind in KINDS:
        for index, contrast in enumerate(contrasts(kind, "train", PAIRS)):
            images = [
                demo_pairs.picture(scene, folder) for scene in (contrast.scene, contrast.changed)
            ]
            caption, foil = contrast.captions
            key = demo_pairs.item_id(PREFIX, "pairs", kind, index)
            items.append(
                Item(key, images[0], (caption,), demo_pairs.tags(contrast), (foil,), images[1]),
            )
    return validated(name, items, cache)
