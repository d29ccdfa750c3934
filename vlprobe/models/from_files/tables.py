"""Readers for answer tables in Parquet, JSON, JSON lines, CSV and TSV. Column names are converted to lowercase."""

import csv
import io
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from vlprobe.datasets.file_formats import read_records, read_text
from vlprobe.errors import InvalidInput, first_line
from vlprobe.models.score_table import MAX_CELLS, MAX_ROWS
from vlprobe.storage import columnar_files

if TYPE_CHECKING:
    import pyarrow as pa

MAX_COLUMNS = 10_000
MOST_BYTES = 16 * MAX_CELLS  # limit for numbers and lists in Parquet
NUMBERED = re.compile(r"([a-z]*_?)([0-9]{1,5})")  # a column with numbers, such as e0, dim_12 or 3
NO_NUMBER = ["", "None", "nan", "NaN"]
BLOCK_BYTES = 32 << 20  # bytes of a CSV file that are parsed at a time; one row must fit


def lower_names(file: Path, names: Sequence[str]) -> list[str]:
    """Return column names in lowercase. Raises InvalidInput if two names become equal."""
    lowered = [name.strip().lower() for name in names]
    if len(set(lowered)) < len(lowered):
        raise InvalidInput(f"'{file}' has duplicate column names: {', '.join(names)}. Rename one.")
    return lowered


def read_columns(
    file: Path, expected: str, choose: Callable[[Sequence[str]], Sequence[str]]
) -> "Mapping[str, list[object] | pa.ChunkedArray]":
    """Read the chosen columns from a .parquet, .csv or .tsv table, or all columns from .jsonl.

    Args:
        file: The path of the table.
        expected: A description of the expected columns, for error messages.
        choose: A function that takes all column names in lowercase and returns the names of the columns to read, with
            the key column first.
    """
    suffix = file.suffix.lower()
    if suffix == ".parquet":
        return read_parquet(file, lambda types: choose(list(types)))
    return read_objects(file, expected) if suffix == ".jsonl" else read_separated(file, choose)


def read_objects(file: Path, expected: str) -> dict[str, list[object]]:
    """Read an array of JSON objects, or JSON lines, as columns. A field that an object lacks becomes None.

    Args:
        file: The path of a .json or .jsonl file.
        expected: A description of the expected columns, for error messages.

    Raises:
        InvalidInput: The file is damaged, has rows that are not objects, or has more than MAX_COLUMNS names.
    """
    rows = read_records(file)
    rows = rows if isinstance(rows, list) else [rows]
    objects = [row for row in rows if isinstance(row, dict)]
    if len(objects) < len(rows):
        number = next(number for number, row in enumerate(rows, 1) if not isinstance(row, dict))
        raise InvalidInput(f"'{file}', row {number}, is not a JSON object. Expected {expected}.")
    names = list(dict.fromkeys(name for row in objects for name in row))
    if len(names) > MAX_COLUMNS:
        raise InvalidInput(
            f"'{file}' has {len(names):,} different keys in its objects. Expected {expected}."
        )
    lowered = lower_names(file, names)
    return {
        low: [row.get(name) for row in objects] for low, name in zip(lowered, names, strict=True)
    }


def read_parquet(
    file: Path, choose: "Callable[[Mapping[str, pa.DataType]], Sequence[str]]"
) -> "dict[str, pa.ChunkedArray]":
    """Read columns from a Parquet file. Texts are read as dictionaries, and all data is validated and limited in size.

    Args:
        file: The path of a .parquet file.
        choose: A function that takes the type of each column, by its name in lowercase, and returns the names of the
            columns to read.

    Raises:
        InvalidInput: The file is damaged, or has more than MAX_ROWS rows, MAX_CELLS values or MOST_BYTES bytes.
    """
    import pyarrow as pa

    with columnar_files.translate_errors(file):
        opened = columnar_files.ParquetFile(file)
        lowered = lower_names(file, opened.schema.names)
        chosen = choose(dict(zip(lowered, opened.schema.types, strict=True)))
        names = [opened.schema.names[lowered.index(name)] for name in chosen]
        n_rows = sum(opened.row_counts)
        if not 0 <= n_rows <= min(MAX_ROWS, MAX_CELLS // max(len(names), 1)):
            raise InvalidInput(f"'{file}' declares {n_rows:,} rows. The maximum is {MAX_ROWS:,}.")
        batches, n_bytes = [], 0
        for batch in opened.batches(names, range(len(opened.row_counts))):
            batches.append(batch)
            n_bytes += sum(
                column.nbytes for column in batch if not pa.types.is_dictionary(column.type)
            )
            if n_bytes > MOST_BYTES:
                raise InvalidInput(
                    f"'{file}' has more than {MOST_BYTES:,} bytes. Expected at most {MAX_CELLS:,} numbers; "
                    "save embeddings as .npy in a folder."
                )
        empty = opened.schema.empty_table().select(names)
        table = pa.Table.from_batches(batches) if batches else empty
        return {low: table[name] for low, name in zip(chosen, names, strict=True)}


def read_separated(
    file: Path, choose: Callable[[Sequence[str]], Sequence[str]]
) -> "dict[str, pa.ChunkedArray]":
    """Read columns from a CSV or TSV file. Columns whose names match NUMBERED hold numbers, null if a field is empty;
    all others, and the first chosen column, hold text.

    Args:
        file: The path of a .csv or .tsv file.
        choose: A function that takes all column names in lowercase and returns the names of the columns to read, with
            the key column first.

    Raises:
        InvalidInput: The file is not UTF-8, a row has the wrong number of fields, or a number column contains text.
    """
    import pyarrow as pa
    from pyarrow import csv as arrow_csv

    delimiter = "\t" if file.suffix.lower() == ".tsv" else ","
    text = read_text(file)
    try:
        names = next(csv.reader(io.StringIO(text), delimiter=delimiter), [])
        lowered = lower_names(file, names)
        chosen = choose(lowered)
        types = {low: pa.float64() if NUMBERED.fullmatch(low) else pa.string() for low in chosen}
        types[chosen[0]] = pa.string()
        table = arrow_csv.read_csv(
            io.BytesIO(text.encode()),
            arrow_csv.ReadOptions(  # one thread, because its errors name the row
                column_names=lowered, skip_rows=1, use_threads=False, block_size=BLOCK_BYTES
            ),
            arrow_csv.ParseOptions(delimiter=delimiter, newlines_in_values=True),
            arrow_csv.ConvertOptions(
                include_columns=list(types), column_types=types, null_values=NO_NUMBER
            ),
        )
    except (csv.Error, pa.ArrowException) as error:
        raise InvalidInput(
            f"'{file}' is not a valid table ({first_line(error)}). Every row needs the "
            "same number of fields; check the quotes."
        ) from None
    return {name: table[name] for name in chosen}
