"""Bytes in the rows of Parquet and Arrow files, such as pictures of datasets of the hub.

A Parquet file is read a group of rows at a time, of which the last few are remembered.
"""

import bisect
import functools
import itertools
from pathlib import Path
from typing import TYPE_CHECKING, Any

from vlprobe.errors import InvalidInput
from vlprobe.storage import columnar_files, memo

if TYPE_CHECKING:
    import pyarrow as pa

REMEMBERED = 4  # groups of rows


def has(file: Path, name: str) -> bool:
    """Return whether a table has a cell of this name, COLUMN/ROW. Raises InvalidInput or OSError."""
    column, _, row = name.rpartition("/")
    kinds, bounds = _shape(str(file), *memo.stamp(file))
    return column in kinds and row.isdecimal() and len(row) < 19 and int(row) < bounds[-1]


def read(file: Path, name: str) -> bytes:
    """Read the bytes of a cell, COLUMN/ROW.

    Raises:
        InvalidInput: the cell does not exist or is empty, or the file is damaged.
        OSError: it cannot be read.
    """
    import pyarrow as pa

    column, _, row = name.rpartition("/")
    if not has(file, name):
        raise InvalidInput(f"'{file}' has no row {row} with a picture in column '{column}'.")
    stamp = memo.stamp(file)
    _, bounds = _shape(str(file), *stamp)
    group = bisect.bisect_right(bounds, int(row)) - 1
    with columnar_files.whole(file):
        cell = _group(str(file), column, group, *stamp)[int(row) - bounds[group]]
        content = (cell["bytes"] if isinstance(cell, pa.StructScalar) else cell).as_py()
    if not content:
        raise InvalidInput(
            f"'{file}', row {row}, column '{column}': there is no picture. Expected the bytes of one."
        )
    return content


def bytes_columns(schema: "pa.Schema") -> list[str]:
    """Return the columns that hold bytes, or structs with a field `bytes` as the hub writes pictures."""
    import pyarrow as pa

    return [
        field.name
        for field in schema
        if _is_bytes(field.type)
        or (
            pa.types.is_struct(field.type)
            and field.type.get_field_index("bytes") >= 0
            and _is_bytes(field.type.field("bytes").type)
        )
    ]


def _is_bytes(kind: Any) -> bool:
    import pyarrow as pa

    return pa.types.is_binary(kind) or pa.types.is_large_binary(kind)


@functools.lru_cache(maxsize=16)  # each picture needs the footer of its file
def _shape(file: str, *stamp: int) -> tuple[tuple[str, ...], list[int]]:
    """Return the columns with bytes, and the first row of each group, with the number of rows at the end."""
    with columnar_files.whole(Path(file)):
        opened = columnar_files.open_columnar(Path(file))
        return tuple(bytes_columns(opened.schema)), [0, *itertools.accumulate(opened.row_counts)]


@functools.lru_cache(maxsize=REMEMBERED)  # pictures of one group are read after each other
def _group(file: str, column: str, group: int, *stamp: int) -> "pa.ChunkedArray":
    import pyarrow as pa

    with columnar_files.whole(Path(file)):
        batches = columnar_files.open_columnar(Path(file)).batches([column], [group])
        return pa.chunked_array([batch.column(column) for batch in batches])
