"""Embeddings in tables: keys in one column, vectors in another, or one number per column."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from vlprobe.errors import InvalidInput
from vlprobe.models.from_files import tables
from vlprobe.storage import columnar_files, files

if TYPE_CHECKING:
    import pyarrow as pa

KEYS = ("id", "key", "label", "picture", "image", "file", "text", "caption")
VECTORS = ("embedding", "vector")
EXPECTED = "an id and an embedding; say which columns these are: +key=COLUMN+vector=COLUMN"


def read_keys(file: Path) -> list[str]:
    """Return the keys of the rows of a table: its column `id`, or another of KEYS. Raises InvalidInput."""

    def key_column(names: Iterable[str]) -> list[str]:
        key = next((name for name in KEYS if name in names), "")
        if not key:
            raise InvalidInput(
                f"'{file}' has the columns {', '.join(list(names)[:12]) or 'none'}. Expected one that is called id."
            )
        return [key]

    columns = _read(file, key_column)
    return _keys(file, columns[key_column(columns)[0]])


def read_vectors(path: Path, mapping: Mapping[str, str]) -> tuple[np.ndarray, list[str]]:
    """Read vectors, float32 of shape (n, dim) and NaN where there is none, and the key of each.

    Args:
        path: A table.
        mapping: The names of the columns `key` and `vector`. Without it, the usual names are tried.

    Raises:
        InvalidInput: other columns, no vectors, vectors of different lengths, or a damaged file.
    """
    columns = _read(path, lambda names: _columns(path, list(names), mapping))
    key, *names = _columns(path, list(columns), mapping)
    vectors = [columns[name] for name in names]
    keys = _keys(path, columns[key])
    if isinstance(vectors[0], list):
        is_list = len(names) == 1 and not tables.NUMBERED.fullmatch(names[0])
        cells = vectors[0] if is_list else map(list, zip(*vectors, strict=True))
        return _stacked(path, [_vector(path, *row) for row in enumerate(cells)]), keys
    if path.suffix.lower() != ".parquet" and not tables.NUMBERED.fullmatch(names[0]):
        cells = enumerate(vectors[0].to_pylist())
        return _stacked(path, [_vector(path, *row) for row in cells]), keys
    with columnar_files.whole(path):
        return _arrow_vectors(path, vectors), keys


def _read(
    path: Path, choose: Callable[[Iterable[str]], Sequence[str]]
) -> "Mapping[str, list[object] | pa.ChunkedArray]":
    suffix = path.suffix.lower()
    if suffix == ".parquet":
        return tables.read_parquet(path, choose)
    if suffix == ".jsonl":
        return tables.read_objects(path, EXPECTED)
    return tables.read_separated(path, choose)


def _columns(path: Path, names: Sequence[str], mapping: Mapping[str, str]) -> list[str]:
    """Return the column of keys, then that of the vectors or those of their numbers."""
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
    if key not in names or vector or sorted(columns) != list(range(first, first + len(columns))):
        columns = {}
    if not columns:
        raise InvalidInput(
            f"'{path}' has the columns {', '.join(names[:12]) or 'none'}. Expected {EXPECTED}."
        )
    return [key, *(columns[number] for number in sorted(columns))]


def _keys(path: Path, column: "list[object] | pa.ChunkedArray") -> list[str]:
    values = column if isinstance(column, list) else column.to_pylist()
    for number, value in enumerate(values):
        if isinstance(value, bool) or not isinstance(value, str | int) or value == "":
            raise InvalidInput(
                f"'{path}', row {number}: no text in the column of keys. Expected what names the picture or text."
            )
    return list(map(str, values))


def _vector(path: Path, number: int, cells: object) -> np.ndarray:
    """Return a row's vector, float32; empty if it has none."""
    if isinstance(cells, str) and cells.strip():
        try:
            cells = files.parse_json(cells)
        except ValueError:
            cells = "no list"
    if cells in (None, "", []) or (
        isinstance(cells, list) and set(map(str, cells)) <= {"", "None"}
    ):
        return np.empty(0, dtype=np.float32)
    try:
        if not isinstance(cells, list) or any(
            isinstance(cell, bool | list | dict) for cell in cells
        ):
            raise ValueError
        return np.array([float(cell) for cell in cells], dtype=np.float32)
    except (ValueError, TypeError, OverflowError):
        raise InvalidInput(
            f"'{path}', row {number}: '{str(cells)[:80]}' is no vector. Expected a list of numbers."
        ) from None


def _stacked(path: Path, vectors: Sequence[np.ndarray]) -> np.ndarray:
    """Return the vectors as rows, NaN where there is none."""
    widths = {len(vector) for vector in vectors} - {0}
    if len(widths) != 1:
        row = next((n for n, v in enumerate(vectors) if len(v) not in (0, len(vectors[0]))), 0)
        raise InvalidInput(
            f"'{path}', row {row}: vectors of {', '.join(map(str, sorted(widths)[:4])) or 'no'} numbers. Expected "
            "equally many in each row."
        )
    array = np.full((len(vectors), widths.pop()), np.nan, dtype=np.float32)
    for row, vector in enumerate(vectors):
        if len(vector):
            array[row] = vector
    return array


def _arrow_vectors(path: Path, columns: "Sequence[pa.ChunkedArray]") -> np.ndarray:
    """Columns of numbers, or one of lists, as vectors."""
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
