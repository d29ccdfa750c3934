"""Check the texts of a table of captions, with or without foils, as columns, without items or pictures.

The findings equal those of `audit.check` for the texts of the same table. Memory is needed for the columns, the
vocabulary of the foils, and some bytes per row.
"""

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from vlprobe.datasets import audit
from vlprobe.datasets.audit import WORD, AuditFinding
from vlprobe.datasets.tables.layouts import Layout
from vlprobe.datasets.tables.reader import Table
from vlprobe.datasets.validation import MAX_CHARACTERS
from vlprobe.errors import InvalidInput

BLOCK_ROWS = 65_536
# ASCII letters with one blank between words: `audit.plain` only changes their case.
SIMPLE = pc.MatchSubstringOptions(r"^[!-~]+( [!-~]+)*$")


def is_columnar(table: Table, layout: Layout) -> bool:
    """Return whether each row of a table has one picture by name, and one text for its caption."""
    columns = [layout.columns.get(role, "") for role in ("image", "caption")]
    if layout.kind != "captions" or not set(columns) <= table.columns.keys():
        return False
    return has_plain_texts(*(table.columns[column] for column in columns))


def has_plain_texts(image: pa.ChunkedArray, *texts: pa.ChunkedArray) -> bool:
    """Return whether the names of pictures are not URLs, and no text is a list."""
    if any(pa.types.is_nested(column.type) for column in (image, *texts)):
        return False
    beginning = pc.MatchSubstringOptions(r"^\s*\[")
    marks = [
        pc.call_function("match_substring", [image], pc.MatchSubstringOptions("://")),
        *(pc.call_function("match_substring_regex", [column], beginning) for column in texts),
    ]
    return not any(pc.call_function("any", [column]).as_py() for column in marks)


def check(table: Table, layout: Layout) -> list[AuditFinding]:
    """Find the defects of the captions of a table that `is_columnar`.

    Raises:
        InvalidInput: a row has no caption, no picture, or a caption that is too long.
    """
    names = _filled(table, layout, "image")
    captions = _filled(table, layout, "caption")
    ids = _ids(table, layout, names)
    images = codes(names)
    texts = codes(pa.chunked_array(plain_blocks(captions), pa.string()))
    n_images = int(images.max(initial=-1)) + 1
    # Each text of each picture once, as one number.
    pairs = distinct(texts * n_images + images)
    is_shared = np.bincount(pairs // n_images)[texts] > 1
    n_texts = np.bincount(images, minlength=n_images)
    repeats = np.bincount(pairs % n_images, minlength=n_images) < n_texts
    first_rows = np.unique(images, return_index=True)[1]
    by_image = np.argsort(images, kind="stable")
    return [
        finding(audit.REPEATED, repeats, ids, first_rows),
        finding(audit.SHARED, is_shared[by_image], ids, first_rows[images[by_image]]),
        language(captions, ids, first_rows[images]),
    ]


def _filled(table: Table, layout: Layout, role: str) -> pa.ChunkedArray:
    """Return the column of a role with trimmed texts. Raises InvalidInput if one is empty or too long."""
    column = layout.columns[role]
    texts = trimmed(table.columns[column])
    lengths = pc.call_function("utf8_length", [texts]).to_numpy()
    for row in np.flatnonzero((lengths == 0) | (lengths > MAX_CHARACTERS))[:1]:
        raise InvalidInput(
            f"'{table.file}', row {row + 1}, column '{column}': the text has {lengths[row]:,} letters. "
            f"Expected 1 to {MAX_CHARACTERS:,}."
        )
    return texts


def trimmed(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Trim the blanks around texts; return the column itself, not a copy, if there are none."""
    texts = pc.call_function("utf8_trim_whitespace", [column])
    return column if texts.equals(column) else texts


def _ids(table: Table, layout: Layout, names: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return the name of each row's item, as `cases.TableReading.key` does; `names` if no column has ids."""
    column = table.columns.get(layout.columns.get("id", ""))
    if column is None or pa.types.is_nested(column.type):
        return names
    values = column.unique()
    if len(values) < len(column) or "" in values.to_pylist():
        return names
    return pc.call_function("binary_join_element_wise", [table.file.stem, column, "/"])


def plain_blocks(captions: pa.ChunkedArray) -> Iterator[pa.Array]:
    """Yield the texts as `audit.plain` returns them, one block at a time."""
    for start in range(0, len(captions), BLOCK_ROWS):
        for chunk in captions.slice(start, BLOCK_ROWS).chunks:
            simple = pc.call_function("match_substring_regex", [chunk], SIMPLE)
            if pc.call_function("all", [simple]).as_py():
                yield pc.call_function("ascii_lower", [chunk])
            else:
                yield pa.array(list(map(audit.plain, chunk.to_pylist())), chunk.type)


def codes(texts: pa.ChunkedArray) -> np.ndarray:
    """Return a whole number for each text, equal for equal texts, in the order of their first occurrence."""
    if not len(texts):
        return np.zeros(0, dtype=np.int64)
    encoded = pc.call_function("dictionary_encode", [texts.cast(pa.large_string())])
    return np.concatenate([chunk.indices.to_numpy() for chunk in encoded.chunks]).astype(np.int64)


def distinct(numbers: np.ndarray) -> np.ndarray:
    """Return the distinct whole numbers in ascending order; sorting is 20 times as fast as numpy's hash table."""
    ordered = np.sort(numbers)
    is_new = np.ones(len(ordered), dtype=bool)
    is_new[1:] = ordered[1:] != ordered[:-1]  # differences of hashes may be beyond int64
    return ordered[is_new]


def finding(
    kind: tuple[str, str], marked: np.ndarray, ids: pa.ChunkedArray, rows: np.ndarray
) -> AuditFinding:
    """Build a finding from whether each candidate has the defect, and the row that names each candidate."""
    name, meaning = kind
    having = rows[marked]
    distinct = having[np.sort(np.unique(having, return_index=True)[1])][: audit.EXAMPLES]
    examples = tuple(ids.take(pa.array(distinct)).to_pylist())
    return AuditFinding(name, meaning, int(marked.sum()), len(marked), examples)


def language(captions: pa.ChunkedArray, ids: pa.ChunkedArray, rows: np.ndarray) -> AuditFinding:
    """Find the captions in other languages; `rows` has the row that names the item of each."""
    by_image = np.argsort(rows, kind="stable")
    drawn = by_image[audit.drawn_rows(len(captions))]
    names, texts = (
        column.take(pa.array(numbers)).to_pylist()
        for column, numbers in ((ids, rows[drawn]), (captions, drawn))
    )
    return audit.language_finding(list(zip(names, texts, strict=True)), len(captions))


ROLES = ("image", "caption", "foil")
# ASCII: the lower-case letter for each letter that a word may have, and a blank for every other character.
LETTERS = {code: chr(code).lower() if WORD.match(chr(code)) else " " for code in range(128)}


class _Change(NamedTuple):
    """Words removed from and added to a foil, for a row in which a word may be glued."""

    row: int
    removed: list[str]
    inserted: list[str]


def texts_of(table: Table, layout: Layout) -> dict[str, pa.ChunkedArray] | None:
    """Return the three columns with trimmed texts; None unless each row has one picture by name, one caption
    and one foil, is complete, and does not repeat an earlier row.
    """
    columns = {role: layout.columns.get(role, "") for role in ROLES}
    further = "caption2" in layout.columns or layout.box or layout.votes in table.columns
    if layout.kind != "foils" or further or layout.rooted:
        return None
    if not set(columns.values()) <= table.columns.keys():
        return None
    if not has_plain_texts(*(table.columns[column] for column in columns.values())):
        return None
    texts = {role: trimmed(table.columns[column]) for role, column in columns.items()}
    if any(column.null_count for column in texts.values()):
        return None
    for column in texts.values():
        lengths = pc.call_function("utf8_length", [column]).to_numpy()
        if ((lengths == 0) | (lengths > MAX_CHARACTERS)).any():
            return None
    return None if _has_twins(texts) else texts


def _has_twins(texts: Mapping[str, pa.ChunkedArray]) -> bool:
    """Return whether two rows are equal, by 64-bit hashes: a collision is extremely unlikely."""
    images, captions = codes(texts["image"]), codes(texts["caption"])
    pairs = captions * (int(images.max(initial=-1)) + 1) + images
    order = np.argsort(pairs)
    repeats = pairs[order[1:]] == pairs[order[:-1]]
    rows = order[np.append(repeats, False) | np.append(False, repeats)]
    del images, captions, order
    foils = texts["foil"].take(pa.array(rows)).to_pylist()
    hashes = np.fromiter(map(hash, zip(pairs[rows].tolist(), foils, strict=True)), dtype=np.int64)
    return len(distinct(hashes)) < len(hashes)


def check_foils(
    table: Table, layout: Layout, texts: Mapping[str, pa.ChunkedArray]
) -> list[AuditFinding]:
    """Find the defects of the texts from `texts_of`."""
    captions, foils = texts["caption"], texts["foil"]
    rows = np.arange(len(captions))
    numbers = pa.chunked_array([pa.array(rows).cast(pa.string())])
    ids = _ids(
        table,
        layout,
        pc.call_function("binary_join_element_wise", [table.file.stem, numbers, "/"]),
    )
    plain = codes(pa.chunked_array(plain_blocks(captions), pa.string()))
    images = codes(texts["image"])
    n_images = int(images.max(initial=-1)) + 1
    is_shared = np.bincount(distinct(plain * n_images + images) // n_images)[plain] > 1
    del plain, images
    never = np.zeros(len(rows), dtype=bool)
    marks = _Marks(len(rows))
    for start in range(0, len(rows), BLOCK_ROWS):
        marks.add(start, *(column.slice(start, BLOCK_ROWS) for column in (captions, foils)))
    return [
        finding(audit.REPEATED, never, ids, rows),
        finding(audit.SHARED, is_shared, ids, rows),
        language(captions, ids, rows),
        finding(audit.UNCHANGED, marks.unchanged, ids, rows),
        finding(audit.TRUE_FOIL, never, ids, rows),
        finding(audit.ORDER_ONLY, marks.order_only, ids, rows),
        finding(audit.GLUED, marks.glued(), ids, rows),
        _style("upper_case", audit.UPPER_CASE, marks.upper, ids, rows),
        _style("full_stop", audit.FULL_STOP, marks.stop, ids, rows),
    ]


def _style(
    name: str, feature: str, marked: np.ndarray, ids: pa.ChunkedArray, rows: np.ndarray
) -> AuditFinding:
    """Build a style finding from whether captions and foils have a feature, shape (2, n)."""
    meaning = audit.style_meaning(feature, *(marked.sum(axis=1) / marked.shape[1]).tolist())
    return finding((name, meaning), marked[0] != marked[1], ids, rows)


def _words(text: str) -> list[str]:
    """Return the words of a text without case, split as in `audit`."""
    return text.translate(LETTERS).split() if text.isascii() else WORD.findall(text.casefold())


class _Marks:
    """Features of each row, collected from blocks of rows."""

    def __init__(self, n_rows: int) -> None:
        self.unchanged, self.order_only = (np.zeros(n_rows, dtype=bool) for _ in range(2))
        self.upper, self.stop = (np.zeros((2, n_rows), dtype=bool) for _ in range(2))
        self._caption_words: set[str] = set()
        self._inserted: Counter[str] = Counter()
        self._changes: list[_Change] = []

    def add(self, start: int, captions: pa.ChunkedArray, foils: pa.ChunkedArray) -> None:
        """Add a block of rows that begins at row `start`."""
        end = start + len(captions)
        stop = pc.MatchSubstringOptions(".")
        sides = []
        for side, column in enumerate((captions, foils)):
            texts = column.to_pylist()
            self.upper[side, start:end] = [text != text.lower() for text in texts]
            self.stop[side, start:end] = pc.call_function("ends_with", [column], stop).to_numpy()
            sides.append(map(_words, texts))
        for row, (before, after) in enumerate(zip(*sides, strict=True), start):
            self._caption_words.update(before)
            if before == after:
                self.unchanged[row] = True
                continue
            before_set, after_set = set(before), set(after)
            new = after_set - before_set
            if new:
                inserted = [word for word in after if word in new]
                self._inserted.update(inserted)
                removed = before_set - after_set
                if removed and not self._caption_words.issuperset(new):
                    self._changes.append(_Change(row, list(removed), inserted))
            elif before_set <= after_set:
                self.order_only[row] = sorted(before) == sorted(after)

    def glued(self) -> np.ndarray:
        """Return the rows in which an inserted word is inside another one, as `audit.glued_words` finds them."""
        marked = np.zeros(len(self.unchanged), dtype=bool)
        for row, removed, inserted in self._changes:
            marked[row] = any(
                audit.is_glued(word, replaced, self._inserted, self._caption_words)
                for word in inserted
                if word not in self._caption_words
                for replaced in removed
            )
        return marked
