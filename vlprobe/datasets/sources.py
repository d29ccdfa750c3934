"""Parse the names of published benchmark files (PREFIX:FILE or PREFIX:FILE@IMAGEDIR, with options after a plus sign)
and find their pictures.

`triplets:swap_obj.json@val2017+available` is the file swap_obj.json with the pictures in val2017; only rows whose
picture exists are used. FILE may be a folder: then all its files with a suitable suffix are read, sorted by name.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from vlprobe.errors import InvalidInput, NotFound
from vlprobe.storage import containers, files
from vlprobe.types import Item, Picture

AVAILABLE = "available"  # option to leave out rows whose picture is missing
UNPICTURED = "unpictured"  # option to keep such rows, for imported scores
# Endings to try for a picture that is named without one, or was saved in another format
SUFFIXES = (".png", ".jpg", ".jpeg")
COCO_FILE_NAME = re.compile(r"(?:COCO_(?:train|val|test)\d{4}_)?(\d{12})\.jpg")


@dataclass(frozen=True, slots=True)
class Source:
    """Parsed dataset name: its files, image folder and options."""

    name: str
    files: tuple[Path, ...]
    images: Path | None  # the folder of pictures; None: texts only
    options: frozenset[str]


def parse_source(
    name: str, options: Sequence[str], suffixes: Sequence[str], is_pictured: bool = False
) -> Source:
    """Parse a dataset name into its files, image folder and options. An existing path may contain @ and +.

    Args:
        name: The name that the user typed.
        options: The valid options.
        suffixes: The suffixes of the files that are read in a folder.
        is_pictured: Whether pictures are next to the files if the name has no image folder. Otherwise only
            +unpictured looks for them there.

    Raises:
        NotFound: an option is not among `options`.
        InvalidInput: there is no path, the image folder is missing, or the folder has no files with one of the
            suffixes.
    """
    prefix, _, path = name.partition(":")
    if not path:
        raise InvalidInput(
            f"'{name}' does not contain a file name. Expected {prefix}:FILE or "
            f"{prefix}:FILE@IMAGEDIR."
        )
    options_in_name = set()
    while not files.parse_path(path).exists():
        shorter_path, plus, option = path.rpartition("+")
        if not plus or not option.isalnum():
            break
        if option not in options:
            raise NotFound("option", option, options, f"Write options as {prefix}:FILE+OPTION.")
        options_in_name.add(option)
        path = shorter_path
    source_path, images = split_folder(name, path)
    # With +unpictured, rows keep the names of their pictures
    if images is None and (is_pictured or UNPICTURED in options_in_name):
        images = source_path if source_path.is_dir() else source_path.parent
    matching = [source_path]
    if source_path.is_dir():
        matching = sorted(file for file in source_path.iterdir() if file.suffix in suffixes)
    if not matching:
        raise InvalidInput(
            f"Folder '{source_path}' contains no {' or '.join(suffixes)} file. Pass the path of "
            "the file instead."
        )
    return Source(name, tuple(matching), images, frozenset(options_in_name))


def split_folder(name: str, path: str) -> tuple[Path, Path | None]:
    """Split the path in a dataset name into a file and the image folder after the @, if any. Raises InvalidInput."""
    file, at, folder = path.rpartition("@")
    if not at or files.parse_path(path).exists():
        return files.parse_path(path), None
    return files.parse_path(file), image_folder(name, folder)


def image_folder(name: str, folder: str) -> Path:
    """Return the image folder in a dataset name. Raises InvalidInput if there is no such folder."""
    images = files.parse_path(folder)
    if not images.is_dir():
        raise InvalidInput(
            f"Image folder '{images}' in '{name}' does not exist. Expected "
            f"{name.partition(':')[0]}:FILE@IMAGEDIR."
        )
    return images


def cropped(item: Item, box: str) -> Item:
    """Return an item with its picture cropped to a box, in the notation of `storage.containers`."""
    assert item.image  # only tables with pictures have boxes
    return replace(item, image=replace(item.image, path=item.image.path / box))


def split_unpictured(name: str) -> tuple[Path, bool]:
    """Return the path in a dataset name PREFIX:PATH, and whether the name ends with `+unpictured`."""
    path = name.partition(":")[2]
    option = f"+{UNPICTURED}"
    is_option = path.endswith(option) and not files.parse_path(path).exists()
    return files.parse_path(path.removesuffix(option) if is_option else path), is_option


def keep_unpictured(items: Sequence[Item], folder: Path) -> tuple[list[Item], list[str]]:
    """Mark the missing pictures as absent. Return all items, and a note for readers if any picture is missing."""
    marked, n_missing = [], 0
    for item in items:
        picture = item.image
        if picture and not containers.is_file(picture.path):
            n_missing += 1
            item = replace(item, image=replace(picture, absent=absent_name(picture.path.name)))
        marked.append(item)
    return marked, [_pictured_note(folder, len(items), n_missing)] if n_missing else []


def absent_name(name: str) -> str:
    """Return the identifier for a missing picture: its file name or, for COCO, its id, as if the picture existed."""
    match = COCO_FILE_NAME.fullmatch(Path(name).name)
    return match[1] if match else name


def refuse_rows(file: Path, faulty: Sequence[str], total: int, expected: str) -> None:
    """Raise InvalidInput if any rows are faulty. The message has their number, the first one, and what was expected."""
    if faulty:
        raise InvalidInput(
            f"{len(faulty)} of {total} rows in '{file}' are invalid (first: {faulty[0]}). "
            f"Expected {expected}."
        )


def unread_columns(
    file: Path, rows: Iterable[Mapping[str, object]], read: Iterable[str]
) -> list[str]:
    """Return a note that lists the columns in a file that are not read; no note if all are read."""
    unread = sorted({str(column) for row in rows for column in row} - set(read))
    return [f"Columns of {file.name} that are not read: {', '.join(unread)}."] if unread else []


def count_note(keys: Sequence[str], total: int, predicate: str, unit: str = "rows") -> list[str]:
    """Return a note about how many rows (or other units) match a predicate; no note if none does."""
    return [f"{len(keys)} of {total} {unit} {predicate} (first: {keys[0]})."] if keys else []


def attach_pictures(
    source: Source, rows: Sequence[tuple[Item, Sequence[str]]], knows_unpictured: bool = False
) -> tuple[list[Item], list[str]]:
    """Attach pictures to items. The first name becomes the item's image, the second its other image.

    If a COCO picture is missing, a file with the same id under another name is used, because COCO's ids are
    the same in all years.

    Args:
        rows: Items without their pictures, and the names of the pictures.
        knows_unpictured: Whether the dataset supports the option `unpictured`, which keeps rows with a
            missing picture.

    Returns:
        The items, and notes for readers. Without an image folder, the items are returned unchanged.

    Raises:
        InvalidInput: pictures are missing, unless `unpictured` keeps their rows or `available` leaves them out.
    """
    if source.images is None:
        return [item for item, _ in rows], []
    finder = _PictureFinder(source.images)
    keeps_all = UNPICTURED in source.options
    items: list[Item] = []
    # Id of an item, name of its first missing picture.
    missing: list[tuple[str, str]] = []
    for item, names in rows:
        pictures = [finder.picture(name) for name in names]
        absent = [name for name, picture in zip(names, pictures, strict=True) if picture.absent]
        if absent:
            missing.append((item.id, absent[0]))
        if not absent or keeps_all:
            items.append(_with_pictures(item, pictures))
    if missing and not keeps_all and not (items and AVAILABLE in source.options):
        raise _lack_of_pictures(source, len(rows), len(items), missing, knows_unpictured)
    if keeps_all:
        notes = [_pictured_note(source.images, len(rows), len(missing))] if missing else []
    else:
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


def _with_pictures(item: Item, pictures: Sequence[Picture]) -> Item:
    """Return an item with its pictures. In a video, the two main pictures are the frames next to the boundary; in a
    list of ranked candidates, the main picture is the best candidate.
    """
    if item.series is None:
        return replace(item, **dict(zip(("image", "foil_image"), pictures, strict=False)))
    index = item.series.boundary_index if item.series.times else 0
    return replace(
        item,
        image=pictures[index],
        foil_image=pictures[index + 1] if item.series.times else None,
        series=replace(item.series, pictures=tuple(pictures)),
    )


def _lack_of_pictures(
    source: Source,
    n_rows: int,
    n_pictured: int,
    missing: Sequence[tuple[str, str]],
    knows_unpictured: bool,
) -> InvalidInput:
    """Build the error raised if rows lack a picture; `missing` contains their ids and picture names."""
    remedies = []
    path, plus, options = source.name.partition("+")
    if "@" not in path:
        remedies.append(f", or name their folder: {path}@FOLDER{plus}{options}")
    if n_pictured:
        remedies.append(
            f", use '{source.name}+{AVAILABLE}' to use the {n_pictured} rows with pictures"
        )
    if knows_unpictured:
        remedies.append(f", or use '+{UNPICTURED}' to view imported scores without pictures")
    return InvalidInput(
        f"{len(missing)} of {n_rows} rows of '{source.name}' have no picture in '{source.images}' "
        f"(first: '{missing[0][1]}'). Add the pictures{''.join(remedies)}."
    )


def _pictured_note(folder: Path, n_rows: int, n_missing: int) -> str:
    verb = "has" if n_rows - n_missing == 1 else "have"
    return (
        f"{n_rows - n_missing:,} of {n_rows:,} {verb} a picture here (in {folder}); "
        "the others are shown with their texts and file names."
    )


class _PictureFinder:
    """Finds pictures by name in a folder. Each name is searched only once."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        # Names whose file has another name with the same COCO id.
        self.found_by_id: set[str] = set()
        self._path_by_name: dict[str, Path | None] = {}
        self._path_by_id: dict[str, Path] | None = None

    def picture(self, name: str) -> Picture:
        """Return the picture with a given name, marked as absent if its file does not exist.

        An absent COCO picture is identified by its id, as if its file existed.
        """
        path = self.find(name)
        if path is not None:
            return Picture(path)
        return Picture(self.folder / name, absent=absent_name(name))

    def find(self, name: str) -> Path | None:
        """Return the file for a picture name, which may begin with a subfolder; None if there is no file."""
        if name not in self._path_by_name:
            self._path_by_name[name] = self._find(name)
        return self._path_by_name[name]

    def _find(self, name: str) -> Path | None:
        path = self.folder / name
        stem = path.with_suffix("") if path.suffix in SUFFIXES else path
        for candidate in (path, *(stem.with_name(stem.name + suffix) for suffix in SUFFIXES)):
            if containers.is_file(candidate):
                return candidate
        match = COCO_FILE_NAME.fullmatch(path.name)
        same_id = self._coco_files().get(match[1]) if match else None
        if same_id and same_id.name != path.name:
            self.found_by_id.add(name)
        return same_id

    def _coco_files(self) -> dict[str, Path]:
        """Return the files in the folder that follow COCO's naming scheme, by COCO id."""
        if self._path_by_id is None:
            matches = [
                (COCO_FILE_NAME.fullmatch(file.name), file)
                for file in sorted(self.folder.iterdir())
            ]
            self._path_by_id = {match[1]: file for match, file in matches if match}
        return self._path_by_id
