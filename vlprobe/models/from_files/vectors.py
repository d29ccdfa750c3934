"""Files of embeddings: vectors of pictures and of texts, in seven forms.

    FOLDER      pictures.npy and texts.npy, one row each, memory-mapped; pictures.parquet (or
                .jsonl, .csv) and texts.parquet, as `vlprobe ask` writes them, assign rows to inputs
    .npy        shape (2, n, dim): pictures first, texts second
    .npz        arrays `pictures` and `texts`, each with `picture_ids` and `text_ids` if present
    .csv .tsv .jsonl .parquet
                one row per picture or text: its id in a column `id` (or key, label, picture, image, file, text,
                caption), its vector in a column `embedding` (or vector: a list, in a table written as JSON), or
                one number per column: e0, e1, ...

Rows without ids are in the order in which `vlprobe ask` writes pictures and texts. A row of NaN, or
without a vector, is missing. Files are never executed or unpickled.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from vlprobe.errors import InvalidInput
from vlprobe.models.from_files import arrays
from vlprobe.models.from_files.vector_table import read_keys, read_vectors
from vlprobe.models.score_table import MAX_BYTES, MAX_TEXT_BYTES, row_of_key
from vlprobe.storage import files
from vlprobe.storage.access import refuse_outside

TABLES = (".csv", ".tsv", ".jsonl", ".parquet")
SUFFIXES = (".npy", ".npz", *TABLES)
SIDES = ("pictures", "texts")
NEAR, EXACT = 1e-3, 1e-5  # how far from 1 a length may be: of half precision, of single


@dataclass(frozen=True, slots=True)
class Vectors:
    """Vectors of one side, or of both."""

    file: Path
    array: np.ndarray  # of shape (n, dim), on the disk or in memory
    rows: Mapping[str, int] | None  # by key; None: in the order of the inputs
    missing: frozenset[int]  # rows that are NaN

    def get(self, rows: np.ndarray) -> np.ndarray:
        """Unit vectors, float32 of shape (len(rows), dim); a negative row is NaN."""
        vectors = np.full((len(rows), self.array.shape[1]), np.nan, dtype=np.float32)
        row_places = np.flatnonzero(rows >= 0)
        size = max(1, arrays.BLOCK_BYTES // (8 * max(self.array.shape[1], 1)))
        for start in range(0, len(row_places), size):
            block_places = row_places[start : start + size]
            block = np.asarray(self.array[rows[block_places]], dtype=np.float64)
            lengths = np.linalg.norm(block, axis=1, keepdims=True)
            off = np.abs(lengths - 1) > EXACT
            vectors[block_places] = np.where(off, block / np.where(off, lengths, 1), block)
        return vectors


def read(path: Path, mapping: Mapping[str, str], normalise: bool) -> tuple[dict[str, Vectors], str]:
    """Return the vectors of a file by side, and the digest of all bytes that they come from.

    Args:
        path: A file, or a folder.
        mapping: The names of columns or arrays: key, vector, pictures, texts, picture_ids,
            text_ids.
        normalise: Whether vectors may have any length.

    Raises:
        InvalidInput: it cannot be read, is damaged, or holds something else; one line that names
            file and row.
    """
    check(path)
    suffix = path.suffix.lower()
    if path.is_dir():
        sides, digest = _folder(path)
    elif suffix == ".npy":
        both, digest = arrays.mapped(path), arrays.file_digest(path)
        if both.ndim != 3 or len(both) != len(SIDES):
            raise InvalidInput(
                f"'{path}' holds {both.dtype} of shape {both.shape}. Expected (2, n, dim): pictures first, texts "
                "second. Or name a folder with pictures.npy and texts.npy, or an .npz file with these arrays."
            )
        sides = {side: (array, None) for side, array in zip(SIDES, both, strict=True)}
    elif suffix == ".npz":
        sides, digest = _archive(path, mapping), arrays.file_digest(path)
    else:
        array, keys = read_vectors(path, mapping)
        digest = arrays.file_digest(path)
        both_sides = _checked(path, array, keys, normalise)
        return dict.fromkeys(SIDES, both_sides), digest
    checked = {
        side: _checked(_file_of(path, side), array, keys, normalise)
        for side, (array, keys) in sides.items()
    }
    widths = {side: vectors.array.shape[1] for side, vectors in checked.items()}
    if len(set(widths.values())) > 1:
        raise InvalidInput(
            f"'{path}' has pictures of {widths['pictures']} numbers and texts of {widths['texts']}. Expected one space "
            "with equally long vectors."
        )
    return checked, digest


def check(path: Path) -> None:
    """Raise InvalidInput if the path cannot hold embeddings: wrong ending, size or place."""
    refuse_outside(path)
    if path.is_dir():
        if not files.is_file(path / "texts.npy"):
            raise InvalidInput(
                f"Folder '{path}' has no texts.npy. Expected pictures.npy and texts.npy, a row for each that "
                "`vlprobe ask` wrote."
            )
        for side in SIDES:
            if files.is_file(path / f"{side}.npy"):
                arrays.mapped(path / f"{side}.npy")
        return
    if path.suffix.lower() not in SUFFIXES:
        raise InvalidInput(
            f"'{path}' has no known ending. Expected embeddings in a folder, or in {', '.join(SUFFIXES)}."
        )
    size = arrays.check_readable(path)
    limit = MAX_TEXT_BYTES if path.suffix.lower() in TABLES[:3] else MAX_BYTES
    if path.suffix.lower() == ".npy":
        arrays.mapped(path)
    elif size > limit:
        raise InvalidInput(
            f"'{path}' has {size >> 20:,} MiB. Expected at most {limit >> 20} MiB; save embeddings as .npy in a folder."
        )


def ids_beside(folder: Path, side: str) -> list[str] | None:
    """Return the ids of a side in the table of its name, as `vlprobe ask` writes it; None if there is none."""
    tables = [folder / f"{side}{suffix}" for suffix in (".parquet", ".jsonl", ".csv", ".tsv")]
    table = next(filter(files.is_file, tables), None)
    if table is None:
        return None
    check(table)
    return read_keys(table)


def _folder(path: Path) -> tuple[dict[str, tuple[np.ndarray, list[str] | None]], str]:
    sides: dict[str, tuple[np.ndarray, list[str] | None]] = {}
    digests = []
    for side in SIDES:
        file = path / f"{side}.npy"
        if files.is_file(file):
            sides[side] = arrays.mapped(file), ids_beside(path, side)
            digests += [arrays.file_digest(file), *(sides[side][1] or ["by place"])]
    return sides, arrays.text_digest(digests)


def _archive(
    path: Path, mapping: Mapping[str, str]
) -> dict[str, tuple[np.ndarray, list[str] | None]]:
    members = arrays.read_archive(path)
    sides: dict[str, tuple[np.ndarray, list[str] | None]] = {}
    for side in SIDES:
        name = mapping.get(side, side)
        id_name = mapping.get(f"{side[:-1]}_ids", f"{side[:-1]}_ids")
        if name in members:
            sides[side] = members[name], arrays.ids_in(path, members, id_name)
    if "texts" not in sides:
        wanted = mapping.get("texts", "texts")
        raise InvalidInput(
            f"'{path}' holds {', '.join(members) or 'nothing'}. Expected 'pictures' and '{wanted}', and 'picture_ids' "
            "and 'text_ids' for ids."
        )
    return sides


def _checked(file: Path, array: np.ndarray, keys: Sequence[str] | None, normalise: bool) -> Vectors:
    """Return the vectors, if each of them is one of a finite length that it may have."""
    if array.ndim != 2 or not array.shape[1] or array.dtype.kind not in "fiu":
        raise InvalidInput(
            f"'{file}' holds {array.dtype} of shape {array.shape}. Expected a vector a row."
        )
    if keys is not None and len(keys) != len(array):
        raise InvalidInput(
            f"'{file}' has {len(array):,} rows and {len(keys):,} ids. Expected an id for each row."
        )
    missing: set[int] = set()
    for start, block in arrays.row_blocks(array):
        is_nan = np.isnan(block)
        empty = is_nan.all(axis=1)
        missing.update((start + np.flatnonzero(empty)).tolist())
        lengths = np.sqrt(np.einsum("nd,nd->n", block, block))
        lengths[empty] = 1
        wrong = ~np.isfinite(lengths) | (lengths == 0)
        if not normalise:
            wrong |= np.abs(lengths - 1) > NEAR
        if wrong.any():
            row = int(np.flatnonzero(wrong)[0])
            raise _strange_vector(file, start + row, lengths[row], keys)
    rows = None if keys is None else row_of_key(file, keys)
    return Vectors(file, array, rows, frozenset(missing))


def _strange_vector(
    file: Path, row: int, length: float, keys: Sequence[str] | None
) -> InvalidInput:
    name = f"'{file}', row {row}" + (f" ('{keys[row][:80]}')" if keys else "")
    if not math.isfinite(length):
        return InvalidInput(
            f"{name}: a number of the vector is NaN or infinite. Expected finite numbers, or NaN alone where a vector "
            "is missing."
        )
    if not length:
        return InvalidInput(f"{name}: the vector is 0 throughout. Expected a direction.")
    return InvalidInput(
        f"{name}: the vector has length {length:.4g}. Expected 1: normalise the vectors, or add +normalise."
    )


def _file_of(path: Path, side: str) -> Path:
    return path / f"{side}.npy" if path.is_dir() else path
