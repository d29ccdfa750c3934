"""Names of published benchmark files (PREFIX:FILE, PREFIX:FILE@IMAGEDIR, options after a plus sign)
and their pictures.

`triplets:swap_obj.json@val2017+available` is the file swap_obj.json with the pictures in val2017;
only the rows whose picture is there are used. FILE may be a folder: all its files of the right
kind, in the order of their names.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from vlprobe.errors import InvalidInput, NotFound
from vlprobe.storage import files
from vlprobe.types import Item, Picture

AVAILABLE = "available"  # the option that leaves out rows whose picture is not there
SUFFIXES = (
    ".png",
    ".jpg",
    ".jpeg",
)  # of a picture that is named without one, or was saved in another format
COCO_FILE_NAME = re.compile(r"(?:COCO_(?:train|val|test)\d{4}_)?(\d{12})\.jpg")


@dataclass(frozen=True, slots=True)
class Source:
    """A dataset's name, parsed."""

    name: str
    files: tuple[Path, ...]
    images: Path | None  # the folder of pictures; None: texts only
    options: frozenset[str]


def parse_source(name: str, options: Sequence[str], suffixes: Sequence[str]) -> Source:
    """Parses a name. A path that exists as it is written may hold @ and +.

    Raises:
        NotFound: an option that is not among `options`.
        InvalidInput: no path, an image folder that is not there, or a folder without files of these
            suffixes.
    """
    prefix, _, path = name.partition(":")
    if not path:
        raise InvalidInput(
            f"'{name}' names no file. Expected {prefix}:FILE or {prefix}:FILE@IMAGEDIR.",
        )
    options_in_name = set()
    while not files.parse_path(path).exists():
        before, plus, option = path.rpartition("+")
        if not plus or not option.isalnum():
            break
        if option not in options:
            raise NotFound("option", option, options, f"An option is written {prefix}:FILE+OPTION.")
        options_in_name.add(option)
        path = before
    images = None
    if not files.parse_path(path).exists() and "@" in path:
        path, _, folder = path.rpartition("@")
        images = files.parse_path(folder)
        if not images.is_dir():
            raise InvalidInput(
                f"Image folder '{images}' of '{name}' does not exist. Expected {prefix}:FILE@IMAGEDIR."
            )
    return Source(
        name,
        _files(files.parse_path(path), suffixes),
        images,
        frozenset(options_in_name),
    )


def _files(path: Path, suffixes: Sequence[str]) -> tuple[Path, ...]:
    """The file itself, or a folder's files with these suffixes, by name. Raises InvalidInput."""
    if not path.is_dir():
        return (path,)
    matching = tuple(sorted(file for file in path.iterdir() if file.suffix in suffixes))
    if not matching:
        raise InvalidInput(
            f"Folder '{path}' holds no file of the kind {' or '.join(suffixes)}. Name the file itself."
        )
    return matching


def refuse_rows(file: Path, faulty: Sequence[str], total: int, expected: str) -> None:
    """Raises InvalidInput where rows are faulty: how many, the first, and what was expected."""
    if faulty:
        raise InvalidInput(
            f"{len(faulty)} of {total} rows of '{file}' are not as expected (first: {faulty[0]}). Expected {expected}."
        )


def unread_columns(
    file: Path,
    rows: Iterable[Mapping[str, object]],
    read: Iterable[str],
) -> list[str]:
    """A note that names the columns of a file that are not read, if there are any."""
    unread = sorted({str(column) for row in rows for column in row} - set(read))
    return [f"Columns of {file.name} that are not read: {', '.join(unread)}."] if unread else []


def count_note(keys: Sequence[str], total: int, predicate: str, unit: str = "rows") -> list[str]:
    """A note that counts the rows (or other units) of which a predicate holds, if there are any."""
    return [f"{len(keys)} of {total} {unit} {predicate} (first: {keys[0]})."] if keys else []


def attach_pictures(
    source: Source,
    rows: Sequence[tuple[Item, Sequence[str]]],
) -> tuple[list[Item], list[str]]:
    """Gives items their pictures: the first name is the item's image, the second its other image.

    A picture of COCO is also found under another file name with the same id: COCO's ids are the
    same in all its years.

    Returns:
        The items, and notes for a reader. Without an image folder the items are returned as they
        are.

    Raises:
        InvalidInput: pictures are not there, unless the option `available` leaves their rows out.
    """
    if source.images is None:
        return [item for item, _ in rows], []
    finder = _PictureFinder(source.images)
    items: list[Item] = []
    # Id of an item, name of its first picture that is not there.
    missing: list[tuple[str, str]] = []
    for item, names in rows:
        paths = {name: finder.find(name) for name in names}
        absent = [name for name, path in paths.items() if path is None]
        if absent:
            missing.append((item.id, absent[0]))
            continue
        images = [Picture(path) for name in names if (path := paths[name])]
        items.append(replace(item, **dict(zip(("image", "foil_image"), images, strict=False))))
    if missing and not (items and AVAILABLE in source.options):
        remedy = (
            f", or write '{source.name}+{AVAILABLE}' to use the {len(items)} rows that have theirs"
            if items
            else ""
        )
        raise InvalidInput(
            f"{len(missing)} of {len(rows)} rows of '{source.name}' lack a picture in '{source.images}' "
            f"(first: '{missing[0][1]}'). Put the pictures there{remedy}."
        )
    notes = count_note(
        [key for key, _ in missing],
        len(rows),
        f"have no picture in {source.images} and are left out",
    )
    if finder.found_by_id:
        notes.append(
            f"{len(finder.found_by_id)} pictures were found by their COCO id under another file name."
        )
    return items, notes


class _PictureFinder:
    """Finds the pictures of a folder by their names; each name is looked for once."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        # Names whose file has another name with the same COCO id.
        self.found_by_id: set[str] = set()
        self._path_by_name: dict[str, Path | None] = {}
        self._path_by_id: dict[str, Path] | None = None

    def find(self, name: str) -> Path | None:
        """The file of that name, in the folder or in the sub-folder that the name gives."""
        if name not in self._path_by_name:
            self._path_by_name[name] = self._find(name)
        return self._path_by_name[name]

    def _find(self, name: str) -> Path | None:
        path = self.folder / name
        stem = path.with_suffix("") if path.suffix in SUFFIXES else path
        for candidate in (path, *(stem.with_name(stem.name + suffix) for suffix in SUFFIXES)):
            if candidate.is_file():
                return candidate
        match = COCO_FILE_NAME.fullmatch(path.name)
        same_id = self._coco_files().get(match[1]) if match else None
        if same_id and same_id.name != path.name:
            self.found_by_id.add(name)
        return same_id

    def _coco_files(self) -> dict[str, Path]:
        """COCO id to file, of the files of the folder that are named as COCO's are."""
        if self._path_by_id is None:
            matches = [
                (COCO_FILE_NAME.fullmatch(file.name), file)
                for file in sorted(self.folder.iterdir())
            ]
            self._path_by_id = {match[1]: file for match, file in matches if match}
        return self._path_by_id
