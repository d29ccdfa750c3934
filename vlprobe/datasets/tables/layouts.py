"""Table layouts that vlprobe recognizes. A layout assigns roles, such as caption and foil, to the columns.

The layouts in layouts.toml match the files that each dataset had released by November 2026. Column names are
case-insensitive.
"""

import tomllib
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from vlprobe.datasets.csv import FOIL_COLUMNS
from vlprobe.errors import InvalidInput, NotFound

Kind = Literal[
    "pair",
    "foils",
    "triplet",
    "captions",
    "options",
    "questions",
    "rows",
    "svo",
    "people",
    "statements",
    "statement foils",
    "statement triplets",
]
# Columns that identify a layout without a name, best first
IMAGES = ("image", "filename", "file_name", "filepath", "image_path", "image_file", "jpg", "png")
CAPTIONS = ("caption", "captions", "title", "text", "sentence", "txt", "sentences")
IDS = ("__key__", "id")
ROLES = ("image", "image2", "caption", "caption2", "foil", "id", "subset")


@dataclass(frozen=True, slots=True)
class Layout:
    """A table layout, which says what each column contains.

    The role `image2` is a picture that the foil fits; `caption2` is a second caption with the same meaning.
    """

    name: str
    kind: Kind
    columns: Mapping[str, str]  # role to column, lowercase
    box: Sequence[str] = ()  # x, y, width and height of the crop
    needs: Sequence[str] = ()  # other columns that identify it
    no_tags: Sequence[str] = ()
    # Names of pictures begin with a slash that stands for the folder of pictures
    rooted: bool = False
    # A column with the number of annotators who distinguished the foil from the caption
    votes: str = ""

    @property
    def required(self) -> frozenset[str]:
        """Return the columns that identify the layout."""
        optional = ("id", "subset")
        roles = {column for role, column in self.columns.items() if role not in optional}
        return frozenset({*roles, *self.needs, *self.box})


def _read() -> tuple[Layout, ...]:
    """Read the layouts of published files from layouts.toml. The first that fits a table counts."""
    tables = tomllib.loads(Path(__file__).with_name("layouts.toml").read_text(encoding="utf-8"))
    return tuple(Layout(**table) for table in tables["layouts"])


LAYOUTS = _read()
NAMES = tuple(dict.fromkeys(layout.name for layout in LAYOUTS))


def recognized(file: str, present: Collection[str], name: str, named: Mapping[str, str]) -> Layout:
    """Recognize the layout of a table by its columns.

    Args:
        file: The table, for errors.
        present: The table's columns, in lowercase.
        name: Name of the layout from `+layout=`; "" for the first that fits.
        named: Columns that options assign to roles, by role. They need not be recognized.

    Raises:
        NotFound: there is no layout with that name.
        InvalidInput: no layout fits, or the column in an option does not exist.
    """
    named = {role: column.lower() for role, column in named.items()}
    for role, column in named.items():
        if column not in present:
            raise InvalidInput(
                f"'{file}' has no column '{column}' to use as {role}. {_having(present)}"
            )
    if name and name not in NAMES:
        raise NotFound("layout", name, NAMES)
    if name or not named:
        for layout in LAYOUTS:
            if name in ("", layout.name) and layout.required <= set(present):
                return replace(layout, columns={**_id(present), **layout.columns, **named})
        if name:
            needed = " or ".join(
                dict.fromkeys(
                    ", ".join(sorted(layout.required)) for layout in LAYOUTS if layout.name == name
                )
            )
            raise InvalidInput(
                f"'{file}' does not match the layout {name}, which has the columns {needed}. "
                f"{_having(present)}"
            )
    return _plain(file, present, named)


def _plain(file: str, present: Collection[str], named: Mapping[str, str]) -> Layout:
    """Build a layout for a table with pictures, captions and possibly foils, judging by common column names."""
    columns = {**_id(present), **named}
    for role, candidates in (("image", IMAGES), ("caption", CAPTIONS), ("foil", FOIL_COLUMNS)):
        column = next((column for column in candidates if column in present), "")
        if role not in columns and column and column not in columns.values():
            columns[role] = column
    if "caption" not in columns or "image" not in columns:
        raise InvalidInput(
            f"'{file}' does not match any layout. {_having(present)} Expected the columns of "
            f"{', '.join(NAMES)}, or one column for the pictures ({', '.join(IMAGES[:5])} ...) "
            f"and one for the captions ({', '.join(CAPTIONS[:4])} ...). To choose the columns, "
            f"write table:{file}@FOLDER+image=COLUMN+caption=COLUMN, where FOLDER contains the "
            "pictures, and add +foil=COLUMN if there are foils."
        )
    kind: Kind = "captions"
    if "foil" in columns:
        kind = "pair" if "image2" in columns else "triplet" if "caption2" in columns else "foils"
    return Layout("", kind, columns)


def _id(present: Collection[str]) -> dict[str, str]:
    name = next((name for name in IDS if name in present), "")
    return {"id": name} if name else {}


def _having(present: Collection[str]) -> str:
    return f"It has the columns {', '.join(sorted(present)) or 'none'}."
