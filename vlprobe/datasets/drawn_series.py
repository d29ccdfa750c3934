"""Series in the demo world, drawn on first use: videos that change once, and candidates in a known order.

    demo-series        45 videos and 40 queries
    demo-series:val    the same for the split on which the bundled models were selected

A video has 12 frames of one scene, 2 per second. Its objects move in each frame, and at one boundary
one property changes (tag `subset`: video-color, video-number, video-object). A query has 6 candidates: the
scene that it describes, then scenes with one, two, three ... wrong facts, each with one more than the
previous. The edit of a query is the opposite relation. The order follows from the construction; in
real data, people rank the candidates. No scene that a caption in either split describes was used for training.
"""

import random
from dataclasses import dataclass, replace
from pathlib import Path

from vlprobe.datasets.demo_pairs import item_id, picture, picture_folder, split_in
from vlprobe.datasets.validation import LoadedDataset, validated
from vlprobe.datasets.world.contrasts import Contrast, contrasts
from vlprobe.datasets.world.scene import COLORS, OBJECTS, OPPOSITE, Scene, pick, stream
from vlprobe.types import Item, Series

PREFIX = "demo-series"
NAMES = (PREFIX,)
check_name = split_in  # the only part of a name after the prefix
KINDS = ("color", "number", "object")  # kinds of change in a video
SIZE = 15  # videos of each kind
QUERIES = 40
FRAMES, FPS = 12, 2
LEAST_FRAMES = 2  # on each side of the boundary


@dataclass(frozen=True, slots=True)
class DrawnSeries:
    """A sequence of scenes, and the two texts that are compared with the scenes."""

    id: str
    subset: str
    scenes: tuple[Scene, ...]
    captions: tuple[str, str]
    n_before: int = 0  # number of scenes before the boundary of a video; 0: candidates


def load(name: str, cache: Path) -> LoadedDataset:
    """Load the series. On first use, draw their pictures into `cache/demo/`, which takes about 15 seconds.

    Raises:
        NotFound: the split is neither test nor val.
        InvalidInput: the cache folder cannot be written.
    """
    folder = picture_folder(cache)
    return validated(name, [_item(series, folder) for series in drawn(split_in(name))], cache)


def drawn(split: str) -> list[DrawnSeries]:
    """Return all series in a split, videos first and then queries."""
    videos = [
        _video(item_id(PREFIX, split, kind, index), contrast)
        for kind in KINDS
        for index, contrast in enumerate(contrasts(kind, split, SIZE))
    ]
    queries = [
        _query(item_id(PREFIX, split, "order", index), contrast)
        for index, contrast in enumerate(contrasts("location", split, QUERIES))
    ]
    return videos + queries


def _item(series: DrawnSeries, folder: Path) -> Item:
    images = tuple(picture(scene, folder) for scene in series.scenes)
    n_before = series.n_before
    times = tuple(number / FPS for number in range(len(images))) if n_before else ()
    boundary = (times[n_before - 1] + times[n_before]) / 2 if n_before else 0.0
    return Item(
        series.id,
        images[max(n_before - 1, 0)],
        series.captions[:1],
        {"subset": series.subset},
        series.captions[1:],
        images[n_before] if n_before else None,
        series=Series(images, times, boundary),
    )


def _video(key: str, contrast: Contrast) -> DrawnSeries:
    rng = stream("video", key)
    n_before = LEAST_FRAMES + int(rng.random() * (FRAMES - 2 * LEAST_FRAMES + 1))
    frames = tuple(
        replace(scene, seed=int(rng.random() * 2**32))
        for scene in [contrast.scene] * n_before + [contrast.changed] * (FRAMES - n_before)
    )
    return DrawnSeries(key, f"video-{contrast.kind}", frames, contrast.captions, n_before)


def _query(key: str, contrast: Contrast) -> DrawnSeries:
    scenes = tuple(_worse(contrast.scene, stream("order", key)))
    return DrawnSeries(key, "order", scenes, contrast.captions)


def _worse(scene: Scene, rng: random.Random) -> list[Scene]:
    """Return a scene and variants that each add one wrong fact: the relation, then each color, then each object."""
    scenes = [scene, replace(scene, relation=OPPOSITE[scene.relation])]
    for position, field in ((0, "color"), (1, "color"), (0, "object"), (1, "object")):
        group = scenes[-1].groups[position]
        taken = {value for member in scene.groups for value in (member.color, member.object)}
        options = COLORS if field == "color" else [name for name in OBJECTS if name != "person"]
        value = pick(rng, [option for option in options if option not in taken])
        groups = list(scenes[-1].groups)
        groups[position] = replace(group, **{field: value})
        scenes.append(replace(scenes[-1], groups=tuple(groups)))
    return scenes
