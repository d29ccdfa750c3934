"""Training scenes in the demo world, drawn on first use, from the split that no probe uses.

    demo-train          3,000 scenes, with eight captions each, that follow those used to train the bundled models
    demo-train:pairs    300 minimal pairs of each kind, as in `demo-pairs`: two pictures per item
    demo-train:pairs:N  N pairs of each kind, 1 to 2,000; a larger N begins with the same pairs as a smaller N

A split is defined by the content of scenes, not by their drawings: no scene here has the same content as a scene
in `demo`, `demo-pairs` or `demo-triplets`.
"""

import re
from pathlib import Path

from vlprobe.datasets import demo_pairs
from vlprobe.datasets.validation import LoadedDataset, validated
from vlprobe.datasets.world.captions import captions
from vlprobe.datasets.world.scene import draw
from vlprobe.errors import InvalidInput, NotFound
from vlprobe.types import Item

PREFIX = "demo-train"
NAMES = ()  # training data is not offered to the probes
SCENES = 3000
PAIRS = 300  # of each kind
MOST_PAIRS = 2000  # of each kind, at most: 20,000 pictures
_FIRST_INDEX = 20_000  # the bundled models were trained on the scenes before this index
_CAPTIONS = 8


def load(name: str, cache: Path) -> LoadedDataset:
    """Load the items. On first use, draw their pictures into `cache/demo/`, which takes less than a minute.

    Raises:
        NotFound: the name has none of the three forms.
        InvalidInput: the number of pairs is out of range, or the cache folder cannot be written.
    """
    subset, folder = name.partition(":")[2], demo_pairs.picture_folder(cache)
    kind_of_items, _, number = subset.partition(":")
    if kind_of_items not in ("", "pairs") or subset.startswith(":") or subset.endswith(":"):
        raise NotFound("dataset", name, [PREFIX, f"{PREFIX}:pairs", f"{PREFIX}:pairs:1200"])
    if subset:
        n_pairs = _pairs_of(name, number)
        items = demo_pairs.minimal_pairs(PREFIX, "pairs", "train", n_pairs, cache)
    else:
        items = []
        for index in range(_FIRST_INDEX, _FIRST_INDEX + SCENES):
            scene = draw("train", index)
            image = demo_pairs.picture(scene, folder)
            items.append(
                Item(f"{PREFIX}-{index:05}", image, captions(scene, _CAPTIONS, "training"))
            )
    return validated(name, items, cache)


def _pairs_of(name: str, number: str) -> int:
    """Return the number of pairs per kind that a dataset name requests; PAIRS if the name contains no number."""
    if not number:
        return PAIRS
    if not re.fullmatch("[0-9]{1,4}", number) or not 1 <= int(number) <= MOST_PAIRS:
        raise InvalidInput(
            f"'{name}' requests '{number}' pairs of each kind. Expected a whole number from 1 to "
            f"{MOST_PAIRS:,}, such as {PREFIX}:pairs:1200."
        )
    return int(number)
