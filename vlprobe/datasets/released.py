"""How a released file is named and read: PREFIX:FILE, PREFIX:FILE@IMAGEDIR, and options after a plus sign.

`triplets:swap_obj.json@val2017+available` is the file swap_obj.json with the pictures in val2017; only the rows whose
picture is there are used. FILE may be a folder: all its files of the right kind, in the order of their names.
"""

import csv
import io
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from vlprobe.datasets.checks import Loaded, checked, read_json, read_text
from vlprobe.errors import InvalidInput, NotFound
from vlprobe.storage import files
from vlprobe.types import Item, Picture

AVAILABLE = "available"  # the option that leaves out rows whose picture is not there
SUFFIXES = (".png", ".jpg", ".jpeg")  # of a picture that is named without one, or was saved in another format
COCO_FILE = re.compile(r"(?:COCO_(?:train|val|test)\d{4}_)?(\d{12})\.jpg")


@dataclass(frozen=True, slots=True)
class Source:
    """What a dataset's name says."""

    name: str
    files: tuple[Path, ...]
    images: Path | None  # the folder of pictures; None: texts only
    options: frozenset[str]


def source(name: str, options: Sequence[str], suffixes: Sequence[str]) -> Source:
    """Takes a name apart. A path that exists as it is written may hold @ and +.

    Raises:
        NotFound: an option that is not among `options`.
        InvalidInput: no path, an image folder that is not there, or a folder without files of these suffixes.
    """
    prefix, _, place = name.partition(":")
    if not place:
        raise InvalidInput(f"'{name}' names no file. Expected {prefix}:FILE or {prefix}:FILE@IMAGEDIR.")
    chosen = set()
    while not files.parse_path(place).exists():
        before, plus, option = place.rpartition("+")
        if not plus or not option.isalnum():
            break
        if option not in options:
            raise NotFound("option", option, options, f"An option is written {prefix}:FILE+OPTION.")
        chosen.add(option)
        place = before
    images = None
    if not files.parse_path(place).exists() and "@" in place:
        place, _, folder = place.rpartition("@")
        images = files.parse_path(folder)
        if not images.is_dir():
            raise InvalidInput(f"Image folder '{images}' of '{name}' does not exist. Expected {prefix}:FILE@IMAGEDIR.")
    return Source(name, _files(files.parse_path(place), suffixes), images, frozenset(chosen))


def _files(place: Path, suffixes: Sequence[str]) -> tuple[Path, ...]:
    if not place.is_dir():
        return (place,)
    found = tuple(sorted(file for file in place.iterdir() if file.suffix in suffixes))
    if not found:
        raise InvalidInput(f"Folder '{place}' holds no file of the kind {' or '.join(suffixes)}. Name the file itself.")
    return found


def read_records(file: Path) -> object:
    """What a JSON file says, or the list of what the lines of a .jsonl file say. Raises InvalidInput."""
    if file.suffix != ".jsonl":
        return read_json(file)
    records = []
    for number, line in enumerate(read_text(file).split("\n"), 1):
        try:
            if line.strip():
                records.append(files.parse_json(line, unique=True))
        except ValueError as error:
            reason = str(error).removeprefix("line 1, ")
            raise InvalidInput(
                f"'{file}', line {number}, is not valid JSON ({reason}). Expected one object on every line."
            ) from None
    return records


def read_table(file: Path) -> list[tuple[int, dict[str, str]]]:
    """Line number and fields of every row; .tsv is split at tabs and knows no quotes, anything else at commas.

    Column names are stripped and lower-cased, fields stripped; a row that ends early is filled up with empty fields.

    Raises:
        InvalidInput: columns of one name, rows with more fields than columns, or broken quotes.
    """
    tabs = file.suffix == ".tsv"
    style = {"delimiter": "\t", "quoting": csv.QUOTE_NONE} if tabs else {"strict": True}
    reader = csv.reader(io.StringIO(read_text(file)), **style)
    try:
        rows = [(reader.line_num, [field.strip() for field in row]) for row in reader if any(map(str.strip, row))]
    except csv.Error as error:
        raise InvalidInput(f"'{file}', line {reader.line_num}: {error}. Expected a table; check the quotes.") from None
    header = [column.lower() for column in rows[0][1]] if rows else []
    if len(set(header)) < len(header):
        raise InvalidInput(f"'{file}' has two columns of one name in {', '.join(header)}. Rename one.")
    longer = [line for line, row in rows if len(row) > len(header)]
    if longer:
        raise InvalidInput(
            f"{len(longer)} rows of '{file}' have more than its {len(header)} fields (first: line {longer[0]}). "
            "Expected as many as the first line names."
        )
    return [(line, dict(zip(header, row + [""] * (len(header) - len(row)), strict=True))) for line, row in rows[1:]]


def refuse(file: Path, faulty: Sequence[str], total: int, expected: str) -> None:
    """Raises InvalidInput where rows are faulty: how many, the first, and what was expected."""
    if faulty:
        raise InvalidInput(
            f"{len(faulty)} of {total} rows of '{file}' are not as expected (first: {faulty[0]}). Expected {expected}."
        )


def unread(file: Path, rows: Iterable[Mapping[str, object]], known: Iterable[str]) -> list[str]:
    """A note that names the columns of a file that are not read, if there are any."""
    others = sorted({str(column) for row in rows for column in row} - set(known))
    return [f"Columns of {file.name} that are not read: {', '.join(others)}."] if others else []


def counted(keys: Sequence[str], total: int, why: str, what: str = "rows") -> list[str]:
    """A note that counts rows, or whatever they are, and names the first, if there are any."""
    return [f"{len(keys)} of {total} {what} {why} (first: {keys[0]})."] if keys else []


def attach(source: Source, rows: Sequence[tuple[Item, Sequence[str]]]) -> tuple[list[Item], list[str]]:
    """Gives items their pictures: the first name is the item's image, the second its other image.

    A picture of COCO is also found under another file name with the same id: COCO's ids are the same in all its years.

    Returns:
        The items, and notes for a reader. Without an image folder the items are returned as they are.

    Raises:
        InvalidInput: pictures are not there, unless the option `available` leaves their rows out.
    """
    if source.images is None:
        return [item for item, _ in rows], []
    finder = _Finder(source.images)
    items, missing = [], []
    for item, names in rows:
        paths = [finder.find(name) for name in names]
        if None in paths:
            missing.append((item.id, names[paths.index(None)]))
            continue
        items.append(replace(item, **dict(zip(("image", "foil_image"), map(Picture, paths), strict=False))))
    if missing and not (items and AVAILABLE in source.options):
        remedy = (
            f", or write '{source.name}+{AVAILABLE}' to use the {len(items)} rows that have theirs" if items else ""
        )
        raise InvalidInput(
            f"{len(missing)} of {len(rows)} rows of '{source.name}' lack a picture in '{source.images}' "
            f"(first: '{missing[0][1]}'). Put the pictures there{remedy}."
        )
    notes = counted([key for key, _ in missing], len(rows), f"have no picture in {source.images} and are left out")
    if finder.by_id:
        notes.append(f"{len(finder.by_id)} pictures were found by their COCO id under another file name.")
    return items, notes


def loaded(name: str, items: Sequence[Item], cache: Path, notes: Sequence[str]) -> Loaded:
    """The items as a dataset. Raises InvalidInput; where nothing is left, the notes say why."""
    if notes and not items:
        raise InvalidInput(f"Nothing is left of '{name}'. {' '.join(notes)}")
    return checked(name, items, cache, notes)


class _Finder:
    """Finds the files of a folder, each name once."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.by_id: set[str] = set()  # names that were found by their COCO id
        self._known: dict[str, Path | None] = {}
        self._ids: dict[str, Path] | None = None

    def find(self, name: str) -> Path | None:
        """The file of that name, in the folder or in the sub-folder that the name gives."""
        if name not in self._known:
            self._known[name] = self._look(name)
        return self._known[name]

    def _look(self, name: str) -> Path | None:
        path = self.folder / name
        stem = path.with_suffix("") if path.suffix in SUFFIXES else path
        for candidate in (path, *(stem.with_name(stem.name + suffix) for suffix in SUFFIXES)):
            if candidate.is_file():
                return candidate
        match = COCO_FILE.fullmatch(path.name)
        found = self._coco().get(match[1]) if match else None
        if found and found.name != path.name:
            self.by_id.add(name)
        return found

    def _coco(self) -> dict[str, Path]:
        if self._ids is None:
            matches = [(COCO_FILE.fullmatch(file.name), file) for file in sorted(self.folder.iterdir())]
            self._ids = {match[1]: file for match, file in matches if match}
        return self._ids
