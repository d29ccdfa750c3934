"""Tables of a question set: its cases, and the answers of each run. Decoded rows and columns are kept in memory while
there is room.

A case's number is its row in every table of the question set, so only the row groups with the rows
of a page are read.
"""

import contextlib
import functools
import itertools
import os
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass
from typing import Any, ParamSpec, TypeVar

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from vlprobe.errors import StoredDamage
from vlprobe.storage.memory import SingleFlightCache
from vlprobe.storage.store import Store

# A changed filter over 8 models x 1.5 million cases takes .1 to 1.2 s from memory, and .6 to 1.9 s from Parquet.
# Of all views: 24 million margins, 150 row groups of texts, patterns and counts
KEPT_BYTES = 512 << 20
SMALL = 1_000  # bytes assumed for a value without arrays
TEXT = 100  # bytes assumed for a text in a tuple
FEW = 100  # rows that are read from row groups one by one; for more, DuckDB is faster


Value = TypeVar("Value")
Arguments = ParamSpec("Arguments")


def _bytes(value: Any) -> int:
    if isinstance(value, Mapping):
        return sum(map(_bytes, value.values()))
    if is_dataclass(value):
        return sum(_bytes(getattr(value, column.name)) for column in fields(value))
    if isinstance(value, tuple):
        return TEXT * len(value)
    if isinstance(value, pd.DataFrame):
        return int(value.memory_usage().sum())
    if isinstance(value, pa.Table):
        return value.get_total_buffer_size()
    return getattr(value, "nbytes", SMALL)


_cache = SingleFlightCache(KEPT_BYTES, _bytes)
# Path, bytes and time of the last change, so that a repaired file is read again.
FileVersion = tuple[str, int, int]


def remember(key: tuple[Hashable, ...], compute: Callable[[], Value]) -> Value:
    """Return the cached result of `compute`, or call `compute` and cache its result while there is
    room. Callers must not change the result.

    Args:
        key: A name for the kind of value, followed by everything that the value depends on, such as file versions and
            arguments.
    """
    return _cache.get(key, compute)


def remembered(compute: Callable[Arguments, Value]) -> Callable[Arguments, Value]:
    """Decorate a function of tables and hashable values so that `remember` caches its results."""

    @functools.wraps(compute)
    def recall(*arguments: Arguments.args, **options: Arguments.kwargs) -> Value:
        versions = [each.version if isinstance(each, TableFile) else each for each in arguments]
        key = (compute.__module__, compute.__qualname__, *versions)
        return _cache.get(key, lambda: compute(*arguments, **options))

    return recall


@contextlib.contextmanager
def readable() -> Iterator[None]:
    """Context manager that raises StoredDamage if a file cannot be read, for example because it disappears or is
    replaced while it is being read.
    """
    try:
        yield
    except (OSError, pa.ArrowInvalid) as error:
        raise StoredDamage(f"A stored result cannot be read ({error}).") from None


class TableFile:
    """A table in a complete cache entry. The file is located and checked once.

    Args:
        name: Name of the table, as in `Store.files`.

    Attributes:
        path: Path to the file.
        version: A value that changes whenever the file changes.

    Raises:
        InvalidInput: The checksum differs, or the file cannot be read; all methods raise it too.
    """

    @readable()
    def __init__(self, store: Store, key: str, name: str) -> None:
        self.store, self.key = store, key
        self.path = store.files([key], name)[0]
        status = os.stat(self.path)
        self.version: FileVersion = self.path, status.st_size, status.st_mtime_ns

    @property
    @readable()
    def columns(self) -> list[str]:
        """Names of the columns in the table."""
        return pq.read_schema(self.path).names

    @readable()
    def codes(self, column: str) -> tuple[np.ndarray, list[str]]:
        """Return a text column as integer codes, int32 of shape (n,), and the list of texts that the codes refer to."""
        with pq.ParquetFile(self.path, read_dictionary=[column]) as file:
            texts = file.read([column], use_threads=False).unify_dictionaries()[column]
        codes = [chunk.indices.to_numpy(zero_copy_only=False) for chunk in texts.iterchunks()]
        words = next(texts.iterchunks()).dictionary.to_pylist() if codes else []
        return np.concatenate([np.empty(0, np.int32), *codes]), words

    @readable()
    def rows(self, numbers: Sequence[int], excluded: tuple[str, ...]) -> pd.DataFrame:
        """Return the rows with the given numbers, in that order. Numbers that are not in the table are skipped.

        Args:
            numbers: Row numbers, which are also case numbers.
            excluded: Names of columns to omit. Unknown names are ignored.
        """
        footer, group_starts, text_columns = _footer(self.version)
        row_numbers = np.asarray(numbers, dtype=np.int64)
        row_numbers = row_numbers[(row_numbers >= 0) & (row_numbers < footer.num_rows)]
        stored_schema = footer.schema.to_arrow_schema()
        if len(row_numbers) > FEW:
            exclude = ", ".join(f'"{name}"' for name in stored_schema.names if name in excluded)
            table = self.store.fetch_table(
                f"SELECT * EXCLUDE ({exclude}) FROM read_parquet(?) "
                'WHERE "case" IN (SELECT unnest(?::BIGINT[])) ORDER BY "case"',
                [[self.path], row_numbers.tolist()],
            )
            positions = np.searchsorted(table["case"].to_numpy(), row_numbers)
            return table.iloc[positions].reset_index(drop=True)
        schema = pa.schema([field for field in stored_schema if field.name not in excluded])

        def read_group(group: int) -> pa.Table:
            with pq.ParquetFile(self.path, metadata=footer, read_dictionary=text_columns) as file:
                return file.read_row_group(group, columns=schema.names, use_threads=False)

        groups = (np.searchsorted(group_starts, row_numbers, "right") - 1).tolist()
        rows: list[dict] = []
        for group, row_number in zip(groups, row_numbers, strict=True):
            key = ("rows", self.version, group, excluded)
            table = remember(key, functools.partial(read_group, group))
            rows += table.slice(int(row_number - group_starts[group]), 1).to_pylist()
        frame = pa.Table.from_pylist(rows, schema=schema).to_pandas()
        for name in (field.name for field in schema if pa.types.is_map(field.type)):
            frame[name] = [dict(pairs) for pairs in frame[name]]
        return frame


class AnswerTable(TableFile):
    """The stored answers of one run, with one row per case."""

    def __init__(self, store: Store, key: str) -> None:
        super().__init__(store, key, "scores")

    @property
    @remembered
    @readable()
    def margins(self) -> np.ndarray:
        """Return the margin of every case, indexed by case number: float32 of shape (n_cases,).

        Raises StoredDamage if the file has its cases in a different order.
        """
        with pq.ParquetFile(self.path, metadata=_footer(self.version)[0]) as file:
            table = file.read(["case", "margin"], use_threads=False)
        if not np.array_equal(table["case"].to_numpy(), np.arange(len(table))):
            raise StoredDamage(
                f"'{self.path}' has its cases in a different order than the question set."
            )
        return table["margin"].to_numpy()

    @property
    @remembered
    def first_ranked(self) -> np.ndarray:
        """Return the code of the candidate that the model ranked first in each case of a search: int32, (n_cases,)."""
        return self.codes("top")[0]

    def margins_of(self, numbers: np.ndarray) -> np.ndarray:
        """Return the margins of the given cases: float32 of shape (n,)."""
        margins = self.margins
        if len(numbers) and np.max(numbers) >= len(margins):
            raise StoredDamage(
                f"Run {self.key} has answers to {len(margins):,} cases, fewer than its question set "
                "contains."
            )
        return margins[numbers]


class CaseTable(TableFile):
    """The stored cases in one question set, with one row per case."""

    def __init__(self, store: Store, key: str) -> None:
        super().__init__(store, key, "cases")

    @readable()
    def numbers(
        self, condition: str, values: Sequence[object], answers: AnswerTable | None = None
    ) -> np.ndarray:
        """Return the numbers of the cases that meet an SQL condition: int32 of shape (n,), ascending.

        Args:
            condition: An SQL condition on the table `cases` and, if `answers` is given, on the table `scores`.
            values: Values for the question marks in the condition; hashable.
        """
        tables: Mapping[str, TableFile] = {"cases": self} | ({"scores": answers} if answers else {})

        def query() -> np.ndarray:
            # A table that is named twice is read twice, but only the necessary columns.
            named = [f"{name} AS NOT MATERIALIZED (FROM read_parquet(?))" for name in tables]
            join = ' JOIN scores USING ("case")' if answers else ""
            statement = f'WITH {", ".join(named)} SELECT "case" FROM cases{join} WHERE {condition}'
            lists = [list(value) if isinstance(value, tuple) else value for value in values]
            paths = [table.path for table in tables.values()]
            with self.store.cursor() as cursor:
                columns = cursor.execute(statement, [*paths, *lists]).fetchnumpy()
            return np.sort(columns["case"]).astype(np.int32)

        versions = [table.version for table in tables.values()]
        return remember(("numbers", *versions, condition, *values), query)

    @property
    @remembered
    @readable()
    def picture_codes(self) -> np.ndarray:
        """Return an integer code for the picture in each case: int32 of shape (n_cases,).

        Cases with exactly one picture are coded by picture, all other cases by item.
        """
        codes: list[np.ndarray] = []
        code_of: dict[tuple[str, str], int] = {}
        for batch in _image_batches(self.path, _footer(self.version)[0]):
            codes.append(_picture_codes(batch["images"], batch["item"], code_of))
        return np.concatenate([np.empty(0, np.int32), *codes])

    @property
    def unit(self) -> str:
        """Return an SQL expression for the resampling unit of each case in the table.

        Older versions wrote no column `cluster`. In question sets from these versions, only triplets have units that
        span several items, given by the tag `picture`.
        """
        return "cluster" if "cluster" in self.columns else "coalesce(tags['picture'], item)"

    @property
    @remembered
    def unit_codes(self) -> np.ndarray:
        """Return an integer code for each case's resampling unit, such as its picture: int32 of shape (n_cases,)."""
        return self._unit_names(self.unit)[0]

    @remembered
    def unit_ranks(self, by_item: bool) -> np.ndarray:
        """Return the alphabetical rank of each case's resampling unit, or of its item if `by_item` is set: int32 of
        shape (n_cases,).
        """
        codes, names = self._unit_names("item" if by_item else self.unit)
        _, place = np.unique(np.array(names, dtype=object), return_inverse=True)
        return place.astype(np.int32)[codes]

    @readable()
    def _unit_names(self, unit: str) -> tuple[np.ndarray, Sequence[str]]:
        """Return the code of each case's resampling unit, int32 of shape (n_cases,), and the name for each code."""
        if unit in ("item", "cluster"):
            return self.codes(unit)
        statement = f'SELECT {unit} AS unit FROM read_parquet(?) ORDER BY "case"'
        codes, names = pd.factorize(self.store.fetch_table(statement, [[self.path]])["unit"])
        return codes.astype(np.int32), list(names)

    @readable()
    def first_texts(self) -> tuple[np.ndarray, list[str]]:
        """Return the code of each case's first text, int32 of shape (n_cases,), and the texts that the codes refer to.
        The text of a case without texts is "".
        """
        codes, code_of = [np.empty(0, np.int32)], {"": 0}
        with pq.ParquetFile(self.path) as file:
            for batch in file.iter_batches(columns=["texts"], use_threads=False):
                offsets = batch["texts"].offsets.to_numpy()
                has_text = np.diff(offsets) > 0
                firsts = batch["texts"].values.take(pa.array(offsets[:-1][has_text]))
                encoded = firsts.dictionary_encode()
                names = encoded.dictionary.to_pylist()
                places = [code_of.setdefault(name, len(code_of)) for name in names]
                indices = encoded.indices.to_numpy(zero_copy_only=False)
                batch_codes = np.zeros(len(has_text), dtype=np.int32)
                batch_codes[has_text] = np.array(places, np.int32)[indices]
                codes.append(batch_codes)
        return np.concatenate(codes), list(code_of)

    @readable()
    def judged_blocks(self, answers: AnswerTable, block_cases: int) -> Iterator[pa.Table]:
        """Yield a run's answers in blocks, in case order, with the `group` of each case. Each block consists of
        complete groups and has at least `block_cases` cases, except for the last block.
        """
        starts = self.store.fetch_rows(
            'SELECT min("case") AS start FROM read_parquet(?) GROUP BY "group" ORDER BY start',
            [[self.path]],
        )
        bounds = [0]
        for (start,) in starts:
            if start - bounds[-1] >= block_cases:
                bounds.append(start)
        bounds.append(_footer(self.version)[0].num_rows)
        for start, stop in itertools.pairwise(bounds):
            of_block = [("case", ">=", start), ("case", "<", stop)]
            groups = pq.read_table(self.path, columns=["group"], filters=of_block)
            block = pq.read_table(answers.path, filters=of_block)
            yield block.append_column("group", groups["group"])


def _image_batches(path: str, footer: pq.FileMetaData) -> Iterator[pa.RecordBatch]:
    """Yield the columns `images` and `item`, dictionary-encoded if Arrow can, because that is three times as fast."""
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
    """Encode each row by its picture if it has exactly one, else by its item. New codes are added to `code_of`."""
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


def _footer(version: FileVersion) -> tuple[pq.FileMetaData, np.ndarray, list[str]]:
    """Return a Parquet file's footer, the first row of each row group, and the names of the text columns."""
    footer = pq.read_metadata(version[0])
    sizes = [footer.row_group(group).num_rows for group in range(footer.num_row_groups)]
    columns = [footer.schema.column(index) for index in range(len(footer.schema))]
    text_columns = [
        column.path
        for column in columns
        if column.physical_type == "BYTE_ARRAY" and "key_value" not in column.path
    ]
    return footer, np.cumsum([0, *sizes[:-1]]), text_columns
