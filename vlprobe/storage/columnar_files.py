"""Parquet and Arrow files of unknown origin, read as untrusted input: in memory, validated, of bounded size.

pyarrow trusts the metadata of an Arrow file: a wrong offset reads memory outside the batch, a
mapped file that is truncated later ends the process (SIGBUS), and 50 kB of compressed buffers unpack
to gigabytes. Therefore, the unpacked size of a batch is computed from the file's metadata
first, the batch is copied into memory, and its content is validated. pyarrow does not expose that metadata. Its layout:
https://github.com/apache/arrow/blob/main/format/File.fbs and Message.fbs; its encoding:
https://flatbuffers.dev/internals.
"""

import contextlib
import struct
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from vlprobe.errors import NO_MEMORY, InvalidInput

if TYPE_CHECKING:
    import pyarrow as pa

GROUP_ROWS = 1 << 17  # of Parquet, decoded at a time
END = struct.Struct("<i6s")  # length of the footer, "ARROW1"
CONTINUATION = b"\xff\xff\xff\xff"  # begins a message; absent in files of Arrow before 0.15
EARLY_COMPRESSION = b"ARROW:experimental_compression"  # mark of compressed buffers in Arrow 0.17
BLOCK = struct.Struct("<qi4xq")  # offset, length of the metadata, length of the body
BUFFER = struct.Struct("<qq")  # offset in the body, length
DICTIONARY = 2  # a kind of message
MOST_METADATA = 1 << 24  # bytes of the footer, or of a message's metadata
MOST_BYTES = 2 << 30  # of one group of rows or batch with the file's dictionaries, unpacked


class ColumnarFile(Protocol):
    """An open Parquet or Arrow file, for one thread; `whole` turns its errors into one line.

    Attributes:
        schema: The columns.
        row_counts: Number of rows that each row group or batch claims to have.
    """

    schema: "pa.Schema"
    row_counts: list[int]

    def batches(
        self, columns: Collection[str], groups: Sequence[int]
    ) -> "Iterator[pa.RecordBatch]":
        """Read some columns of some groups, copied into memory and validated. Texts may be dictionaries."""
        ...


def open_columnar(file: Path) -> ColumnarFile:
    """Open a file by the ending of its name: .parquet, or Arrow."""
    return ParquetFile(file) if file.suffix.lower() == ".parquet" else ArrowFile(file)


@contextlib.contextmanager
def whole(file: Path) -> Iterator[None]:
    """Turn the errors of a damaged file into an InvalidInput of one line."""
    import pyarrow as pa

    damage = (OSError, EOFError, IndexError, UnicodeDecodeError, struct.error, pa.ArrowException)
    try:
        yield
    except damage as error:
        raise damaged(file, error) from None


def damaged(file: Path, error: Exception) -> InvalidInput:
    """Return the error about a table that cannot be read."""
    if isinstance(error, MemoryError):
        return InvalidInput(f"'{file}' cannot be read. {NO_MEMORY}")
    reason = " ".join(str(error).split())[:200]
    # pyarrow's message about DELTA_BYTE_ARRAY, in which 1 kB can unpack to gigabytes
    if "DictAccumulator" in reason:
        return InvalidInput(
            f"'{file}' has texts in a delta encoding, which vlprobe does not read. "
            "Save it again with pyarrow, pandas or DuckDB."
        )
    return InvalidInput(f"'{file}' is not a valid table ({reason}). Download or save it again.")


class ParquetFile:
    """A Parquet file whose texts and bytes are read as dictionaries.

    A value of one megabyte that 20,000 rows refer to takes 500 bytes in the file and 20 GB as plain
    values. As a dictionary, a column of a row group has at most 2 GiB of distinct values, the limit of
    pyarrow's offsets. The metadata of a column chunk are not read, because damaged ones crash the process
    (pyarrow 26).
    """

    def __init__(self, file: Path) -> None:
        import pyarrow.parquet as pq

        self._file = file
        plain = pq.ParquetFile(file)
        leaves = [plain.schema.column(number) for number in range(len(plain.schema.names))]
        coded = [
            leaf.path
            for leaf in leaves
            if leaf.physical_type == "BYTE_ARRAY" and leaf.logical_type.type != "DECIMAL"
        ]
        self._coded = pq.ParquetFile(file, read_dictionary=coded)
        self._groups = [plain.metadata.row_group(n) for n in range(plain.num_row_groups)]
        self.schema: pa.Schema = plain.schema_arrow
        self.row_counts = [group.num_rows for group in self._groups]

    def batches(
        self, columns: Collection[str], groups: Sequence[int]
    ) -> "Iterator[pa.RecordBatch]":
        """Read some columns of some row groups."""
        names = list(columns)
        # One at a time: pyarrow does not join lists with different dictionaries
        for number in groups:
            group = self._groups[number]
            if max(group.total_byte_size, 4 * group.num_rows) > MOST_BYTES:
                raise InvalidInput(
                    f"'{self._file}' unpacks {group.total_byte_size:,} bytes in {group.num_rows:,} rows at a time. "
                    f"Expected at most {MOST_BYTES:,} bytes; write it with smaller row groups."
                )
            for batch in self._coded.iter_batches(GROUP_ROWS, [number], names, use_threads=False):
                batch.validate(full=True)
                yield batch.select(names)


class ArrowFile:
    """An Arrow IPC file."""

    def __init__(self, file: Path) -> None:
        import pyarrow as pa

        self._file = file
        self._source = pa.OSFile(str(file))
        self.schema: pa.Schema = pa.ipc.open_file(self._source).schema
        end = self._source.size() - END.size
        (n_footer, _) = END.unpack(self._bytes_at(end, END.size))
        footer = _Table.root(self._bytes_at(end - n_footer, n_footer))
        self._blocks = footer.structs(3, BLOCK)
        self._n_dictionary_bytes = sum(map(self._unpacked, footer.structs(2, BLOCK)))
        self.row_counts = [self._record_batch(block)[0].number(0, "q") for block in self._blocks]

    def batches(
        self, columns: Collection[str], groups: Sequence[int]
    ) -> "Iterator[pa.RecordBatch]":
        """Read some columns of some batches."""
        import pyarrow as pa

        places = [place for place, name in enumerate(self.schema.names) if name in columns]
        options = pa.ipc.IpcReadOptions(included_fields=places)
        reader = pa.ipc.open_file(self._source, options=options)
        for number in groups:
            n_bytes = self._n_dictionary_bytes + self._unpacked(self._blocks[number])
            if n_bytes > MOST_BYTES:
                raise InvalidInput(
                    f"'{self._file}' unpacks to {n_bytes:,} bytes at a time. Expected at most {MOST_BYTES:,}; "
                    "write it with smaller batches."
                )
            batch = reader.get_batch(number)
            batch.validate(full=True)
            yield batch

    def _record_batch(self, block: Sequence[int]) -> "tuple[_Table, bool]":
        """Return the metadata of a batch, and whether its buffers are compressed."""
        offset, n_metadata, n_body = block
        content = self._bytes_at(offset, n_metadata)
        message = _Table.root(content[8 if content.startswith(CONTINUATION) else 4 :])
        if message.number(3, "q") != n_body or offset + n_metadata + n_body > self._source.size():
            raise EOFError("a batch ends after the file")
        batch = message.table(2)
        if message.number(1, "B") == DICTIONARY:
            batch = batch.table(1)
        return batch, batch.place(3) > 0 or EARLY_COMPRESSION in content

    def _unpacked(self, block: Sequence[int]) -> int:
        """Return the bytes that the buffers of a batch take in memory."""
        batch, is_compressed = self._record_batch(block)
        buffers = batch.structs(2, BUFFER)
        lengths = [length for _, length in buffers]
        if is_compressed:
            body = block[0] + block[1]
            # A compressed buffer begins with its unpacked length, or -1 if its bytes follow uncompressed.
            prefixes = [
                self._bytes_at(body + offset, 8) if size else b"" for offset, size in buffers
            ]
            stated = [struct.unpack("<q", prefix)[0] if prefix else 0 for prefix in prefixes]
            lengths = [max(pair) for pair in zip(lengths, stated, strict=True)]
        if min(lengths, default=0) < 0:
            raise struct.error("a buffer of negative length")
        return sum(lengths)

    def _bytes_at(self, offset: int, n_bytes: int) -> bytes:
        if offset < 0 or not 0 <= n_bytes <= MOST_METADATA:
            raise struct.error("an offset outside the file")
        self._source.seek(offset)
        return self._source.read(n_bytes)


class _Table:
    """A table in a flatbuffer; its fields are numbered as in the schemas of Arrow."""

    def __init__(self, buffer: bytes, start: int) -> None:
        self._buffer, self._start = buffer, start
        self._fields = start - self._unpack("i", start)

    @classmethod
    def root(cls, buffer: bytes) -> "_Table":
        """Return the outermost table."""
        (start,) = struct.unpack_from("<I", buffer)
        return cls(buffer, start)

    def place(self, field: int) -> int:
        """Find the position of a field; 0 if the table does not have it."""
        if 4 + 2 * field >= self._unpack("H", self._fields):
            return 0
        offset = self._unpack("H", self._fields + 4 + 2 * field)
        return self._start + offset if offset else 0

    def number(self, field: int, kind: str) -> int:
        """Return a numeric field, of the type with this letter in `struct`; 0 by default."""
        place = self.place(field)
        return self._unpack(kind, place) if place else 0

    def table(self, field: int) -> "_Table":
        """Return a required field that is a table."""
        place = self.place(field)
        return _Table(self._buffer, place + self._unpack("I", place))

    def structs(self, field: int, layout: struct.Struct) -> list[tuple[int, ...]]:
        """Return a field that is a list of structs; empty by default."""
        place = self.place(field)
        if not place:
            return []
        place += self._unpack("I", place)
        start, count = place + 4, self._unpack("I", place)
        return list(layout.iter_unpack(self._buffer[start : start + count * layout.size]))

    def _unpack(self, kind: str, place: int) -> int:
        if place < 0:
            raise struct.error("an offset outside the metadata")
        return struct.unpack_from("<" + kind, self._buffer, place)[0]
