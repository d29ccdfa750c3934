"""Arrays that NumPy saved, looked at where they lie on the disk: nothing is unpickled, and what a
header claims is compared with the file before a byte is mapped.
"""

import hashlib
import json
import math
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from vlprobe.errors import InvalidInput
from vlprobe.models.score_arrays import DAMAGED_ARRAY, HEADERS
from vlprobe.storage import files
from vlprobe.storage.access import refuse_outside

BLOCK_BYTES = 16 << 20  # of an array that is looked through


def check_readable(file: Path) -> int:
    """The size of a regular file that may be read. Raises InvalidInput."""
    refuse_outside(file)
    try:
        files.require_regular(file)
        with file.open("rb"):
            return file.stat().st_size
    except OSError as error:
        raise InvalidInput(
            f"'{file}' cannot be read ({error.strerror}). Check the path and who may read it."
        ) from None


def file_digest(file: Path) -> str:
    """32 hex digits that name the bytes of a file of any size."""
    with file.open("rb") as handle:
        return hashlib.file_digest(handle, lambda: hashlib.blake2b(digest_size=16)).hexdigest()


def text_digest(texts: Sequence[str]) -> str:
    """32 hex digits that name these texts, in this order."""
    return hashlib.blake2b(json.dumps(texts).encode(), digest_size=16).hexdigest()


def mapped(file: Path) -> np.ndarray:
    """An .npy file of numbers as an array on the disk, read-only. Raises InvalidInput."""
    size = check_readable(file)
    try:
        with file.open("rb") as handle:
            shape, is_fortran, dtype = HEADERS[np.lib.format.read_magic(handle)](handle)
            offset = handle.tell()
        if dtype.hasobject:
            raise ValueError("it holds Python objects")
        if min(shape, default=0) < 0 or offset + math.prod(shape) * dtype.itemsize > size:
            raise ValueError(f"it says that it has the shape {shape}, and has {size:,} bytes")
        if dtype.kind not in "fiu":
            raise ValueError(f"it holds {dtype}")
        if not math.prod(shape):
            return np.empty(shape, dtype)
        return np.memmap(file, dtype, "r", offset, shape, "F" if is_fortran else "C")
    except DAMAGED_ARRAY as error:
        reason = str(error).partition("\n")[0][:160].rstrip(".") or type(error).__name__
        raise InvalidInput(
            f"'{file}' cannot be read as numbers ({reason}). Expected a whole .npy file that NumPy saved, without "
            "objects."
        ) from None


def row_blocks(array: np.ndarray) -> Iterator[tuple[int, np.ndarray]]:
    """Blocks of rows as float64, with the number of the first; BLOCK_BYTES at once."""
    width = math.prod(array.shape[1:])
    size = max(1, BLOCK_BYTES // (8 * max(width, 1)))
    for start in range(0, len(array), size):
        yield start, np.asarray(array[start : start + size], dtype=np.float64)
