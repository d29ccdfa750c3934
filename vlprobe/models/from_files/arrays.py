"""Readers for arrays that NumPy saved. A .npy file is memory-mapped, and an archive is read into memory.

NumPy itself compares the size in a header with the file before it allocates memory, and no object is unpickled.
"""

import lzma
import math
import tokenize
import zipfile
import zlib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np

from vlprobe.errors import InvalidInput, first_line
from vlprobe.models.score_table import MAX_BYTES, MAX_CELLS, MAX_TEXT_BYTES
from vlprobe.storage import files
from vlprobe.storage.access import refuse_outside

BLOCK_BYTES = 16 << 20  # size of the blocks in which an array is read
# Errors that NumPy, zipfile and its decompressors raise for damaged files
DAMAGED = (
    *(ValueError, TypeError, KeyError, SyntaxError, tokenize.TokenError, RecursionError),
    *(OSError, EOFError, OverflowError, MemoryError, RuntimeError, NotImplementedError),
    *(zipfile.BadZipFile, zlib.error, lzma.LZMAError),
)


def check_readable(file: Path) -> int:
    """Check that a path is a regular file that may be read, and return its size. Raises InvalidInput."""
    refuse_outside(file)
    try:
        files.require_regular(file)
        with file.open("rb"):
            return file.stat().st_size
    except OSError as error:
        raise InvalidInput(
            f"'{file}' cannot be read ({error.strerror}). Check the path and its permissions."
        ) from None


def check_file(
    file: Path,
    suffixes: Sequence[str],
    texts: Sequence[str],
    expected: str,
    unlimited: Sequence[str] = (),
) -> None:
    """Raise InvalidInput if a file cannot hold answers because of its suffix, size or location.

    Args:
        file: The path of the file.
        suffixes: All allowed suffixes.
        texts: The suffixes of text files, which take many times their size in memory.
        expected: A description of the expected content, for error messages.
        unlimited: The suffixes of files that may have any size.
    """
    refuse_outside(file)  # before the suffix, so that a path outside the roots reveals nothing
    suffix = file.suffix.lower()
    if suffix not in suffixes:
        raise InvalidInput(
            f"'{file}' has an unknown file extension. Expected {expected} in "
            f"{', '.join(suffixes)}, or a folder of .npy files."
        )
    size = check_readable(file)
    limit = MAX_TEXT_BYTES if suffix in texts else MAX_BYTES
    if suffix not in unlimited and size > limit:
        raise InvalidInput(
            f"'{file}' is {size >> 20:,} MiB. The maximum is {limit >> 20} MiB; save "
            f"{expected} as .npy or .parquet."
        )


def mapped(file: Path) -> np.ndarray:
    """Memory-map a .npy file as read-only. Raises InvalidInput."""
    check_readable(file)
    try:
        # A shape beyond any memory overflows, then raises an error
        with np.errstate(over="ignore"):
            return np.lib.format.open_memmap(file, "r")
    except DAMAGED as error:
        raise _damaged(file, error) from None


def read_archive(
    file: Path, required: Sequence[str] = (), optional: Sequence[str] = ()
) -> dict[str, np.ndarray]:
    """Read all arrays in an .npz file, by name. Raises InvalidInput, also if a required array is missing.

    Args:
        file: The path of the file.
        required: The names of required arrays.
        optional: The names of optional arrays, for the error message.
    """
    check_readable(file)
    try:
        with zipfile.ZipFile(file) as archive:
            if sum(member.file_size for member in archive.infolist()) > MAX_BYTES:
                raise InvalidInput(
                    f"'{file}' unpacks to more than {MAX_BYTES >> 20} MiB. Expected only "
                    "arrays of numbers or ids."
                )
        with np.load(file, allow_pickle=False) as members:
            arrays = {name: members[name] for name in members.files}
    except DAMAGED as error:
        raise _damaged(file, error) from None
    for name, array in arrays.items():
        if not isinstance(array, np.ndarray) or array.size > MAX_CELLS:
            raise InvalidInput(
                f"'{file}': '{name}' is not an array of at most {MAX_CELLS:,} numbers or ids."
            )
    if not arrays.keys() >= set(required):
        verb = "is" if len(optional) == 1 else "are"
        addition = f"; {' and '.join(map(repr, optional))} {verb} optional" if optional else ""
        raise InvalidInput(
            f"'{file}' contains {', '.join(arrays) or 'nothing'}. Expected "
            f"{' and '.join(map(repr, required))}{addition}."
        )
    return arrays


def ids_in(file: Path, arrays: Mapping[str, np.ndarray], name: str) -> list[str] | None:
    """Return the ids in one of the arrays of an archive, or None if the array is missing. Raises InvalidInput."""
    ids = arrays.get(name)
    if ids is None:
        return None
    if ids.ndim != 1 or ids.dtype.kind not in "USiu":
        raise InvalidInput(
            f"'{file}': '{name}' has type {ids.dtype} and shape {ids.shape}. Expected one "
            "string per row."
        )
    return [
        key.decode("utf-8", "replace") if isinstance(key, bytes) else str(key)
        for key in ids.tolist()
    ]


def row_blocks(array: np.ndarray) -> Iterator[tuple[int, np.ndarray]]:
    """Yield blocks of rows as float64, at most BLOCK_BYTES each, with the number of the first row in the block."""
    size = max(1, BLOCK_BYTES // (8 * max(math.prod(array.shape[1:]), 1)))
    for start in range(0, len(array), size):
        yield start, np.asarray(array[start : start + size], dtype=np.float64)


def _damaged(file: Path, error: Exception) -> InvalidInput:
    return InvalidInput(
        f"'{file}' cannot be read as numbers ({first_line(error)}). Expected a complete file "
        "saved by NumPy, without Python objects."
    )
