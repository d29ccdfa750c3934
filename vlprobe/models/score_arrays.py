"""Scores that NumPy saved, as one array or as an archive of arrays; no object is unpickled."""

import io
import lzma
import math
import tokenize
import zipfile
import zlib
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from vlprobe.errors import InvalidInput
from vlprobe.models.score_table import MAX_BYTES, MAX_CELLS, ScoreTable, row_of_key
from vlprobe.storage import files

HEADERS = {
    (1, 0): np.lib.format.read_array_header_1_0,
    (2, 0): np.lib.format.read_array_header_2_0,
}
# What zipfile and its decompressors raise of damaged archives
DAMAGED_ARCHIVE = (
    *(zipfile.BadZipFile, zlib.error, lzma.LZMAError, OSError, EOFError),
    *(ValueError, RuntimeError, NotImplementedError),
)
# What NumPy raises of damaged headers
DAMAGED_ARRAY = (
    *(ValueError, TypeError, KeyError, SyntaxError, tokenize.TokenError),
    *(OSError, EOFError, RecursionError, OverflowError),
)


def parse_arrays(file: Path, content: bytes, mapping: Mapping[str, str]) -> ScoreTable:
    """The scores of an array, or of an archive of arrays. Raises InvalidInput.

    Args:
        file: Its name, for its ending and for errors.
        content: Its bytes.
        mapping: Of an archive: the arrays of `score` and of `key`.
    """
    if file.suffix.lower() == ".npy":
        if mapping:
            raise InvalidInput(
                f"'{file}' has no columns to map. Leave '{next(iter(mapping))}' out."
            )
        scores, ids = _array(file, content), None
    else:
        score_name, id_name = mapping.get("score", "scores"), mapping.get("key", "ids")
        members = _members(file, content)
        if score_name not in members or ("key" in mapping and id_name not in members):
            raise InvalidInput(
                f"'{file}' holds {', '.join(members) or 'nothing'}. Expected '{score_name}', and '{id_name}' for ids."
            )
        scores = _array(file, members[score_name])
        ids = _array(file, members[id_name]) if id_name in members else None
    if scores.ndim not in (2, 3) or scores.dtype.kind not in "fiu":
        raise InvalidInput(
            f"'{file}' holds {scores.dtype} of shape {scores.shape}. "
            "Expected numbers of shape (items, captions) or (items, captions, pictures)."
        )
    scores = scores.astype(np.float64)
    if np.isinf(scores).any():
        row = int(np.argwhere(np.isinf(scores))[0][0])
        raise InvalidInput(f"'{file}', item {row}: a score is infinite. Expected finite numbers.")
    scores = scores[:, :, None] if scores.ndim == 2 else scores
    if ids is None:
        return ScoreTable({}, scores, by_place=True)
    if ids.shape != scores.shape[:1] or ids.dtype.kind not in "USiu":
        raise InvalidInput(
            f"'{file}' has {ids.dtype} ids of shape {ids.shape} for {len(scores):,} items. Expected an id for each."
        )
    names = [
        key.decode("utf-8", "replace") if isinstance(key, bytes) else str(key)
        for key in ids.tolist()
    ]
    return ScoreTable(row_of_key(file, names), scores)


def parse_members(file: Path) -> dict[str, np.ndarray]:
    """All arrays of an archive, by name. Raises InvalidInput."""
    try:
        content = files.read(file)
    except OSError as error:
        raise InvalidInput(f"'{file}' cannot be read ({error.strerror}). Check the path.") from None
    return {name: _array(file, member) for name, member in _members(file, content).items()}


def _members(file: Path, content: bytes) -> dict[str, bytes]:
    """The arrays of an archive as bytes, by name; what they unpack to is bounded."""
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            if sum(member.file_size for member in archive.infolist()) > MAX_BYTES:
                raise InvalidInput(
                    f"'{file}' unpacks to more than {MAX_BYTES >> 20} MiB. Expected scores alone."
                )
            return {
                member.filename.removesuffix(".npy"): archive.read(member)
                for member in archive.infolist()
            }
    except DAMAGED_ARCHIVE as error:
        raise _damaged(file, error) from None


def _array(file: Path, content: bytes) -> np.ndarray:
    """An array in NumPy's format, of no more bytes than are there, and without objects."""
    stream = io.BytesIO(content)
    try:
        shape, fortran, dtype = HEADERS[np.lib.format.read_magic(stream)](stream)
        if dtype.hasobject:
            raise ValueError("it holds Python objects")
        count = math.prod(shape)
        if min(shape, default=0) < 0 or count > MAX_CELLS:
            raise ValueError(f"it says that it has the shape {shape}")
        array = np.frombuffer(content, dtype, count, stream.tell())
        return array.reshape(shape, order="F" if fortran else "C")
    except DAMAGED_ARRAY as error:
        raise _damaged(file, error) from None


def _damaged(file: Path, error: Exception) -> InvalidInput:
    reason = str(error).partition("\n")[0][:160].rstrip(".") or type(error).__name__
    return InvalidInput(
        f"'{file}' cannot be read as numbers ({reason}). Expected a whole file that NumPy saved, without objects."
    )
