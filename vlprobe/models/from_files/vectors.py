"""Readers for embedding files, which hold vectors for pictures and texts in one of seven formats.

    FOLDER      pictures.npy and texts.npy, one row per input, memory-mapped; pictures.parquet (or
                .jsonl, .csv) and texts.parquet, as `vlprobe ask` writes them, assign rows to inputs
    .npy        shape (2, n, dim): pictures first, texts second
    .npz        arrays `pictures` and `texts`, with optional `picture_ids` and `text_ids`
    .csv .tsv .jsonl .parquet
                one row per picture or text: its id in a column `id` (or key, label, picture, image, file, text,
                caption), its vector in a column `embedding` or `vector` (a list; in text tables, as JSON), or
                one number per column: e0, e1, ...

Rows without ids must be in the order in which `vlprobe ask` writes pictures and texts. A row with only NaN,
or without a vector, marks a missing embedding. Files are never executed or unpickled.
"""

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from vlprobe.errors import InvalidInput
from vlprobe.models.from_files import arrays, tables
from vlprobe.models.score_table import row_of_key
from vlprobe.scoring import pictures
from vlprobe.storage import columnar_files, files
from vlprobe.storage.access import refuse_outside

if TYPE_CHECKING:
    import pyarrow as pa

TABLES = (".parquet", ".jsonl", ".csv", ".tsv")
SUFFIXES = (".npy", ".npz", *TABLES)
SIDES = ("pictures", "texts")
NEAR, EXACT = 1e-3, 1e-5  # how far a length may be from 1 in half and in single precision
KEYS = ("id", "key", "label", "picture", "image", "file", "text", "caption")
VECTORS = ("embedding", "vector")
EXPECTED = "an id and an embedding; say which columns these are: +key=COLUMN+vector=COLUMN"
Side = tuple[np.ndarray, Sequence[str] | None]  # vectors, and the key of each


@dataclass(frozen=True, slots=True)
class Vectors:
    """The vectors for one side, or for both sides."""

    file: Path
    array: np.ndarray  # shape (n, dim), on disk or in memory
    rows: Mapping[str, int] | None  # the row for each key; None: in the order of the inputs
    missing: frozenset[int]  # rows that are NaN

    def get(self, rows: np.ndarray) -> np.ndarray:
        """Return the unit vectors in the given rows, float32, shape (len(rows), dim), NaN for a negative row number."""
        vectors = np.full((len(rows), self.array.shape[1]), np.nan, dtype=np.float32)
        row_places = np.flatnonzero(rows >= 0)
        size = max(1, arrays.BLOCK_BYTES // (8 * max(self.array.shape[1], 1)))
        for start in range(0, len(row_places), size):
            block_places = row_places[start : start + size]
            vectors[block_places] = units(self.array[rows[block_places]])
        return vectors


def units(vectors: np.ndarray) -> np.ndarray:
    """Scale rows to length 1, in float64. Rows with length 1 within single precision are not changed."""
    vectors = np.asarray(vectors, dtype=np.float64)
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    off = np.abs(lengths - 1) > EXACT
    return np.where(off, vectors / np.where(off, lengths, 1), vectors)


def read(path: Path, mapping: Mapping[str, str], normalise: bool) -> tuple[dict[str, Vectors], str]:
    """Read the vectors in a file for each side, and compute a digest of all bytes that were read.

    Args:
        path: A file or a folder.
        mapping: The names of columns or arrays, for key, vector, pictures, texts, picture_ids and
            text_ids.
        normalise: Whether vectors may have any length.

    Raises:
        InvalidInput: The file cannot be read, is damaged, or does not hold vectors. The one-line message
            names the file and the row.
    """
    check(path)
    suffix = path.suffix.lower()
    if path.is_dir():
        sides, digest = _folder(path)
        files_of = {side: path / f"{side}.npy" for side in sides}
    elif suffix in TABLES:
        vectors, keys = read_vectors(path, mapping)
        digest = files.blake2b(path)
        return dict.fromkeys(SIDES, _checked(path, vectors, keys, normalise)), digest
    else:
        sides = _archive(path, mapping) if suffix == ".npz" else _array(path)
        digest, files_of = files.blake2b(path), {side: path for side in sides}
    checked = {side: _checked(files_of[side], *sides[side], normalise) for side in sides}
    widths = {side: vectors.array.shape[1] for side, vectors in checked.items()}
    if len(set(widths.values())) > 1:
        raise InvalidInput(
            f"'{path}' has {widths['pictures']}-dimensional image and "
            f"{widths['texts']}-dimensional text embeddings. Both must have the same dimension."
        )
    return checked, digest


def check(path: Path) -> None:
    """Raise InvalidInput if a path cannot hold embeddings because of its suffix, size or location."""
    refuse_outside(path)
    if path.is_dir():
        if not files.is_file(path / "texts.npy"):
            raise InvalidInput(
                f"Folder '{path}' has no texts.npy. Expected pictures.npy and texts.npy, "
                "with one row per picture and text that `vlprobe ask` wrote."
            )
        for side in SIDES:
            if files.is_file(path / f"{side}.npy"):
                arrays.mapped(path / f"{side}.npy")
        return
    arrays.check_file(path, SUFFIXES, TABLES[1:], "embeddings", unlimited=(".npy",))
    if path.suffix.lower() == ".npy":
        arrays.mapped(path)


def ids_beside(folder: Path, side: str) -> list[str] | None:
    """Return the ids for one side from the table that `vlprobe ask` writes, or None if there is no such table."""
    table = next(filter(files.is_file, (folder / f"{side}{suffix}" for suffix in TABLES)), None)
    if table is None:
        return None
    check(table)

    def key_column(names: Sequence[str]) -> list[str]:
        if key := next((name for name in KEYS if name in names), ""):
            return [key]
        raise InvalidInput(
            f"'{table}' has the columns {', '.join(names[:12]) or 'none'}. Expected a "
            "column named id."
        )

    columns = tables.read_columns(table, EXPECTED, key_column)
    return _keys(table, columns[key_column(list(columns))[0]])


def _folder(path: Path) -> tuple[dict[str, Side], str]:
    sides: dict[str, Side] = {}
    digests = []
    for side in SIDES:
        file = path / f"{side}.npy"
        if files.is_file(file):
            sides[side] = arrays.mapped(file), ids_beside(path, side)
            digests += [files.blake2b(file), *(sides[side][1] or ["by place"])]
    return sides, pictures.digest(json.dumps(digests).encode())


def _array(path: Path) -> dict[str, Side]:
    both = arrays.mapped(path)
    if both.ndim != 3 or len(both) != len(SIDES):
        raise InvalidInput(
            f"'{path}' contains {both.dtype} values of shape {both.shape}. Expected (2, n, dim): "
            "pictures first, texts second. A folder with pictures.npy and texts.npy, or an .npz "
            "file with these arrays, also works."
        )
    return {side: (vectors, None) for side, vectors in zip(SIDES, both, strict=True)}


def _archive(path: Path, mapping: Mapping[str, str]) -> dict[str, Side]:
    members = arrays.read_archive(path)
    id_names = {side: f"{side[:-1]}_ids" for side in SIDES}
    sides: dict[str, Side] = {
        side: (
            members[mapping.get(side, side)],
            arrays.ids_in(path, members, mapping.get(id_name, id_name)),
        )
        for side, id_name in id_names.items()
        if mapping.get(side, side) in members
    }
    if "texts" not in sides:
        raise InvalidInput(
            f"'{path}' contains {', '.join(members) or 'nothing'}. Expected 'pictures' and "
            f"'{mapping.get('texts', 'texts')}'; 'picture_ids' and 'text_ids' are optional."
        )
    return sides


def read_vectors(path: Path, mapping: Mapping[str, str]) -> tuple[np.ndarray, list[str]]:
    """Read the vectors in a table, float32 with shape (n, dim) and NaN for a missing vector, and the key
    of each vector.

    Args:
        path: The path of the table.
        mapping: The names of the columns `key` and `vector`. If one is missing, the usual names are tried.

    Raises:
        InvalidInput: The table has unknown columns, no vectors, or vectors with different dimensions, or the
            file is damaged.
    """
    columns = tables.read_columns(path, EXPECTED, lambda names: _columns(path, names, mapping))
    key, *names = _columns(path, list(columns), mapping)
    vectors = [columns[name] for name in names]
    keys = _keys(path, columns[key])
    is_text = path.suffix.lower() != ".parquet"
    if is_text and (len(names) == 1 and not tables.NUMBERED.fullmatch(names[0])):
        cells = vectors[0] if isinstance(vectors[0], list) else vectors[0].to_pylist()
        return _stacked(path, [_vector(path, *row) for row in enumerate(cells)]), keys
    if path.suffix.lower() == ".jsonl":
        rows = enumerate(map(list, zip(*vectors, strict=True)))
        return _stacked(path, [_vector(path, *row) for row in rows]), keys
    with columnar_files.translate_errors(path):
        return _arrow_vectors(path, vectors), keys


def _columns(path: Path, names: Sequence[str], mapping: Mapping[str, str]) -> list[str]:
    """Return the name of the key column, followed by the vector column or by the columns with single numbers."""
    key = mapping.get("key", "").lower() or next((name for name in KEYS if name in names), "")
    vector = mapping.get("vector", "").lower()
    vector = vector or next((name for name in VECTORS if name in names), "")
    if vector in names and key in names:
        return [key, vector]
    by_stem: dict[str, dict[int, str]] = {}
    for name in names:
        match = tables.NUMBERED.fullmatch(name)
        if match and name != key:
            by_stem.setdefault(match[1], {})[int(match[2])] = name
    columns = max(by_stem.values(), key=len, default={})
    first = min(columns, default=0)
    if (
        not columns
        or key not in names
        or vector
        or sorted(columns) != list(range(first, first + len(columns)))
    ):
        raise InvalidInput(
            f"'{path}' has the columns {', '.join(names[:12]) or 'none'}. Expected {EXPECTED}."
        )
    return [key, *(columns[number] for number in sorted(columns))]


def _keys(path: Path, column: "list[object] | pa.ChunkedArray") -> list[str]:
    values = column if isinstance(column, list) else column.to_pylist()
    for number, value in enumerate(values):
        if isinstance(value, bool) or not isinstance(value, str | int) or value == "":
            raise InvalidInput(
                f"'{path}', row {number}: the key is empty. Expected the id or name of a "
                "picture or text."
            )
    return list(map(str, values))


def _vector(path: Path, number: int, cells: object) -> np.ndarray:
    """Parse the vector in a row, float32. A row without a vector gives an empty array."""
    try:
        if isinstance(cells, str) and cells.strip():
            cells = files.parse_json(cells)
        if cells in (None, "", []):
            return np.empty(0, dtype=np.float32)
        if not isinstance(cells, list):
            raise ValueError
        if set(map(str, cells)) <= {"", "None"}:
            return np.empty(0, dtype=np.float32)
        if any(isinstance(cell, bool | list | dict) for cell in cells):
            raise ValueError
        return np.array([float(cell) for cell in cells], dtype=np.float32)
    except (ValueError, TypeError, OverflowError):
        raise InvalidInput(
            f"'{path}', row {number}: '{str(cells)[:80]}' is not a vector. Expected a list of numbers."
        ) from None


def _stacked(path: Path, vectors: Sequence[np.ndarray]) -> np.ndarray:
    """Stack vectors as rows. A missing vector becomes a row with NaN."""
    widths = {len(vector) for vector in vectors} - {0}
    if not widths:
        raise InvalidInput(f"'{path}' contains no vectors. Expected one in each row.")
    if len(widths) > 1:
        row = next((n for n, v in enumerate(vectors) if len(v) not in (0, len(vectors[0]))), 0)
        raise InvalidInput(
            f"'{path}', row {row}: the vectors differ in dimension "
            f"({', '.join(map(str, sorted(widths)[:4]))}). All rows need the same dimension."
        )
    empty = np.full(widths.pop(), np.nan, dtype=np.float32)
    return np.stack([vector if len(vector) else empty for vector in vectors])


def _arrow_vectors(path: Path, columns: "Sequence[pa.ChunkedArray]") -> np.ndarray:
    """Convert several number columns, or one list column, to vectors."""
    import pyarrow as pa

    if len(columns) > 1 or not pa.types.is_nested(columns[0].type):
        numbers = [column.cast(pa.float32()) for column in columns]
        return np.stack([column.to_numpy(zero_copy_only=False) for column in numbers], axis=1)
    lists = columns[0].cast(pa.list_(pa.float32())).combine_chunks()
    widths = lists.value_lengths().fill_null(0).to_numpy()
    if len(set(widths.tolist()) - {0}) != 1:
        return _stacked(path, [np.empty(width, dtype=np.float32) for width in widths.tolist()])
    array = np.full((len(widths), widths.max()), np.nan, dtype=np.float32)
    array[widths > 0] = lists.flatten().to_numpy(zero_copy_only=False).reshape(-1, array.shape[1])
    return array


def _checked(file: Path, array: np.ndarray, keys: Sequence[str] | None, normalise: bool) -> Vectors:
    """Check that every vector is finite and has a valid length. Raises InvalidInput."""
    if array.ndim != 2 or not array.shape[1] or array.dtype.kind not in "fiu":
        raise InvalidInput(
            f"'{file}' contains {array.dtype} values of shape {array.shape}. Expected one vector "
            "per row."
        )
    rows = None if keys is None else row_of_key(file, keys, len(array))
    missing: set[int] = set()
    for start, block in arrays.row_blocks(array):
        empty = np.isnan(block).all(axis=1)
        missing.update((start + np.flatnonzero(empty)).tolist())
        lengths = np.sqrt(np.einsum("nd,nd->n", block, block))
        lengths[empty] = 1
        wrong = ~np.isfinite(lengths) | (lengths == 0)
        if not normalise:
            wrong |= np.abs(lengths - 1) > NEAR
        if wrong.any():
            row = int(np.flatnonzero(wrong)[0])
            length, row = lengths[row], start + row
            key = f" ('{keys[row][:80]}')" if keys else ""
            problem = (
                "a number in the vector is NaN or infinite. Expected finite numbers, or only "
                "NaN if a vector is missing."
                if not math.isfinite(length)
                else f"the vector has length {length:.4g}. Expected 1: normalize the vectors, or add +normalise."
                if length
                else "the vector is all zeros. Expected a non-zero vector."
            )
            raise InvalidInput(f"'{file}', row {row}{key}: {problem}")
    return Vectors(file, array, rows, frozenset(missing))
