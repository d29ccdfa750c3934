"""Readers for score files, which hold a score for each case, caption and picture in one of six formats.

    .csv .tsv .jsonl .parquet   columns, with names in any letter case:
        label, score                                   labels are KEY_cCAPTION_iIMAGE, counted from 0
        case (or id, key, item), caption, image, score one row per score
        case (or id, key, item), c0_i0, c1_i0, ...     one row per case, one column per caption and picture
        file, key, caption_score, foil_score           as for VALSE, where a case is FILE/KEY
        case (or id, key, item), t0_t1, t0_t2, t1_t2   scores for text pairs, with or without picture
                                                       columns
        case (or id, key, item), correct               verdict: true, false, 1 or 0; +verdict
        case, correct_first, correct_second            the same for two orders: with the true caption
                                                       listed first, and with the wrong one first
    .json   an array of such objects; or an array of arrays with a score per caption for each item, in
            the order of the data
    .json .jsonl .xlsx .eval   logs from other evaluation tools, which `answer_logs` lists
    .npy    numbers with shape (items, captions) or (items, captions, pictures), items in the order of
            the data
    .npz    the same array under `scores`; with `ids`, one per item, in any order

A missing score is NaN, an empty field or null. Files are untrusted, so they are never executed or unpickled, and the
size that a file declares is checked before memory is allocated.
"""

import math
import re
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from vlprobe.datasets.file_formats import read_json, read_table
from vlprobe.errors import InvalidInput
from vlprobe.models import answer_logs
from vlprobe.models.from_files import arrays, tables
from vlprobe.models.score_table import (
    MAX_CELLS,
    Cell,
    ScoreTable,
    empty_scores,
    row_of_key,
    table_of_verdicts,
)
from vlprobe.storage import files

if TYPE_CHECKING:
    import pyarrow as pa

LOGS = (".json", ".jsonl", ".xlsx", ".eval")  # suffixes of logs from other tools, see `answer_logs`
TEXTS = (".csv", ".tsv", *LOGS)
SUFFIXES = (*TEXTS, ".parquet", ".npy", ".npz")
TEXT_PAIRS = ("t0_t1", "t0_t2", "t1_t2")  # columns with scores for text pairs
LABEL = re.compile(r"(.+)_c([0-9]{1,5})_i([0-9]{1,5})", re.DOTALL)
CELL = re.compile(r"c([0-9]{1,5})_i([0-9]{1,5})")
KEYS = ("label", "case", "id", "key", "item")  # name a case; the first present column counts
CORRECT, ORDERS = "correct", ("correct_first", "correct_second")
VERDICTS = {"true": 1.0, "false": 0.0, "1": 1.0, "0": 0.0, "1.0": 1.0, "0.0": 0.0, "": math.nan}
VALSE = {"key": "file/key", "c0_i0": "caption_score", "c1_i0": "foil_score"}
EXPECTED = (
    "label and score; case, caption, image and score; case and c0_i0, c1_i0 ...; or case and correct. "
    "Say which columns these are: +key=COLUMN+score=COLUMN"
)
Values = Sequence[object] | np.ndarray


@dataclass(frozen=True)
class _Columns:
    """The content of a file, by column name in lowercase."""

    file: Path
    values: Mapping[str, Values]
    lines: Sequence[int] = field(default=())  # the line number of each row in a text file

    def row_name(self, row: int) -> str:
        """Return the name of a row for error messages."""
        return f"line {self.lines[row]}" if self.lines else f"row {row + 1}"


def read_content(file: Path) -> bytes:
    """Read the bytes of a score file. Raises InvalidInput if it cannot be a score file."""
    check_file(file)
    try:
        return files.read(file)
    except OSError as error:
        raise InvalidInput(
            f"'{file}' cannot be read ({error.strerror}). Check the file permissions."
        ) from None


def check_file(file: Path) -> None:
    """Raise InvalidInput if a file cannot hold scores because of its suffix, size or location."""
    arrays.check_file(file, SUFFIXES, TEXTS, "scores")


def parse(file: Path, content: bytes, mapping: Mapping[str, str]) -> ScoreTable:
    """Parse the scores in a file.

    Args:
        file: The path of the file, for its suffix and for error messages.
        content: The bytes of the file.
        mapping: The names of columns: `key` (several are joined by /), `score`, `caption`, `image`, `correct`,
            `correct_first`, `correct_second`, and names such as `c0_i0`. For missing entries, the usual names are
            tried.

    Raises:
        InvalidInput: The file has unexpected columns, labels or numbers, or is damaged.
    """
    suffix = file.suffix.lower()
    if suffix in (".npy", ".npz"):
        return _of_arrays(file, mapping)
    if suffix in LOGS and (answers := answer_logs.read_log(file, content)) is not None:
        return _of_log(file, answers)
    if suffix == ".json":
        value = read_json(file)
        if not isinstance(value, list) or not all(isinstance(row, dict) for row in value):
            return _by_place(file, value)
    if suffix == ".parquet":
        columns = _parquet_columns(file)
    elif suffix in (".jsonl", ".json"):
        columns = _Columns(file, tables.read_objects(file, EXPECTED))
    else:
        rows = read_table(file)
        names = list(rows[0][1]) if rows else []
        values = {name: [row[name] for _, row in rows] for name in names}
        columns = _Columns(file, values, [line for line, _ in rows])
    return _tabled(columns, mapping)


def _of_log(file: Path, answers: Sequence[answer_logs.LoggedAnswer]) -> ScoreTable:
    """Tabulate logged answers by captions and picture, or by key if there are no captions. Repeats are averaged."""
    cells = [
        (caption, image)
        for answer in answers
        for image, row in enumerate(answer.scores)
        for caption in range(len(row))
    ]
    scores = empty_scores(file, len(answers), cells)
    for row, answer in enumerate(answers):
        for image, of_image in enumerate(answer.scores):
            scores[row, : len(of_image), image] = of_image
    unparsed = [answer.reply for answer in answers if answer.reply]
    if not any(answer.texts for answer in answers):
        return ScoreTable(row_of_key(file, [answer.key for answer in answers]), scores)
    rows_by_content: dict[tuple[tuple[str, ...], str], list[int]] = defaultdict(list)
    for row, answer in enumerate(answers):
        rows_by_content[tuple(sorted(answer.texts)), answer.picture].append(row)
    for rows in rows_by_content.values():
        known = [row for row in rows if not np.isnan(scores[row]).all()]
        same_order = all(answers[row].texts == answers[rows[0]].texts for row in rows)
        if not same_order:
            raise InvalidInput(
                f"'{file}' contains two questions with the captions "
                f"'{answers[rows[0]].texts[0][:80]}' and others, but with different true "
                "captions. Remove one of them."
            )
        if len(known) > 1:
            scores[rows[0]] = scores[known].mean(axis=0)
    return ScoreTable(
        {},
        scores,
        is_verdict=True,
        by_content={content: rows[0] for content, rows in rows_by_content.items()},
        texts=tuple(answer.texts for answer in answers),
        n_unparsed=len(unparsed),
        first_unparsed=next(iter(unparsed), ""),
    )


def _by_place(file: Path, value: object) -> ScoreTable:
    """Read an array of arrays of numbers, with one row per item and one score per caption."""
    rows = value if isinstance(value, list) else []
    widths = {len(row) if isinstance(row, list) else 0 for row in rows}
    numbers = [number for row in rows if isinstance(row, list) for number in row]
    if (
        len(widths) != 1
        or max(widths) < 2
        or any(isinstance(each, bool) or not isinstance(each, int | float) for each in numbers)
        or not np.isfinite(numbers).all()
    ):
        raise InvalidInput(
            f"'{file}' does not match any layout of scores. Expected an array of objects "
            f"({EXPECTED}), an array with one number per caption for each item, such as [[0.31, "
            "0.27], ...], or a log format listed in docs/import.md."
        )
    return ScoreTable({}, np.array(rows, dtype=np.float64)[:, :, None], by_place=True)


def _text_scores(columns: _Columns, mapping: Mapping[str, str]) -> np.ndarray | None:
    """Return the scores for text pairs, float64 with shape (rows, 3), NaN if missing, or None without such columns."""
    names = [mapping.get(role, role).lower() for role in TEXT_PAIRS]
    present = [_numbers(columns, name) for name in names if name in columns.values]
    if not present:
        return None
    unknown = np.full(len(present[0]), math.nan)
    pairs = [_numbers(columns, name) if name in columns.values else unknown for name in names]
    return np.stack(pairs, axis=1)


def _of_arrays(file: Path, mapping: Mapping[str, str]) -> ScoreTable:
    """Read scores from an array, with items by position, or from an archive of arrays, which may have ids."""
    ids = None
    if file.suffix.lower() == ".npy":
        if mapping:
            raise InvalidInput(f"'{file}' has no columns to map. Remove '{next(iter(mapping))}'.")
        scores = arrays.mapped(file)
    else:
        score_name, id_name = mapping.get("score", "scores"), mapping.get("key", "ids")
        if "key" in mapping:
            members = arrays.read_archive(file, [score_name, id_name])
        else:
            members = arrays.read_archive(file, [score_name], [id_name])
        scores, ids = members[score_name], arrays.ids_in(file, members, id_name)
    if scores.ndim not in (2, 3) or scores.dtype.kind not in "fiu" or scores.size > MAX_CELLS:
        raise InvalidInput(
            f"'{file}' contains {scores.dtype} values of shape {scores.shape}. Expected shape "
            f"(items, captions) or (items, captions, pictures) with at most {MAX_CELLS:,} "
            "numbers."
        )
    scores = scores.astype(np.float64)
    if np.isinf(scores).any():
        row = int(np.argwhere(np.isinf(scores))[0][0])
        raise InvalidInput(f"'{file}', item {row}: a score is infinite. Expected finite numbers.")
    scores = scores[:, :, None] if scores.ndim == 2 else scores
    if ids is None:
        return ScoreTable({}, scores, by_place=True)
    return ScoreTable(row_of_key(file, ids, len(scores), "items"), scores)


def _parquet_columns(file: Path) -> _Columns:
    """Read the text and number columns of a Parquet file. A text that is repeated many times is in memory only once."""
    import pyarrow as pa

    def choose(types: Mapping[str, pa.DataType]) -> list[str]:
        kinds = (pa.types.is_string, pa.types.is_floating, pa.types.is_integer)
        return [name for name, kind in types.items() if any(is_kind(kind) for is_kind in kinds)]

    columns: dict[str, Values] = {}
    table = tables.read_parquet(file, choose)
    for name, column in table.items():
        if pa.types.is_dictionary(column.type):
            columns[name] = np.concatenate(list(map(_words, column.chunks)))
        else:
            columns[name] = column.to_numpy(zero_copy_only=False)
    return _Columns(file, columns)


def _words(chunk: "pa.DictionaryArray") -> np.ndarray:
    words = np.array([*chunk.dictionary.to_pylist(), None], dtype=object)
    return words[chunk.indices.fill_null(len(words) - 1).to_numpy()]


def _tabled(columns: _Columns, mapping: Mapping[str, str]) -> ScoreTable:
    """Convert the columns of a file to a score table."""
    names = {name: name for name in ("score", "caption", "image", CORRECT, *ORDERS)} | {"key": ""}
    cell_columns = {name: name for name in columns.values if CELL.fullmatch(name)}
    if not mapping and {"file", "key", "caption_score", "foil_score"} <= set(columns.values):
        mapping = VALSE
    for role, column in mapping.items():
        if role not in TEXT_PAIRS:
            (cell_columns if CELL.fullmatch(role) else names)[role] = column.lower()
    names["key"] = names["key"] or next((key for key in KEYS if key in columns.values), "")
    keys = _keys(columns, names["key"])
    text_scores = _text_scores(columns, mapping)
    if cell_columns or text_scores is not None:
        numerals = [re.findall("[0-9]+", role) for role in cell_columns]
        cells = [(int(caption), int(image)) for caption, image in numerals]
        scores = empty_scores(columns.file, len(keys), cells)
        for (caption, image), column in zip(cells, cell_columns.values(), strict=True):
            scores[:, caption, image] = _numbers(columns, column)
        return ScoreTable(row_of_key(columns.file, keys), scores, text_scores=text_scores)
    if "score" not in mapping and names["score"] not in columns.values:
        for verdicts in ([names[CORRECT]], [names[order] for order in ORDERS]):
            if set(verdicts) <= set(columns.values):
                expected = "true or false (or 1 or 0). Leave it empty where there is no answer."
                answers = [_parsed(columns, name, _verdict, expected) for name in verdicts]
                orders = np.stack(answers, axis=1)
                return table_of_verdicts(row_of_key(columns.file, keys), orders)
    scores = _numbers(columns, names["score"])
    if names["caption"] in columns.values and names["image"] in columns.values:
        places = [
            _parsed(columns, names[role], _place, "a number counted from 0.").astype(int).tolist()
            for role in ("caption", "image")
        ]
        return _long(columns, keys, list(zip(*places, strict=True)), scores)
    cells, cases = [], []
    for row, label in enumerate(keys):
        match = LABEL.fullmatch(label)
        if not match:
            raise InvalidInput(
                f"'{columns.file}', {columns.row_name(row)}: '{label[:80]}' is not a valid label. "
                "Expected the case id followed by the caption and picture numbers, as in KEY_c0_i1."
            )
        cases.append(match[1])
        cells.append((int(match[2]), int(match[3])))
    return _long(columns, cases, cells, scores)


def _required(columns: _Columns, name: str) -> Values:
    if name not in columns.values:
        has = ", ".join(list(columns.values)[:12]) or "none"
        lacks = f" but no '{name}'" if name else ""
        if any("rank" in column for column in columns.values):
            raise InvalidInput(
                f"'{columns.file}' has the columns {has}, but margins cannot be computed from "
                "ranks. Import the scores instead, with one row per picture and one column per "
                "text: scores:FILE.npy+matrix."
            )
        raise InvalidInput(f"'{columns.file}' has the columns {has}{lacks}. Expected {EXPECTED}.")
    return columns.values[name]


def _keys(columns: _Columns, names: str) -> list[str]:
    """Return the key of each row. Several columns are joined by "/", and numbers are converted to text."""
    columns_of_key = [_required(columns, name) for name in names.split("/")]
    lists = [
        values.tolist() if isinstance(values, np.ndarray) else values for values in columns_of_key
    ]
    for row, values in enumerate(zip(*lists, strict=True)):
        if any(isinstance(value, bool) or not isinstance(value, str | int) for value in values):
            raise InvalidInput(
                f"'{columns.file}', {columns.row_name(row)}: '{names}' is empty. Expected "
                "the id of the case."
            )
    return ["/".join(map(str, values)) for values in zip(*lists, strict=True)]


def _parsed(
    columns: _Columns, name: str, parse: Callable[[object], float], expected: str
) -> np.ndarray:
    """Parse a column to float64. Raises InvalidInput with the first row whose value `parse` rejects."""
    numbers = np.empty(len(values := _required(columns, name)))
    for row, value in enumerate(values):
        try:
            numbers[row] = parse(value)
        except (ValueError, OverflowError, KeyError):
            raise InvalidInput(
                f"'{columns.file}', {columns.row_name(row)}: '{str(value)[:80]}' in '{name}' is not {expected}"
            ) from None
    return numbers


def _place(value: object) -> float:
    if not re.fullmatch(r"[0-9]{1,5}", str(value)):
        raise ValueError
    return int(str(value))


def _score(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, str | int | float | None):
        raise ValueError
    return math.nan if value in ("", None) else float(value)


def _verdict(value: object) -> float:
    return VERDICTS["" if value is None else str(value).strip().lower()]


def _numbers(columns: _Columns, name: str) -> np.ndarray:
    """Read a column with scores as float64. An empty field becomes NaN."""
    values = _required(columns, name)
    if isinstance(values, np.ndarray) and values.dtype.kind in "fiu":
        numbers = values.astype(np.float64)
    else:
        expected = "a number. Expected a score; leave the field empty where there is none."
        numbers = _parsed(columns, name, _score, expected)
    infinite = np.flatnonzero(np.isinf(numbers))
    if len(infinite):
        raise InvalidInput(
            f"'{columns.file}', {columns.row_name(int(infinite[0]))}: '{name}' is infinite. Expected a finite number."
        )
    return numbers


def _long(
    columns: _Columns, keys: Sequence[str], cells: Sequence[Cell], numbers: np.ndarray
) -> ScoreTable:
    """Build a score table from columns with one row per score."""
    rows = {key: row for row, key in enumerate(dict.fromkeys(keys))}
    scores = empty_scores(columns.file, len(rows), cells)
    caption, image = np.array(cells, dtype=np.int64).reshape(-1, 2).T
    flat_index = np.ravel_multi_index(
        (np.array([rows[key] for key in keys], dtype=np.int64), caption, image), scores.shape
    )
    first_rows = np.unique(flat_index, return_index=True)[1]
    if len(first_rows) < len(flat_index):
        row = int(np.setdiff1d(np.arange(len(flat_index)), first_rows)[0])
        raise InvalidInput(
            f"'{columns.file}', {columns.row_name(row)}: "
            f"'{keys[row]}_c{cells[row][0]}_i{cells[row][1]}' has more than one score. "
            "Expected one per caption and picture."
        )
    scores.reshape(-1)[flat_index] = numbers
    return ScoreTable(rows, scores)
