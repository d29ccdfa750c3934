"""Pictures inside other files: members of a tar, cells of a table.

The path of such a picture continues after the file that holds it. A file has no children, so such a path is
unambiguous:

    SHARD.tar/000001.jpg       a member of a tar
    TABLE.parquet/image/17     the bytes in row 17, counted from 0, of a column; .arrow and .feather too
    PHOTO.jpg/crop=3,4,50,60   the part of a picture that begins 3 pixels from the left and 4 from the top, 50
                               wide and 60 high; also of one inside another file

Files are not unpacked: bytes are read in place.
"""

import os
import re
from pathlib import Path

from vlprobe.errors import InvalidInput
from vlprobe.storage import cells, tars

CELLS = (".parquet", ".arrow", ".feather", ".ipc")
TARS = (".tar",)
CROP = re.compile(r"crop=(-?\d{1,7}),(-?\d{1,7}),(-?\d{1,7}),(-?\d{1,7})")


def holder(path: Path) -> tuple[Path, str] | None:
    """Return the file that a picture is inside of, and its name there; None of any other path."""
    for parent in path.parents:
        if parent.suffix.lower() in (*CELLS, *TARS) and parent.is_file():
            return parent, path.relative_to(parent).as_posix()
    return None


def is_file(path: Path) -> bool:
    """Return whether there is such a file, or such a picture inside of one."""
    try:
        if path.is_file():
            return True
        if crop_box(path):
            return is_file(path.parent)
        held = holder(path)
        if held is None:
            return False
        file, name = held
        return tars.has(file, name) if file.suffix.lower() in TARS else cells.has(file, name)
    except (OSError, ValueError, InvalidInput):
        return False


def crop_box(path: Path) -> tuple[int, int, int, int] | None:
    """Left, top, width and height of the part of a picture that a path means; None of any other path."""
    match = CROP.fullmatch(path.name)
    if match is None or path.parent.is_dir():
        return None
    left, top, width, height = map(int, match.groups())
    return left, top, width, height


def status(path: Path) -> os.stat_result:
    """Return size and time of the file, or of the file that contains the picture. Raises OSError."""
    try:
        return os.stat(path)
    except NotADirectoryError:
        if crop_box(path):
            return status(path.parent)
        held = holder(path)
        if held is None:
            raise
        return os.stat(held[0])


def read(path: Path) -> bytes | None:
    """Return the bytes of a picture inside a file; None if the path is not that of such a picture.

    Raises:
        InvalidInput: the file is damaged, or has no such picture.
        OSError: it cannot be read.
    """
    held = holder(path)
    if held is None:
        return None
    file, name = held
    return tars.read(file, name) if file.suffix.lower() in TARS else cells.read(file, name)
