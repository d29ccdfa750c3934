"""Triplets of two true captions and a wrong one: SugarCrepe++, SugarCrepe and VISLA as released.

    triplets:FILE              texts only
    triplets:FILE@IMAGEDIR     with pictures; add +available to use only the rows whose picture exists, or
                               +unpictured to keep the others too, for imported scores (scores:)
    triplets:DIR[@IMAGEDIR]    all .json and .tsv files in a folder; the tag `subset` is the file's name

An item is a row: captions (P1, P2), or (P1,) in SugarCrepe; foils (N,). Rows that share a picture
form one cluster.
"""

from pathlib import Path

from vlprobe.datasets import sources
from vlprobe.datasets.file_formats import check_records_head, read_records, read_table
from vlprobe.datasets.validation import LoadedDataset, validated
from vlprobe.errors import InvalidInput
from vlprobe.types import Item

PREFIX = "triplets"
NAMES = ("triplets:FILE", "triplets:FILE@IMAGEDIR")
OPTIONS = (sources.AVAILABLE, sources.UNPICTURED)
COLUMNS = {  # names of each column: SugarCrepe++ and SugarCrepe, VISLA generic, VISLA spatial
    "picture": ("filename", "image"),
    "first": ("caption", "sent1"),
    "second": ("caption2", "second positive", "sent2"),
    "negative": ("negative_caption", "best reference (semantically close)"),
}
EXPECTED = (
    "text in filename, caption, caption2 and negative_caption (SugarCrepe++), the same without "
    "caption2 (SugarCrepe), or one of VISLA's two headers"
)


def check_name(name: str) -> None:
    """Check a dataset name and the start of its file, without loading it. Raises NotFound or InvalidInput."""
    check_records_head(sources.parse_source(name, OPTIONS, [".json", ".tsv"]).files[0])


def load(name: str, cache: Path) -> LoadedDataset:
    """Load the rows in the order of the files. Raises InvalidInput."""
    source = sources.parse_source(name, OPTIONS, [".json", ".tsv"])
    rows, notes, without, total = [], [], [], 0
    for file in source.files:
        file_rows, ignored = _read(file)
        total += len(file_rows)
        notes += ignored
        without += [item.id for item, _ in file_rows if not item.foils]
        rows += [(item, pictures) for item, pictures in file_rows if item.foils]
    notes += sources.count_note(without, total, "have no negative and are left out")
    items, picture_notes = sources.attach_pictures(source, rows, knows_unpictured=True)
    same = [item.id for item in items if item.captions[0] in item.foils]
    twice = [item.id for item in items if len(set(item.captions)) < len(item.captions)]
    notes += picture_notes + sources.count_note(
        same, len(items), "have identical caption and negative, so no model can be right"
    )
    notes += sources.count_note(twice, len(items), "have two identical captions")
    return validated(name, items, cache, notes)


def _read(file: Path) -> tuple[list[tuple[Item, list[str]]], list[str]]:
    rows = _rows(file)
    present = {column for _, row in rows for column in row}
    columns = {
        role: next((name for name in names if name in present), "")
        for role, names in COLUMNS.items()
    }
    if not rows or not all(columns[role] for role in ("picture", "first", "negative")):
        raise InvalidInput(
            f"'{file}' has the columns {', '.join(sorted(map(str, present))) or 'none'}. Expected {EXPECTED}."
        )
    needed = [columns[role] for role in ("picture", "first", "second") if columns[role]]
    faulty = [
        key
        for key, row in rows
        if not all(isinstance(row.get(name), str) and row[name].strip() for name in needed)
    ]
    faulty += [key for key, row in rows if not isinstance(row.get(columns["negative"]) or "", str)]
    sources.refuse_rows(file, faulty, len(rows), EXPECTED)
    file_rows = []
    for key, row in rows:
        picture, *captions = [row[column].strip() for column in needed]
        negative = (row.get(columns["negative"]) or "").strip()
        foils = (negative,) if negative else ()
        item_id, tags, cluster = f"{file.stem}/{key}", {"subset": file.stem}, Path(picture).stem
        item = Item(item_id, None, tuple(captions), tags, foils, cluster=cluster)
        file_rows.append((item, [picture]))
    return file_rows, sources.unread_columns(
        file, (row for _, row in rows), [*filter(None, columns.values()), "id"]
    )


def _rows(file: Path) -> list[tuple[str, dict]]:
    """Return the rows with their ids: the field `id`, the key in a dict, the line in a table, or the row number."""
    if file.suffix == ".tsv":
        return [(str(line), row) for line, row in read_table(file)]
    content = read_records(file)
    if isinstance(content, dict):
        pairs = list(content.items())
    elif isinstance(content, list):
        pairs = [
            (row.get("id", n) if isinstance(row, dict) else n, row) for n, row in enumerate(content)
        ]
    else:
        raise InvalidInput(
            f"'{file}' contains neither a list nor an object with rows. Expected {EXPECTED}."
        )
    sources.refuse_rows(
        file, [str(key) for key, row in pairs if not isinstance(row, dict)], len(pairs), EXPECTED
    )
    return [(str(key), row) for key, row in pairs]
