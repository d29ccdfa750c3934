"""JSON of other shapes than a list of rows, written out as rows: COCO captions, Karpathy's splits, FOIL it,
VL-CheckList, Cola, and WhatsUp's COCO and Visual Genome parts.
"""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from vlprobe.datasets.folder import SUFFIXES as PICTURES
from vlprobe.errors import InvalidInput

Row = dict[str, object]
EXPECTED = (
    "a list of objects, an object of objects, or the JSON of Karpathy's splits, COCO captions, FOIL it, VL-CheckList, "
    "Cola or WhatsUp"
)


def rows_of(file: Path, content: object) -> list[Row]:
    """The rows that a JSON document holds.

    Raises:
        InvalidInput: it holds none, or one of them is not like the first.
    """
    rows = None
    try:
        if isinstance(content, dict):
            rows = _of_object(content)
        elif isinstance(content, list) and content:
            rows = _of_list(content)
    except (KeyError, TypeError, ValueError, AttributeError, IndexError) as error:
        reason = f"{type(error).__name__}: {error}"
        raise InvalidInput(
            f"'{file}' is not laid out alike in all its rows ({reason[:200]}). Expected {EXPECTED}."
        ) from None
    if not rows:
        raise InvalidInput(f"'{file}' holds no rows. Expected {EXPECTED}.")
    return rows


def _of_object(content: Mapping[str, object]) -> list[Row] | None:
    images, annotations = content.get("images"), content.get("annotations")
    if isinstance(images, list) and isinstance(annotations, list):
        first = annotations[0] if annotations else None
        is_foil = isinstance(first, dict) and "foil" in first
        return list(_foil_it(images, annotations) if is_foil else _coco(images, annotations))
    if isinstance(images, list):
        return [_karpathy(image) for image in images]
    if content and all(isinstance(row, dict) for row in content.values()):
        return [{"id": key, **row} for key, row in content.items() if isinstance(row, dict)]
    return None


def _of_list(content: list) -> list[Row] | None:
    if all(isinstance(row, dict) for row in content):
        return content
    if not all(isinstance(row, list) for row in content):
        number = next(n for n, row in enumerate(content) if not isinstance(row, dict | list))
        raise ValueError(f"entry {number} is neither an object nor a list")
    first = content[0]
    if len(first) == 2 and isinstance(first[1], dict):
        return list(_checklist(content))
    if len(first) == 4 and all(isinstance(value, str) for value in first):
        _require_captions(content)
        return [
            dict(zip(("image_1", "caption_1", "image_2", "caption_2"), row, strict=True))
            for row in content
        ]
    if len(first) == 3 and isinstance(first[0], int | str):
        return [
            {"image_path": _coco_name(image), "caption_options": [right, wrong]}
            for image, right, wrong in content
        ]
    return None


def _require_captions(content: Sequence[Sequence[str]]) -> None:
    """Raise ValueError if lists of four are not Cola's picture, caption, picture, caption: in
    NaturalBench's list for fine-tuning the second is a picture.
    """
    for number, (_, caption, *_) in enumerate(content):
        if Path(caption).suffix.lower() in PICTURES:
            raise ValueError(
                f"entry {number} has the picture '{caption[:40]}' where Cola has a caption; NaturalBench's list "
                "for fine-tuning has questions, take its test set"
            )


def _coco_name(image: object) -> str:
    """WhatsUp names COCO's pictures by number; Visual Genome's have their file's stem."""
    return f"{image:012d}.jpg" if isinstance(image, int) else str(image)


def _checklist(content: Sequence) -> Iterator[Row]:
    for number, (image, texts) in enumerate(content):
        for part, (right, wrong) in enumerate(zip(texts["POS"], texts["NEG"], strict=True)):
            yield {"id": f"{number}-{part}", "image": image, "pos": right, "neg": wrong}


def _karpathy(image: Mapping) -> Row:
    folder = image.get("filepath", "")
    return {
        "image": f"{folder}/{image['filename']}" if folder else image["filename"],
        "caption": [sentence["raw"] for sentence in image["sentences"]],
        "split": image["split"],
    }


def _coco(images: Sequence[Mapping], annotations: Sequence[Mapping]) -> Iterator[Row]:
    captions: dict[object, list[str]] = {image["id"]: [] for image in images}
    for annotation in annotations:
        captions[annotation["image_id"]].append(annotation["caption"])
    for image in images:
        yield {"image": image["file_name"], "caption": captions[image["id"]]}


def _foil_it(images: Sequence[Mapping], annotations: Sequence[Mapping]) -> Iterator[Row]:
    """A row for each foil, with the caption it was made from: both have the id of the caption in COCO."""
    names = {image["id"]: image["file_name"] for image in images}
    originals = {
        annotation["id"]: annotation["caption"]
        for annotation in annotations
        if not annotation["foil"]
    }
    for annotation in annotations:
        if annotation["foil"]:
            if annotation["id"] not in originals:
                raise ValueError(f"foil {annotation['id']} has no caption of that id")
            yield {
                "id": annotation.get("foil_id", annotation["id"]),
                "image": names[annotation["image_id"]],
                "caption": originals[annotation["id"]],
                "foil": annotation["caption"],
                "target_word": annotation["target_word"],
                "foil_word": annotation["foil_word"],
            }
