"""What every dataset read from files must hold, and the digest that names its contents. A defect is an error of one
line; nothing is dropped in silence."""

import hashlib
import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from vlprobe.errors import InvalidInput
from vlprobe.scoring import pictures
from vlprobe.storage import files
from vlprobe.storage.access import refuse_outside
from vlprobe.types import Item

LONGEST = 20_000  # letters of a caption: far more than any model reads
TAGS = 100  # of a dataset
RESERVED = ("picture", "setting")  # what the digest calls an item's cluster and its setting


@dataclass(frozen=True, slots=True)
class Loaded:
    """A dataset that has been read and checked."""

    name: str
    digest: str
    items: tuple[Item, ...]
    notes: tuple[str, ...] = ()  # what a reader of its numbers should know


def checked(name: str, items: Sequence[Item], cache: Path, notes: Sequence[str] = ()) -> Loaded:
    """The items as a dataset, if none of them has a defect.

    Raises:
        InvalidInput: no items, an id twice, no caption, an empty caption, or image files that are not there.
    """
    if not items:
        raise InvalidInput(f"Dataset '{name}' has no items. Expected at least one image with a caption.")
    twice = [key for key, count in Counter(item.id for item in items).items() if count > 1]
    if twice:
        raise InvalidInput(
            f"Dataset '{name}' has {len(twice)} ids more than once (first: '{twice[0]}'). Give each its own."
        )
    for item in items:
        if not item.captions:
            raise InvalidInput(f"Item '{item.id}' of '{name}' has no caption. Write one, or leave its image out.")
        for kind, texts in (("Caption", item.captions), ("Foil", item.foils)):
            empty = [number for number, text in enumerate(texts, 1) if not text.strip()]
            if empty:
                raise InvalidInput(
                    f"{kind} {empty[0]} of item '{item.id}' in '{name}' is empty. Fill it in or remove it."
                )
            long = [text for text in texts if len(text) > LONGEST]
            if long:
                raise InvalidInput(
                    f"A {kind.lower()} of item '{item.id}' in '{name}' has {len(long[0]):,} letters. "
                    f"Expected at most {LONGEST:,}; shorten it."
                )
        for text in (item.id, item.cluster, *item.captions, *item.foils, *item.tags, *item.tags.values()):
            half = None if text.isascii() else files.SURROGATE.search(text)
            if half:
                raise InvalidInput(
                    f"Item '{item.id}' of '{name}' holds half of a character (as in '{half[0]}'). "
                    "Write the whole character."
                )
    tags = {tag for item in items for tag in item.tags}
    if len(tags) > TAGS:
        raise InvalidInput(
            f"'{name}' has {len(tags):,} tags. Expected at most {TAGS}: results are cut by each; leave columns out."
        )
    images = _image_files(items)
    for file in images:
        files.require_utf8(file, f"a picture of '{name}'")
    missing = [file for file in images if not _is_file(file)]
    if missing:
        raise InvalidInput(
            f"{len(missing)} of {len(images)} images of '{name}' are missing (first: '{missing[0]}'). "
            "Put the files there, or remove their rows."
        )
    return Loaded(name, dataset_digest(items, cache), tuple(items), tuple(notes))


def dataset_digest(items: Sequence[Item], cache: Path) -> str:
    """32 hex digits that name ids, captions, foils, tags and the bytes of the images, in order; not the file names.

    A cluster and a setting are named under the words of RESERVED, which they once were tags of: the digests of those
    days hold. A tag of such a name is marked, so that it names another dataset than the cluster or setting does.

    Args:
        items: Whose image files exist.
        cache: Where the digests of image files are kept, so that a second call need not read them.
    """
    images = _image_files(items)
    contents = dict(zip(images, pictures.file_digests(images, cache), strict=True))
    hasher = hashlib.blake2b(digest_size=16)
    for item in items:
        seen = [contents[picture.path] if picture else None for picture in (item.image, item.foil_image)]
        fields = zip(RESERVED, (item.cluster, item.setting), strict=True)
        labels = [*item.tags.items(), *((name, value) for name, value in fields if value)]
        row = [item.id, item.captions, item.foils, sorted(labels), *seen]
        if marked := sorted(set(item.tags).intersection(RESERVED)):
            row.append(marked)
        hasher.update(json.dumps(row).encode() + b"\n")
    return hasher.hexdigest()


def clustered_by_picture(items: Sequence[Item], cache: Path) -> list[Item]:
    """The items, those that share a picture (byte for byte, as `image` or as `other`) in one cluster.

    Clusters are the connected components of "shares a picture": the finest division in which no picture is in two of
    them. Pairs (A, B) and (B, C) are one cluster although A and C differ, since B's score is in both. A cluster is
    named by its first item; an item that shares none has no cluster.

    Args:
        items: Whose image files exist.
        cache: Where the digests of image files are kept.

    Raises:
        InvalidInput: an image file cannot be read.
    """
    images = _image_files(items)
    contents = dict(zip(images, pictures.file_digests(images, cache), strict=True))
    root = list(range(len(items)))

    def find(number: int) -> int:
        while root[number] != number:
            root[number] = root[root[number]]
            number = root[number]
        return number

    first_with: dict[str, int] = {}
    for number, item in enumerate(items):
        for picture in filter(None, (item.image, item.foil_image)):
            ends = find(first_with.setdefault(contents[picture.path], number)), find(number)
            root[max(ends)] = min(ends)
    roots = [find(number) for number in range(len(items))]
    sizes = Counter(roots)
    return [
        replace(item, cluster=items[top].id) if sizes[top] > 1 else item for item, top in zip(items, roots, strict=True)
    ]


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except OSError:  # no file can have that name
        return False


def _image_files(items: Sequence[Item]) -> list[Path]:
    return list(dict.fromkeys(picture.path for item in items for picture in (item.image, item.foil_image) if picture))


def read_text(path: Path) -> str:
    """A UTF-8 file, with or without byte order mark. Raises InvalidInput."""
    refuse_outside(path)
    try:
        return files.read(path).decode("utf-8-sig").replace("\r\n", "\n").replace("\r", "\n")
    except FileNotFoundError:
        raise InvalidInput(f"'{path}' does not exist. Check the path of the dataset.") from None
    except OSError as error:
        raise InvalidInput(f"'{path}' cannot be read ({error.strerror}). Expected a text file.") from None
    except UnicodeDecodeError as error:
        raise InvalidInput(f"'{path}' is not UTF-8 (byte {error.start}). Save it as UTF-8.") from None


def read_json(path: Path) -> object:
    """What a JSON file says. Raises InvalidInput with the place of the first mistake."""
    text = read_text(path)
    try:
        return files.parse_json(text, unique=True)
    except ValueError as error:
        raise InvalidInput(
            f"'{path}' is not valid JSON ({error}). Expected a whole file; fetch or save it again."
        ) from None
