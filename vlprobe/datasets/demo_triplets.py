"""Triplets in the demo world: a drawn scene, two true captions with the same meaning, and a wrong caption.

    demo-triplets        two subsets of 400
    demo-triplets:val    the same for the split on which the bundled models were selected

`generic`: the wrong caption N is P1 with the object, color or number of one group replaced, or
with the colors of two groups exchanged (tag `edit`, 100 of each). P2 is P1 in a different word order and,
if possible, in other words. `spatial`: N is P1 with the opposite relation, and P2 is the
converse of P1: "a dog left of a cat", "a cat right of a dog". An item is captions (P1, P2), foils
(N,). Neither the scenes nor any scene that N describes was used for training.
"""

from pathlib import Path

from vlprobe.datasets.demo_pairs import item_id, picture, picture_folder, split_in, tags
from vlprobe.datasets.validation import LoadedDataset, validated
from vlprobe.datasets.world.contrasts import Contrast, contrasts, converse, reworded
from vlprobe.datasets.world.scene import stream
from vlprobe.types import Item

PREFIX = "demo-triplets"
NAMES = (PREFIX,)
check_name = split_in  # the only part of a name after the prefix
SUBSETS = {  # the change, and the number of triplets
    "generic": {"object": 100, "color": 100, "number": 100, "swap": 100},
    "spatial": {"location": 400},
}


def load(name: str, cache: Path) -> LoadedDataset:
    """Load the triplets. On first use, draw their pictures into `cache/demo/`, which takes a few seconds.

    Raises:
        NotFound: the split is neither test nor val.
        InvalidInput: the cache folder cannot be written.
    """
    split, folder = split_in(name), picture_folder(cache)
    items = []
    for subset, sizes in SUBSETS.items():
        for kind, size in sizes.items():
            for index, contrast in enumerate(contrasts(kind, split, size)):
                caption, negative = contrast.captions
                key = item_id(PREFIX, split, kind, index)
                item_tags = tags(contrast) | {"subset": subset, "edit": kind}
                image = picture(contrast.scene, folder)
                items.append(
                    Item(
                        key,
                        image,
                        (caption, _second_caption(subset, contrast)),
                        item_tags,
                        (negative,),
                    )
                )
    return validated(name, items, cache)


def _second_caption(subset: str, contrast: Contrast) -> str:
    rng = stream("second", contrast.scene.seed, contrast.scene.specification)
    reword = converse if subset == "spatial" else reworded
    return reword(contrast.wording, contrast.scene, rng)
