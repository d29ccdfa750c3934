"""Pictures and captions that a user dropped on the Run page.

They are kept in `dropped/` of the cache, so that runs can be repeated. `vlprobe remove` removes them with their last
run. Those that are not run within a day are removed when others are dropped.
"""

import hashlib
import os
import tempfile
from collections.abc import Sequence
from pathlib import Path, PurePosixPath
from typing import Protocol

from vlprobe.datasets import csv
from vlprobe.datasets.folder import SUFFIXES
from vlprobe.errors import InvalidInput, printable
from vlprobe.runs.verify import DROPPED
from vlprobe.scoring import pictures
from vlprobe.storage.files import write_bytes

MOST_FILES = 5_000
MOST_BYTES = 1 << 30
LONGEST_NAME = 200  # bytes; file systems allow 255, and a temporary name is longer
TEXTS = (".csv", ".json", ".txt")
CHECKED_SIDE = 32  # pixels; a JPEG is decoded at a reduced scale of at least this side


class DroppedFile(Protocol):
    """A file that was uploaded."""

    name: str
    size: int

    def getvalue(self) -> bytes:
        """Return the content."""
        ...


def keep(files: Sequence[DroppedFile], cache: Path) -> tuple[str, list[str]]:
    """Write dropped files to the cache.

    Returns:
        The name of a dataset, and the names of the files that were left out because they are no images.

    Raises:
        InvalidInput: There are too many files or bytes, several tables, no picture, or a name that is too long,
            not printable or used twice, also in two folders of the table; or the cache cannot be written.
    """
    if len(files) > MOST_FILES or sum(file.size for file in files) > MOST_BYTES:
        raise InvalidInput(
            f"{len(files):,} files are too many. Expected at most {MOST_FILES:,} files and 1 GB; "
            "for more, type the path of their folder."
        )
    contents: dict[str, bytes] = {}
    left_out = []
    for file in files:
        name = PurePosixPath(file.name.replace("\\", "/")).name
        if len(name.encode(errors="replace")) > LONGEST_NAME or not name.isprintable():
            raise InvalidInput(
                f"The file name '{printable(name[:40])}' cannot be used. Rename the file."
            )
        if _is_usable(name, content := file.getvalue()):
            if contents.setdefault(name, content) != content:
                raise InvalidInput(f"Two different files are called '{name}'. Rename one of them.")
        else:
            left_out.append(name)
    if not any(_suffix(name) in SUFFIXES for name in contents):
        raise InvalidInput("No picture was dropped. Drop the pictures with their captions.")
    tables = [name for name in contents if _suffix(name) == ".csv"]
    if len(tables) > 1:
        raise InvalidInput(f"{len(tables)} tables were dropped. Expected at most one CSV file.")
    hasher = hashlib.blake2b(digest_size=8)
    for name in sorted(contents):
        hasher.update(f"{len(name)} {name} {len(contents[name])} ".encode())
        hasher.update(contents[name])
    places = _places(tables[0], contents[tables[0]]) if tables else {}
    for name in contents.keys() & places:
        if len(places[name]) > 1:
            raise InvalidInput(
                f"The table names two pictures '{name}' in different folders. Rename one, or type "
                "the path of the folder."
            )
    folder = cache.resolve() / DROPPED / hasher.hexdigest()
    for name in tables:
        write_bytes(folder / name, contents.pop(name), durable=False)
    for name, content in contents.items():
        file = folder / "".join(places.get(name, [name]))
        if not file.exists():
            write_bytes(file, content, durable=False)
    os.utime(folder)  # the day begins when they were dropped last
    return f"csv:{folder / tables[0]}" if tables else f"folder:{folder}", left_out


def _places(table: str, content: bytes) -> dict[str, set[str]]:
    """Return where a table expects each picture, relative to its folder, by file name. A browser sends names without
    folders. Pictures in a folder that is called like the table are left out.
    """
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, table)
        file.write_bytes(content)
        try:
            paths = [PurePosixPath(item.id.replace("\\", "/")) for item in csv.read_items(file)]
        except InvalidInput:  # the form says why
            return {}
    places: dict[str, set[str]] = {}
    for path in paths:
        if not path.is_absolute() and ".." not in path.parts and path.parts[:1] != (table,):
            places.setdefault(path.name, set()).add(str(path))
    return places


def _suffix(name: str) -> str:
    return PurePosixPath(name).suffix.lower()


def _is_usable(name: str, content: bytes) -> bool:
    """Return whether a file is a list of captions or an image that can be read."""
    if _suffix(name) in TEXTS:
        return True
    if _suffix(name) not in SUFFIXES:
        return False
    try:
        pictures.decode(content, name, least_side=CHECKED_SIDE)
    except InvalidInput:
        return False
    return True
