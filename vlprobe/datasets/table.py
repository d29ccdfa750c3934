"""Tables of any layout: `table:FILE` in .csv, .tsv, .json, .jsonl, .parquet, .arrow or a webdataset .tar.

    table:FILE               pictures beside the file, or inside of it
    table:URL                s3://, gs:// or https://, or hf://OWNER/NAME/SPLIT of the hub, fetched into the cache
    table:FILE@IMAGEDIR      add +available to use only the rows whose pictures are there, or
                             +unpictured to keep the others too, for scores from a file (scores:)
    +layout=NAME             one of `tables.layouts`; else the first that its columns fit
    +image=COLUMN +caption=COLUMN +foil=COLUMN +caption2=COLUMN +image2=COLUMN +id=COLUMN +subset=COLUMN
                             which column is what
    +split=VALUE +label=VALUE
                             only the rows with that value in the column `split` or `label`

Pairs, foils and triplets that share a picture are one cluster: they are resampled together.
"""

from dataclasses import replace
from pathlib import Path

from vlprobe.datasets import audit, sources
from vlprobe.datasets.file_formats import check_records_head
from vlprobe.datasets.tables import cases, foil_lint, labels, layouts, reader, remote
from vlprobe.datasets.tables import lint as table_lint
from vlprobe.datasets.tables import names as table_names
from vlprobe.datasets.validation import LoadedDataset, clustered_by_picture, validated
from vlprobe.types import Item, Picture

PREFIX = table_names.PREFIX


def names() -> list[str]:
    """The form of a name; FILE and IMAGEDIR stand for paths."""
    return ["table:FILE", "table:FILE@IMAGEDIR", "table:URL"]


def check_name(name: str) -> None:
    """Checks a name and the head of its file before loading. Raises NotFound or InvalidInput."""
    parsed = table_names.parse(name)
    file = parsed.file
    reader.require_kind(file)
    if parsed.url:
        return
    reader.require_file(file)
    if file.suffix.lower() in reader.TEXTUAL:
        check_records_head(file)


def takes(path: Path) -> bool:
    """Return whether a path that was typed without a prefix can be read here."""
    return path.is_file() and path.suffix.lower() in reader.SUFFIXES


def lint(name: str, cache: Path) -> list[audit.AuditFinding]:
    """The defects of the texts, as `audit.check` finds them; no picture is opened, none has to be here.

    Raises NotFound or InvalidInput.
    """
    parsed, table, layout = _read(name, cache)
    if not parsed.chosen and table_lint.is_columnar(table, layout):
        return table_lint.check(table, layout)
    if not parsed.chosen and (texts := foil_lint.texts_of(table, layout)):
        return foil_lint.check(table, layout, texts)
    items = [_named(row) for row in cases.rows_of(table, layout, parsed.chosen).rows]
    return audit.check(items, cache, sees_pictures=False)


def _named(row: cases.Unpictured) -> Item:
    """The item of a row with pictures that are only named."""
    pictures = [Picture(Path(name), absent=name) for name in row.images]
    return replace(row.item, **dict(zip(("image", "foil_image"), pictures, strict=False)))


def _read(name: str, cache: Path) -> tuple[table_names.TableName, reader.Table, layouts.Layout]:
    parsed = table_names.parse(name)
    if parsed.url:
        reader.require_kind(parsed.file)
        parsed = replace(parsed, file=remote.local_copy(parsed.url, cache))
    table = reader.read(parsed.file)
    layout = layouts.recognised(
        str(parsed.file), table.names, parsed.values.get("layout", ""), parsed.columns
    )
    if labels.LABEL not in parsed.chosen:
        labels.check(table, layout, name)
    return parsed, table, layout


def load(name: str, cache: Path) -> LoadedDataset:
    """Rows in the order of the file. Raises NotFound or InvalidInput."""
    parsed, table, layout = _read(name, cache)
    rows = cases.rows_of(table, layout, parsed.chosen)
    items, notes = sources.attach_pictures(
        parsed.source, [(row.item, row.images) for row in rows.rows], knows_unpictured=True
    )
    if layout.kind != "captions":
        items = clustered_by_picture(items, cache)  # by the whole pictures: their parts share them
    boxes = {row.item.id: row.box for row in rows.rows if row.box}
    items = [_cropped(item, boxes[item.id]) if item.id in boxes else item for item in items]
    return validated(name, items, cache, notes + rows.notes)


def _cropped(item: Item, box: str) -> Item:
    """Return the item with only that part of its picture."""
    if item.image is None:
        return item
    return replace(item, image=Picture(item.image.path / box, absent=item.image.absent))
