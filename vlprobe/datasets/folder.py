"""Folder of pictures and their captions: `folder:DIR`.

The captions are either in a NAME.txt next to each NAME.jpg, one per line; or in one captions.json, {"NAME.jpg": ["a
caption", ...], ...}; or in one captions.csv with the columns image and caption (and tags). Every picture
needs captions. To use only some of the pictures, name the table itself: csv:DIR/captions.csv.
"""

from pathlib import Path

from vlprobe.datasets.csv import read_items
from vlprobe.datasets.file_formats import check_records_head, read_json, read_text
from vlprobe.datasets.validation import LoadedDataset, validated
from vlprobe.errors import InvalidInput
from vlprobe.storage import files
from vlprobe.types import Item, Picture

PREFIX = "folder"
NAMES = ("folder:DIR",)
SUFFIXES = {".jpg", ".jpeg", ".png", ".webp", ".gif", ".bmp", ".tif", ".tiff"}


def check_name(name: str) -> None:
    """Check a dataset name and the start of its captions file without loading it. Raises NotFound or InvalidInput."""
    folder = _folder(name)
    for file in _lists(folder):
        check_records_head(file)


def takes(path: Path) -> bool:
    """Return whether this reader can read a path that was typed without a dataset prefix."""
    return path.is_dir() and any(file.suffix.lower() in SUFFIXES for file in path.iterdir())


def load(name: str, cache: Path) -> LoadedDataset:
    """Load the images, sorted by name. Raises InvalidInput."""
    folder = _folder(name)
    try:
        pictures = sorted(file for file in folder.iterdir() if file.suffix.lower() in SUFFIXES)
        lists = _lists(folder)
    except OSError as error:
        raise InvalidInput(
            f"Folder '{folder}' cannot be read ({error.strerror}). Ask its owner for read permission."
        ) from None
    if not lists:
        items = _from_texts(folder, pictures)
    elif lists[0].suffix == ".csv":
        items = read_items(lists[0])
    else:
        items = _from_json(lists[0])
    with_captions = {item.image.path for item in items if item.image}
    without = [picture for picture in pictures if picture not in with_captions]
    if without:
        raise InvalidInput(
            f"{len(without)} of {len(pictures)} pictures in '{folder}' have no caption "
            f"(first: '{without[0].name}'). Add their captions in a captions.csv with the columns "
            "image and caption, or move the pictures to another folder."
        )
    return validated(name, sorted(items, key=lambda item: item.id), cache)


def _folder(name: str) -> Path:
    """Return the folder in a dataset name. Raises InvalidInput if it does not exist."""
    folder = files.parse_path(name.removeprefix("folder:"))
    if not folder.is_dir():
        raise InvalidInput(
            f"Folder '{folder}' does not exist. Expected folder:DIR with pictures and captions."
        )
    return folder


def _lists(folder: Path) -> list[Path]:
    """Return the file with the captions for all pictures in a folder, if there is one. Raises InvalidInput for two."""
    lists = [
        folder / file for file in ("captions.csv", "captions.json") if (folder / file).is_file()
    ]
    if len(lists) > 1:
        raise InvalidInput(
            f"'{folder}' contains both captions.csv and captions.json. Remove one of them."
        )
    return lists


def _from_texts(folder: Path, pictures: list[Path]) -> list[Item]:
    stems = {picture.stem for picture in pictures}
    orphans = sorted(file.name for file in folder.glob("*.txt") if file.stem not in stems)
    if orphans:
        raise InvalidInput(
            f"{len(orphans)} text files in '{folder}' have no picture with the same name "
            f"(first: '{orphans[0]}'). Add the picture or move the text file to another "
            "folder."
        )
    items = []
    for picture in pictures:
        text = picture.with_suffix(".txt")
        if text.is_file():
            captions = tuple(line.strip() for line in read_text(text).splitlines() if line.strip())
            items.append(Item(picture.name, Picture(picture), captions))
    return items


def _from_json(file: Path) -> list[Item]:
    content = read_json(file)
    if not isinstance(content, dict) or not all(
        isinstance(captions, list) and all(isinstance(caption, str) for caption in captions)
        for captions in content.values()
    ):
        raise InvalidInput(
            f'\'{file}\' does not have the expected layout: {{"NAME.jpg": ["a caption", ...], ...}}.'
        )
    return [
        Item(image, Picture(file.parent / image), tuple(caption.strip() for caption in captions))
        for image, captions in content.items()
    ]
