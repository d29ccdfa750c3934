"""Tables with any layout: `table:FILE` in .csv, .tsv, .json, .jsonl, .parquet or a webdataset .tar.

    table:FILE               pictures next to the file, or inside it
    table:URL                s3://, gs:// or https://, or hf://OWNER/NAME/SPLIT on the hub, downloaded into the cache
    table:FILE@IMAGEDIR      add +available to use only the rows whose pictures exist, or
                             +unpictured to keep the others too, for imported scores (scores:)
    +layout=NAME             one of `tables.layouts`; default: the first that fits the columns
    +image=COLUMN +caption=COLUMN +foil=COLUMN +caption2=COLUMN +image2=COLUMN +id=COLUMN +subset=COLUMN
                             roles of columns
    +split=VALUE +label=VALUE
                             only the rows with that value in the column `split` or `label`

Pairs, foils and triplets that share a picture form one cluster: they are resampled together.

Tables whose captions are ids, or are marked as true and false, are rejected with an explanation of how to read them.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from vlprobe.datasets import audit, sources
from vlprobe.datasets.file_formats import check_records_head
from vlprobe.datasets.labels import LABEL, check_values
from vlprobe.datasets.sources import AVAILABLE, UNPICTURED, Source
from vlprobe.datasets.tables import cases, layouts, reader, remote
from vlprobe.datasets.tables import lint as table_lint
from vlprobe.datasets.tables.layouts import ROLES, Layout
from vlprobe.datasets.tables.reader import Table
from vlprobe.datasets.validation import LoadedDataset, clustered_by_picture, validated
from vlprobe.errors import InvalidInput
from vlprobe.storage import files
from vlprobe.storage.access import REMOTE
from vlprobe.types import Picture

PREFIX = "table"
NAMES = ("table:FILE", "table:FILE@IMAGEDIR", "table:URL")
CHOOSING = ("split", "label")  # columns that select rows by value
OPTION = re.compile(rf"({AVAILABLE}|{UNPICTURED})|(layout|{'|'.join((*CHOOSING, *ROLES))})=([^+]+)")
EXPECTED = f"{AVAILABLE}, {UNPICTURED}, layout=NAME, split=VALUE, label=VALUE, " + ", ".join(
    f"{role}=COLUMN" for role in ROLES
)


@dataclass(frozen=True, slots=True)
class TableName:
    """Parsed `table:` dataset name: the file or URL, the image folder, and the options."""

    name: str
    file: Path  # the last part of a URL
    url: str  # "" for a local file
    images: Path | None  # the folder of pictures, if the name has one
    words: frozenset[str]  # options without a value
    values: Mapping[str, str]  # options with one

    @property
    def source(self) -> Source:
        """The files, image folder and options, in the form that `attach_pictures` uses."""
        return Source(self.name, (self.file,), self.images or self.file.parent, self.words)

    @property
    def columns(self) -> dict[str, str]:
        """Columns assigned to roles by options such as `+caption=COLUMN`, by role."""
        return {role: column for role, column in self.values.items() if role in ROLES}

    @property
    def chosen(self) -> dict[str, str]:
        """Values required by `+split=` and `+label=`, by column. If it is empty, all rows are used."""
        return {column: value for column, value in self.values.items() if column in CHOOSING}


def parse(name: str) -> TableName:
    """Parse a `table:` dataset name. An existing path may contain @ and +.

    Raises:
        InvalidInput: the name has no file, the text after a plus sign is not an option, or the folder with
            the pictures is missing.
    """
    path, words, values = files.split_options(name, OPTION, EXPECTED)
    if REMOTE.match(path):
        url, _, folder = path.partition("@")
        remote.require_url(url)
        images = sources.image_folder(name, folder) if folder else None
        return TableName(name, Path(remote.file_name(url)), url, images, words, values)
    file, images = sources.split_folder(name, path)
    return TableName(name, file, "", images, words, values)


# As CxC's "COCO_val2014:sentid:648388": one word with a number in it.
AN_ID = pc.MatchSubstringOptions(r"^\s*[^\s\d]*\d\S*\s*$")


def check_captions(table: Table, layout: Layout, name: str) -> None:
    """Check that the captions in a table are text instead of ids, and that none of them is marked as false.

    Raises:
        InvalidInput: a column `label` has two values, one for true and one for false captions, and
            neither the layout nor the name of the dataset handles it; or all captions
            are ids.
    """
    captions = table.columns.get(layout.columns.get("caption", ""))
    if captions is not None and _are_ids(captions):
        raise InvalidInput(
            f"'{table.file}', column '{layout.columns['caption']}': "
            f"'{captions[0].as_py()}' and all other values are ids, not captions. Choose "
            "the caption column with +caption=COLUMN."
        )
    labels = table.columns.get(LABEL)
    is_used = LABEL in (*layout.needs, *layout.columns.values())
    if layout.kind not in ("captions", "people") or labels is None or is_used:
        return
    if not pa.types.is_string(labels.type):
        return
    counts = {pair["values"]: pair["counts"] for pair in labels.value_counts().to_pylist()}
    check_values(table.file, counts, name)


def _are_ids(captions: pa.ChunkedArray) -> bool:
    if not len(captions) or not pa.types.is_string(captions.type):
        return False
    is_id = pc.call_function("match_substring_regex", [captions], AN_ID)
    return bool(pc.call_function("all", [is_id]).as_py())


def check_name(name: str) -> None:
    """Check a dataset name and the start of its file, without loading it. Raises NotFound or InvalidInput."""
    parsed = parse(name)
    file = parsed.file
    reader.require_kind(file)
    if parsed.url:
        return
    reader.require_file(file)
    if file.suffix.lower() in reader.TEXTUAL:
        check_records_head(file)


def takes(path: Path) -> bool:
    """Return whether this reader can read a path that was typed without a dataset prefix."""
    return path.is_file() and path.suffix.lower() in reader.SUFFIXES


def lint(name: str, cache: Path) -> list[audit.AuditFinding]:
    """Find defects in a table's captions and foils, as `audit.check` does. Pictures are not opened and may be missing.

    Raises NotFound or InvalidInput.
    """
    parsed, table, layout = _read(name, cache)
    rows = None if parsed.chosen else table_lint.text_rows(table, layout)
    if rows is not None:
        return audit.check_columns(rows)
    items = []
    for item, names, _ in cases.rows_of(table, layout, parsed.chosen)[0]:
        pictures = [Picture(Path(name), absent=name) for name in names]
        items.append(replace(item, **dict(zip(("image", "foil_image"), pictures, strict=False))))
    return audit.check(items, cache, sees_pictures=False)


def _read(name: str, cache: Path) -> tuple[TableName, Table, Layout]:
    parsed = parse(name)
    if parsed.url:
        reader.require_kind(parsed.file)
        parsed = replace(parsed, file=remote.local_copy(parsed.url, cache))
    table = reader.read(parsed.file)
    layout = layouts.recognized(
        str(parsed.file), table.names, parsed.values.get("layout", ""), parsed.columns
    )
    if LABEL not in parsed.chosen:
        check_captions(table, layout, name)
    return parsed, table, layout


def load(name: str, cache: Path) -> LoadedDataset:
    """Load the rows in the order of the file. Raises NotFound or InvalidInput."""
    parsed, table, layout = _read(name, cache)
    rows, row_notes = cases.rows_of(table, layout, parsed.chosen)
    items, notes = sources.attach_pictures(
        parsed.source, [(row.item, row.images) for row in rows], knows_unpictured=True
    )
    if layout.kind != "captions":
        items = clustered_by_picture(items, cache)  # by whole pictures, which their crops share
    boxes = {row.item.id: row.box for row in rows if row.box}
    items = [sources.cropped(item, boxes[item.id]) if item.id in boxes else item for item in items]
    return validated(name, items, cache, notes + row_notes)
