"""Minimal pairs and foils as they were released: Winoground, EqBen, EqBen_Mini and VALSE.

    pairs:FILE               pictures beside the file
    pairs:FILE@IMAGEDIR      add +available to use only the rows whose pictures are there
    pairs:DIR@IMAGEDIR       all .json and .jsonl files of a folder

A row is found by its fields, wherever it is nested (EqBen's video files nest by video and subject):

    image_0, image_1, caption_0, caption_1      Winoground: image names without an ending
    image0, image1, caption0, caption1          EqBen; of a list of captions the first is used, as EqBen's code does
    image_file, caption, foil                   VALSE

In a list of EqBen's whose pictures lie in several folders (EqBen_Mini), the folder is the tag `subset`, else the file.
An item of a pair is image I1, captions (T1,), other I2, foils (T2,); a VALSE item has no other picture. Of VALSE only
the foils are used that at least two of three annotators told from the caption, and those without votes; +unvalidated
keeps them all.

YouCook2's frames are .npy arrays of height x width x 3, 8 bits, blue first: they are written once as BMP into
cache/frames/ (without loss, and with the same bytes under every version of PIL). Any other array is refused.
"""

import os
import uuid
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
from PIL import Image

from vlprobe import pictures
from vlprobe.datasets import released
from vlprobe.datasets.checks import Loaded, checked
from vlprobe.errors import InvalidInput
from vlprobe.types import Item, Picture

PREFIX = "pairs"
UNVALIDATED = "unvalidated"
VOTES = 2  # of VALSE's three annotators
MAX_SUBSETS = 20  # folders of pictures in one list: more are not subsets but, say, videos
FIELDS = {
    "Winoground": ("image_0", "image_1", "caption_0", "caption_1"),
    "EqBen": ("image0", "image1", "caption0", "caption1"),
    "VALSE": ("image_file", "caption", "foil"),
}
EXPECTED = "rows with " + " or ".join(f"{', '.join(fields)} ({name})" for name, fields in FIELDS.items())
VALSE_TAGS = {"linguistic_phenomena": "phenomenon", "dataset": "dataset"}


def names() -> list[str]:
    """The form of a name; FILE and IMAGEDIR stand for paths."""
    return ["pairs:FILE", "pairs:FILE@IMAGEDIR"]


def load(name: str, cache: Path) -> Loaded:
    """Rows in the order of the files. Raises InvalidInput."""
    source = released.source(name, [released.AVAILABLE, UNVALIDATED], [".json", ".jsonl"])
    if source.images is None:
        source = replace(source, images=source.files[0].parent)
    rows, notes, invalid, total = [], [], [], 0
    for file in source.files:
        found, ignored, rejected = _read(file)
        total += len(found)
        notes += ignored
        invalid += rejected
        rows += found
    if invalid and UNVALIDATED not in source.options:
        notes += released.counted(
            invalid,
            total,
            f"have a foil that fewer than {VOTES} annotators told from the caption and are left out; "
            f"+{UNVALIDATED} keeps them",
        )
        rejected = set(invalid)
        rows = [(item, images) for item, images in rows if item.id not in rejected]
    items, more = released.attach(source, rows)
    return checked(name, _opened(items, cache), cache, notes + more)


def _read(file: Path) -> tuple[list[tuple[Item, list[str]]], list[str], list[str]]:
    """Items with the names of their pictures, notes, and the ids of items that annotators did not validate."""
    leaves = list(_leaves(released.read_records(file), ()))
    if not leaves:
        raise InvalidInput(f"'{file}' holds no rows. Expected {EXPECTED}.")
    kinds = [next((kind for kind, fields in FIELDS.items() if set(fields) <= set(row)), "") for _, row in leaves]
    texts = [_texts(row, FIELDS[kind]) if kind else [] for (_, row), kind in zip(leaves, kinds, strict=True)]
    faulty = [
        "/".join(trail) or "the whole"
        for (trail, _), found in zip(leaves, texts, strict=True)
        if not all(found or [""])
    ]
    released.refuse(file, faulty, len(leaves), EXPECTED)
    folders = {found[0].partition("/")[0] for found in texts}
    by_folder = all(len(trail) == 1 and "/" in found[0] for (trail, _), found in zip(leaves, texts, strict=True))
    by_folder = by_folder and 1 < len(folders) <= MAX_SUBSETS
    rows, invalid, unread = [], [], Counter()
    for (trail, row), kind, found in zip(leaves, kinds, texts, strict=True):
        subset = found[0].partition("/")[0] if by_folder else file.stem
        tags, others = _tags(row, kind)
        unread.update(others)
        key = f"{file.stem}/{'/'.join(trail)}"
        if kind == "VALSE":
            image, caption, foil = found
            item, images = Item(key, None, (caption,), {"subset": subset, **tags}, (foil,)), [image]
            votes = row["mturk"].get("caption") if isinstance(row.get("mturk"), dict) else None
            if isinstance(votes, int) and votes < VOTES:
                invalid.append(key)
        else:
            *images, caption, foil = found
            item = Item(key, None, (caption,), {"subset": subset, **tags}, (foil,))
        rows.append((item, images))
    notes = [f"Columns of {file.name} that are not read: {', '.join(sorted(unread))}."] if unread else []
    return rows, notes, invalid


def _leaves(content: object, trail: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], dict]]:
    """Rows, each with the keys that lead to it: a dict of lists or dicts only is a level of nesting."""
    if isinstance(content, list):
        for number, part in enumerate(content):
            named = part.get("id") if isinstance(part, dict) else None
            yield from _leaves(part, (*trail, str(number if named is None else named)))
    elif isinstance(content, dict) and content and all(isinstance(part, list | dict) for part in content.values()):
        for key, part in content.items():
            yield from _leaves(part, (*trail, str(key)))
    else:
        yield trail, content if isinstance(content, dict) else {}


def _texts(row: dict, fields: tuple[str, ...]) -> list[str]:
    """The row's fields, stripped; of a list the first; empty where there is no text."""
    values = [row[field][0] if isinstance(row[field], list) and row[field] else row[field] for field in fields]
    return [value.strip() if isinstance(value, str) else "" for value in values]


def _tags(row: dict, kind: str) -> tuple[dict[str, str], list[str]]:
    """Tags of a row, and its fields that are not read. Of a pair, any further text or number is a tag."""
    others = {field: value for field, value in row.items() if field not in (*FIELDS[kind], "id")}
    if kind == "VALSE":
        tags = {tag: str(others[field]) for field, tag in VALSE_TAGS.items() if field in others}
        return tags, [field for field in others if field not in (*VALSE_TAGS, "mturk")]
    simple = {field: str(value) for field, value in others.items() if isinstance(value, str | int | float)}
    return {field: value for field, value in simple.items() if value}, [
        field for field in others if field not in simple
    ]


def _opened(items: list[Item], cache: Path) -> list[Item]:
    """The items with frames in place of .npy arrays."""
    arrays = list(
        dict.fromkeys(
            picture.path for item in items for picture in (item.image, item.other) if picture and _is_array(picture)
        )
    )
    frames = {
        path: Picture(_frame(path, cache / "frames" / f"{digest}.bmp"))
        for path, digest in zip(arrays, pictures.file_digests(arrays, cache), strict=True)
    }
    return [
        replace(
            item,
            image=frames.get(item.image.path, item.image),
            other=item.other and frames.get(item.other.path, item.other),
        )
        for item in items
    ]


def _is_array(picture: Picture) -> bool:
    return picture.path.suffix == ".npy"


def _frame(path: Path, target: Path) -> Path:
    """Writes an array as a picture, unless it is there; aside and then moved, so that a file that exists is whole."""
    if target.is_file():
        return target
    try:
        array = np.load(path, allow_pickle=False)
    except (ValueError, OSError, EOFError) as error:
        raise InvalidInput(f"'{path}' is not an array that can be read ({error}). Fetch it again.") from None
    if array.dtype != np.uint8 or array.ndim != 3 or array.shape[2] != 3:
        raise InvalidInput(
            f"'{path}' holds {array.dtype} numbers of shape {array.shape}. "
            "Expected a frame: 8-bit numbers of shape (height, width, 3), blue first."
        )
    aside = target.with_name(f".{target.name}.{uuid.uuid4().hex}.tmp")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(np.ascontiguousarray(array[:, :, ::-1])).save(aside, format="BMP")
        os.replace(aside, target)
    except OSError as error:
        raise InvalidInput(f"Cannot write '{target}' ({error.strerror}). Choose another folder with --cache.") from None
    return target
