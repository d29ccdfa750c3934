"""A few rows, or one column, of tables with millions of rows: read once, then kept decoded as long as there is room.

A case's number is its row in every table of its question set, so only the row groups are read that hold the rows of a
page.
"""

import contextlib
import functools
import os
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from vlprobe.errors import InvalidInput
from vlprobe.storage.files import REPAIR
from vlprobe.storage.memory import SingleFlightCache
from vlprobe.storage.store import Store

KEPT_BYTES = 256 << 20  # 24 million margins and about 150 row groups of texts
FEW = 100  # rows that are taken from row groups one by one; of more, DuckDB makes a table sooner


def _bytes(value: np.ndarray | pa.Table) -> int:
    return value.nbytes if isinstance(value, np.ndarray) else value.get_total_buffer_size()


_kept = SingleFlightCache(KEPT_BYTES, _bytes)
_readers = ThreadPoolExecutor(min(4, os.cpu_count() or 1))  # of row groups: they are decoded beside each other


@contextlib.contextmanager
def _readable() -> Iterator[None]:
    """Raises InvalidInput where a file goes, or becomes another, while it is read."""
    try:
        yield
    except (OSError, pa.ArrowInvalid) as error:
        raise InvalidInput(f"A stored result cannot be read ({error}). {REPAIR}") from None


def _stamped(path: str) -> tuple[str, int, int]:
    """What names the bytes of a file: a repaired one is read anew."""
    status = os.stat(path)
    return path, status.st_size, status.st_mtime_ns


@_readable()
def margins(store: Store, run: str) -> np.ndarray:
    """The margin of every case of a run, by the case's number, float32.

    Raises InvalidInput where the file has its cases in another order, or cannot be read.
    """
    path = store.files([run], "scores")[0]
    stamped = _stamped(path)

    def read() -> np.ndarray:
        with pq.ParquetFile(path, metadata=_footer(stamped)[0]) as file:
            table = file.read(["case", "margin"], use_threads=False)
        if not np.array_equal(table["case"].to_numpy(), np.arange(len(table))):
            raise InvalidInput(f"'{path}' has its cases in another order than they were asked. {REPAIR}")
        return table["margin"].to_numpy()

    return _kept.get((stamped, "margin"), read)


@_readable()
def cases(store: Store, case_key: str, where: str, values: Sequence[object]) -> np.ndarray:
    """The numbers of a question set's cases that meet a condition on its `cases` table, rising."""
    files = store.files([case_key], "cases")

    def found() -> np.ndarray:
        with store.cursor() as cursor:
            numbers = cursor.execute(f'SELECT "case" FROM read_parquet(?) WHERE {where}', [files, *values]).fetchnumpy()
        return np.sort(numbers["case"]).astype(np.int32)

    return _kept.get((_stamped(files[0]), where, *values), found)


def unit(store: Store, case_key: str) -> str:
    """What names the unit of resampling of a question set's cases, in SQL.

    Question sets of before there was a column for it have one of more than an item in triplets only: the tag `picture`.
    """
    named = "cluster" in store.cases(case_key).columns("cases")
    return "cluster" if named else "coalesce(tags['picture'], item)"


@_readable()
def rows(store: Store, path: str, numbers: Sequence[int], without: tuple[str, ...]) -> pd.DataFrame:
    """Rows of a stored table in the order that is asked for; numbers that it does not have are left out.

    Args:
        store: Where the table is.
        path: The table's file, as `Store.files` names it.
        numbers: Of the rows: numbers of cases.
        without: Columns that are not wanted, whether the table has them or not.
    """
    stamped = _stamped(path)
    footer, starts, words = _footer(stamped)
    wanted = np.asarray(numbers, dtype=np.int64)
    wanted = wanted[(wanted >= 0) & (wanted < footer.num_rows)]
    if len(wanted) > FEW:
        left_out = ", ".join(f'"{name}"' for name in footer.schema.to_arrow_schema().names if name in without)
        with store.cursor() as cursor:
            found = cursor.execute(
                f"SELECT * EXCLUDE ({left_out}) FROM read_parquet(?) "
                'WHERE "case" IN (SELECT unnest(?::BIGINT[])) ORDER BY "case"',
                [[path], wanted.tolist()],
            ).df()
        return found.iloc[np.searchsorted(found["case"], wanted)].reset_index(drop=True)
    schema = footer.schema.to_arrow_schema()
    schema = pa.schema([field for field in schema if field.name not in without])

    def decoded(group: int) -> pa.Table:
        with pq.ParquetFile(path, metadata=footer, read_dictionary=words) as file:
            return file.read_row_group(group, columns=schema.names, use_threads=False)

    def kept(group: int) -> pa.Table:
        return _kept.get((stamped, group, without), functools.partial(decoded, group))

    groups = (np.searchsorted(starts, wanted, "right") - 1).tolist()
    list(_readers.map(kept, {group for group in groups if (stamped, group, without) not in _kept}))
    found = []
    for group, number in zip(groups, wanted, strict=True):
        found += kept(group).slice(int(number - starts[group]), 1).to_pylist()
    frame = pa.Table.from_pylist(found, schema=schema).to_pandas()
    for name in (field.name for field in schema if pa.types.is_map(field.type)):
        frame[name] = [dict(pairs) for pairs in frame[name]]
    return frame


@functools.lru_cache(maxsize=64)
def _footer(stamped: tuple[str, int, int]) -> tuple[pq.FileMetaData, np.ndarray, list[str]]:
    """What a file's footer says, the first row of each row group, and which columns are read as codes of words."""
    footer = pq.read_metadata(stamped[0])
    sizes = [footer.row_group(group).num_rows for group in range(footer.num_row_groups)]
    columns = [footer.schema.column(place) for place in range(len(footer.schema))]
    words = [one.path for one in columns if one.physical_type == "BYTE_ARRAY" and "key_value" not in one.path]
    return footer, np.cumsum([0, *sizes[:-1]]), words
