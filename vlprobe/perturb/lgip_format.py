"""Read and write LGIP's JSON lines format, which has one image per line.

Fields: image_path, orig_captions, same_caps, diff_caps, diff_caps_color, diff_caps_number, diff_caps_object and
combined_caps. All but the first two map the index of a caption, as a string, to a list whose items are strings or
objects with "text" and "flip_type". Wrong captions of the kinds in `perturb.kinds` are only in diff_caps, with their
kind as flip_type.

Source: LGIP, appendix A.2, output fields.
"""

import json
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from vlprobe.errors import InvalidInput
from vlprobe.perturb.flips import TYPES
from vlprobe.perturb.kinds.edits import LIES
from vlprobe.perturb.lgip import CaptionEdits
from vlprobe.perturb.templates import has_marker
from vlprobe.types import Edit

FLIP_TYPES = (*TYPES, *LIES)


class ImageEdits(NamedTuple):
    """One line in LGIP's format: an image, its captions, and the edits for each caption."""

    image_path: str
    captions: tuple[str, ...]
    edits: tuple[tuple[tuple[str, Edit], ...], ...]


def line(image_path: str, captions: Sequence[str], edits: CaptionEdits) -> str:
    """Format an image, its captions and their edits as a line of JSON, without the line break."""
    record: dict[str, object] = {"image_path": image_path, "orig_captions": list(captions)}
    fields = ("same_caps", "diff_caps", *(f"diff_caps_{kind}" for kind in TYPES), "combined_caps")
    lists: dict[str, dict[str, list]] = {
        field: {str(i): [] for i in range(len(captions))} for field in fields
    }
    for index, of_caption in enumerate(edits.edits):
        for text, edit in of_caption:
            if edit.kind == "paraphrase":
                lists["same_caps"][str(index)].append(text)
                continue
            item = {"text": text, "flip_type": edit.subtype}
            if edit.kind == "combined":
                lists["combined_caps"][str(index)].append(item)
                continue
            lists["diff_caps"][str(index)].append(item)
            if edit.subtype in TYPES:
                lists[f"diff_caps_{edit.subtype}"][str(index)].append(text)
    return json.dumps(record | lists, ensure_ascii=False)


def read(lines: Iterable[str], name: str) -> Iterator[ImageEdits]:
    """Read a file in LGIP's format, and yield one entry per image. Blank lines are skipped.

    Paraphrases are tagged as simple or advanced by the paper's marker test, since the format does not contain the
    rule. A flip without a flip_type takes the type of the diff_caps_* list that contains it.

    Args:
        lines: Lines of the file.
        name: Name of the file in errors.

    Raises:
        InvalidInput: a line is not JSON or does not have this format; the message names the line.
    """
    for number, text in enumerate(lines, 1):
        if text.strip():
            yield _image(text, f"{name}, line {number}")


def _image(text: str, where: str) -> ImageEdits:
    try:
        record = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InvalidInput(
            f"{where}: not valid JSON ({error}). Expected one object per line.",
        ) from None
    if not isinstance(record, dict):
        raise InvalidInput(
            f"{where}: found a {type(record).__name__}. Expected an object with image_path and "
            "orig_captions."
        )
    path, captions = record.get("image_path"), record.get("orig_captions")
    if (
        not isinstance(path, str)
        or not isinstance(captions, list)
        or not all(isinstance(c, str) for c in captions)
    ):
        raise InvalidInput(
            f"{where}: image_path must be a string and orig_captions a list of strings; check the line."
        )
    edits: list[dict[str, Edit]] = [{} for _ in captions]
    for index, caption, _ in _items(record, "same_caps", len(captions), where):
        subtype = "simple" if has_marker(caption) else "advanced"
        edits[index].setdefault(caption, Edit("paraphrase", subtype, "read"))
    fields = [(f"diff_caps_{kind}", "flip", kind) for kind in TYPES]
    fields += [("diff_caps", "flip", ""), ("combined_caps", "combined", "")]
    for field, kind, field_type in fields:
        for index, caption, flip_type in _items(record, field, len(captions), where):
            edits[index].setdefault(caption, Edit(kind, field_type or flip_type, "read"))
    return ImageEdits(path, tuple(captions), tuple(tuple(of.items()) for of in edits))


def _items(record: dict, field: str, n_captions: int, where: str) -> Iterator[tuple[int, str, str]]:
    lists = record.get(field, {})
    if not isinstance(lists, dict):
        raise InvalidInput(
            f"{where}: {field} is a {type(lists).__name__}. Expected an object that maps each "
            "caption index to a list."
        )
    for key, items in lists.items():
        if not key.isdecimal() or len(key) > 9 or int(key) >= n_captions:
            raise InvalidInput(
                f"{where}: {field} has the key '{key}'. Expected a caption index from 0 to {n_captions - 1}."
            )
        if not isinstance(items, list):
            raise InvalidInput(
                f"{where}: {field}['{key}'] is a {type(items).__name__}. Expected a list.",
            )
        for item in items:
            fields = {"text": item} if isinstance(item, str) else item
            fields = fields if isinstance(fields, dict) else {}
            text, flip_type = fields.get("text"), fields.get("flip_type", "")
            if not isinstance(text, str) or flip_type not in ("", *FLIP_TYPES):
                raise InvalidInput(
                    f"{where}: {field}['{key}'] has the item {json.dumps(item)[:80]}. Expected "
                    "a string, or an object with a text and a flip_type, one of "
                    f"{', '.join(FLIP_TYPES)}."
                )
            yield int(key), text, flip_type
