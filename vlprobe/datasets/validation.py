"""Check the items in a dataset and compute a digest of its contents.

Every defect raises an InvalidInput whose message is one line. Nothing is dropped silently.
"""

import hashlib
import json
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from vlprobe.errors import InvalidInput
from vlprobe.scoring import pictures
from vlprobe.storage import containers, files
from vlprobe.types import Item, Picture

MAX_CHARACTERS = 20_000  # in a caption: far more than any model reads
MAX_TAGS = 100  # in a dataset
RESERVED = ("picture", "setting")  # names of an item's cluster and its setting in the digest


@dataclass(frozen=True, slots=True)
class LoadedDataset:
    """A dataset that has been read and has passed all checks."""

    name: str
    digest: str
    items: tuple[Item, ...]
    notes: tuple[str, ...] = ()  # for people who read its numbers


def validated(
    name: str, items: Sequence[Item], cache: Path, notes: Sequence[str] = ()
) -> LoadedDataset:
    """Check the items and build a dataset from them.

    Args:
        items: Items in the order of evaluation.
        notes: Sentences for people who read the dataset's numbers; the error about a dataset without items quotes them.

    Raises:
        InvalidInput: no items, a duplicate id, an item without captions, a text that is empty, longer
            than MAX_CHARACTERS or has a lone surrogate, more than MAX_TAGS tags, or missing image files.
    """
    if notes and not items:
        raise InvalidInput(f"No items are left in '{name}'. {' '.join(notes)}")
    if not items:
        raise InvalidInput(
            f"Dataset '{name}' has no items. It needs at least one image with a caption."
        )
    twice = [key for key, count in Counter(item.id for item in items).items() if count > 1]
    if twice:
        raise InvalidInput(
            f"Dataset '{name}' has {len(twice)} duplicate ids (first: '{twice[0]}'). Ids "
            "must be unique."
        )
    for item in items:
        _refuse_texts(name, item)
    tags = {tag for item in items for tag in item.tags}
    if len(tags) > MAX_TAGS:
        raise InvalidInput(
            f"'{name}' has {len(tags):,} tags. The maximum is {MAX_TAGS}; remove some columns."
        )
    for picture in _pictures(items):
        files.require_utf8(picture.path, f"a picture of '{name}'")
    images = image_files(items)
    missing = [file for file in images if not containers.is_file(file)]
    if missing:
        raise InvalidInput(
            f"{len(missing)} of {len(images)} images in '{name}' are missing (first: "
            f"'{missing[0]}'). Add the files, or remove their rows."
        )
    return LoadedDataset(name, dataset_digest(items, cache), tuple(items), tuple(notes))


def _refuse_texts(name: str, item: Item) -> None:
    """Raise InvalidInput if an item has no captions, or a text that is empty, too long or not UTF-8."""
    if not item.captions:
        raise InvalidInput(
            f"Item '{item.id}' in '{name}' has no caption. Add a caption or remove the image."
        )
    for kind, texts in (("Caption", item.captions), ("Foil", item.foils)):
        empty = [number for number, text in enumerate(texts, 1) if not text.strip()]
        if empty:
            raise InvalidInput(
                f"{kind} {empty[0]} of item '{item.id}' in '{name}' is empty. Add text, or "
                f"remove the {kind.lower()}."
            )
        too_long = [text for text in texts if len(text) > MAX_CHARACTERS]
        if too_long:
            raise InvalidInput(
                f"A {kind.lower()} of item '{item.id}' in '{name}' has {len(too_long[0]):,} "
                f"characters. Expected at most {MAX_CHARACTERS:,}; shorten the text."
            )
    for text in (
        item.id,
        item.cluster,
        *item.captions,
        *item.foils,
        *item.tags,
        *item.tags.values(),
    ):
        surrogate = None if text.isascii() else files.SURROGATE.search(text)
        if surrogate:
            raise InvalidInput(
                f"Item '{item.id}' in '{name}' contains an incomplete character (a lone "
                f"surrogate, as in '{surrogate[0]}'). Save the text again as UTF-8."
            )


def dataset_digest(items: Sequence[Item], cache: Path) -> str:
    """Compute the digest of a dataset: 32 hex digits that depend on the ids, captions, foils, tags and image bytes of
    the items, in order, but not on file names.

    A cluster and a setting are hashed as tags with the names in RESERVED, because older versions stored them as tags
    and their digests must stay valid. A user's tag with one of these names is marked, so that its digest differs from
    that of a cluster.

    Args:
        items: Items whose image files exist.
    """
    digests = image_digests(items, cache)
    hasher = hashlib.blake2b(digest_size=16)
    for item in items:
        image_bytes = [
            digests[picture.path] if picture else None for picture in (item.image, item.foil_image)
        ]
        fields = zip(RESERVED, (item.cluster, item.setting), strict=True)
        labels = [*item.tags.items(), *((name, value) for name, value in fields if value)]
        row = [item.id, item.captions, item.foils, sorted(labels), *image_bytes]
        if marked := sorted(set(item.tags).intersection(RESERVED)):
            row.append(marked)
        if series := item.series:
            order = [digests[picture.path] for picture in series.pictures]
            row.append([order, series.times, series.boundary, series.edit_order])
        hasher.update(json.dumps(row).encode() + b"\n")
    return hasher.hexdigest()


def clustered_by_picture(items: Sequence[Item], cache: Path) -> list[Item]:
    """Assign items that share a picture (byte for byte, in any role) to the same cluster, and return all items.

    Clusters are connected components: items (A, B) and (B, C) form one cluster although pictures A and C differ, since
    B's score is in both. This is the finest division in which no picture occurs in two clusters. A cluster is named
    after its first item; an item that shares no picture has no cluster.

    Args:
        items: Items whose image files exist.

    Raises:
        InvalidInput: an image file cannot be read.
    """
    digests = image_digests(items, cache)
    parents = list(range(len(items)))  # a union-find forest over the items' indices
    first_with: dict[str, int] = {}  # digest of a picture -> index of the first item that has it
    for index, item in enumerate(items):
        for picture in item.pictures:
            ends = (
                _root(parents, first_with.setdefault(digests[picture.path], index)),
                _root(parents, index),
            )
            parents[max(ends)] = min(ends)
    roots = [_root(parents, index) for index in range(len(items))]
    sizes = Counter(roots)
    return [
        replace(item, cluster=items[root].id) if sizes[root] > 1 else item
        for item, root in zip(items, roots, strict=True)
    ]


def _root(parents: list[int], index: int) -> int:
    """Return the root of the union-find tree that contains an item, and shorten the path to the root by half."""
    while parents[index] != index:
        parents[index] = parents[parents[index]]
        index = parents[index]
    return index


def image_files(items: Sequence[Item]) -> list[Path]:
    """Return the existing image files of all items, in the order of the items and without duplicates."""
    return list(dict.fromkeys(picture.path for picture in _pictures(items) if not picture.absent))


def _pictures(items: Sequence[Item]) -> Iterator[Picture]:
    for item in items:
        yield from item.pictures


def image_digests(items: Sequence[Item], cache: Path) -> dict[Path, str]:
    """Return the digest of each image file's bytes. For a missing file, the digest is derived from its name.

    Raises InvalidInput if a file cannot be read.
    """
    images = image_files(items)
    absent = {
        picture.path: f"absent {picture.absent}" for picture in _pictures(items) if picture.absent
    }
    return absent | dict(zip(images, pictures.file_digests(images, cache), strict=True))
