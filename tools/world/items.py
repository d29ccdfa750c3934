"""Make the items of all demo datasets: `python -m tools.world.items` writes items.parquet.

    demo                  500 scenes with five captions each; `:val` is a second held-out split
    demo-pairs            300 minimal pairs of each kind of contrast: two scenes, a caption (T1,) and a foil (T2,)
    demo-pairs:printed    the test split with captions in the templates of EqBen's figures 14 and 15, and 300 pairs each
                          with another size and another background
    demo-triplets         400 generic and 400 spatial triplets: a scene, captions (P1, P2) and a wrong caption (N,)
    demo-series           45 videos and 40 queries
    demo-train            3,000 scenes, with eight captions each, after those used to train the bundled models
    demo-train:pairs      2,000 minimal pairs of each kind

A triplet is `generic` if N is P1 with the object, color or number of one group replaced, or with the colors of
two groups exchanged (tag `edit`, 100 of each); P2 is P1 in a different word order and, if possible, in other words.
It is `spatial` if N is P1 with the opposite relation; P2 is the converse of P1: "a dog left of a cat", "a cat right
of a dog".

A video has 12 frames of one scene. Its objects move in each frame, and at one boundary one property changes (tag
`subset`: video-color, video-number, video-object). A query has 6 candidates: the scene that it describes, then
scenes with one, two, three ... wrong facts, each with one more than the previous. The edit of a query is the opposite
relation.

Splits are those of `scenes.split_of`, also for the scenes that a caption describes.
"""

import random
from collections.abc import Iterator
from dataclasses import asdict, replace

import pyarrow as pa
import pyarrow.parquet as pq

from tools.world.captions import captions
from tools.world.contrasts import (
    KINDS,
    KINDS_IN_PRINT,
    Contrast,
    contrasts,
    converse,
    in_print,
    reworded,
)
from tools.world.scenes import COLORS, OBJECTS, OPPOSITE, distinct, draw, specification
from vlprobe.datasets.world.items import FILE, DrawnItem
from vlprobe.datasets.world.scene import Scene, pick, stream

SCENES = 500
PAIRS = 300  # of each kind
TRIPLETS = {  # the change, and the number of triplets
    "generic": {"object": 100, "color": 100, "number": 100, "swap": 100},
    "spatial": {"location": 400},
}
VIDEOS = 15  # of each kind
VIDEO_KINDS = ("color", "number", "object")
QUERIES = 40
FRAMES = 12
LEAST_FRAMES = 2  # on each side of the boundary of a video
TRAINING_SCENES = range(20_000, 23_000)  # the bundled models were trained on the scenes before
TRAINING_PAIRS = 2000  # of each kind

_GROUP = pa.struct(
    [("object", pa.string()), ("color", pa.string()), ("count", pa.int8()), ("room", pa.int8())]
)
_SCENE = pa.struct(
    [
        ("background", pa.string()),
        ("groups", pa.list_(_GROUP)),
        ("relation", pa.string()),
        ("seed", pa.uint32()),
    ]
)
SCHEMA = pa.schema(
    [
        ("dataset", pa.string()),
        ("id", pa.string()),
        ("captions", pa.list_(pa.string())),
        ("foils", pa.list_(pa.string())),
        ("tags", pa.map_(pa.string(), pa.string())),
        ("scenes", pa.list_(_SCENE)),
        ("n_before", pa.int8()),
    ]
)


def datasets() -> Iterator[tuple[str, list[DrawnItem]]]:
    """Yield the name and the items of each dataset."""
    for split in ("test", "val"):
        part = "" if split == "test" else f":{split}"
        yield f"demo{part}", scenes(split)
        yield f"demo-pairs{part}", pairs("demo-pairs", split, split, PAIRS)
        yield f"demo-triplets{part}", triplets(split)
        yield f"demo-series{part}", series(split)
    yield "demo-pairs:printed", pairs("demo-pairs", "printed", "test", PAIRS)
    yield "demo-train", training_scenes()
    yield "demo-train:pairs", pairs("demo-train", "pairs", "train", TRAINING_PAIRS)


def scenes(split: str) -> list[DrawnItem]:
    """Return the items of `demo` in a split."""
    prefix = "demo" if split == "test" else f"demo-{split}"
    return [
        DrawnItem(f"{prefix}-{index:05}", captions(scene, 5), (), _scene_tags(scene), (scene,), 0)
        for index, scene in enumerate(distinct(split, SCENES))
    ]


def training_scenes() -> list[DrawnItem]:
    """Return the items of `demo-train`."""
    numbered = ((index, draw("train", index)) for index in TRAINING_SCENES)
    return [
        DrawnItem(f"demo-train-{index:05}", captions(scene, 8, "training"), (), {}, (scene,), 0)
        for index, scene in numbered
    ]


def pairs(prefix: str, part: str, split: str, size: int) -> list[DrawnItem]:
    """Return `size` pairs of each kind in a split. `part` is the middle of their ids (see `item_id`)."""
    items = []
    for kind in KINDS_IN_PRINT if part == "printed" else KINDS:
        for index, contrast in enumerate(contrasts(kind, split, size)):
            if part == "printed":
                contrast = in_print(contrast)
            caption, foil = contrast.captions
            both = contrast.scene, contrast.changed
            key = item_id(prefix, part, kind, index)
            items.append(DrawnItem(key, (caption,), (foil,), _tags(contrast), both, 0))
    return items


def triplets(split: str) -> list[DrawnItem]:
    """Return the items of `demo-triplets` in a split."""
    return [
        _triplet(item_id("demo-triplets", split, kind, index), subset, contrast)
        for subset, sizes in TRIPLETS.items()
        for kind, size in sizes.items()
        for index, contrast in enumerate(contrasts(kind, split, size))
    ]


def _triplet(key: str, subset: str, contrast: Contrast) -> DrawnItem:
    scene = contrast.scene
    caption, negative = contrast.captions
    reword = converse if subset == "spatial" else reworded
    second = reword(contrast.wording, scene, stream("second", scene.seed, specification(scene)))
    tags = _tags(contrast) | {"subset": subset, "edit": contrast.kind}
    return DrawnItem(key, (caption, second), (negative,), tags, (scene,), 0)


def series(split: str) -> list[DrawnItem]:
    """Return the items of `demo-series` in a split, videos first and then queries."""
    videos = [
        _video(item_id("demo-series", split, kind, index), contrast)
        for kind in VIDEO_KINDS
        for index, contrast in enumerate(contrasts(kind, split, VIDEOS))
    ]
    queries = [
        _query(item_id("demo-series", split, "order", index), contrast)
        for index, contrast in enumerate(contrasts("location", split, QUERIES))
    ]
    return videos + queries


def _video(key: str, contrast: Contrast) -> DrawnItem:
    rng = stream("video", key)
    n_before = LEAST_FRAMES + int(rng.random() * (FRAMES - 2 * LEAST_FRAMES + 1))
    frames = tuple(
        replace(scene, seed=int(rng.random() * 2**32))
        for scene in [contrast.scene] * n_before + [contrast.changed] * (FRAMES - n_before)
    )
    caption, foil = contrast.captions
    tags = {"subset": f"video-{contrast.kind}"}
    return DrawnItem(key, (caption,), (foil,), tags, frames, n_before)


def _query(key: str, contrast: Contrast) -> DrawnItem:
    candidates = tuple(_worse(contrast.scene, stream("order", key)))
    caption, foil = contrast.captions
    return DrawnItem(key, (caption,), (foil,), {"subset": "order"}, candidates, 0)


def _worse(scene: Scene, rng: random.Random) -> list[Scene]:
    """Return a scene and variants that each add one wrong fact: the relation, then each color, then each object."""
    variants = [scene, replace(scene, relation=OPPOSITE[scene.relation])]
    for position, field in ((0, "color"), (1, "color"), (0, "object"), (1, "object")):
        group = variants[-1].groups[position]
        taken = {value for member in scene.groups for value in (member.color, member.object)}
        options = COLORS if field == "color" else [name for name in OBJECTS if name != "person"]
        value = pick(rng, [option for option in options if option not in taken])
        groups = list(variants[-1].groups)
        groups[position] = replace(group, **{field: value})
        variants.append(replace(variants[-1], groups=tuple(groups)))
    return variants


def item_id(prefix: str, part: str, kind: str, index: int) -> str:
    """Build an item id. It contains the name of the split, except for the test split."""
    return "-".join([prefix, *([] if part == "test" else [part]), kind, f"{index:03}"])


def _scene_tags(scene: Scene) -> dict[str, str]:
    groups = scene.groups
    return {
        "background": scene.background,
        "objects": "+".join(group.object for group in groups),
        "colors": "+".join(group.color for group in groups),
        "count": "+".join(str(group.count) for group in groups),
        "relation": scene.relation or "none",
    }


def _tags(contrast: Contrast) -> dict[str, str]:
    """Return the tags of a contrast: the kind of change, the background, and the original relation of the groups."""
    return {
        "subset": contrast.kind,
        "background": contrast.scene.background,
        "relation": contrast.scene.relation or "none",
    }


def write() -> None:
    """Write the items of all datasets, each dataset in a row group of its own."""
    with pq.ParquetWriter(FILE, SCHEMA, compression="zstd", compression_level=19) as writer:
        for name, items in datasets():
            rows = [{"dataset": name} | asdict(item) for item in items]
            for row in rows:
                row["tags"] = list(row["tags"].items())
            writer.write_table(pa.Table.from_pylist(rows, SCHEMA))


if __name__ == "__main__":
    write()
