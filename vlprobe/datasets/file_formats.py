"""Read the text files of datasets (JSON, JSON lines and tables), or quickly check the beginning of a file.

Every defect raises an InvalidInput whose message is one line that names the file.
"""

import codecs
import csv
import io
import json
from collections.abc import Iterable, Iterator
from pathlib import Path

from vlprobe.errors import InvalidInput
from vlprobe.storage import files
from vlprobe.storage.access import refuse_outside

DELIMITERS = ",;\t|"
HEAD_BYTES = 65_536  # read to check the start of a file
LONGEST_ESCAPE = 12  # characters of two \\u escapes, which the end of the head may cut


def read_text(path: Path) -> str:
    """Read a UTF-8 file with or without a byte order mark. Raises InvalidInput."""
    refuse_outside(path)
    try:
        return files.read(path).decode("utf-8-sig").replace("\r\n", "\n").replace("\r", "\n")
    except FileNotFoundError:
        raise InvalidInput(f"'{path}' does not exist. Check the path of the dataset.") from None
    except OSError as error:
        raise InvalidInput(
            f"'{path}' cannot be read ({error.strerror}). Expected a text file."
        ) from None
    except UnicodeDecodeError as error:
        raise InvalidInput(
            f"'{path}' is not UTF-8 (byte {error.start}). Save it as UTF-8."
        ) from None


def read_json(path: Path) -> object:
    """Parse a JSON file. Raises InvalidInput with the position of the first mistake."""
    text = read_text(path)
    try:
        return files.parse_json(text, unique=True)
    except ValueError as error:
        raise InvalidInput(
            f"'{path}' is not valid JSON ({error}). The file may be truncated; download or "
            "save it again."
        ) from None


def read_json_lines(file: Path) -> list[object]:
    """Parse every nonblank line in a .jsonl file. Raises InvalidInput."""
    records = []
    for number, line in enumerate(read_text(file).split("\n"), 1):
        if line.strip():
            records.append(_parse_line(file, number, line))
    return records


def _parse_line(file: Path, number: int, line: str, unique: bool = True) -> object:
    try:
        return files.parse_json(line, unique=unique)
    except ValueError as error:
        reason = str(error).removeprefix("line 1, ")
        raise InvalidInput(
            f"'{file}', line {number}, is not valid JSON ({reason}). Expected one object on every line."
        ) from None


def read_records(file: Path) -> object:
    """Parse a JSON file, or parse a .jsonl file into a list with one value per line. Raises InvalidInput."""
    return read_json_lines(file) if file.suffix == ".jsonl" else read_json(file)


def read_table(file: Path) -> list[tuple[int, dict[str, str]]]:
    """Read a table and return the line number and fields of every row. A .tsv file is split at tabs and has
    no quotes; any other file is split at commas.

    Column names are stripped and converted to lowercase, and fields are stripped. A short row is padded
    with empty fields.

    Raises:
        InvalidInput: duplicate column names, rows with more fields than columns, or broken quotes.
    """
    text = io.StringIO(read_text(file))
    if file.suffix == ".tsv":
        reader = csv.reader(text, delimiter="\t", quoting=csv.QUOTE_NONE)
    else:
        reader = csv.reader(text, strict=True)
    try:
        rows = [
            (reader.line_num, [field.strip() for field in row])
            for row in reader
            if any(map(str.strip, row))
        ]
    except csv.Error as error:
        raise InvalidInput(
            f"'{file}', line {reader.line_num}: {error}. Expected a table; check the quotes."
        ) from None
    header = [column.lower() for column in rows[0][1]] if rows else []
    if len(set(header)) < len(header):
        raise InvalidInput(f"'{file}' has duplicate column names: {', '.join(header)}. Rename one.")
    longer = [line for line, row in rows if len(row) > len(header)]
    if longer:
        raise InvalidInput(
            f"{len(longer)} rows in '{file}' have more than {len(header)} fields (first: line "
            f"{longer[0]}). Every row must have as many fields as the first line."
        )
    return [
        (line, dict(zip(header, row + [""] * (len(header) - len(row)), strict=True)))
        for line, row in rows[1:]
    ]


def header_of(file: Path) -> tuple[str, list[str]]:
    """Read the first line of a .csv or .tsv file, and return its separator and column names. Raises InvalidInput."""
    first_line = read_head(file)[0].partition("\n")[0]
    delimiter = max(DELIMITERS, key=first_line.count)
    try:
        header = next(csv.reader(io.StringIO(first_line), delimiter=delimiter, strict=True), [])
    except csv.Error as error:
        raise InvalidInput(
            f"'{file}', line 1: {error}. Expected column names; check the quotes."
        ) from None
    if not any(name.strip() for name in header):
        raise InvalidInput(
            f"'{file}' has no columns. The first line must contain the column names."
        )
    return delimiter, header


def separated_rows(
    file: Path, lines: Iterable[str], delimiter: str, n_columns: int
) -> Iterator[tuple[int, list[str]]]:
    """Yield the line number and the fields of each nonblank row below the header.

    Args:
        file: The table, for errors.
        lines: All lines of the table, with their line breaks.
        delimiter: The separator from `header_of`.
        n_columns: The number of columns.

    Raises:
        InvalidInput: a row does not have one field per column, or has broken quotes.
    """
    reader = csv.reader(lines, delimiter=delimiter, strict=True)
    try:
        next(reader)
        for row in filter(None, reader):
            if len(row) != n_columns:
                raise InvalidInput(
                    f"'{file}', line {reader.line_num}, has {len(row)} fields, but the table has "
                    f'{n_columns} columns. Put captions that contain the separator in "quotes".'
                )
            yield reader.line_num, row
    except csv.Error as error:
        raise InvalidInput(
            f"'{file}', line {reader.line_num}: {error}. Expected a table; check the quotes."
        ) from None


def read_rows(file: Path) -> list[tuple[str, dict[str, str]]]:
    """Read a table or a .jsonl file, and return the line number and fields of every row.

    Values in a JSON line are converted to the text that a table would have: a list to a|b|c, null to "". A line that
    is not an object has no fields.

    Raises:
        InvalidInput: for the same reasons as `read_table` and `read_json_lines`.
    """
    if file.suffix != ".jsonl":
        return [(str(line), row) for line, row in read_table(file)]
    return [
        (str(number), {column.strip().lower(): _cell(value) for column, value in row.items()})
        if isinstance(row, dict)
        else (str(number), {})
        for number, row in enumerate(read_json_lines(file), 1)
    ]


def _cell(value: object) -> str:
    if isinstance(value, list):
        return "|".join(map(_cell, value))
    return "" if value is None else str(value).strip()


def read_head(path: Path) -> tuple[str, bool]:
    """Return the first HEAD_BYTES of a UTF-8 file, and whether they are the whole file. Raises InvalidInput."""
    refuse_outside(path)
    try:
        files.require_regular(path)
        is_longer = path.stat().st_size > HEAD_BYTES
        if is_longer:
            with path.open("rb") as handle:
                text = codecs.getincrementaldecoder("utf-8-sig")().decode(handle.read(HEAD_BYTES))
            return text.replace("\r\n", "\n").replace("\r", "\n"), False
    except OSError:
        pass  # read_text raises it with its reason
    except UnicodeDecodeError as error:
        raise InvalidInput(
            f"'{path}' is not UTF-8 (byte {error.start}). Save it as UTF-8."
        ) from None
    return read_text(path), True


def check_json_head(path: Path) -> None:
    """Raise InvalidInput if a file does not begin like JSON. A short file is parsed completely."""
    text, is_whole = read_head(path)
    if is_whole:
        read_json(path)
        return
    try:
        json.JSONDecoder().raw_decode(text, len(text) - len(text.lstrip()))
    except json.JSONDecodeError as error:
        is_cut = (
            error.msg.startswith("Unterminated string")
            or len(error.doc) - error.pos <= LONGEST_ESCAPE
        )
        if not is_cut:
            where = f"line {error.lineno}, column {error.colno}: {error.msg}"
            raise InvalidInput(
                f"'{path}' is not valid JSON ({where}). The file may be truncated; "
                "download or save it again."
            ) from None
    except RecursionError:
        raise InvalidInput(
            f"'{path}' is nested too deeply to be read as JSON. Check the file."
        ) from None


def check_records_head(path: Path) -> None:
    """Raise InvalidInput if a .json file or the first line of a .jsonl file is not JSON, or if a table is not text."""
    if path.suffix == ".json":
        check_json_head(path)
        return
    text, is_whole = read_head(path)
    first_line, newline, _ = text.lstrip().partition("\n")
    if path.suffix == ".jsonl" and first_line and (newline or is_whole):
        _parse_line(path, 1, first_line, unique=False)
