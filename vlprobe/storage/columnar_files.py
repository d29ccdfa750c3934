"""Reader for Parquet files from untrusted sources. Data is validated in memory, and its size is limited."""

import contextlib
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from vlprobe.errors import NO_MEMORY, InvalidInput

if TYPE_CHECKING:
    import pyarrow as pa

GROUP_ROWS = 1 << 17  # rows decoded at a time
MOST_BYTES = 2 << 30  # maximum for an unpacked row group


@contextlib.contextmanager
def translate_errors(file: Path) -> Iterator[None]:
    """Convert the errors that a damaged file causes to a one-line InvalidInput."""
    import pyarrow as pa

    try:
        yield
    except (OSError, EOFError, IndexError, UnicodeDecodeError, pa.ArrowException) as error:
        raise damaged(file, error) from None


def damaged(file: Path, error: Exception) -> InvalidInput:
    """Build the error raised when a table cannot be read."""
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
    """A Parquet file whose text and bytes columns are read as dictionaries.

    A value of one megabyte that 20,000 rows refer to takes 500 bytes in the file and 20 GB as plain
    values. As a dictionary, a column in a row group has at most 2 GiB of distinct values, the limit set by
    pyarrow's offsets. Metadata for column chunks is not read, because damaged metadata crashes the process
    (pyarrow 26). Not safe for use by several threads; wrap calls in `translate_errors`.

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
        """Yield columns from the given row groups in batches, copied into memory and validated. Text columns may be
        dictionary-encoded.
        """
        names = list(columns)
        # One at a time: pyarrow does not join lists with different dictionaries
        for number in groups:
            group = self._groups[number]
            if max(group.total_byte_size, 4 * group.num_rows) > MOST_BYTES:
                raise InvalidInput(
                    f"'{self._file}' has a row group of {group.num_rows:,} rows that unpacks to "
                    f"{group.total_byte_size:,} bytes. Expected at most {MOST_BYTES:,} bytes; "
                    "write the file with smaller row groups."
                )
            for batch in self._coded.iter_batches(GROUP_ROWS, [number], names, use_threads=False):
                batch.validate(full=True)
                yield batch.select(names)
