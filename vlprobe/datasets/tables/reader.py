"""Read a table into columns of text. Formats: .csv, .tsv, .json, .jsonl, .parquet, .tar.

A column contains texts, lists of texts, or pictures. Pictures stay in the file and are identified by their paths
(see `storage.containers`). Every defect raises an InvalidInput whose one-line message names the file and the row.

JSON that is not a list of rows is converted to rows: COCO captions, Karpathy's splits, FOIL it, VL-CheckList, Cola,
and WhatsUp's COCO and Visual Genome parts. In a tar with webdataset's layout, the files for a row share a name up to
the first dot: `000017.jpg` is the picture in row 000017, `000017.txt` its caption, and the fields in `000017.json`
are further columns. A tar is not unpacked.
"""

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from vlprobe.datasets.file_formats import (
    header_of,
    read_json,
    read_json_lines,
    separated_rows,
)
from vlprobe.datasets.folder import SUFFIXES as SUFFIXES_OF_PICTURES
from vlprobe.errors import InvalidInput
from vlprobe.storage import columnar_files, containers, files
from vlprobe.storage.access import refuse_outside

Row = dict[str, object]
EXPECTED = (
    "a list of objects, an object of objects, or the JSON of Karpathy's splits, COCO captions, FOIL it, VL-CheckList, "
    "Cola or WhatsUp"
)


def rows_of_document(file: Path, content: object) -> list[Row]:
    """Return the rows in a JSON document.

    Raises:
        InvalidInput: the document has no rows, or a row differs in form from the first.
    """
    rows = None
    try:
        if isinstance(content, dict):
            rows = _of_object(content)
        elif isinstance(content, list) and content:
            rows = _of_list(content)
    except (KeyError, TypeError, ValueError, AttributeError, IndexError) as error:
        reason = f"{type(error).__name__}: {error}"
        raise InvalidInput(
            f"'{file}' does not have the same layout in all rows ({reason[:200]}). Expected {EXPECTED}."
        ) from None
    if not rows:
        raise InvalidInput(f"'{file}' contains no rows. Expected {EXPECTED}.")
    return rows


def _of_object(content: Mapping[str, object]) -> list[Row] | None:
    images, annotations = content.get("images"), content.get("annotations")
    if isinstance(images, list) and isinstance(annotations, list):
        first = annotations[0] if annotations else None
        is_foil = isinstance(first, dict) and "foil" in first
        return list(_foil_it(images, annotations) if is_foil else _coco(images, annotations))
    if isinstance(images, list):
        return [_karpathy(image) for image in images]
    if content and all(isinstance(row, dict) for row in content.values()):
        return [{"id": key, **row} for key, row in content.items() if isinstance(row, dict)]
    return None


def _of_list(content: list) -> list[Row] | None:
    if all(isinstance(row, dict) for row in content):
        return content
    if not all(isinstance(row, list) for row in content):
        number = next(n for n, row in enumerate(content) if not isinstance(row, dict | list))
        raise ValueError(f"entry {number} is neither an object nor a list")
    first = content[0]
    if len(first) == 2 and isinstance(first[1], dict):
        return list(_checklist(content))
    if len(first) == 4 and all(isinstance(value, str) for value in first):
        _require_captions(content)
        return [
            dict(zip(("image_1", "caption_1", "image_2", "caption_2"), row, strict=True))
            for row in content
        ]
    if len(first) == 3 and isinstance(first[0], int | str):
        # COCO pictures are given as numbers, Visual Genome's as file stems
        return [
            {
                "image_path": f"{image:012d}.jpg" if isinstance(image, int) else str(image),
                "caption_options": [right, wrong],
            }
            for image, right, wrong in content
        ]
    return None


def _require_captions(content: Sequence[Sequence[str]]) -> None:
    """Raise ValueError if lists with four entries are not Cola's (picture, caption, picture, caption). In
    NaturalBench's list for fine-tuning, the second entry is a picture.
    """
    for number, (_, caption, *_) in enumerate(content):
        if Path(caption).suffix.lower() in SUFFIXES_OF_PICTURES:
            raise ValueError(
                f"entry {number} has a picture ('{caption[:40]}') where Cola has a caption. If this is NaturalBench's "
                "fine-tuning list, it contains questions, not captions; use NaturalBench's test set instead"
            )


def _checklist(content: Sequence) -> Iterator[Row]:
    for number, (image, texts) in enumerate(content):
        for part, (right, wrong) in enumerate(zip(texts["POS"], texts["NEG"], strict=True)):
            yield {"id": f"{number}-{part}", "image": image, "pos": right, "neg": wrong}


def _karpathy(image: Mapping) -> Row:
    folder = image.get("filepath", "")
    return {
        "image": f"{folder}/{image['filename']}" if folder else image["filename"],
        "caption": [sentence["raw"] for sentence in image["sentences"]],
        "split": image["split"],
    }


def _coco(images: Sequence[Mapping], annotations: Sequence[Mapping]) -> Iterator[Row]:
    captions: dict[object, list[str]] = {image["id"]: [] for image in images}
    for annotation in annotations:
        captions[annotation["image_id"]].append(annotation["caption"])
    for image in images:
        yield {"image": image["file_name"], "caption": captions[image["id"]]}


def _foil_it(images: Sequence[Mapping], annotations: Sequence[Mapping]) -> Iterator[Row]:
    """Yield a row for each foil and the caption that it was made from. Both have the same COCO caption id."""
    names = {image["id"]: image["file_name"] for image in images}
    originals = {
        annotation["id"]: annotation["caption"]
        for annotation in annotations
        if not annotation["foil"]
    }
    for annotation in annotations:
        if annotation["foil"]:
            if annotation["id"] not in originals:
                raise ValueError(f"there is no caption with the id of foil {annotation['id']}")
            yield {
                "id": annotation.get("foil_id", annotation["id"]),
                "image": names[annotation["image_id"]],
                "caption": originals[annotation["id"]],
                "foil": annotation["caption"],
                "target_word": annotation["target_word"],
                "foil_word": annotation["foil_word"],
            }


PICTURES = ("jpg", "jpeg", "png", "webp", "gif", "bmp", "tif", "tiff")
TEXTS = {"txt": "caption", "caption": "caption", "text": "caption", "cls": "class"}
MOST_TEXT_BYTES = 1 << 20  # of a text member
KEY = "__key__"  # webdataset's name of the column that names a row
LEFT_OUT = "__"  # start of the names of webdataset's own members


def rows_of_shard(file: Path) -> list[dict[str, Any]]:
    """Read a tar, and return one row for each picture, in file order.

    Raises:
        InvalidInput: the file is not a tar, has no pictures, or a text member cannot be read.
        OSError: the file cannot be read.
    """
    rows: dict[str, dict[str, Any]] = {}
    with file.open("rb") as tar:
        for name, member in containers.members(file).items():
            folder, _, base = name.rpartition("/")
            stem, _, ending = base.partition(".")
            kind = ending.lower().rpartition(".")[2]
            if base.startswith((LEFT_OUT, ".")) or not ending:
                continue
            row = rows.setdefault(f"{folder}/{stem}" if folder else stem, {})
            if kind in PICTURES:
                # A name with more dots, such as 000017.left.jpg, gets a separate column.
                column = ending.lower().rpartition(".")[0] or "image"
                row[column] = f"{file.absolute()}/{name}"
            elif kind in TEXTS or kind == "json":
                if member.n_bytes > MOST_TEXT_BYTES:
                    raise InvalidInput(
                        f"'{name}' in '{file}' has {member.n_bytes:,} bytes. "
                        f"Expected a text of at most {MOST_TEXT_BYTES:,}."
                    )
                tar.seek(member.start)
                _add_text(file, name, kind, tar.read(member.n_bytes), row)
    pictured = {
        key: row
        for key, row in rows.items()
        if any(".tar/" in str(v).lower() for v in row.values())
    }
    if not pictured:
        raise InvalidInput(
            f"'{file}' has no pictures. Expected members such as 000017.jpg and 000017.txt."
        )
    return [{KEY: key, **row} for key, row in pictured.items()]


def _add_text(file: Path, name: str, kind: str, content: bytes, row: dict[str, Any]) -> None:
    try:
        text = content.decode("utf-8-sig")
        if kind == "json":
            fields = files.parse_json_object(text)
            row.update({key: value for key, value in fields.items() if key not in row})
        else:
            row[TEXTS[kind]] = text.strip()
    except ValueError as error:
        raise InvalidInput(
            f"'{name}' in '{file}' cannot be read ({error}). Expected UTF-8, and an object if it is JSON."
        ) from None


SEPARATED = (".csv", ".tsv", ".txt")
JSON_LINES = (".jsonl", ".ndjson")
TEXTUAL = (*SEPARATED, ".json", *JSON_LINES)
SUFFIXES = (*SEPARATED, ".json", *JSON_LINES, ".parquet", ".tar")
ARROW = (".arrow", ".feather", ".ipc")  # pyarrow trusts them: a wrong offset reads other memory
PACKED = (".gz", ".bz2", ".xz", ".zst", ".zip", ".tgz", ".7z")
MOST_BYTES = 4 << 30  # of a table's texts in memory
MOST_ROWS = 50_000_000
# Cells of JSON rows, in total and per filled cell
MOST_SPARSE, MOST_SPARSITY = (1_000_000, 20)
BATCH_ROWS = 8192  # written out at a time


@dataclass(frozen=True, slots=True)
class Table:
    """The columns of a table, all with the same length.

    Attributes:
        file: File of the table.
        columns: Columns with texts or lists of texts, by lowercase name, in file order.
        pictures: Columns with pictures: the name as written in the file, by lowercase name.
        skipped: Names of columns that contain neither texts nor pictures.
        n_rows: Number of rows.
    """

    file: Path
    columns: dict[str, pa.ChunkedArray]
    pictures: dict[str, str]
    skipped: tuple[str, ...]
    n_rows: int

    @property
    def names(self) -> set[str]:
        """Return the names of the columns that can be read."""
        return {*self.columns, *self.pictures}

    def values(self, column: str) -> Sequence[Any]:
        """Return the values in a column: texts, lists of texts, or the paths to pictures inside the file."""
        if column in self.pictures:
            folder = f"{self.file.absolute()}/{self.pictures[column]}"
            return [f"{folder}/{row}" for row in range(self.n_rows)]
        return self.columns[column].to_pylist()


def require_kind(file: Path) -> None:
    """Raise InvalidInput if the suffix of a file belongs to a compressed file, or does not belong to a table."""
    suffix = file.suffix.lower()
    if suffix in PACKED:
        raise InvalidInput(
            f"'{file}' is compressed, and its unpacked size is unknown. Unpack the file first."
        )
    if suffix in ARROW:
        raise InvalidInput(
            f"'{file}' is an Arrow file. Save it as Parquet: pandas.read_feather(FILE).to_parquet(OUT)."
        )
    if suffix not in SUFFIXES:
        raise InvalidInput(f"'{file}' ends in '{suffix}'. Expected a table: {', '.join(SUFFIXES)}.")


def require_file(file: Path) -> None:
    """Raise InvalidInput if the file does not exist or cannot be read."""
    refuse_outside(file)
    try:
        files.require_regular(file)
    except FileNotFoundError:
        raise InvalidInput(f"'{file}' does not exist. Check the path of the dataset.") from None
    except OSError as error:
        raise InvalidInput(
            f"'{file}' cannot be read ({error.strerror}). Expected a table."
        ) from None


def read(file: Path) -> Table:
    """Read a whole table. Raises InvalidInput."""
    require_kind(file)
    require_file(file)
    suffix = file.suffix.lower()
    try:
        if suffix in SEPARATED:
            return _separated(file)
        if suffix == ".json":
            return of_rows(file, rows_of_document(file, read_json(file)))
        if suffix in JSON_LINES:
            return of_rows(file, rows_of_document(file, read_json_lines(file)))
        if suffix == ".tar":
            return of_rows(file, rows_of_shard(file))
        return _columnar(file)
    except OSError as error:
        raise InvalidInput(
            f"'{file}' cannot be read ({error.strerror}). Expected a table."
        ) from None


def of_rows(file: Path, rows: Sequence[Row]) -> Table:
    """Convert JSON rows to columns. Columns with other values than texts and numbers are skipped."""
    rows = [_flat(row) for row in rows]
    names = list(dict.fromkeys(name for row in rows for name in row))
    if len(names) * len(rows) > MOST_SPARSE + MOST_SPARSITY * sum(map(len, rows)):
        raise InvalidInput(
            f"'{file}' has {len(names):,} different column names in {len(rows):,} rows, "
            "and most rows lack many of them. Every row needs the same columns."
        )
    columns, skipped = {}, []
    for name in names:
        values = [_text(row.get(name)) for row in rows]
        _refuse_surrogates(file, name, values)
        if any(value is None for value in values):
            skipped.append(name)
        elif any(isinstance(value, list) for value in values):
            lists = [[value] if isinstance(value, str) else value for value in values]
            columns[name] = pa.chunked_array([pa.array(lists, pa.list_(pa.string()))])
        else:
            columns[name] = pa.chunked_array([pa.array(values, pa.string())])
    return Table(file, _lower(file, columns), {}, tuple(skipped), len(rows))


def _refuse_surrogates(file: Path, name: str, values: Sequence[str | list[str] | None]) -> None:
    """Raise InvalidInput if a column's name or any of its texts contains a lone surrogate."""
    texts = ("\n".join(value) if isinstance(value, list) else value or "" for value in values)
    for row, text in enumerate(itertools.chain([name], texts)):
        if not text.isascii() and files.SURROGATE.search(text):
            place = f"row {row}, " if row else ""
            raise InvalidInput(
                f"'{file}', {place}column '{name}', contains an incomplete character (a lone "
                "surrogate). Save the file again as UTF-8."
            )


def _flat(row: Row) -> Row:
    """Flatten a row: each field in a nested object becomes a separate column, named OBJECT.FIELD."""
    if not any(isinstance(value, dict) for value in row.values()):
        return row
    flat: Row = {}
    for name, value in row.items():
        inner = value.items() if isinstance(value, dict) else ()
        flat |= {f"{name}.{field}": part for field, part in inner}
        if not isinstance(value, dict):
            flat[name] = value
    return flat


def _text(value: object) -> str | list[str] | None:
    """Convert a JSON value to text or a list of texts; None if that is not possible."""
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
    """Return the columns by lowercase name, without unnamed columns such as the index that pandas writes."""
    _refuse_twins(file, list(columns))
    return {name.strip().lower(): column for name, column in columns.items() if name.strip()}


def _refuse_twins(file: Path, names: Sequence[str]) -> None:
    lower = [name.strip().lower() for name in names if name.strip()]
    if len(set(lower)) < len(lower):
        raise InvalidInput(f"'{file}' has duplicate column names: {', '.join(names)}. Rename one.")


def _separated(file: Path) -> Table:
    delimiter, header = header_of(file)
    _refuse_twins(file, header)
    chunks: list[list[pa.Array]] = [[] for _ in header]
    n_rows = 0
    with file.open(encoding="utf-8-sig", newline="") as handle:
        rows = (row for _, row in separated_rows(file, handle, delimiter, len(header)))
        try:
            while batch := list(itertools.islice(rows, BATCH_ROWS)):
                n_rows += len(batch)
                for column, values in zip(chunks, zip(*batch, strict=True), strict=True):
                    column.append(pa.array(values, pa.string()))
        except UnicodeDecodeError:
            _refuse_other_encodings(file)
    arrays = (pa.chunked_array(column, pa.string()) for column in chunks)
    columns = dict(zip(header, arrays, strict=True))
    return Table(file, _lower(file, columns), {}, (), n_rows)


def _refuse_other_encodings(file: Path) -> None:
    """Raise InvalidInput if the file is not UTF-8. The message gives the position of the first invalid byte."""
    content = files.read(file)
    try:
        content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content[: error.start].count(b"\n") + 1
        raise InvalidInput(
            f"'{file}', line {line}, is not UTF-8 (byte {error.start}). Save it as UTF-8."
        ) from None


def _columnar(file: Path) -> Table:
    """Read a Parquet file without its pictures.

    Raises:
        InvalidInput: the file is damaged, or has more than MOST_BYTES of text or MOST_ROWS rows. Text is
            measured piece by piece while it is unpacked, because the sizes stated in the file are not trusted.
    """
    with columnar_files.translate_errors(file):
        opened = columnar_files.ParquetFile(file)
        n_rows = sum(opened.row_counts)
        if n_rows > MOST_ROWS:
            raise InvalidInput(
                f"'{file}' has {n_rows:,} rows. The maximum is {MOST_ROWS:,}; split the file."
            )
        _refuse_twins(file, opened.schema.names)
        inside = [name for name in containers.bytes_columns(opened.schema) if name.strip()]
        fields = [field for field in opened.schema if field.name.strip()]
        empty = pa.schema([field for field in fields if field.name not in inside]).empty_table()
        names = list(_flattened(empty))
        wanted = [
            name
            for name in empty.column_names
            if any(_as_text(c) is not None for c in _flattened(empty.select([name])).values())
        ]
        groups = range(len(opened.row_counts) if wanted else 0)
        columns = _texts(file, opened.batches(wanted, groups), empty.select(wanted))
        if any(len(column) != n_rows for column in columns.values()):
            raise EOFError("columns of different lengths")
    _refuse_twins(file, [*names, *inside])
    skipped = tuple(name for name in names if name not in columns)
    pictures = {name: name for name in inside}
    return Table(file, _lower(file, columns), _lower(file, pictures), skipped, n_rows)


def _texts(
    file: Path, batches: Iterable[pa.RecordBatch], empty: pa.Table
) -> dict[str, pa.ChunkedArray]:
    """Read the columns in the batches as text, by column name. Columns with values that are not text are left out."""
    columns: dict[str, list[pa.Array] | None] = {}
    n_bytes = 0
    pieces = (
        pa.Table.from_batches([batch.slice(start, BATCH_ROWS)])
        for batch in batches
        for start in range(0, batch.num_rows, BATCH_ROWS)
    )
    for piece in itertools.chain([empty], pieces):
        for name, column in _flattened(piece).items():
            _refuse_large(file, n_bytes + sum(map(_written_out, column.chunks)))
            text = _as_text(column)
            chunks = columns.setdefault(name, [])
            if text is None or chunks is None:
                columns[name] = None
                continue
            n_bytes += text.nbytes
            _refuse_large(file, n_bytes)
            chunks.append(text.combine_chunks())  # copied: a slice would keep the whole batch
    return {name: pa.chunked_array(chunks) for name, chunks in columns.items() if chunks}


def _flattened(table: pa.Table) -> dict[str, pa.ChunkedArray]:
    """Return a table's columns by name. Each field of a struct becomes a separate column."""
    flat = table.flatten()
    return dict(zip(flat.column_names, flat.columns, strict=True))


def _written_out(array: pa.Array) -> int:
    """Return the size of an array's values in bytes. A value in a dictionary counts each time that it is used."""
    kind = array.type
    if pa.types.is_dictionary(kind) and not pa.types.is_primitive(kind.value_type):
        lengths = pc.call_function("binary_length", [array.dictionary])
        return pc.call_function("sum", [pc.take(lengths, array.indices)]).as_py() or 0
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return _written_out(array.flatten())
    if pa.types.is_struct(kind):
        return sum(map(_written_out, array.flatten()))
    return array.nbytes


def _refuse_large(file: Path, n_bytes: int) -> None:
    if n_bytes > MOST_BYTES:
        raise InvalidInput(
            f"'{file}' has {n_bytes:,} bytes of text when decompressed. The maximum is "
            f"{MOST_BYTES:,}; split the file."
        )


def _as_text(column: pa.ChunkedArray) -> pa.ChunkedArray | None:
    """Convert a column to texts or lists of texts; None if its type does not allow that."""
    kind = column.type
    try:
        if pa.types.is_dictionary(kind) and not pa.types.is_nested(kind.value_type):
            column = column.cast(kind.value_type)
            kind = column.type
        if pa.types.is_list(kind) or pa.types.is_large_list(kind):
            inner = kind.value_type
            if pa.types.is_struct(inner) and inner.get_field_index("raw") >= 0:
                return _raw_texts(column)
            if pa.types.is_dictionary(inner):
                inner = inner.value_type
            is_text = pa.types.is_string(inner) or pa.types.is_large_string(inner)
            return column.cast(pa.list_(pa.string())) if is_text else None
        if pa.types.is_nested(kind) or pa.types.is_null(kind):
            return None
        column = column.cast(pa.string())
        return pc.fill_null(column, "") if column.null_count else column
    except pa.ArrowException:
        return None


def _raw_texts(column: pa.ChunkedArray) -> pa.ChunkedArray | None:
    """Return the field `raw` from lists of objects, as in Karpathy's splits; None if an object lacks the field."""
    lists = [
        [""] if objects is None else [one and one["raw"] for one in objects]
        for objects in column.to_pylist()
    ]
    if any(text is None for texts in lists for text in texts):
        return None
    return pa.chunked_array([pa.array(lists, pa.list_(pa.string()))])
