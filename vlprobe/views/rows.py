"""Read cases, answers and pictures in a question set. Decoded rows and columns are kept in memory
while there is room.

A case's number is its row in every table of the question set, so only the row groups with the rows
of a page are read.
"""

import contextlib
import functools
import itertools
import os
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from typing import Any, ParamSpec, TypeVar

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from vlprobe.datasets import bundled, drawn
from vlprobe.datasets.sources import UNPICTURED
from vlprobe.errors import StoredDamage
from vlprobe.storage import containers
from vlprobe.storage.memory import SingleFlightCache
from vlprobe.storage.store import Store
from vlprobe.types import Picture
from vlprobe.views.records import AnswerRow
from vlprobe.views.runs import QuestionSet

# A changed filter over 8 models x 1.5 million cases takes .1 to 1.2 s from memory, and .6 to 1.9 s from Parquet.
# Of all views: 24 million margins, 150 row groups of texts, patterns and counts
KEPT_BYTES = 512 << 20
SMALL = 1_000  # bytes assumed for a value without arrays
MOST_FILES = 50_000  # maximum number of files that are checked for existence
# Columns of answers that repeat the question, or have the same value for all answers of a run.
QUESTION_COLUMNS = ("run", "item", "kind", "subtype", "rule", "strength_bin")
# Columns of the question set that are used only for resampling and averaging.
INTERNAL_COLUMNS = ("item_code", "cluster", "group")
FEW = 100  # rows that are read from row groups one by one; for more, DuckDB is faster


Value = TypeVar("Value")
Arguments = ParamSpec("Arguments")


def _bytes(value: Any) -> int:
    if isinstance(value, Mapping):
        return sum(map(_bytes, value.values()))
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


def questions(store: Store, question_set: QuestionSet, numbers: Sequence[int]) -> pd.DataFrame:
    """Return the cases with the given numbers as a table with the columns of `CaseRow`, in the given order."""
    return question_rows(store, question_set.key, numbers)


def question_rows(store: Store, key: str, numbers: Sequence[int]) -> pd.DataFrame:
    """Return the table of `questions` for a question set that may have no finished run yet."""
    table = CaseTable(store, key).rows(numbers, excluded=INTERNAL_COLUMNS)
    table["images"] = [_located(store, names) for names in table["images"]]
    return table


def answers(
    store: Store, question_set: QuestionSet, numbers: Sequence[int], models: Sequence[str] = ()
) -> pd.DataFrame:
    """Return the stored answers to the given cases, one row per case and model: case, margin, scores, other columns
    that the probe stores, the model, and whether the model's answers have scores.

    Args:
        models: Names of the models to read; empty means all.
    """
    tables = [
        AnswerTable(store, run.key)
        .rows(numbers, excluded=QUESTION_COLUMNS)
        .assign(model=run.model, is_scored=run.is_scored)
        for run in map(question_set.run, models or question_set.models)
    ]
    return pd.concat(tables, ignore_index=True).sort_values(["case", "model"], ignore_index=True)


def answer_rows(
    store: Store, question_set: QuestionSet, numbers: Sequence[int], models: Sequence[str] = ()
) -> dict[int, dict[str, AnswerRow]]:
    """Return the answers to the given cases as objects, by case number and then by model."""
    by_case: dict[int, dict[str, AnswerRow]] = {}
    table = answers(store, question_set, numbers, models) if len(numbers) else pd.DataFrame()
    for columns in table.to_dict("records"):
        case, model, is_scored = columns["case"], columns["model"], columns.pop("is_scored")
        margin, scores = float(columns["margin"]), columns["scores"]
        by_case.setdefault(case, {})[model] = AnswerRow(
            case, model, margin, scores, columns, is_scored
        )
    return by_case


def margins(
    store: Store, question_set: QuestionSet, models: Sequence[str], numbers: np.ndarray
) -> np.ndarray:
    """Return the margins of the given models for the given cases: float32 of shape (n_models, n_cases)."""
    tables = [AnswerTable(store, question_set.run(model).key) for model in models]
    of_models = [table.margins_of(numbers) for table in tables]
    return np.array(of_models, dtype=np.float32).reshape(len(models), len(numbers))


def rights(margins: np.ndarray, n_orders: int) -> np.ndarray:
    """Convert margins to a measure of correctness: float64 from 0 (wrong) to 1 (right), shape (n,).

    A tie counts as wrong. For a model tested with both orders of the captions, a margin of 0 means
    that the answer changes with the order, which counts as half right.
    """
    is_right = (margins > 0).astype(np.float64)
    return np.where(margins == 0, 0.5, is_right) if n_orders == 2 else is_right


def are_fooled(question_set: QuestionSet, models: Sequence[str], margins: np.ndarray) -> np.ndarray:
    """Return whether each case fools each model: bool of shape (n_models, n_cases), as `margins` has it.

    A tie fools a model. An answer that changes with the order of the captions does not: it is half right.
    """
    in_one_order = [[question_set.run(model).n_orders == 1] for model in models]
    return (margins < 0) | ((margins == 0) & np.array(in_one_order, dtype=bool).reshape(-1, 1))


def case_number(store: Store, question_set: QuestionSet, case_id: str) -> int | None:
    """Return the number of the case with the given id, or None if there is no such case."""
    rows = store.fetch_rows(
        'SELECT "case" FROM read_parquet(?) WHERE id = ? LIMIT 1',
        [store.files([question_set.key], "cases"), case_id],
    )
    return rows[0][0] if rows else None


def with_pictures(store: Store, question_set: QuestionSet, kind: str) -> tuple[int, int]:
    """Count the cases of one kind whose pictures are all on this machine, and all cases of the kind.

    Both counts are 0 if the cases have more than MOST_FILES pictures, because not all of these are checked.
    """
    rows = _cases_of_pictures(store, question_set, kind)
    if len(rows) > MOST_FILES:
        return 0, 0
    n_pictured = len(pictured(store, question_set, kind))
    return n_pictured, sum(len(numbers) for _, numbers in rows)


def count_pictures(store: Store, question_set: QuestionSet) -> tuple[int, int]:
    """Return the number of pictures in a question set, and how many of them are on this machine."""
    rows = store.fetch_rows(
        "SELECT DISTINCT unnest(images) FROM read_parquet(?)",
        [store.files([question_set.key], "cases")],
    )
    return len(rows), sum(are_here(_located(store, names)) for names in rows)


def keeps_unpictured(question_set: QuestionSet) -> bool:
    """Return whether a question set may have questions without pictures, judging by the name of its dataset."""
    dataset = question_set.runs[0].dataset
    return f"+{UNPICTURED}" in dataset or dataset.startswith(f"{bundled.PREFIX}:")


def pictured(store: Store, question_set: QuestionSet, kind: str) -> np.ndarray:
    """Return the numbers of the cases of one kind whose pictures are all on this machine,
    ascending. If there are more than MOST_FILES pictures, none are returned.
    """

    def find() -> np.ndarray:
        rows = _cases_of_pictures(store, question_set, kind)
        return _cases_here(rows if len(rows) <= MOST_FILES else [])

    return store.listing_fact(("pictured", question_set.key, kind), find)


def sampled(store: Store, question_set: QuestionSet, kind: str) -> np.ndarray:
    """Return the result of `pictured`. If there are more than MOST_FILES pictures, check only a sample of them."""

    def find() -> np.ndarray:
        rows = _cases_of_pictures(store, question_set, kind)
        if len(rows) <= MOST_FILES:
            return pictured(store, question_set, kind)
        return _cases_here(rows[:MOST_FILES])

    return store.listing_fact(("sampled", question_set.key, kind), find)


def _cases_here(rows: Sequence[tuple[tuple[str, ...], list[int]]]) -> np.ndarray:
    numbers = [number for names, cases in rows if are_here(names) for number in cases]
    return np.sort(np.array(numbers, dtype=np.int32))


def are_pictured(
    store: Store, question_set: QuestionSet, kind: str, numbers: np.ndarray
) -> np.ndarray | None:
    """Return whether each case's pictures are on this machine, bool of shape (n,). Return None if
    the answer is the same for all cases or not known.
    """
    if not keeps_unpictured(question_set):
        return None
    is_pictured = np.isin(numbers, pictured(store, question_set, kind))
    return None if is_pictured.all() or not is_pictured.any() else is_pictured


def pictured_first(
    store: Store, question_set: QuestionSet, kind: str, numbers: np.ndarray, keys: np.ndarray
) -> np.ndarray:
    """Return sort keys, shape (n,), that put cases with available pictures first and otherwise follow `keys`."""
    is_pictured = are_pictured(store, question_set, kind, numbers)
    if is_pictured is None:
        return keys
    ranks = np.unique(keys, return_inverse=True)[1]
    return np.where(is_pictured, ranks, ranks + len(ranks))


def _cases_of_pictures(
    store: Store, question_set: QuestionSet, kind: str
) -> list[tuple[tuple[str, ...], list[int]]]:
    """Return each distinct list of pictures with its case numbers, or a sample of MOST_FILES + 1 lists."""
    rows = store.fetch_rows(
        'SELECT images, list("case") FROM read_parquet(?) WHERE kind = ? GROUP BY images '
        "ORDER BY hash(images), images LIMIT ?",
        [store.files([question_set.key], "cases"), kind, MOST_FILES + 1],
    )
    return [(_located(store, names), numbers) for names, numbers in rows]


def _located(store: Store, names: Sequence[str]) -> tuple[str, ...]:
    """Replace the names of downloaded pictures with the paths to the files in the cache."""
    return tuple(bundled.located(name, store.root) for name in names)


def are_here(names: Sequence[str]) -> bool:
    """Return whether all given pictures can be shown here: each is bundled with vlprobe, drawn, or an existing file."""
    paths = [Picture.from_name(name).path for name in names]
    return bool(paths) and all(
        bundled.is_bundled(path) or containers.is_file(path) or drawn.scene_of(path)
        for path in paths
    )
