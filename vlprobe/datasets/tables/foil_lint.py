"""The texts of a table of pictures, captions and foils, linted as columns: no item is made, no picture opened.

Finds what `audit.check` finds in the texts of the same table. Memory is that of the columns, the words of the
vocabulary and some bytes a row.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from vlprobe.datasets import audit
from vlprobe.datasets.audit import WORD, Finding
from vlprobe.datasets.tables.layouts import Layout
from vlprobe.datasets.tables.lint import (
    BLOCK_ROWS,
    codes,
    finding,
    has_plain_texts,
    language,
    plain_blocks,
)
from vlprobe.datasets.tables.reader import Table
from vlprobe.datasets.validation import MAX_CHARACTERS

ROLES = ("image", "caption", "foil")


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
    texts = {
        role: pc.call_function("utf8_trim_whitespace", [table.columns[column]])
        for role, column in columns.items()
    }
    if any(column.null_count for column in texts.values()):
        return None
    for column in texts.values():
        lengths = pc.call_function("utf8_length", [column]).to_numpy()
        if ((lengths == 0) | (lengths > MAX_CHARACTERS)).any():
            return None
    # Two rows of one hash that differ are as good as never, and then linted by their items.
    hashes = _hashes(texts)
    return texts if len(np.unique(hashes)) == len(hashes) else None


def _hashes(texts: Mapping[str, pa.ChunkedArray]) -> np.ndarray:
    """A whole number a row, the same where all texts are."""
    hashes = np.empty(len(texts["image"]), dtype=np.int64)
    for start in range(0, len(hashes), BLOCK_ROWS):
        blocks = [column.slice(start, BLOCK_ROWS).to_pylist() for column in texts.values()]
        hashes[start : start + BLOCK_ROWS] = [hash(row) for row in zip(*blocks, strict=True)]
    return hashes


def check(table: Table, layout: Layout, texts: Mapping[str, pa.ChunkedArray]) -> list[Finding]:
    """The defects of the texts, as `texts_of` gives them."""
    captions, foils = texts["caption"], texts["foil"]
    rows, ids = np.arange(len(captions)), _ids(table, layout)
    plain = codes(pa.chunked_array(plain_blocks(captions), pa.string()))
    images = codes(texts["image"])
    n_images = int(images.max(initial=-1)) + 1
    is_shared = np.bincount(np.unique(plain * n_images + images) // n_images)[plain] > 1
    del plain, images
    never = np.zeros(len(rows), dtype=bool)
    marks = _Marks(len(rows))
    for start in range(0, len(rows), BLOCK_ROWS):
        blocks = (column.slice(start, BLOCK_ROWS).to_pylist() for column in (captions, foils))
        marks.add(start, *blocks)
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
    """What the item of each row is called, as `cases.Reading.key` does."""
    column = table.columns.get(layout.columns.get("id", ""))
    texts = None if column is None or pa.types.is_nested(column.type) else column
    if texts is None or len(texts.unique()) < len(texts) or "" in texts.unique().to_pylist():
        texts = pa.chunked_array([pa.array(np.arange(table.n_rows)).cast(pa.string())])
    return pc.call_function("binary_join_element_wise", [table.file.stem, texts, "/"])


def _style(
    name: str, feature: str, marked: np.ndarray, ids: pa.ChunkedArray, rows: np.ndarray
) -> Finding:
    """From which captions and which foils have a feature, shape (2, n)."""
    meaning = audit.style_meaning(feature, *(marked.sum(axis=1) / marked.shape[1]).tolist())
    return finding((name, meaning), marked[0] != marked[1], ids, rows)


class _Marks:
    """What each row has, from blocks of rows."""

    def __init__(self, n_rows: int) -> None:
        self.unchanged, self.order_only = (np.zeros(n_rows, dtype=bool) for _ in range(2))
        self.upper, self.stop = (np.zeros((2, n_rows), dtype=bool) for _ in range(2))
        self._caption_words: set[str] = set()
        self._inserted: Counter[str] = Counter()
        self._changes: list[_Change] = []

    def add(self, start: int, captions: Sequence[str], foils: Sequence[str]) -> None:
        """A block of rows, of which `start` is the first."""
        end = start + len(captions)
        for side, texts in enumerate((captions, foils)):
            self.upper[side, start:end] = [text != text.lower() for text in texts]
            self.stop[side, start:end] = [text.endswith(".") for text in texts]
        for row, (caption, foil) in enumerate(zip(captions, foils, strict=True), start):
            before, after = WORD.findall(caption.casefold()), WORD.findall(foil.casefold())
            self._caption_words.update(before)
            if before == after:
                self.unchanged[row] = True
                continue
            before_set, after_set = set(before), set(after)
            inserted = [word for word in after if word not in before_set]
            removed = [word for word in before if word not in after_set]
            if not inserted and not removed:
                self.order_only[row] = sorted(before) == sorted(after)
                continue
            self._inserted.update(inserted)
            if removed and not self._caption_words.issuperset(inserted):
                self._changes.append(_Change(row, removed, inserted))

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
