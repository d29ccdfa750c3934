"""Held-out scenes of the demo world: 500 drawn pictures with five captions each."""

import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from vlprobe.datasets.world.captions import captions
from vlprobe.datasets.world.renderer import VERSION, render
from vlprobe.datasets.world.scene import Scene, distinct
from vlprobe.errors import NotFound
from vlprobe.scoring import pictures
from vlprobe.storage.files import write_bytes
from vlprobe.types import Item, Picture

PREFIX = "demo"
NAMES = (PREFIX,)  # `demo:val` is a second held-out split for choosing settings
SIZES = {"test": 500, "val": 500}
_CAPTIONS = 5


@dataclass(frozen=True, slots=True)
class DemoDataset:
    """Dataset of drawn scenes that were not used to train the demo models."""

    name: str
    digest: str
    items: tuple[Item, ...]


def check_name(name: str) -> None:
    """Check the split in a dataset name. Raises NotFound."""
    if (name.partition(":")[2] or "test") not in SIZES:
        raise NotFound("dataset", name, [PREFIX, *(f"{PREFIX}:{split}" for split in SIZES)])


def load(name: str, cache: Path) -> DemoDataset:
    """Load the items. On first use, draw their pictures into `cache/demo/`, which takes a few seconds.

    Raises:
        NotFound: the split is neither test nor val.
        InvalidInput: the cache folder cannot be written.
    """
    check_name(name)
    split = name.partition(":")[2] or "test"
    hasher = hashlib.blake2b(digest_size=16)
    items = []
    for item, pixels in draw_items(split, SIZES[split], cache):
        hasher.update(pixels)
        hasher.update(json.dumps([item.id, item.captions, item.tags]).encode())
        items.append(item)
    return DemoDataset(name, hasher.hexdigest(), tuple(items))


def draw_items(split: str, count: int, cache: Path) -> Iterator[tuple[Item, bytes]]:
    """Yield the first items of a split, each with the bytes of its picture, which is drawn on first use."""
    folder = cache / "demo" / f"{split}-{VERSION}"
    prefix = "demo" if split == "test" else f"demo-{split}"
    for index, scene in enumerate(distinct(split, count)):
        path = folder / f"{prefix}-{index:05}.png"
        pixels = path.read_bytes() if path.exists() else draw(scene, path)
        yield Item(path.stem, Picture(path), captions(scene, _CAPTIONS), _tags(scene)), pixels


def draw(scene: Scene, path: Path) -> bytes:
    """Render a scene, write it to a PNG file, and return the bytes of the file. Raises InvalidInput."""
    content = encode(scene)
    write_bytes(path, content, durable=False)
    return content


def encode(scene: Scene) -> bytes:
    """Render a scene and return it as the bytes of a PNG file."""
    return pictures.encode(render(scene), "PNG")


def _tags(scene: Scene) -> dict[str, str]:
    groups = scene.groups
    return {
        "background": scene.background,
        "objects": "+".join(group.object for group in groups),
        "colors": "+".join(group.color for group in groups),
        "count": "+".join(str(group.count) for group in groups),
        "relation": scene.relation or "none",
    }
