"""Pictures for the Playground: from a dataset, uploaded, mixed, partly blacked out, or stored.

Pictures stay in memory; only `keep` writes to disk.
"""

import functools
import itertools
import re
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from PIL import Image

from vlprobe import registry
from vlprobe.datasets.world import items
from vlprobe.datasets.world.renderer import render
from vlprobe.errors import InvalidInput
from vlprobe.perturb import influence, mix
from vlprobe.scoring import pictures
from vlprobe.storage import access, mine
from vlprobe.storage.files import lock, write_bytes
from vlprobe.types import PictureEdit

# Pixels: more than any model here looks at, and few enough to draw 16 blacked-out copies
MAX_SIDE = 1024
UPLOAD_PIXELS = 51_000_000  # as many as phone cameras have
SHELF = 200  # pictures offered per dataset
DEMO_SHELF = 40  # demo pictures, drawn on demand so that nothing must be stored first
GRID = 4  # cells along each side of the grid of parts
_decoding = threading.Lock()
_UNSAFE = re.compile(r"[^a-z0-9]+")


@dataclass(frozen=True, slots=True)
class Canvas:
    """An RGB picture in memory that is drawn on demand. The key identifies its pixels."""

    key: bytes
    draw: Callable[[], Image.Image]


@dataclass(frozen=True, slots=True)
class Exhibit:
    """A picture from a dataset, with its captions."""

    id: str
    captions: tuple[str, ...]
    open: Callable[[], Image.Image]
    picture: str = ""  # stored name of the picture; "" if it is drawn


def shelf(dataset: str, cache: Path) -> tuple[Exhibit, ...]:
    """Return the first pictures in a dataset. Raises NotFound or InvalidInput."""
    count = DEMO_SHELF if dataset == "demo" else SHELF
    offered = tuple(itertools.islice(_exhibits(dataset, cache), count))
    if not offered:
        raise InvalidInput(f"Dataset '{dataset}' has no pictures. Choose another one.")
    return offered


def exhibit(dataset: str, cache: Path, item_id: str) -> Exhibit | None:
    """Return the picture for one item, or None if the dataset does not have the item or its picture is not here.
    Raises NotFound or InvalidInput.
    """
    return next((each for each in _exhibits(dataset, cache) if each.id == item_id), None)


def _exhibits(dataset: str, cache: Path) -> Iterator[Exhibit]:
    """Yield the pictures in a dataset. Demo pictures are drawn in memory."""
    if dataset == "demo":
        for row in items.read(dataset):
            yield Exhibit(row.id, row.captions, functools.partial(render, row.scenes[0]))
        return
    for item in registry.load_dataset(dataset, cache).items:
        if item.image and not item.image.absent:
            open_image = functools.partial(pictures.open_picture, item.image)
            yield Exhibit(item.id, item.captions, open_image, item.image.name)


def canvas(image: Image.Image) -> Canvas:
    """Create a picture for the Playground from an RGB image, scaled down to at most MAX_SIDE pixels per side."""
    if max(image.size) > MAX_SIDE:
        image = image.copy()
        image.thumbnail((MAX_SIDE, MAX_SIDE))
    return Canvas(pictures.content_key((str(image.size).encode(), image.tobytes())), lambda: image)


def uploaded(content: bytes, name: str) -> Canvas:
    """Decode an uploaded picture. Raises InvalidInput.

    Only one picture is decoded at a time in this process, because a picture with UPLOAD_PIXELS pixels uses up to
    0.5 GB until it is scaled down.
    """
    with _decoding:
        return canvas(pictures.decode(content, name, most_pixels=UPLOAD_PIXELS))


def without_parts(picture: Canvas) -> list[Canvas]:
    """Return one copy of the picture for each grid cell, with that cell blacked out, row by row. Raises InvalidInput
    if the picture has too few pixels.
    """

    def canvas_without(box: influence.Box) -> Canvas:
        key = pictures.content_key((picture.key, str(box).encode()))
        return Canvas(key, lambda: influence.without_cell(picture.draw(), box))

    return list(map(canvas_without, influence.grid_cells(picture.draw().size, GRID)))


def edited(picture: Canvas, partner: Canvas, kind: Literal["mix", "patch"], lam: float) -> Canvas:
    """Return the picture blended with a partner, or with a patch from the partner pasted in; `lam`
    (0 < lam < 1) is the share of the picture that remains.
    """
    edit = PictureEdit(kind, Path(partner.key.hex()), lam, mix.SEEDS[0])
    # Each model draws it, which takes 5 to 12 ms.
    draw = functools.cache(lambda: mix.apply(picture.draw(), partner.draw(), edit))
    described = f"{kind} {lam!r}".encode()
    return Canvas(pictures.content_key((picture.key, partner.key, described)), draw)


def keep(picture: Canvas, caption: str, name: str, cache: Path) -> Path:
    """Store a picture and its caption in the `folder:` format. If the picture is already stored, only the caption is
    added.

    The picture is stored as it was scored: upright, RGB, at most MAX_SIDE pixels per side, without
    camera metadata.

    Args:
        caption: A caption on one line.
        name: The dataset name; only its letters and digits are used for the folder name.

    Returns:
        The dataset's folder.

    Raises:
        InvalidInput: the name has no letter or digit, the caption is empty, or the folder cannot be
            written.
    """
    access.refuse_writing()
    safe = _UNSAFE.sub("-", name.lower()).strip("-")[:40].rstrip("-")
    line = " ".join(caption.split())
    if not safe:
        raise InvalidInput(
            f"The name '{name}' must contain at least one digit or letter from a to z. Choose "
            "another name."
        )
    if not line:
        raise InvalidInput("The caption is empty. Type what the picture shows.")
    folder = cache / "kept" / safe  # results name this path, so older versions' pictures stay
    if not folder.is_dir():
        folder = cache / mine.FOLDER / "kept" / safe
    file = folder / f"{picture.key.hex()}.png"
    text = file.with_suffix(".txt")
    content = pictures.encode(picture.draw(), "PNG")
    # Two people may store the same picture at once
    with lock(folder.parent / f".{safe}.lock", lambda: None):
        captions = text.read_text(encoding="utf-8").splitlines() if text.exists() else []
        write_bytes(file, content)
        lines = dict.fromkeys([*captions, line])
        write_bytes(text, "".join(f"{each}\n" for each in lines).encode())
    return folder
