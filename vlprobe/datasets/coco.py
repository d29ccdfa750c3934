"""COCO captions as published: `coco:DIR`, a folder with annotations/captions_*.json and the images, or
`coco:FILE.json`. The option `+unpictured` keeps rows with missing pictures, for imported scores or embeddings.
"""

from pathlib import Path

from vlprobe.datasets.file_formats import check_json_head, read_json
from vlprobe.datasets.sources import keep_unpictured, split_unpictured
from vlprobe.datasets.validation import LoadedDataset, validated
from vlprobe.errors import InvalidInput
from vlprobe.types import Item, Picture

PREFIX = "coco"
NAMES = ("coco:DIR",)


def check_name(name: str) -> None:
    """Check a dataset name and the start of its captions file without loading it. Raises NotFound or InvalidInput."""
    check_json_head(captions_file(split_unpictured(name)[0]))


def takes(path: Path) -> bool:
    """Return whether this reader can read a path that was typed without a dataset prefix."""
    return path.is_dir() and any((path / "annotations").glob("captions_*.json"))


def load(name: str, cache: Path) -> LoadedDataset:
    """Load the images and their captions, both sorted by id. Raises InvalidInput."""
    path, keeps_all = split_unpictured(name)
    captions = captions_file(path)
    content = read_json(captions)
    try:
        if not isinstance(content, dict):
            raise TypeError(f"the top level is a {type(content).__name__}, not an object")
        images = sorted(content["images"], key=_by_id)
        captions_by_image: dict[int, list[str]] = {image["id"]: [] for image in images}
        for annotation in sorted(content["annotations"], key=_by_id):
            captions_by_image[annotation["image_id"]].append(annotation["caption"].strip())
        folder = _image_folder(captions, [image["file_name"] for image in images])
        items = [
            Item(
                id=f"coco-{image['id']:012d}",
                image=Picture(folder / image["file_name"]),
                captions=tuple(captions_by_image[image["id"]]),
                tags={"orientation": _orientation(image["width"], image["height"])},
            )
            for image in images
        ]
    except KeyError as error:
        raise InvalidInput(
            f"'{captions}' has no {error}, which is a field or the id of an image that a "
            "caption refers to. Expected a COCO captions file: images (id, file_name, width, "
            "height), annotations (id, image_id, caption)."
        ) from None
    except (TypeError, AttributeError, ValueError) as error:
        raise InvalidInput(
            f"'{captions}' is not a COCO captions file ({error}). Expected images and annotations."
        ) from None
    items, notes = keep_unpictured(items, folder) if keeps_all else (items, [])
    return validated(name, items, cache, notes)


def _by_id(row: dict) -> int:
    """Return the id by which a row is sorted. Raises TypeError if the id is not a whole number."""
    if isinstance(row["id"], bool) or not isinstance(row["id"], int):
        raise TypeError(f"id {row['id']!r} is not an integer")
    return row["id"]


def captions_file(path: Path) -> Path:
    """Return the captions file at a path: the file itself, or a file in the folder at the path. Raises InvalidInput."""
    if path.suffix == ".json":
        return path
    if not path.is_dir():
        raise InvalidInput(
            f"COCO folder '{path}' does not exist. Expected coco:DIR with DIR/annotations/captions_*.json."
        )
    candidates = sorted((path / "annotations").glob("captions_*.json"))
    if len(candidates) != 1:
        listing = ", ".join(file.name for file in candidates) or "none"
        raise InvalidInput(
            f"'{path}/annotations' contains {len(candidates)} captions files ({listing}). "
            "Choose one, such as coco:DIR/annotations/captions_val2017.json."
        )
    return candidates[0]


def _image_folder(captions: Path, files: list[str]) -> Path:
    root = captions.parent.parent if captions.parent.name == "annotations" else captions.parent
    candidates = [root / captions.stem.removeprefix("captions_"), root / "images", root]
    for folder in candidates:
        if any((folder / file).is_file() for file in files[:100]):
            return folder
    return candidates[0]


def _orientation(width: int, height: int) -> str:
    return "square" if width == height else "landscape" if width > height else "portrait"
