"""Minimal pairs and foils in their released formats: Winoground, EqBen, EqBen_Mini and VALSE.

    pairs:FILE               pictures next to the file
    pairs:FILE@IMAGEDIR      add +available to use only the rows whose pictures exist, or
                             +unpictured to keep the others too, for imported scores (scores:)
    pairs:DIR@IMAGEDIR       all .json and .jsonl files in a folder

A row is recognized by its fields, at any level of nesting (EqBen's video files nest by video and subject):

    image_0, image_1, caption_0, caption_1      Winoground: image names without an ending
    image0, image1, caption0, caption1          EqBen; of a list of captions the first is used, as in EqBen's code
    image_file, caption, foil                   VALSE

In an EqBen list with pictures in several folders (EqBen_Mini), the tag
`subset` is the folder, otherwise it is the file. The item for a pair is image I1, captions (T1,), foil_image I2,
foils (T2,); a VALSE item has no second picture. VALSE foils are used if at least two of three
annotators distinguished them from the caption, or if they have no votes; +unvalidated keeps all foils. Rows that
share a picture form one cluster: they are resampled together.

YouCook2's frames are .npy arrays of height x width x 3, with 8 bits per value, in BGR order. They are written once
as BMP into cache/frames/ (without loss, and with the same bytes under every version of PIL). Any
other array is rejected.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from PIL import Image

from vlprobe.datasets import sources
from vlprobe.datasets.file_formats import check_records_head, read_records
from vlprobe.datasets.validation import LoadedDataset, clustered_by_picture, validated
from vlprobe.errors import InvalidInput
from vlprobe.scoring import pictures
from vlprobe.storage.access import refuse_outside
from vlprobe.storage.files import write_bytes
from vlprobe.types import Item, Picture

PREFIX = "pairs"
NAMES = ("pairs:FILE", "pairs:FILE@IMAGEDIR")
UNVALIDATED = "unvalidated"
OPTIONS = (sources.AVAILABLE, sources.UNPICTURED, UNVALIDATED)
VOTES = 2  # of VALSE's three annotators
DOUBTFUL = f"have a foil that fewer than {VOTES} annotators distinguished from the caption and are left out"
MAX_SUBSETS = 20  # picture folders in one list: more are probably videos, not subsets
WINOGROUND = ("image_0", "image_1", "caption_0", "caption_1")
EQBEN = ("image0", "image1", "caption0", "caption1")
VALSE = ("image_file", "caption", "foil")
LAYOUTS = (WINOGROUND, EQBEN, VALSE)
EXPECTED = f"text in {', '.join(WINOGROUND)} (Winoground), {', '.join(EQBEN)} (EqBen) or {', '.join(VALSE)} (VALSE)"
VALSE_TAGS = {"linguistic_phenomena": "phenomenon", "dataset": "dataset"}


def check_name(name: str) -> None:
    """Check a dataset name and the start of its file, without loading it. Raises NotFound or InvalidInput."""
    check_records_head(sources.parse_source(name, OPTIONS, [".json", ".jsonl"]).files[0])


def load(name: str, cache: Path) -> LoadedDataset:
    """Load the rows in the order of the files. Raises InvalidInput."""
    source = sources.parse_source(name, OPTIONS, [".json", ".jsonl"], is_pictured=True)
    rows, notes, doubtful = [], [], []
    for file in source.files:
        for row in (file_rows := _read(file)):
            rows.append((row.item, row.images))
            if not row.validated:
                doubtful.append(row.item.id)
        notes += sources.unread_columns(file, (row.unread for row in file_rows), [])
    if doubtful and UNVALIDATED not in source.options:
        predicate = f"{DOUBTFUL}; +{UNVALIDATED} keeps them"
        notes += sources.count_note(doubtful, len(rows), predicate)
        doubtful_ids = set(doubtful)
        rows = [(item, images) for item, images in rows if item.id not in doubtful_ids]
    items, picture_notes = sources.attach_pictures(source, rows, knows_unpictured=True)
    return validated(
        name, clustered_by_picture(_opened(items, cache), cache), cache, picture_notes + notes
    )


@dataclass(frozen=True, slots=True)
class _Row:
    item: Item
    images: list[str]
    validated: bool
    unread: dict[str, object]


def _read(file: Path) -> list[_Row]:
    leaves = list(_leaves(read_records(file), ()))
    if not leaves:
        raise InvalidInput(f"'{file}' contains no rows. Expected {EXPECTED}.")
    faulty = [
        "/".join(trail) or "the whole file"
        for trail, row in leaves
        if not all(_texts(row).values())
    ]
    sources.refuse_rows(file, faulty, len(leaves), EXPECTED)
    folders = [
        next(iter(_texts(row).values())).rpartition("/")[0].partition("/")[0] for _, row in leaves
    ]
    is_flat = all(len(trail) == 1 for trail, _ in leaves)
    by_folder = is_flat and all(folders) and 1 < len(set(folders)) <= MAX_SUBSETS
    return [
        _row(f"{file.stem}/{'/'.join(trail)}", folder if by_folder else file.stem, row)
        for (trail, row), folder in zip(leaves, folders, strict=True)
    ]


def _row(key: str, subset: str, row: dict) -> _Row:
    """Convert a row to an item without its pictures. In a row for a pair, other texts and numbers become tags."""
    *images, caption, foil = _texts(row).values()
    further = {field: value for field, value in row.items() if field not in (*_fields(row), "id")}
    if _fields(row) == VALSE:
        tags = {tag: further.pop(field) for field, tag in VALSE_TAGS.items() if field in further}
        votes = further.pop("mturk", None)
        votes = votes.get("caption") if isinstance(votes, dict) else None
    else:
        tags = {
            field: further.pop(field)
            for field in list(further)
            if isinstance(further[field], str | int | float)
        }
        votes = None
    tags = {"subset": subset, **{tag: str(value) for tag, value in tags.items() if value != ""}}
    is_valid = not isinstance(votes, int) or votes >= VOTES
    return _Row(Item(key, None, (caption,), tags, (foil,)), images, is_valid, further)


def _fields(row: dict) -> tuple[str, ...]:
    """Return the names of the fields (three or four) that identify the format of a row; empty for an unknown format."""
    return next((fields for fields in LAYOUTS if set(fields) <= set(row)), ())


def _texts(row: dict) -> dict[str, str]:
    """Return the stripped text in each known field of a row, pictures first. Of a list, the first entry is used."""
    values = {
        field: row[field][0] if isinstance(row[field], list) and row[field] else row[field]
        for field in _fields(row)
    }
    texts = {
        field: value.strip() if isinstance(value, str) else "" for field, value in values.items()
    }
    return texts or {"": ""}


def _leaves(content: object, trail: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], dict]]:
    """Yield each row with the keys that lead to it. A dict that contains only lists or dicts is a level of nesting."""
    if isinstance(content, list):
        for number, child in enumerate(content):
            row_id = child.get("id") if isinstance(child, dict) else None
            yield from _leaves(child, (*trail, str(number if row_id is None else row_id)))
    elif (
        isinstance(content, dict)
        and content
        and all(isinstance(child, list | dict) for child in content.values())
    ):
        for key, child in content.items():
            yield from _leaves(child, (*trail, str(key)))
    else:
        yield trail, content if isinstance(content, dict) else {}


def _opened(items: list[Item], cache: Path) -> list[Item]:
    """Convert each .npy array to a picture file, and return the items with these files as pictures."""
    arrays = list(
        dict.fromkeys(
            picture.path
            for item in items
            for picture in item.pictures
            if picture.path.suffix == ".npy" and not picture.absent
        )
    )
    frames = {
        path: Picture(_frame(path, cache / "frames" / f"{digest}.bmp"))
        for path, digest in zip(arrays, pictures.file_digests(arrays, cache), strict=True)
    }
    return [item.with_pictures(lambda picture: frames.get(picture.path, picture)) for item in items]


def _frame(path: Path, target: Path) -> Path:
    """Write an array as a picture file (atomically, and only if the file does not exist), and return its path."""
    refuse_outside(path)  # anyone may read the picture that is made from it
    if target.is_file():
        return target
    try:
        array = np.load(path, allow_pickle=False)
    except (ValueError, OSError, EOFError) as error:
        raise InvalidInput(
            f"'{path}' is not a readable array ({error}). Download it again."
        ) from None
    if array.dtype != np.uint8 or array.ndim != 3 or array.shape[2] != 3:
        raise InvalidInput(
            f"'{path}' contains {array.dtype} values of shape {array.shape}. Expected a "
            "frame: 8-bit values of shape (height, width, 3) in BGR order."
        )
    frame = Image.fromarray(np.ascontiguousarray(array[:, :, ::-1]))
    write_bytes(target, pictures.encode(frame, "BMP"), durable=False)
    return target
