"""Parquet files of unknown origin, read as untrusted input: in memory, validated, of bounded size."""

import contextlib
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from vlprobe.errors import NO_MEMORY, InvalidInput

if TYPE_CHECKING:
    import pyarrow as pa

GROUP_ROWS = 1 << 17  # decoded at a time
MOST_BYTES = 2 << 30  # of one group of rows, unpacked


@contextlib.contextmanager
def translate_errors(file: Path) -> Iterator[None]:
    """Turn the errors of a damaged file into an InvalidInput of one line."""
    import pyarrow as pa

    try:
        yield
    except (OSError, EOFError, IndexError, UnicodeDecodeError, pa.ArrowException) as error:
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
    (pyarrow 26). For one thread; `translate_errors` turns its errors into one line.

    Attributes:
        schema: The columns.
        row_counts: Number of rows that each row group claims to have.
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
        """Read some columns of some row groups, copied into memory and validated. Texts may be dictionaries."""
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
