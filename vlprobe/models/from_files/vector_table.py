"""Embeddings in tables: keys in one column, vectors in another, or a number a column."""

import csv
import io
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from vlprobe.datasets.file_formats import read_json_lines, read_text
from vlprobe.errors import InvalidInput
from vlprobe.models.score_table import MAX_CELLS, MAX_ROWS
from vlprobe.storage import files

if TYPE_CHECKING:
    import pyarrow as pa

KEYS = ("id", "key", "label", "picture", "image", "file", "text", "caption")
VECTORS = ("embedding", "vector")
BATCH_ROWS = 1024  # of Parquet, read at a time
MOST_BYTES = 16 * MAX_CELLS  # of Parquet, with the keys
NUMBERED = re.compile(r"([a-z]*_?)([0-9]{1,5})")
EXPECTED = "an id and an embedding; say which columns these are: +key=COLUMN+vector=COLUMN"


def read_keys(file: Path) -> list[str]:
    """What the rows of a table name: its column `id`, or another of KEYS. Raises InvalidInput."""
    if file.suffix.lower() == ".parquet":
        return _parquet(file, {}, with_vectors=False)[1]
    names, rows = _rows(file)
    key = next((name for name in KEYS if name in names), "")
    if not key:
        raise InvalidInput(
            f"'{file}' has the columns {', '.join(names[:12]) or 'none'}. Expected one that is called id."
        )
    return [_key(file, number, row[key]) for number, row in enumerate(rows)]


def read_vectors(path: Path, mapping: Mapping[str, str]) -> tuple[np.ndarray, list[str]]:
    """Vectors, float32 of shape (n, dim) and NaN where there is none, and the key of each.

    Args:
        path: A table.
        mapping: Columns by what they are: `key`, `vector`. Else the usual names are looked for.

    Raises:
        InvalidInput: other columns, no vectors, vectors of different lengths, or a damaged file.
    """
    if path.suffix.lower() == ".parquet":
        return _parquet(path, mapping)
    names, rows = _rows(path)
    key, columns = _columns(path, names, mapping)
    is_list = len(columns) == 1 and not NUMBERED.fullmatch(columns[0])
    keys, vectors = [], []
    for number, row in enumerate(rows):
        keys.append(_key(path, number, row[key]))
        cells = row[columns[0]] if is_list else [row[name] for name in columns]
        vectors.append(_vector(path, number, cells))
    return _stacked(path, vectors), keys


def _columns(path: Path, names: Sequence[str], mapping: Mapping[str, str]) -> tuple[str, list[str]]:
    """The column of keys, and that of the vectors or those of their numbers."""
    key = mapping.get("key", "").lower() or next((name for name in KEYS if name in names), "")
    vector = mapping.get("vector", "").lower()
    vector = vector or next((name for name in VECTORS if name in names), "")
    if vector in names and key in names:
        return key, [vector]
    by_stem: dict[str, dict[int, str]] = {}
    for name in names:
        match = NUMBERED.fullmatch(name)
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
    return key, [columns[number] for number in sorted(columns)]


def _rows(path: Path) -> tuple[list[str], Iterator[Mapping[str, object]]]:
    """Column names in lower case, and the rows of a text, one at a time."""
    suffix = path.suffix.lower()
    if suffix == ".jsonl":
        rows = read_json_lines(path)
        objects = [row for row in rows if isinstance(row, dict)]
        if len(objects) < len(rows):
            row = next(number for number, row in enumerate(rows) if not isinstance(row, dict))
            raise InvalidInput(f"'{path}', row {row}, is no object. Expected {EXPECTED}.")
        names = list(dict.fromkeys(str(name).lower() for row in objects[:1] for name in row))
        lowered = ({str(name).lower(): value for name, value in row.items()} for row in objects)
        return names, ({name: row.get(name) for name in names} for row in lowered)
    delimiter = "\t" if suffix == ".tsv" else ","
    lines = _lines(path, csv.reader(io.StringIO(read_text(path)), delimiter=delimiter, strict=True))
    names = [name.strip().lower() for name in next(lines, [])]
    if len(set(names)) < len(names):
        raise InvalidInput(f"'{path}' has two columns of one name. Rename one.")
    return names, _table_rows(path, lines, names)


def _lines(path: Path, reader: Iterable[list[str]]) -> Iterator[list[str]]:
    try:
        yield from reader
    except csv.Error as error:
        raise InvalidInput(f"'{path}': {error}. Expected a table; check the quotes.") from None


def _table_rows(
    path: Path, lines: Iterable[list[str]], names: Sequence[str]
) -> Iterator[Mapping[str, object]]:
    for number, row in enumerate(filter(None, lines)):
        if len(row) != len(names):
            raise InvalidInput(
                f"'{path}', row {number}: {len(row)} fields, and {len(names)} columns. Expected as many."
            )
        yield dict(zip(names, row, strict=True))


def _key(path: Path, number: int, value: object) -> str:
    if isinstance(value, bool) or not isinstance(value, str | int) or value == "":
        raise InvalidInput(
            f"'{path}', row {number}: no text in the column of keys. Expected what names the picture or text."
        )
    return str(value)


def _vector(path: Path, number: int, cells: object) -> np.ndarray:
    """A row's vector, float32; empty where it has none."""
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
    """The vectors as rows, NaN where there is none."""
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


def _parquet(
    path: Path, mapping: Mapping[str, str], with_vectors: bool = True
) -> tuple[np.ndarray, list[str]]:
    """As `read_vectors`, of a Parquet file, read in pieces as long as they are not too large together."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    damaged = (pa.ArrowException, OSError, ValueError, LookupError, TypeError, MemoryError)
    try:
        with pq.ParquetFile(path) as opened:
            names = {name.lower(): name for name in opened.schema_arrow.names}
            if with_vectors:
                key, columns = _columns(path, list(names), mapping)
            else:
                key, columns = next((name for name in KEYS if name in names), ""), []
            if key not in names:
                raise InvalidInput(
                    f"'{path}' has the columns {', '.join(names)}. Expected one that is called id."
                )
            wanted = [names[name] for name in (key, *columns)]
            n_rows = opened.metadata.num_rows
            if not 0 <= n_rows <= MAX_ROWS:
                raise InvalidInput(
                    f"'{path}' says that it has {n_rows:,} rows. Expected at most {MAX_ROWS:,}."
                )
            batches, n_bytes = [], 0
            for batch in opened.iter_batches(BATCH_ROWS, columns=wanted):
                batches.append(batch)
                n_bytes += batch.nbytes
                if n_bytes > MOST_BYTES:
                    raise InvalidInput(
                        f"'{path}' has more than {MOST_BYTES:,} bytes. Expected at most {MAX_CELLS:,} numbers; "
                        "save embeddings as .npy in a folder."
                    )
            fields = [opened.schema_arrow.field(name) for name in wanted]
            table = pa.Table.from_batches(batches, pa.schema(fields))
        keys = [
            _key(path, number, value) for number, value in enumerate(table[wanted[0]].to_pylist())
        ]
        if not with_vectors:
            return np.empty((len(keys), 0)), keys
        return _parquet_vectors(path, [table[name] for name in wanted[1:]]), keys
    except damaged as error:
        reason = str(error).partition("\n")[0][:160].rstrip(".")
        raise InvalidInput(
            f"'{path}' cannot be read as Parquet ({reason}). Expected a whole file with {EXPECTED}."
        ) from None


def _parquet_vectors(path: Path, columns: "Sequence[pa.ChunkedArray]") -> np.ndarray:
    import pyarrow as pa

    if len(columns) > 1 or not pa.types.is_nested(columns[0].type):
        return np.stack(
            [column.cast(pa.float32()).to_numpy(zero_copy_only=False) for column in columns], axis=1
        )
    lists = columns[0].cast(pa.list_(pa.float32())).combine_chunks()
    widths = lists.value_lengths().fill_null(0).to_numpy()
    if len(set(widths.tolist()) - {0}) != 1:
        return _stacked(path, [np.empty(width, dtype=np.float32) for width in widths.tolist()])
    array = np.full((len(widths), widths.max()), np.nan, dtype=np.float32)
    array[widths > 0] = lists.flatten().to_numpy(zero_copy_only=False).reshape(-1, array.shape[1])
    return array
