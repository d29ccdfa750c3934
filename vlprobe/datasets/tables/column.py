"""Copy a user's table and add one column of numbers. All other columns stay unchanged."""

import csv
import io
import json
from collections.abc import Sequence
from pathlib import Path
from typing import BinaryIO

import numpy as np

from vlprobe.datasets.file_formats import header_of, read_json_lines, separated_rows
from vlprobe.datasets.tables.reader import JSON_LINES, SEPARATED, Table
from vlprobe.errors import InvalidInput
from vlprobe.storage import columnar_files, files

SUFFIXES = (*SEPARATED, *JSON_LINES, ".parquet")
BATCH_ROWS = 1024  # of Parquet: rows may hold pictures


def check(table: Table, output: Path, column: str) -> None:
    """Raise InvalidInput unless a copy with the new column can be written: format, path and column must be valid."""
    suffix = table.file.suffix.lower()
    if suffix not in SUFFIXES:
        raise InvalidInput(
            f"Cannot add a column to '{table.file}', because it ends in '{suffix}'. Expected "
            f"{', '.join(SUFFIXES)}."
        )
    if output.suffix.lower() != suffix:
        raise InvalidInput(f"'{output}' must end in '{suffix}', like '{table.file}'.")
    files.require_new(output)
    if column.strip().lower() in {*table.names, *(name.lower() for name in table.skipped), ""}:
        raise InvalidInput(
            f"'{table.file}' already has a column '{column}'. Choose another name with --column "
            "NAME."
        )


def write(table: Table, output: Path, column: str, numbers: np.ndarray) -> None:
    """Write a copy of the table with a new column. An interrupted write leaves no partial file.

    Args:
        table: The table as it was read.
        output: A file that does not exist.
        column: Name of the new column.
        numbers: float32 of shape (table.n_rows,). NaN is empty in CSV, null in JSON, NaN in Parquet.

    Raises:
        InvalidInput: the file has changed since it was read, or the copy cannot be written.
    """
    suffix = table.file.suffix.lower()
    with files.atomic_writer(output) as handle:
        if suffix == ".parquet":
            n_rows = _write_parquet(table.file, handle, column, numbers)
        else:
            # As short as float32 allows: 0.1, not 0.10000000149011612
            cells = ["" if np.isnan(number) else str(number) for number in numbers]
            text = io.TextIOWrapper(handle, encoding="utf-8", newline="")
            write_rows = _write_separated if suffix in SEPARATED else _write_json_lines
            n_rows = write_rows(table.file, text, column, cells)
            text.detach()
        if n_rows != len(numbers):
            raise InvalidInput(
                f"'{table.file}' has {n_rows:,} rows, but {len(numbers):,} pairs were scored. "
                "Expected a table with one picture and one text per row that does not change "
                "during scoring."
            )


def _write_separated(
    file: Path, output: io.TextIOWrapper, column: str, cells: Sequence[str]
) -> int:
    delimiter, header = header_of(file)
    writer = csv.writer(output, delimiter=delimiter, lineterminator="\n")
    writer.writerow([*header, column])
    n_rows = 0
    with file.open(encoding="utf-8-sig", newline="") as handle:
        for _, row in separated_rows(file, handle, delimiter, len(header)):
            writer.writerow([*row, *cells[n_rows : n_rows + 1]])
            n_rows += 1
    output.flush()
    return n_rows


def _write_json_lines(
    file: Path, output: io.TextIOWrapper, column: str, cells: Sequence[str]
) -> int:
    rows = [row for row in read_json_lines(file) if isinstance(row, dict)]
    for row, cell in zip(rows, cells, strict=False):
        value = float(cell) if cell else None
        output.write(json.dumps({**row, column: value}, ensure_ascii=False) + "\n")
    output.flush()
    return len(rows)


def _write_parquet(file: Path, output: BinaryIO, column: str, numbers: np.ndarray) -> int:
    import pyarrow as pa
    import pyarrow.parquet as pq

    n_rows = 0
    with columnar_files.translate_errors(file):
        source = pq.ParquetFile(file)
        schema = source.schema_arrow.append(pa.field(column, pa.float32()))
        # A list of the columns, which `datasets` would compare with the file
        metadata = {
            name: value for name, value in (schema.metadata or {}).items() if name != b"huggingface"
        }
        with pq.ParquetWriter(output, schema.with_metadata(metadata)) as writer:
            for batch in source.iter_batches(BATCH_ROWS, use_threads=False):
                part = numbers[n_rows : n_rows + batch.num_rows]
                n_rows += batch.num_rows
                if len(part) == batch.num_rows:
                    columns = [*batch.columns, pa.array(part)]
                    writer.write_table(pa.Table.from_arrays(columns, schema=writer.schema))
    return n_rows
