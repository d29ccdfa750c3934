"""Candidates in the order in which people rank them for a query, before and after an edit of the query (EqBen,
figures 1 and 7), for the probe `series`.

    orders:FILE              pictures next to the file
    orders:FILE@FOLDER       add +available to use only the queries whose candidates all exist

FILE is a .csv, .tsv (tabs, no quotes) or .jsonl file with a row for each query. Columns:

    query             text of the search
    candidates        names of pictures as people ranked them, best first: a list, or a.jpg|b.jpg|c.jpg
    edit              the query with one thing changed (optional): "right" for "left"
    edit_candidates   the same pictures as people ranked them for the edit (optional)
    id                name of the row (default: its number)

Other columns are tags. The paper's own order (25 pictures from LAION-400M, five people) is printed as
a figure and not released. Ties are not supported: if several people ranked the candidates, write the order
that they agree on.

An item is image (the best candidate), captions (query,), foils (edit,), and the series of candidates.
"""

from collections.abc import Mapping
from pathlib import Path

from vlprobe.datasets import sources
from vlprobe.datasets.file_formats import check_records_head, read_rows
from vlprobe.datasets.validation import LoadedDataset, clustered_by_picture, validated
from vlprobe.errors import InvalidInput
from vlprobe.types import Item, Series

PREFIX = "orders"
NAMES = ("orders:FILE", "orders:FILE@FOLDER")
COLUMNS = ("id", "query", "candidates", "edit", "edit_candidates")
LEAST = 3  # candidates
EXPECTED = (
    f"a query and a column candidates with at least {LEAST} different picture names, best "
    "first: a.jpg|b.jpg|c.jpg"
)
_SUFFIXES = (".csv", ".tsv", ".jsonl")


def check_name(name: str) -> None:
    """Check a dataset name and the start of its file, without loading it. Raises NotFound or InvalidInput."""
    check_records_head(sources.parse_source(name, [sources.AVAILABLE], _SUFFIXES).files[0])


def load(name: str, cache: Path) -> LoadedDataset:
    """Load the queries in the order of the files. Raises InvalidInput."""
    source = sources.parse_source(name, [sources.AVAILABLE], _SUFFIXES, is_pictured=True)
    rows = []
    for file in source.files:
        lines = read_rows(file)
        faulty = [
            key
            for key, row in lines
            if not row.get("query") or len(_ranked(row)) < LEAST or _repeats(_ranked(row))
        ]
        sources.refuse_rows(file, faulty, len(lines), EXPECTED)
        for key, row in lines:
            _check_edit(file, key, row)
        rows += [(_item(file, key, row), _ranked(row)) for key, row in lines]
    items, notes = sources.attach_pictures(source, rows)
    return validated(name, clustered_by_picture(items, cache), cache, notes)


def _ranked(row: Mapping[str, str], column: str = "candidates") -> list[str]:
    return [name.strip() for name in row.get(column, "").split("|") if name.strip()]


def _repeats(names: list[str]) -> bool:
    return len(set(names)) < len(names)


def _check_edit(file: Path, key: str, row: Mapping[str, str]) -> None:
    """Raise InvalidInput unless `edit_candidates` is empty, or lists each candidate of the query exactly once."""
    candidates, edited = _ranked(row), _ranked(row, "edit_candidates")
    if not edited:
        return
    unknown = [name for name in edited if name not in candidates]
    missing = [name for name in candidates if name not in edited]
    problem = (
        "the edit is missing"
        if not row.get("edit")
        else f"'{unknown[0]}' is not a candidate of the query"
        if unknown
        else f"the candidate '{missing[0]}' is missing"
        if missing
        else "a candidate occurs twice"
        if _repeats(edited)
        else ""
    )
    if problem:
        raise InvalidInput(
            f"Row {key} of '{file}', column edit_candidates: {problem}. Expected each of the "
            "query's candidates once, in the order in which people rank them for the edited "
            "query."
        )


def _item(file: Path, key: str, row: Mapping[str, str]) -> Item:
    """Convert a table row to an item that does not have its pictures yet."""
    candidates, edited = _ranked(row), _ranked(row, "edit_candidates")
    tags = {column: value for column, value in row.items() if column not in COLUMNS and value}
    item_id, tags = f"{file.stem}/{row.get('id') or key}", {"subset": file.stem, **tags}
    foils = (row["edit"],) if row.get("edit") else ()
    series = Series((), edit_order=tuple(map(candidates.index, edited)))
    return Item(item_id, None, (row["query"],), tags, foils, series=series)
