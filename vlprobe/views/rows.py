"""A few rows, or one column, of tables with millions of rows: read once, then kept decoded as long
as there is room.

A case's number is its row in every table of its question set, so only the row groups are read that
hold the rows of a page.
"""

import contextlib
import functools
import itertools
import os
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from vlprobe.errors import StoredDamage
from vlprobe.storage.memory import SingleFlightCache
from vlprobe.storage.store import Store

# A changed filter over 8 models x 1.5 million cases takes .1 to 1.2 s from memory, and .6 to 1.9 s from Parquet.
KEPT_BYTES = (
    512 << 20
)  # of all views: 24 million margins, 150 row groups of texts, patterns and counts
SMALL = 1_000  # bytes that a value without arrays is taken for
FEW = 100  # rows that are taken from row groups one by one; of more, DuckDB makes a table sooner


Value = TypeVar("Value")


def _bytes(value: Any) -> int:
    if isinstance(value, Mapping):
        return sum(map(_bytes, value.values()))
    if isinstance(value, pd.DataFrame):
        return int(value.memory_usage().sum())
    return (
        value.get_total_buffer_size()
        if isinstance(value, pa.Table)
        else getattr(value, "nbytes", SMALL)
    )


_cache = SingleFlightCache(KEPT_BYTES, _bytes)
# Path, bytes and time of the last change: a repaired file is read again.
FileVersion = tuple[str, int, int]


def remember(key: tuple[Hashable, ...], compute: Callable[[], Value]) -> Value:
    """Return what `compute` returns, computed once while there is room; callers must not change it.

    Args:
        key: A name of the kind of value, and all that it depends on: the versions of files and the arguments.
        compute: Called where the value is not in memory.
    """
    return _cache.get(key, compute)


@contextlib.contextmanager
def readable() -> Iterator[None]:
    """Raise StoredDamage where a file goes, or becomes another, while it is read."""
    try:
        yield
    except (OSError, pa.ArrowInvalid) as error:
        raise StoredDamage(f"A stored result cannot be read ({error}).") from None


def _file_version(path: str) -> FileVersion:
    status = os.stat(path)
    return path, status.st_size, status.st_mtime_ns


@readable()
def margins(store: Store, run_key: str) -> np.ndarray:
    """The margin of every case of a run, float32 of shape (n_cases,), by the case's number.

    Raises StoredDamage where the file has its cases in another order, or cannot be read.
    """
    path = store.files([run_key], "scores")[0]
    version = _file_version(path)

    def read() -> np.ndarray:
        with pq.ParquetFile(path, metadata=_footer(version)[0]) as file:
            table = file.read(["case", "margin"], use_threads=False)
        if not np.array_equal(table["case"].to_numpy(), np.arange(len(table))):
            raise StoredDamage(f"'{path}' has its cases in another order than the question set.")
        return table["margin"].to_numpy()

    return remember(("margin", version), read)


@readable()
def case_numbers(
    store: Store, case_key: str, condition: str, values: Sequence[object], run_key: str = ""
) -> np.ndarray:
    """Return the cases of a question set that meet an SQL condition: int32 of shape (n,), rising.

    Args:
        store: Where results are.
        case_key: Key of the question set.
        condition: On the table `cases`; with a run, also on its table `scores`.
        values: Values of the question marks of the condition; hashable.
        run_key: Key of the run that has the scores.
    """
    tables = {"cases": store.files([case_key], "cases")[0]}
    if run_key:
        tables["scores"] = store.files([run_key], "scores")[0]
    versions = [_file_version(path) for path in tables.values()]

    def query() -> np.ndarray:
        # A table that is named twice is read twice, only the columns that are needed.
        named = [f"{name} AS NOT MATERIALIZED (FROM read_parquet(?))" for name in tables]
        join = ' JOIN scores USING ("case")' if run_key else ""
        statement = f'WITH {", ".join(named)} SELECT "case" FROM cases{join} WHERE {condition}'
        lists = [list(value) if isinstance(value, tuple) else value for value in values]
        with store.cursor() as cursor:
            columns = cursor.execute(statement, [*tables.values(), *lists]).fetchnumpy()
        return np.sort(columns["case"]).astype(np.int32)

    return remember(("numbers", *versions, condition, *values), query)


@readable()
def answer_columns(store: Store, run_key: str) -> tuple[str, ...]:
    """Names of what one run stores of each answer."""
    return tuple(pq.read_schema(store.files([run_key], "scores")[0]).names)


@readable()
def picture_codes(store: Store, case_key: str) -> np.ndarray:
    """Return the picture number of each case of a question set: int32 of shape (n_cases,), by the
    case's number.

    A case with one picture is about that, any other about its item.
    """
    path = store.files([case_key], "cases")[0]
    version = _file_version(path)

    def read() -> np.ndarray:
        codes: list[np.ndarray] = []
        code_of: dict[tuple[str, str], int] = {}
        for batch in _image_batches(path, _footer(version)[0]):
            codes.append(_picture_codes(batch["images"], batch["item"], code_of))
        return np.concatenate([np.empty(0, np.int32), *codes])

    return remember(("picture", version), read)


def _image_batches(path: str, footer: pq.FileMetaData) -> Iterator[pa.RecordBatch]:
    """The columns `images` and `item`, as dictionaries where Arrow can read them so, which takes a
    third of the time.
    """
    columns = ["images", "item"]
    coded = pq.ParquetFile(path, metadata=footer, read_dictionary=["images.list.element", "item"])
    with coded, pq.ParquetFile(path, metadata=footer) as plain:
        for group in range(footer.num_row_groups):
            try:
                table = coded.read_row_group(group, columns=columns, use_threads=False)
            except pa.ArrowNotImplementedError:  # the group has more than one dictionary
                table = plain.read_row_group(group, columns=columns, use_threads=False)
            yield from table.to_batches()


def _picture_codes(
    images: pa.ListArray, items: pa.Array, code_of: dict[tuple[str, str], int]
) -> np.ndarray:
    """Codes of rows by their one picture, else by their item; `code_of` grows by new ones."""
    offsets = images.offsets.to_numpy()
    is_single = np.diff(offsets) == 1
    codes = np.empty(len(items), dtype=np.int32)
    for kind, rows, texts in (
        ("picture", is_single, images.values.take(pa.array(offsets[:-1][is_single]))),
        ("item", ~is_single, items.filter(pa.array(~is_single))),
    ):
        encoded = texts if pa.types.is_dictionary(texts.type) else texts.dictionary_encode()
        names = [(kind, text) for text in encoded.dictionary.to_pylist()]
        batch_codes = [code_of.setdefault(name, len(code_of)) for name in names]
        indices = encoded.indices.to_numpy(zero_copy_only=False)
        codes[rows] = np.array(batch_codes, dtype=np.int32)[indices]
    return codes


@readable()
def unit_codes(store: Store, case_key: str) -> np.ndarray:
    """Return the resampling cluster of each case of a question set, such as its picture: int32 of
    shape (n_cases,), by the case's number.
    """
    files = store.files([case_key], "cases")
    unit = unit_expression(store, case_key)

    def read() -> np.ndarray:
        if unit == "cluster":
            return dictionary_codes(files[0], unit)[0]
        with store.cursor() as cursor:
            statement = f'SELECT {unit} AS unit FROM read_parquet(?) ORDER BY "case"'
            units = cursor.execute(statement, [files]).df()["unit"]
        return pd.factorize(units)[0].astype(np.int32)

    return remember(("unit", _file_version(files[0])), read)


@readable()
def cases_version(store: Store, case_key: str) -> FileVersion:
    """Return a value that changes with the file that has the cases of a question set."""
    return _file_version(store.files([case_key], "cases")[0])


@readable()
def answers_version(store: Store, run_key: str) -> FileVersion:
    """Return a value that changes with the file that has the answers of a run."""
    return _file_version(store.files([run_key], "scores")[0])


@readable()
def first_texts(store: Store, case_key: str) -> tuple[np.ndarray, list[str]]:
    """The first text of each case of a question set: codes, int32 of shape (n_cases,), by the case's number,
    and the texts that these stand for; a case without a text has the text "".
    """
    codes, code_of = [np.empty(0, np.int32)], {"": 0}
    with pq.ParquetFile(store.files([case_key], "cases")[0]) as file:
        for batch in file.iter_batches(columns=["texts"], use_threads=False):
            offsets = batch["texts"].offsets.to_numpy()
            has_text = np.diff(offsets) > 0
            firsts = batch["texts"].values.take(pa.array(offsets[:-1][has_text]))
            encoded = firsts.dictionary_encode()
            names = encoded.dictionary.to_pylist()
            places = np.array([code_of.setdefault(name, len(code_of)) for name in names], np.int32)
            batch_codes = np.zeros(len(has_text), dtype=np.int32)
            batch_codes[has_text] = places[encoded.indices.to_numpy(zero_copy_only=False)]
            codes.append(batch_codes)
    return np.concatenate(codes), list(code_of)


@readable()
def judged_blocks(
    store: Store, case_key: str, run_key: str, block_cases: int
) -> Iterator[pa.Table]:
    """The answers of a run with the `group` of each case, in the order of cases, `block_cases` or more
    at a time and whole groups of them.
    """
    files = store.files([case_key], "cases"), store.files([run_key], "scores")
    starts = _group_starts(store, files[0], block_cases)
    for start, stop in itertools.pairwise(starts):
        of_block = [("case", ">=", start), ("case", "<", stop)]
        groups = pq.read_table(files[0][0], columns=["group"], filters=of_block)
        answers = pq.read_table(files[1][0], filters=of_block)
        yield answers.append_column("group", groups["group"])


def _group_starts(store: Store, files: Sequence[str], block_cases: int) -> list[int]:
    """Numbers of cases at which blocks of whole groups start, and the number after the last case."""
    with store.cursor() as cursor:
        starts = cursor.execute(
            'SELECT min("case") AS start FROM read_parquet(?) GROUP BY "group" ORDER BY start',
            [files],
        ).fetchnumpy()["start"]
        n_cases = cursor.execute("SELECT count(*) FROM read_parquet(?)", [files]).fetchall()[0][0]
    blocks = [0]
    for start in starts.tolist():
        if start - blocks[-1] >= block_cases:
            blocks.append(start)
    return [*blocks, n_cases]


@readable()
def unit_ranks(store: Store, case_key: str, by_item: bool) -> np.ndarray:
    """The place of each case's unit of resampling, or item, among the sorted names of all: int32 of
    shape (n_cases,), by the case's number.
    """
    files = store.files([case_key], "cases")
    unit = "item" if by_item else unit_expression(store, case_key)

    def read() -> np.ndarray:
        if unit in ("item", "cluster"):
            codes, names = dictionary_codes(files[0], unit)
        else:
            with store.cursor() as cursor:
                statement = f'SELECT {unit} AS unit FROM read_parquet(?) ORDER BY "case"'
                codes, names = pd.factorize(cursor.execute(statement, [files]).df()["unit"])
        _, place = np.unique(np.array(names, dtype=object), return_inverse=True)
        return place.astype(np.int32)[codes]

    return remember(("rank", _file_version(files[0]), unit), read)


@readable()
def subtype_codes(store: Store, case_key: str) -> tuple[np.ndarray, list[str]]:
    """The subtype of each case of a question set: codes, int32 of shape (n_cases,), and the names
    that these stand for.
    """
    return dictionary_codes(store.files([case_key], "cases")[0], "subtype")


@readable()
def group_codes(store: Store, case_key: str) -> np.ndarray:
    """Return the group of each case that counts once in a macro mean: int32 of shape (n_cases,), by number."""
    return dictionary_codes(store.files([case_key], "cases")[0], "group")[0]


@readable()
def words_changed(
    store: Store, case_key: str
) -> tuple[np.ndarray, list[str], np.ndarray, list[str]]:
    """The words that each case of a question set removes and inserts: of both the codes, int32
    of shape (n_cases,), and the words that these stand for.
    """
    path = store.files([case_key], "cases")[0]
    return (*dictionary_codes(path, "source"), *dictionary_codes(path, "target"))


def dictionary_codes(path: str, column: str) -> tuple[np.ndarray, list[str]]:
    """A column of texts: codes, int32 of shape (n,), and what they stand for."""
    with pq.ParquetFile(path, read_dictionary=[column]) as file:
        texts = file.read([column], use_threads=False).unify_dictionaries()[column]
    codes = [chunk.indices.to_numpy(zero_copy_only=False) for chunk in texts.iterchunks()]
    words = next(texts.iterchunks()).dictionary.to_pylist() if codes else []
    return np.concatenate([np.empty(0, np.int32), *codes]), words


def unit_expression(store: Store, case_key: str) -> str:
    """The unit of resampling of a question set's cases, as an SQL expression on its `cases` table.

    Question sets older than the column `cluster` have units of several items only in triplets: the
    tag `picture`.
    """
    has_clusters = "cluster" in store.cases(case_key).columns("cases")
    return "cluster" if has_clusters else "coalesce(tags['picture'], item)"


@readable()
def read_rows(
    store: Store,
    path: str,
    numbers: Sequence[int],
    excluded: tuple[str, ...],
) -> pd.DataFrame:
    """Rows of a stored table in the order of `numbers`; numbers that it does not have are left out.

    Args:
        store: Where the table is.
        path: The table's file, as `Store.files` names it.
        numbers: Numbers of the rows: numbers of cases.
        excluded: Columns that are left out, whether the table has them or not.
    """
    version = _file_version(path)
    footer, group_starts, text_columns = _footer(version)
    row_numbers = np.asarray(numbers, dtype=np.int64)
    row_numbers = row_numbers[(row_numbers >= 0) & (row_numbers < footer.num_rows)]
    stored_schema = footer.schema.to_arrow_schema()
    if len(row_numbers) > FEW:
        exclude = ", ".join(f'"{name}"' for name in stored_schema.names if name in excluded)
        with store.cursor() as cursor:
            table = cursor.execute(
                f"SELECT * EXCLUDE ({exclude}) FROM read_parquet(?) "
                'WHERE "case" IN (SELECT unnest(?::BIGINT[])) ORDER BY "case"',
                [[path], row_numbers.tolist()],
            ).df()
        return table.iloc[
            np.searchsorted(
                table["case"].to_numpy(),
                row_numbers,
            )
        ].reset_index(drop=True)
    schema = pa.schema([field for field in stored_schema if field.name not in excluded])

    def read_group(group: int) -> pa.Table:
        with pq.ParquetFile(path, metadata=footer, read_dictionary=text_columns) as file:
            return file.read_row_group(group, columns=schema.names, use_threads=False)

    def cached_group(group: int) -> pa.Table:
        return remember(("rows", version, group, excluded), functools.partial(read_group, group))

    groups = (np.searchsorted(group_starts, row_numbers, "right") - 1).tolist()
    rows: list[dict] = []
    for group, row_number in zip(groups, row_numbers, strict=True):
        rows += cached_group(group).slice(int(row_number - group_starts[group]), 1).to_pylist()
    frame = pa.Table.from_pylist(rows, schema=schema).to_pandas()
    for name in (field.name for field in schema if pa.types.is_map(field.type)):
        frame[name] = [dict(pairs) for pairs in frame[name]]
    return frame


def _footer(version: FileVersion) -> tuple[pq.FileMetaData, np.ndarray, list[str]]:
    """A file's footer, the first row of each row group, and the text columns, which are read as
    dictionary codes.
    """
    footer = pq.read_metadata(version[0])
    sizes = [footer.row_group(group).num_rows for group in range(footer.num_row_groups)]
    columns = [footer.schema.column(index) for index in range(len(footer.schema))]
    text_columns = [
        column.path
        for column in columns
        if column.physical_type == "BYTE_ARRAY" and "key_value" not in column.path
    ]
    return footer, np.cumsum([0, *sizes[:-1]]), text_columns
