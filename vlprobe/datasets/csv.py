"""Your pictures and captions in a table: `csv:FILE` with the columns image and caption.

Paths are relative to the table's folder. An image with several captions has several rows. Every
other column is a tag for slicing results. A tag belongs to the image, so all rows of the image must
agree. A column `label` that marks captions as true or false is rejected. The separator is , ; | or tab.
`csv:FILE+unpictured` keeps rows with a missing picture, for imported scores or embeddings.
"""

import io
from collections import Counter
from pathlib import Path

from vlprobe.datasets.file_formats import header_of, read_text, separated_rows
from vlprobe.datasets.labels import LABEL, check_values
from vlprobe.datasets.sources import keep_unpictured, split_unpictured
from vlprobe.datasets.validation import LoadedDataset, validated
from vlprobe.errors import InvalidInput
from vlprobe.types import Item, Picture

PREFIX = "csv"
NAMES = ("csv:FILE",)
REQUIRED = ("image", "caption")
FOIL_COLUMNS = (  # possible names of a column of wrong captions
    *("negative_caption", "negative", "negatives", "neg_caption", "foil", "foils", "hard_negs"),
    *("hard_negative", "false_caption"),
)


def check_name(name: str) -> None:
    """Check a dataset name and the header of its table without loading it. Raises NotFound or InvalidInput."""
    _header(split_unpictured(name)[0])


def load(name: str, cache: Path) -> LoadedDataset:
    """Load the images in the order of their first rows, with their captions in file order. Raises InvalidInput."""
    file, keeps_all = split_unpictured(name)
    items = read_items(file)
    notes = [
        f"Column '{column}' is a tag here; table:{file} reads it as captions that do not fit."
        for column in sorted({tag for item in items for tag in item.tags} & set(FOIL_COLUMNS))
    ]
    if keeps_all:
        items, picture_notes = keep_unpictured(items, file.parent)
        notes += picture_notes
    return validated(name, items, cache, notes)


def read_items(file: Path) -> list[Item]:
    """Read a table and build one item for each image. Raises InvalidInput."""
    captions: dict[str, list[str]] = {}
    tags: dict[str, dict[str, str]] = {}
    delimiter, header = _header(file)
    lines = io.StringIO(read_text(file), newline="")
    rows = [
        (line, dict(zip(header, row, strict=True)))
        for line, row in separated_rows(file, lines, delimiter, len(header))
    ]
    check_values(file, Counter(row.get(LABEL, "").strip() for _, row in rows), f"table:{file}")
    for line, row in rows:
        image = row.pop("image").strip()
        if not image:
            raise InvalidInput(
                f"'{file}', line {line}: the image column is empty. Expected a path "
                f"relative to '{file.parent}'."
            )
        captions.setdefault(image, []).append(row.pop("caption").strip())
        row_tags = {column: value.strip() for column, value in row.items() if value.strip()}
        if tags.setdefault(image, row_tags) != row_tags:
            column = next(key for key in row if tags[image].get(key) != row_tags.get(key))
            raise InvalidInput(
                f"'{file}', line {line}: '{image}' has {column} '{row_tags.get(column, '')}' "
                f"here but '{tags[image].get(column, '')}' on an earlier line. Tags belong to "
                "images, so all rows of an image need the same value."
            )
    return [
        Item(image, Picture(file.parent / image), tuple(captions[image]), tags[image])
        for image in captions
    ]


def _header(file: Path) -> tuple[str, list[str]]:
    """Return the separator and the lowercase column names. Raises InvalidInput, also without the required columns."""
    delimiter, names = header_of(file)
    header = [name.strip().lower() for name in names]
    if not set(REQUIRED) <= set(header) or len(set(header)) < len(header) or "" in header:
        raise InvalidInput(
            f"'{file}' has the columns {', '.join(header)}. Expected unique names in the first "
            "line, including 'image' and 'caption'. To use other columns, write "
            f"table:{file}@FOLDER+image=COLUMN+caption=COLUMN, where FOLDER contains the "
            "pictures."
        )
    return delimiter, header
