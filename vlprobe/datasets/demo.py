"""Datasets of drawn scenes, none of which was used to train the bundled models. Pictures are drawn on first use.

    demo              500 scenes with five captions each
    demo-pairs        300 minimal pairs of each kind: two scenes that differ in an object, a color, a number, their
                      places or swapped colors, and a caption for each. `:printed` has captions in the templates of
                      EqBen's figures 14 and 15, and pairs with another size and another background
    demo-triplets     400 generic and 400 spatial triplets: two true captions and a wrong one
    demo-series       45 videos with 12 frames, 2 per second, that change once, and 40 queries with 6 candidates, each
                      worse than the previous
    demo-train        3,000 scenes with eight captions each, to train on
    demo-train:pairs  300 minimal pairs of each kind to train on; `:N` for 1 to 2,000

`:val` is the split on which the bundled models were selected. For how the items are made, see `tools/world/items.py`.
"""

import hashlib
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from vlprobe.datasets.validation import LoadedDataset, validated
from vlprobe.datasets.world import items
from vlprobe.datasets.world.items import DrawnItem
from vlprobe.datasets.world.renderer import VERSION, render
from vlprobe.datasets.world.scene import Scene
from vlprobe.errors import InvalidInput, NotFound
from vlprobe.scoring import pictures
from vlprobe.storage.files import write_bytes
from vlprobe.types import Item, Picture, Series

PREFIX = "demo"
FPS = 2  # frames per second of a video
TRAINING_PAIRS = 300  # of each kind, if the name has no number
MOST_TRAINING_PAIRS = 2000  # of each kind: 20,000 pictures


@dataclass(frozen=True, slots=True)
class DrawnFamily:
    """A registry family of drawn datasets."""

    PREFIX: str
    parts: tuple[str, ...]  # after a colon, as written in error messages
    NAMES: tuple[str, ...]

    def check_name(self, name: str) -> None:
        """Raise NotFound for an unknown part, or InvalidInput for a number of pairs that is out of range."""
        self._source(name)

    def load(self, name: str, cache: Path) -> LoadedDataset:
        """Load the items. On first use, draw their pictures into `cache/demo/`, which takes up to 20 seconds.

        Raises:
            NotFound: the family has no part with this name.
            InvalidInput: the number of pairs is out of range, or the cache folder cannot be written.
        """
        dataset, n_pairs = self._source(name)
        if self.PREFIX == PREFIX:
            hasher, loaded = hashlib.blake2b(digest_size=16), []
            for item, pixels in draw_items(dataset, cache):
                hasher.update(pixels)
                hasher.update(json.dumps([item.id, item.captions, item.tags]).encode())
                loaded.append(item)
            return LoadedDataset(name, hasher.hexdigest(), tuple(loaded))
        rows = items.read(dataset)
        if n_pairs:  # an id ends with the number within its kind
            rows = [row for row in rows if int(row.id.rpartition("-")[2]) < n_pairs]
        folder = cache / "demo" / f"scenes-{VERSION}"
        return validated(name, [_item(row, folder) for row in rows], cache)

    def _source(self, name: str) -> tuple[str, int]:
        """Return the name in items.parquet, and the number of pairs of each kind, or 0 for all items."""
        _, _, part = name.partition(":")
        if self.PREFIX == "demo-train" and part.partition(":")[0] == "pairs" and part[-1] != ":":
            number = part.partition(":")[2] or str(TRAINING_PAIRS)
            is_number = re.fullmatch("[0-9]{1,4}", number)
            if not is_number or not 1 <= int(number) <= MOST_TRAINING_PAIRS:
                raise InvalidInput(
                    f"'{name}' requests '{number}' pairs of each kind. Expected a whole number from "
                    f"1 to {MOST_TRAINING_PAIRS:,}, such as demo-train:pairs:1200."
                )
            return "demo-train:pairs", int(number)
        if part and part not in self.parts:
            known = [self.PREFIX, *(f"{self.PREFIX}:{each}" for each in self.parts)]
            raise NotFound("dataset", name, known)
        return self.PREFIX if part in ("", "test") else f"{self.PREFIX}:{part}", 0


_SPLITS = ("test", "val")
FAMILIES = (
    DrawnFamily(PREFIX, _SPLITS, (PREFIX,)),
    DrawnFamily("demo-pairs", (*_SPLITS, "printed"), ("demo-pairs",)),
    DrawnFamily("demo-series", _SPLITS, ("demo-series",)),
    DrawnFamily("demo-train", ("pairs", "pairs:1200"), ()),  # not offered to the probes
    DrawnFamily("demo-triplets", _SPLITS, ("demo-triplets",)),
)


def draw_items(dataset: str, cache: Path, count: int | None = None) -> Iterator[tuple[Item, bytes]]:
    """Yield the items of `demo` or `demo:val` (all, or the first `count`), each with the bytes of its picture."""
    folder = cache / "demo" / f"{'val' if dataset == 'demo:val' else 'test'}-{VERSION}"
    for row in islice(items.read(dataset), count):
        path = folder / f"{row.id}.png"
        pixels = path.read_bytes() if path.exists() else draw(row.scenes[0], path)
        yield Item(row.id, Picture(path), row.captions, row.tags), pixels


def draw(scene: Scene, path: Path) -> bytes:
    """Render a scene, write it to a PNG file, and return the bytes of the file. Raises InvalidInput."""
    content = encode(scene)
    write_bytes(path, content, durable=False)
    return content


def encode(scene: Scene) -> bytes:
    """Render a scene and return it as the bytes of a PNG file."""
    return pictures.encode(render(scene), "PNG")


def _item(row: DrawnItem, folder: Path) -> Item:
    images = [Picture(folder / f"{picture_name(scene)}.png") for scene in row.scenes]
    for scene, image in zip(row.scenes, images, strict=True):
        if not image.path.exists():
            draw(scene, image.path)
    if len(images) <= 2:
        foil_image = images[1] if len(images) == 2 else None
        return Item(row.id, images[0], row.captions, row.tags, row.foils, foil_image)
    n_before = row.n_before
    series, image, foil_image = Series(tuple(images), (), 0.0), images[0], None
    if n_before:
        times = tuple(number / FPS for number in range(len(images)))
        series = Series(tuple(images), times, (n_before - 0.5) / FPS)
        image, foil_image = images[n_before - 1], images[n_before]
    return Item(row.id, image, row.captions, row.tags, row.foils, foil_image, series=series)


def picture_name(scene: Scene) -> str:
    """Return the file name for a scene's picture: a hash of everything that affects its pixels, so that pairs and
    triplets that show the same scene share one file.
    """
    return hashlib.blake2b(repr(scene).encode(), digest_size=8).hexdigest()
