"""Reads a table of any format into columns of text: .csv, .tsv, .json, .jsonl, .parquet, .arrow, .tar.

A column is text, or lists of texts, or pictures that stay in the file and are known by their paths
(`storage.containers`). Every defect is an InvalidInput of one line that names the file and the row.
"""

import csv
import io
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from vlprobe.datasets.csv import DELIMITERS
from vlprobe.datasets.file_formats import read_head, read_json, read_json_lines
from vlprobe.datasets.tables import documents, shards
from vlprobe.errors import InvalidInput
from vlprobe.storage import cells, files
from vlprobe.storage.access import refuse_outside

if TYPE_CHECKING:
    import pyarrow as pa

SEPARATED = (".csv", ".tsv", ".txt")
JSON_LINES = (".jsonl", ".ndjson")
TEXTUAL = (*SEPARATED, ".json", *JSON_LINES)
SUFFIXES = (*SEPARATED, ".json", *JSON_LINES, ".parquet", ".arrow", ".feather", ".ipc", ".tar")
PACKED = (".gz", ".bz2", ".xz", ".zst", ".zip", ".tgz", ".7z")
MOST_BYTES = 4 << 30  # of a table's texts in memory
BATCH_ROWS = 8192


@dataclass(frozen=True, slots=True)
class Table:
    """A table's columns, all of one length.

    Attributes:
        file: Where it was read.
        columns: Lower-case name to texts, or to lists of texts; in the order of the file.
        pictures: Lower-case name of a column of pictures in the file to its name there.
        skipped: Columns that hold neither.
        n_rows: How many rows there are.
    """

    file: Path
    columns: "dict[str, pa.ChunkedArray]"
    pictures: dict[str, str]
    skipped: tuple[str, ...]
    n_rows: int

    @property
    def names(self) -> set[str]:
        """The columns that can be read."""
        return {*self.columns, *self.pictures}

    def values(self, column: str) -> Sequence[Any]:
        """A column as texts or lists of texts; pictures as paths behind the file's."""
        if column in self.pictures:
            folder = f"{self.file.absolute()}/{self.pictures[column]}"
            return [f"{folder}/{row}" for row in range(self.n_rows)]
        return self.columns[column].to_pylist()


def require_kind(file: Path) -> None:
    """Raises InvalidInput where a file's name ends like no table's, or it is packed."""
    suffix = file.suffix.lower()
    if suffix in PACKED:
        raise InvalidInput(
            f"'{file}' is packed: nobody knows how large it becomes. Unpack it first."
        )
    if suffix not in SUFFIXES:
        raise InvalidInput(f"'{file}' ends in '{suffix}'. Expected a table: {', '.join(SUFFIXES)}.")


def require_file(file: Path) -> None:
    """Raises InvalidInput where there is no such file, or it is none that can be read."""
    refuse_outside(file)
    try:
        files.require_regular(file)
    except FileNotFoundError:
        raise InvalidInput(f"'{file}' does not exist. Check the path of the dataset.") from None
    except OSError as error:
        raise InvalidInput(
            f"'{file}' cannot be read ({error.strerror}). Expected a table."
        ) from None


def read(file: Path, cache: Path | None = None) -> Table:
    """The whole table; the index of a tar is kept in the cache. Raises InvalidInput."""
    require_kind(file)
    require_file(file)
    suffix = file.suffix.lower()
    try:
        if suffix in SEPARATED:
            return _of_arrow(file, _separated(file))
        if suffix == ".json":
            return of_rows(file, documents.rows_of(file, read_json(file)))
        if suffix in JSON_LINES:
            return of_rows(file, documents.rows_of(file, read_json_lines(file)))
        if suffix == ".tar":
            return of_rows(file, shards.rows_of(file, cache))
        return _of_arrow(file, _columnar(file))
    except OSError as error:
        raise InvalidInput(
            f"'{file}' cannot be read ({error.strerror}). Expected a table."
        ) from None


def of_rows(file: Path, rows: Sequence[documents.Row]) -> Table:
    """Rows of JSON as columns; a column with any other value than texts and numbers is skipped."""
    import pyarrow as pa

    rows = [_flat(row) for row in rows]
    names = list(dict.fromkeys(name for row in rows for name in row))
    columns, skipped = {}, []
    for name in names:
        values = [_text(row.get(name)) for row in rows]
        if any(value is None for value in values):
            skipped.append(name)
        elif any(isinstance(value, list) for value in values):
            lists = [[value] if isinstance(value, str) else value for value in values]
            columns[name] = pa.chunked_array([pa.array(lists, pa.list_(pa.string()))])
        else:
            columns[name] = pa.chunked_array([pa.array(values, pa.string())])
    return Table(file, _lower(file, columns), {}, tuple(skipped), len(rows))


def _flat(row: documents.Row) -> documents.Row:
    """The row with the fields of an object inside of it as columns of their own, OBJECT.FIELD."""
    if not any(isinstance(value, dict) for value in row.values()):
        return row
    flat: documents.Row = {}
    for name, value in row.items():
        inner = value.items() if isinstance(value, dict) else ()
        flat |= {f"{name}.{field}": part for field, part in inner}
        if not isinstance(value, dict):
            flat[name] = value
    return flat


def _text(value: object) -> str | list[str] | None:
    """A value as text, or as a list of texts; None where it is neither."""
    if isinstance(value, str):
        return value
    if value is None:
        return ""
    if isinstance(value, bool | int | float):
        return str(value)
    if isinstance(value, list):
        texts = [item.get("raw") if isinstance(item, dict) else item for item in value]
        if all(isinstance(text, str | int | float) for text in texts):
            return [str(text) for text in texts]
    return None


def _lower(file: Path, columns: dict[str, Any]) -> dict[str, Any]:
    """The columns under lower-case names; one without a name, as pandas writes, is left out."""
    _refuse_twins(file, list(columns))
    return {name.strip().lower(): column for name, column in columns.items() if name.strip()}


def _refuse_twins(file: Path, names: Sequence[str]) -> None:
    lower = [name.strip().lower() for name in names if name.strip()]
    if len(set(lower)) < len(lower):
        raise InvalidInput(
            f"'{file}' has two columns of one name in {', '.join(names)}. Rename one."
        )


def header_of(file: Path) -> tuple[str, list[str]]:
    """The separator and the names in the first line of a .csv or .tsv. Raises InvalidInput."""
    first_line = read_head(file)[0].partition("\n")[0]
    delimiter = max(DELIMITERS, key=first_line.count)
    try:
        header = next(csv.reader(io.StringIO(first_line), delimiter=delimiter, strict=True), [])
    except csv.Error as error:
        raise InvalidInput(
            f"'{file}', line 1: {error}. Expected the names of columns; check the quotes."
        ) from None
    if not any(name.strip() for name in header):
        raise InvalidInput(f"'{file}' has no columns. Expected their names in the first line.")
    return delimiter, header


def _separated(file: Path) -> "pa.Table":
    import pyarrow as pa
    from pyarrow import csv as arrow_csv

    delimiter, header = header_of(file)
    names = [f"{number}" for number in range(len(header))]
    try:
        table = arrow_csv.read_csv(
            file,
            arrow_csv.ReadOptions(column_names=names, skip_rows=1),
            arrow_csv.ParseOptions(delimiter=delimiter, newlines_in_values=True),
            arrow_csv.ConvertOptions(
                column_types=dict.fromkeys(names, pa.string()), strings_can_be_null=False
            ),
        )
    except pa.ArrowInvalid as error:
        raise _faulty_line(file, delimiter, len(header)) or cells.damaged(file, error) from None
    # Arrow forgives quotes that would swallow rows; Python's reader does not.
    if _has_quotes(file) and (fault := _faulty_line(file, delimiter, len(header))):
        raise fault
    named = [column for column in names if header[int(column)].strip()]
    return table.select(named).rename_columns([header[int(column)].strip() for column in named])


def _has_quotes(file: Path) -> bool:
    with file.open("rb") as handle:
        return any(b'"' in block for block in iter(lambda: handle.read(1 << 20), b""))


def _faulty_line(file: Path, delimiter: str, n_columns: int) -> InvalidInput | None:
    """What is wrong with the first line that is no row of the table; None where all are."""
    with file.open(encoding="utf-8-sig", newline="") as handle:
        reader = csv.reader(handle, delimiter=delimiter, strict=True)
        try:
            for row in reader:
                if row and len(row) != n_columns:
                    return InvalidInput(
                        f"'{file}', line {reader.line_num}: {len(row)} fields, but {n_columns} columns. "
                        'Put a caption that holds the separator in "quotes".'
                    )
        except csv.Error as error:
            return InvalidInput(
                f"'{file}', line {reader.line_num}: {error}. Expected a table; check the quotes."
            )
        except UnicodeDecodeError:
            return _no_utf8(file)
    return None


def _no_utf8(file: Path) -> InvalidInput | None:
    content = files.read(file)
    try:
        content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content[: error.start].count(b"\n") + 1
        return InvalidInput(
            f"'{file}', line {line}, is not UTF-8 (byte {error.start}). Save it as UTF-8."
        )
    return None


def _columnar(file: Path) -> "pa.Table":
    """Parquet or Arrow without its pictures. Raises InvalidInput."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        if file.suffix.lower() == ".parquet":
            parquet = pq.ParquetFile(file)
            schema = parquet.schema_arrow
            wanted = [name for name in schema.names if name not in cells.bytes_columns(schema)]
            _refuse_large(file, _unpacked(parquet, set(wanted)))
            batches = _bounded(file, parquet.iter_batches(BATCH_ROWS, columns=wanted))
        else:
            reader = pa.ipc.open_file(pa.memory_map(str(file)))
            schema = reader.schema
            wanted = [name for name in schema.names if name not in cells.bytes_columns(schema)]
            each = (reader.get_batch(n).select(wanted) for n in range(reader.num_record_batches))
            batches = _bounded(file, each)
    except (pa.ArrowException, EOFError) as error:
        raise cells.damaged(file, error) from None
    table = pa.Table.from_batches(batches, pa.schema([schema.field(name) for name in wanted]))
    return table.replace_schema_metadata(
        {"pictures": "\n".join(cells.bytes_columns(schema)), "rows": str(len(table))}
    )


def _unpacked(parquet: Any, wanted: set[str]) -> int:
    groups = [parquet.metadata.row_group(n) for n in range(parquet.num_row_groups)]
    return sum(
        group.column(n).total_uncompressed_size
        for group in groups
        for n in range(group.num_columns)
        if group.column(n).path_in_schema.split(".")[0] in wanted
    )


def _bounded(file: Path, batches: Iterable[Any]) -> list[Any]:
    """The batches, as long as they have at most MOST_BYTES together. Raises InvalidInput."""
    kept, n_bytes = [], 0
    for batch in batches:
        n_bytes += batch.nbytes
        _refuse_large(file, n_bytes)
        kept.append(batch)
    return kept


def _refuse_large(file: Path, n_bytes: int) -> None:
    if n_bytes > MOST_BYTES:
        raise InvalidInput(
            f"'{file}' has {n_bytes:,} bytes of text when it is unpacked. Expected at most {MOST_BYTES:,}; divide it."
        )


def _of_arrow(file: Path, table: "pa.Table") -> Table:
    columns, skipped = {}, []
    inside = (table.schema.metadata or {}).get(b"pictures", b"").decode()
    table = table.flatten()
    _refuse_twins(file, [*table.column_names, *inside.split("\n")])
    for name in table.column_names:
        column = _as_text(table.column(name))
        if column is None:
            skipped.append(name)
        else:
            columns[name] = column
    pictures = _lower(file, {name: name for name in inside.split("\n") if name})
    return Table(file, _lower(file, columns), pictures, tuple(skipped), len(table))


def _as_text(column: "pa.ChunkedArray") -> "pa.ChunkedArray | None":
    """A column of texts or lists of texts; None of any other type."""
    import pyarrow as pa
    import pyarrow.compute as pc

    kind = column.type
    if pa.types.is_dictionary(kind):
        column = column.cast(kind.value_type)
        kind = column.type
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        inner = kind.value_type
        if pa.types.is_struct(inner) and inner.get_field_index("raw") >= 0:
            return of_rows(Path(), [{"x": value} for value in column.to_pylist()]).columns["x"]
        is_text = pa.types.is_string(inner) or pa.types.is_large_string(inner)
        return column if is_text else None
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        return column if not column.null_count else pc.fill_null(column, "")
    if pa.types.is_nested(kind) or pa.types.is_null(kind):
        return None
    try:
        return pc.fill_null(column.cast(pa.string()), "")
    except pa.ArrowException:
        return None
