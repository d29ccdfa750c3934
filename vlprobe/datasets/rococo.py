"""RoCOCO's captions as released: an image's own captions first, then five altered ones.

    rococo:FILE              texts only
    rococo:FILE@IMAGEDIR     with pictures; add +available to use only the images that exist

Ten captions are five originals and five altered ones; eleven are six originals and five altered ones. Altered
caption j is always made from original j. An item's captions are the originals, its foils the altered ones. A
file with five to seven captions per image (the Karpathy test split itself) has no altered ones. The pictures
are those in COCO val2014.
"""

from pathlib import Path

from vlprobe.datasets import sources
from vlprobe.datasets.file_formats import check_records_head, read_records
from vlprobe.datasets.validation import LoadedDataset, validated
from vlprobe.errors import InvalidInput
from vlprobe.types import Item

PREFIX = "rococo"
NAMES = ("rococo:FILE", "rococo:FILE@IMAGEDIR")
ALTERED = 5
EXPECTED = '{"image": "val2014/COCO_val2014_....jpg", "caption": [10 or 11 texts, or 5 to 7 without altered ones]}'


def check_name(name: str) -> None:
    """Check a dataset name and the start of its file, without loading it. Raises NotFound or InvalidInput."""
    check_records_head(sources.parse_source(name, [sources.AVAILABLE], [".json"]).files[0])


def load(name: str, cache: Path) -> LoadedDataset:
    """Load the images in the order of the file. Raises InvalidInput."""
    source = sources.parse_source(name, [sources.AVAILABLE], [".json"])
    if len(source.files) != 1:
        raise InvalidInput(
            f"'{name}' contains {len(source.files)} files, each with a different kind of "
            "alteration. Choose one of them."
        )
    file = source.files[0]
    entries = read_records(file)
    if not isinstance(entries, list):
        raise InvalidInput(f"'{file}' is not a list. Expected a list of {EXPECTED}.")
    captions = entries[0].get("caption") if entries and isinstance(entries[0], dict) else None
    altered = isinstance(captions, list) and len(captions) >= 2 * ALTERED
    lengths = (10, 11) if altered else (5, 6, 7)
    faulty = [f"entry {n}" for n, entry in enumerate(entries) if not _is_entry(entry, lengths)]
    sources.refuse_rows(file, faulty, len(entries), f"{EXPECTED}, in all entries alike")
    rows = [(_item(entry, file.stem, altered), [entry["image"]]) for entry in entries]
    items, notes = sources.attach_pictures(source, rows)
    notes += sources.unread_columns(file, entries, ["image", "caption"])
    if entries and not altered:
        notes.append(f"{file.name} holds no altered captions.")
    return validated(name, items, cache, notes)


def _is_entry(entry: object, lengths: tuple[int, ...]) -> bool:
    if not isinstance(entry, dict) or not isinstance(entry.get("image"), str):
        return False
    captions = entry.get("caption")
    return (
        isinstance(captions, list)
        and len(captions) in lengths
        and all(isinstance(text, str) for text in captions)
    )


def _item(entry: dict, subset: str, altered: bool) -> Item:
    match = sources.COCO_FILE_NAME.fullmatch(Path(entry["image"]).name)
    texts = tuple(text.strip() for text in entry["caption"])
    cut = len(texts) - ALTERED if altered else len(texts)
    key = f"coco-{match[1]}" if match else entry["image"]
    return Item(key, None, texts[:cut], {"subset": subset}, texts[cut:])
