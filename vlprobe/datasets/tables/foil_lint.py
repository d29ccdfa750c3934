"""The texts of a table of pictures, captions and foils, linted as columns: no item is made, no picture opened.

Finds what `audit.check` finds in the texts of the same table. Memory is that of the columns, the words of the
vocabulary and some bytes a row.
"""

from collections import Counter
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from vlprobe.datasets import audit
from vlprobe.datasets.audit import WORD, AuditFinding
from vlprobe.datasets.tables.layouts import Layout
from vlprobe.datasets.tables.lint import (
    BLOCK_ROWS,
    codes,
    distinct,
    finding,
    has_plain_texts,
    language,
    plain_blocks,
    trimmed,
)
from vlprobe.datasets.tables.reader import Table
from vlprobe.datasets.validation import MAX_CHARACTERS

ROLES = ("image", "caption", "foil")
# Of ASCII: a letter in lower case for each that a word may have, and a blank for every other.
LETTERS = {code: chr(code).lower() if WORD.match(chr(code)) else " " for code in range(128)}


class _Change(NamedTuple):
    """The words that a foil lost and got, of a row in which a word may be glued."""

    row: int
    removed: list[str]
    inserted: list[str]


def texts_of(table: Table, layout: Layout) -> dict[str, pa.ChunkedArray] | None:
    """The three columns without blanks around their texts; None unless each row has one picture by name, one caption
    and one foil, is whole, and says what no earlier row says.
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
    """Return whether two rows say the same, by hashes: rows of one hash that differ are as good as never."""
    images, captions = codes(texts["image"]), codes(texts["caption"])
    pairs = captions * (int(images.max(initial=-1)) + 1) + images
    order = np.argsort(pairs)
    repeats = pairs[order[1:]] == pairs[order[:-1]]
    rows = order[np.append(repeats, False) | np.append(False, repeats)]
    del images, captions, order
    foils = texts["foil"].take(pa.array(rows)).to_pylist()
    hashes = np.fromiter(map(hash, zip(pairs[rows].tolist(), foils, strict=True)), dtype=np.int64)
    return len(distinct(hashes)) < len(hashes)


def check(table: Table, layout: Layout, texts: Mapping[str, pa.ChunkedArray]) -> list[AuditFinding]:
    """The defects of the texts, as `texts_of` gives them."""
    captions, foils = texts["caption"], texts["foil"]
    rows, ids = np.arange(len(captions)), _ids(table, layout)
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


def _ids(table: Table, layout: Layout) -> pa.ChunkedArray:
    """Return the name of each row's item, as `cases.Reading.key` does."""
    column = table.columns.get(layout.columns.get("id", ""))
    texts = None if column is None or pa.types.is_nested(column.type) else column
    if texts is None or len(texts.unique()) < len(texts) or "" in texts.unique().to_pylist():
        texts = pa.chunked_array([pa.array(np.arange(table.n_rows)).cast(pa.string())])
    return pc.call_function("binary_join_element_wise", [table.file.stem, texts, "/"])


def _style(
    name: str, feature: str, marked: np.ndarray, ids: pa.ChunkedArray, rows: np.ndarray
) -> AuditFinding:
    """From which captions and which foils have a feature, shape (2, n)."""
    meaning = audit.style_meaning(feature, *(marked.sum(axis=1) / marked.shape[1]).tolist())
    return finding((name, meaning), marked[0] != marked[1], ids, rows)


def _words(text: str) -> list[str]:
    """The words of a text without case, as `audit` takes them apart."""
    return text.translate(LETTERS).split() if text.isascii() else WORD.findall(text.casefold())


class _Marks:
    """Features of each row, from blocks of rows."""

    def __init__(self, n_rows: int) -> None:
        self.unchanged, self.order_only = (np.zeros(n_rows, dtype=bool) for _ in range(2))
        self.upper, self.stop = (np.zeros((2, n_rows), dtype=bool) for _ in range(2))
        self._caption_words: set[str] = set()
        self._inserted: Counter[str] = Counter()
        self._changes: list[_Change] = []

    def add(self, start: int, captions: pa.ChunkedArray, foils: pa.ChunkedArray) -> None:
        """A block of rows, of which `start` is the first."""
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
        """The rows in which an inserted word is stuck in another one, as `audit.glued_words` finds them."""
        marked = np.zeros(len(self.unchanged), dtype=bool)
        for row, removed, inserted in self._changes:
            marked[row] = any(
                audit.is_glued(word, replaced, self._inserted, self._caption_words)
                for word in inserted
                if word not in self._caption_words
                for replaced in removed
            )
        return marked
