"""The texts of a table of pictures and captions, linted as columns: no item is made, no picture opened.

Finds what `audit.check` finds in the texts of the same table. Memory is that of the columns and of a
few whole numbers a row.
"""

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from vlprobe.datasets import audit
from vlprobe.datasets.audit import AuditFinding
from vlprobe.datasets.tables.layouts import Layout
from vlprobe.datasets.tables.reader import Table
from vlprobe.datasets.validation import MAX_CHARACTERS
from vlprobe.errors import InvalidInput

BLOCK_ROWS = 65_536
# Letters of ASCII with one blank between words: all that `audit.plain` changes is their case.
SIMPLE = pc.MatchSubstringOptions(r"^[!-~]+( [!-~]+)*$")


def is_columnar(table: Table, layout: Layout) -> bool:
    """Return whether each row of a table has one picture by name, and one text for its caption."""
    columns = [layout.columns.get(role, "") for role in ("image", "caption")]
    if layout.kind != "captions" or not set(columns) <= table.columns.keys():
        return False
    return has_plain_texts(*(table.columns[column] for column in columns))


def has_plain_texts(image: pa.ChunkedArray, *texts: pa.ChunkedArray) -> bool:
    """Return whether pictures go by names that are not addresses, and no text is a list."""
    if any(pa.types.is_nested(column.type) for column in (image, *texts)):
        return False
    beginning = pc.MatchSubstringOptions(r"^\s*\[")
    marks = [
        pc.call_function("match_substring", [image], pc.MatchSubstringOptions("://")),
        *(pc.call_function("match_substring_regex", [column], beginning) for column in texts),
    ]
    return not any(pc.call_function("any", [column]).as_py() for column in marks)


def check(table: Table, layout: Layout) -> list[AuditFinding]:
    """The defects of the captions, where the table `is_columnar`.

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
    """The column of a role without blanks around its texts. Raises InvalidInput where one is empty or too long."""
    column = layout.columns[role]
    texts = trimmed(table.columns[column])
    lengths = pc.call_function("utf8_length", [texts]).to_numpy()
    for row in np.flatnonzero((lengths == 0) | (lengths > MAX_CHARACTERS))[:1]:
        raise InvalidInput(
            f"'{table.file}', row {row + 1}, column '{column}': it has {lengths[row]:,} letters. "
            f"Expected 1 to {MAX_CHARACTERS:,}."
        )
    return texts


def trimmed(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Without blanks around its texts; the column itself, and no copy, where there are none."""
    texts = pc.call_function("utf8_trim_whitespace", [column])
    return column if texts.equals(column) else texts


def _ids(table: Table, layout: Layout, names: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return the name of each row's item."""
    column = table.columns.get(layout.columns.get("id", ""))
    if column is None or pa.types.is_nested(column.type):
        return names
    values = column.unique()
    if len(values) < len(column) or "" in values.to_pylist():
        return names
    return pc.call_function("binary_join_element_wise", [table.file.stem, column, "/"])


def plain_blocks(captions: pa.ChunkedArray) -> Iterator[pa.Array]:
    """The texts as `audit.plain` gives them, a block at a time."""
    for start in range(0, len(captions), BLOCK_ROWS):
        for chunk in captions.slice(start, BLOCK_ROWS).chunks:
            simple = pc.call_function("match_substring_regex", [chunk], SIMPLE)
            if pc.call_function("all", [simple]).as_py():
                yield pc.call_function("ascii_lower", [chunk])
            else:
                yield pa.array(list(map(audit.plain, chunk.to_pylist())), chunk.type)


def codes(texts: pa.ChunkedArray) -> np.ndarray:
    """A whole number for each text, the same for equal ones, in the order in which they first occur."""
    if not len(texts):
        return np.zeros(0, dtype=np.int64)
    encoded = pc.call_function("dictionary_encode", [texts.cast(pa.large_string())])
    return np.concatenate([chunk.indices.to_numpy() for chunk in encoded.chunks]).astype(np.int64)


def distinct(numbers: np.ndarray) -> np.ndarray:
    """Each of the whole numbers once, rising; sorted, which takes a twentieth of the time of numpy's hash table."""
    ordered = np.sort(numbers)
    is_new = np.ones(len(ordered), dtype=bool)
    is_new[1:] = ordered[1:] != ordered[:-1]  # differences of hashes may be beyond int64
    return ordered[is_new]


def finding(
    kind: tuple[str, str], marked: np.ndarray, ids: pa.ChunkedArray, rows: np.ndarray
) -> AuditFinding:
    """From whether each of all that could have a defect has it, and the row that names each."""
    name, meaning = kind
    having = rows[marked]
    distinct = having[np.sort(np.unique(having, return_index=True)[1])][: audit.EXAMPLES]
    examples = tuple(ids.take(pa.array(distinct)).to_pylist())
    return AuditFinding(name, meaning, int(marked.sum()), len(marked), examples)


def language(captions: pa.ChunkedArray, ids: pa.ChunkedArray, rows: np.ndarray) -> AuditFinding:
    """The captions in other languages; `rows` has the row that names the item of each."""
    by_image = np.argsort(rows, kind="stable")
    drawn = by_image[audit.drawn_rows(len(captions))]
    names, texts = (
        column.take(pa.array(numbers)).to_pylist()
        for column, numbers in ((ids, rows[drawn]), (captions, drawn))
    )
    return audit.language_finding(list(zip(names, texts, strict=True)), len(captions))
