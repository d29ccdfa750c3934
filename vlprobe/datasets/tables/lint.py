"""Read only the texts in a table of captions, with or without foils. They are read as columns; no items are built."""

from collections.abc import Mapping

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from vlprobe.datasets.audit import TextColumns, codes, distinct
from vlprobe.datasets.tables.layouts import Layout
from vlprobe.datasets.tables.reader import Table
from vlprobe.datasets.validation import MAX_CHARACTERS
from vlprobe.errors import InvalidInput

ROLES = ("image", "caption", "foil")


def text_rows(table: Table, layout: Layout) -> TextColumns | None:
    """Return the captions and foils in a table. Return None unless each row has one picture (by name), one caption
    and, in a table of foils, one foil, and no row with a foil repeats an earlier one.

    Raises:
        InvalidInput: a row has no caption, no picture, or a caption that is too long.
    """
    roles = {"captions": ROLES[:2], "foils": ROLES}.get(layout.kind, ())
    columns = {role: layout.columns.get(role, "") for role in roles}
    further = "caption2" in layout.columns or layout.box or layout.votes in table.columns
    if not roles or further or layout.rooted or not set(columns.values()) <= table.columns.keys():
        return None
    if not _has_plain_texts(*(table.columns[column] for column in columns.values())):
        return None
    texts = {role: _trimmed(table.columns[column]) for role, column in columns.items()}
    if any(column.null_count for column in texts.values()):
        return None
    lengths_of = {
        role: pc.call_function("utf8_length", [column]).to_numpy() for role, column in texts.items()
    }
    if "foil" in lengths_of and not lengths_of["foil"].all():
        return None  # such rows are left out, before their other columns are checked
    for role, column in columns.items():
        lengths = lengths_of[role]
        for row in np.flatnonzero((lengths == 0) | (lengths > MAX_CHARACTERS))[:1]:
            raise InvalidInput(
                f"'{table.file}', row {row + 1}, column '{column}': the text has {lengths[row]:,} "
                f"characters. Expected 1 to {MAX_CHARACTERS:,}."
            )
    images = codes(texts["image"])
    if layout.kind == "foils":
        if _has_twins(texts, images):
            return None
        rows = np.arange(len(images))
        numbers = pa.chunked_array([pa.array(rows).cast(pa.string())])
        names = pc.call_function("binary_join_element_wise", [table.file.stem, numbers, "/"])
        ids = _ids(table, layout, names)
        return TextColumns(ids, images, texts["caption"], rows, texts["foil"], rows)
    order = np.argsort(images, kind="stable")
    first_rows = np.unique(images, return_index=True)[1]
    return TextColumns(
        ids=_ids(table, layout, texts["image"]).take(pa.array(first_rows)),
        images=np.arange(len(first_rows)),
        captions=texts["caption"].take(pa.array(order)),
        items=images[order],
        foils=pa.chunked_array([], pa.string()),
        sources=np.zeros(0, dtype=np.int64),
    )


def _has_plain_texts(image: pa.ChunkedArray, *texts: pa.ChunkedArray) -> bool:
    """Return whether none of the picture names is a URL, and none of the texts is a list."""
    if any(pa.types.is_nested(column.type) for column in (image, *texts)):
        return False
    beginning = pc.MatchSubstringOptions(r"^\s*\[")
    marks = [
        pc.call_function("match_substring", [image], pc.MatchSubstringOptions("://")),
        *(pc.call_function("match_substring_regex", [column], beginning) for column in texts),
    ]
    return not any(pc.call_function("any", [column]).as_py() for column in marks)


def _trimmed(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Remove blanks around texts. If there are none, the column itself is returned instead of a copy."""
    texts = pc.call_function("utf8_trim_whitespace", [column])
    return column if texts.equals(column) else texts


def _ids(table: Table, layout: Layout, names: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return each row's item id, as `cases.TableReading.key` does; if the table has no unique ids, return `names`."""
    column = table.columns.get(layout.columns.get("id", ""))
    if column is None or pa.types.is_nested(column.type):
        return names
    values = column.unique()
    if len(values) < len(column) or "" in values.to_pylist():
        return names
    return pc.call_function("binary_join_element_wise", [table.file.stem, column, "/"])


def _has_twins(texts: Mapping[str, pa.ChunkedArray], images: np.ndarray) -> bool:
    """Return whether two rows are equal. They are compared by 64-bit hashes, so an error is extremely unlikely."""
    captions = codes(texts["caption"])
    pairs = captions * (int(images.max(initial=-1)) + 1) + images
    order = np.argsort(pairs)
    repeats = pairs[order[1:]] == pairs[order[:-1]]
    rows = order[np.append(repeats, False) | np.append(False, repeats)]
    del captions, order
    foils = texts["foil"].take(pa.array(rows)).to_pylist()
    hashes = np.fromiter(map(hash, zip(pairs[rows].tolist(), foils, strict=True)), dtype=np.int64)
    return len(distinct(hashes)) < len(hashes)
