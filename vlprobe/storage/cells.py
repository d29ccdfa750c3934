"""Bytes in the rows of Parquet and Arrow files, such as pictures of datasets of the hub.

A Parquet file is read a group of rows at a time, of which the last few are remembered.
"""

import bisect
import functools
import itertools
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from vlprobe.errors import InvalidInput

if TYPE_CHECKING:
    import pyarrow as pa

MOST_GROUP_BYTES = 2 << 30  # of one column in a group of rows, unpacked
REMEMBERED = 4  # groups of rows


def has(file: Path, name: str) -> bool:
    """Whether a table has a cell of this name, COLUMN/ROW. Raises InvalidInput or OSError."""
    column, _, row = name.rpartition("/")
    kinds, bounds = _shape(str(file), *_stamp(file))
    return column in kinds and row.isdecimal() and int(row) < bounds[-1]


def read(file: Path, name: str) -> bytes:
    """The bytes of a cell, COLUMN/ROW.

    Raises:
        InvalidInput: no such cell, nothing in it, or the file is damaged.
        OSError: it cannot be read.
    """
    column, _, row = name.rpartition("/")
    if not has(file, name):
        raise InvalidInput(f"'{file}' has no row {row} with a picture in column '{column}'.")
    stamp = _stamp(file)
    _, bounds = _shape(str(file), *stamp)
    group = bisect.bisect_right(bounds, int(row)) - 1
    cell = _group(str(file), *stamp, column, group)[int(row) - bounds[group]].as_py()
    content = cell.get("bytes") if isinstance(cell, dict) else cell
    if not content:
        raise InvalidInput(
            f"'{file}', row {row}, column '{column}': there is no picture. Expected the bytes of one."
        )
    return content


def bytes_columns(schema: "pa.Schema") -> list[str]:
    """The columns that hold bytes, or structs with a field `bytes` as the hub writes pictures."""
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


def damaged(file: Path, error: Exception) -> InvalidInput:
    """The error about a Parquet or Arrow file that cannot be read."""
    reason = " ".join(str(error).split())[:200]
    return InvalidInput(f"'{file}' is no whole table ({reason}). Fetch or save it again.")


def _stamp(file: Path) -> tuple[int, int]:
    status = os.stat(file)
    return status.st_size, status.st_mtime_ns


@functools.lru_cache(maxsize=16)
def _shape(file: str, n_bytes: int, changed: int) -> tuple[tuple[str, ...], list[int]]:
    """The columns with bytes, and the first row of each group, with the number of rows at the end."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        if file.lower().endswith(".parquet"):
            parquet = pq.ParquetFile(file)
            sizes = [parquet.metadata.row_group(n).num_rows for n in range(parquet.num_row_groups)]
            schema = parquet.schema_arrow
        else:
            reader = pa.ipc.open_file(pa.memory_map(file))
            sizes = [reader.get_batch(n).num_rows for n in range(reader.num_record_batches)]
            schema = reader.schema
    except (pa.ArrowException, OSError) as error:
        raise damaged(Path(file), error) from None
    return tuple(bytes_columns(schema)), [0, *itertools.accumulate(sizes)]


@functools.lru_cache(maxsize=REMEMBERED)
def _group(file: str, n_bytes: int, changed: int, column: str, group: int) -> Any:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        if not file.lower().endswith(".parquet"):
            return pa.ipc.open_file(pa.memory_map(file)).get_batch(group).column(column)
        parquet = pq.ParquetFile(file)
        chunks = parquet.metadata.row_group(group)
        unpacked = sum(
            chunks.column(n).total_uncompressed_size
            for n in range(chunks.num_columns)
            if chunks.column(n).path_in_schema.split(".")[0] == column
        )
        if unpacked > MOST_GROUP_BYTES:
            raise InvalidInput(
                f"'{file}' unpacks {unpacked:,} bytes of column '{column}' at a time. "
                f"Expected at most {MOST_GROUP_BYTES:,}; write it with smaller row groups."
            )
        return parquet.read_row_group(group, columns=[column]).column(column)
    except (pa.ArrowException, OSError) as error:
        raise damaged(Path(file), error) from None
