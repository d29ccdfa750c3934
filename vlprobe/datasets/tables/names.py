"""Names of tables: table:FILE, table:FILE@IMAGEDIR, and options after plus signs."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from vlprobe.datasets.sources import AVAILABLE, UNPICTURED, Source
from vlprobe.datasets.tables import remote
from vlprobe.datasets.tables.layouts import ROLES
from vlprobe.errors import InvalidInput
from vlprobe.storage import files

PREFIX = "table"
CHOOSING = ("split", "label")  # columns whose value chooses rows
OPTION = re.compile(rf"({AVAILABLE}|{UNPICTURED})|(layout|{'|'.join((*CHOOSING, *ROLES))})=([^+]+)")
EXPECTED = f"{AVAILABLE}, {UNPICTURED}, layout=NAME, split=VALUE, label=VALUE, " + ", ".join(
    f"{role}=COLUMN" for role in ROLES
)


@dataclass(frozen=True, slots=True)
class TableName:
    """A name, parsed."""

    name: str
    file: Path  # of a URL its last part
    url: str  # "" where it is a file here
    images: Path | None  # the folder of pictures, where the name has one
    words: frozenset[str]  # options without a value
    values: Mapping[str, str]  # options with one

    @property
    def source(self) -> Source:
        """Return the location of its pictures."""
        return Source(self.name, (self.file,), self.images or self.file.parent, self.words)

    @property
    def columns(self) -> dict[str, str]:
        """Role to column, as the options name them."""
        return {role: column for role, column in self.values.items() if role in ROLES}

    @property
    def chosen(self) -> dict[str, str]:
        """Column to value of the rows to use; empty: all."""
        return {column: value for column, value in self.values.items() if column in CHOOSING}


def parse(name: str) -> TableName:
    """The parts of a name. An existing path may contain @ and +.

    Raises:
        InvalidInput: no file is named, the text after a plus sign is not an option, or the folder of
            pictures is not there.
    """
    prefix, _, path = name.partition(":")
    if not path:
        raise InvalidInput(f"'{name}' names no file. Expected {prefix}:FILE, a table.")
    words: set[str] = set()
    values: dict[str, str] = {}
    is_url = remote.is_url(path)
    while (is_url or not files.parse_path(path).exists()) and "+" in path:
        path, _, option = path.rpartition("+")
        match = OPTION.fullmatch(option)
        if not match:
            raise InvalidInput(
                f"'{option[:80]}' in '{name}' is no option, or there is no such file. Expected {EXPECTED}."
            )
        if match[1]:
            words.add(match[1])
        else:
            values.setdefault(match[2], match[3])
    images = None
    if is_url:
        url, folder = remote.in_name(path)
        remote.require_url(url)
        images = _images(name, folder) if folder else None
        file = Path(remote.file_name(url))
        return TableName(name, file, url, images, frozenset(words), values)
    if not files.parse_path(path).exists() and "@" in path:
        path, _, folder = path.rpartition("@")
        images = _images(name, folder)
    return TableName(name, files.parse_path(path), "", images, frozenset(words), values)


def _images(name: str, folder: str) -> Path:
    images = files.parse_path(folder)
    if not images.is_dir():
        raise InvalidInput(
            f"Image folder '{images}' of '{name}' does not exist. Expected {PREFIX}:FILE@IMAGEDIR."
        )
    return images
