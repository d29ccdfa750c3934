"""Custom caption edits as JSON lines. Each line has one original caption and one edit of it.

Fields in a line:

    caption    the original, as in the dataset (`original` is read as well)
    text       the edited caption (`edit` is read as well)
    meaning    same or different
    subtype    such as color, number, advanced, P1; this and all fields below are optional
    maker      who made the edit: a person, a program, a model
    made       when it was made, such as 2026-11-22
    item       id of the only item that the edit applies to; without it, the edit applies to all with that caption
    rule, source, target, via    as `vlprobe perturb` writes them: `via` is the paraphrase of a combined edit

Other fields are not read. All lines are checked before the first is used.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from vlprobe.errors import InvalidInput
from vlprobe.types import Edit, Item

_SURROGATE = re.compile("[\ud800-\udfff]")
MEANINGS = ("same", "different")
NO_EDIT = "no edit in the file"  # reason why a caption has no case
MAX_CHARACTERS = 20_000  # of a text
KIND_MEANINGS = {"paraphrase": "same", "flip": "different", "combined": "different"}
SYNONYMS = {"caption": "original", "text": "edit"}
OPTIONAL = ("subtype", "maker", "made", "item", "rule", "source", "target", "via")


class WrittenEdit(NamedTuple):
    """One line in a file with custom edits."""

    row: int  # from 1
    caption: str
    text: str
    meaning: str  # one of MEANINGS
    subtype: str
    maker: str
    made: str
    item: str  # "": every item with that caption
    rule: str
    source: str
    target: str
    via: str

    def edit(self, kind: str, subtype: str = "") -> Edit:
        """Build the edit for a case with the given kind. If the line has no rule, the maker is used as the rule."""
        rule = self.rule or self.maker or "file"
        return Edit(kind, subtype or self.subtype, rule, self.source, self.target)


class EditsFile:
    """The edits in a file, which can be looked up by caption.

    Args:
        name: Name of the file, for errors.
        rows: Edits in the order of the file.
    """

    def __init__(self, name: str, rows: Sequence[WrittenEdit]) -> None:
        self.name, self.rows = name, rows
        self._by_caption: dict[str, list[WrittenEdit]] = {}
        for row in rows:
            self._by_caption.setdefault(row.caption, []).append(row)

    def of(self, item: Item, caption: str, meaning: str = "") -> list[WrittenEdit]:
        """Return the edits for an item's caption in file order; if `meaning` is given, only those with that meaning."""
        return [
            row
            for row in self._by_caption.get(caption, ())
            if row.item in ("", item.id) and meaning in ("", row.meaning)
        ]

    def pairs(self, item: Item, caption: str) -> Iterator[tuple[WrittenEdit, WrittenEdit]]:
        """Pair the edits for a caption: the n-th that keeps the meaning with the n-th that changes it."""
        return zip(*(self.of(item, caption, meaning) for meaning in MEANINGS), strict=False)

    def check(self, items: Sequence[Item]) -> None:
        """Raise InvalidInput if an edit's caption does not occur in the dataset, or in the item that the edit names."""
        ids_by_caption: dict[str, set[str]] = {}
        for item in items:
            for caption in item.captions:
                if caption in self._by_caption:
                    ids_by_caption.setdefault(caption, set()).add(item.id)
        for row in self.rows:
            ids = ids_by_caption.get(row.caption)
            if not ids:
                defect = f"caption '{row.caption[:200]}' is not in the dataset"
                raise _wrong(self.name, row.row, "caption", defect)
            if row.item and row.item not in ids:
                defect = f"item '{row.item}' does not have this caption"
                raise _wrong(self.name, row.row, "item", defect)


def _wrong(name: str, row: int, column: str, defect: str) -> InvalidInput:
    return InvalidInput(
        f"Edits file '{name}', line {row}, column '{column}': {defect}. Fix or remove the line."
    )


def line(item_id: str, caption: str, text: str, edit: Edit, maker: str, made: str) -> str:
    """Format an edit as a line of JSON, as `vlprobe perturb` writes it, without the line break."""
    row = {"item": item_id, "caption": caption, "text": text, "meaning": KIND_MEANINGS[edit.kind]}
    words = {name: getattr(edit, name) for name in ("kind", "subtype", "rule", "source", "target")}
    return json.dumps(
        row | words | {"via": edit.via, "maker": maker, "made": made}, ensure_ascii=False
    )


def is_lgip_form(content: bytes) -> bool:
    """Return whether a file is in LGIP's format (one picture per line), judging by its first nonblank line."""
    opening = content.lstrip(b"\xef\xbb\xbf \t\r\n").split(b"\n", 1)[0]
    return b'"orig_captions"' in opening or b'"image_path"' in opening


def read(content: bytes, name: str) -> EditsFile:
    """Read the edits in a file; blank lines are skipped.

    Args:
        content: UTF-8, with or without a byte order mark.
        name: Name of the file in errors.

    Raises:
        InvalidInput: a line is invalid; the message has the line and column of the first mistake.
    """
    rows: list[WrittenEdit] = []
    first_row: dict[tuple[str, str, str], int] = {}
    for number, text in enumerate(_decoded(content, name).split("\n"), 1):
        if not text.strip():
            continue
        row = _row(number, text, name)
        key = (row.item, row.caption, row.text)
        if key in first_row:
            raise _wrong(name, number, "text", f"the same edit as in line {first_row[key]}")
        first_row[key] = number
        rows.append(row)
    if not rows:
        raise InvalidInput(f"The edits file '{name}' is empty. Expected one JSON object per line.")
    return EditsFile(name, rows)


def _decoded(content: bytes, name: str) -> str:
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        previous = content[: error.start]
        row, column = previous.count(b"\n") + 1, error.start - previous.rfind(b"\n")
        raise InvalidInput(
            f"Edits file '{name}', line {row}, byte {column}: not UTF-8. Save the file as UTF-8."
        ) from None


def _row(number: int, text: str, name: str) -> WrittenEdit:
    try:
        record = json.loads(text)
    except (ValueError, RecursionError):
        record = None
    if not isinstance(record, dict):
        raise InvalidInput(
            f"Edits file '{name}', line {number}: not a JSON object. Expected a line such as "
            '{"caption": "A red bus.", "text": "A blue bus.", "meaning": "different"}.'
        )
    caption, edited = (_text(record, field, number, name) for field in SYNONYMS)
    meaning = record.get("meaning", KIND_MEANINGS.get(str(record.get("kind")), ""))
    if meaning not in MEANINGS:
        raise _wrong(name, number, "meaning", f"{str(meaning)[:40]!r} is not 'same' or 'different'")
    words = {field: record.get(field, "") for field in OPTIONAL}
    for field, value in words.items():
        if not isinstance(value, str) or len(value) > MAX_CHARACTERS or _SURROGATE.search(value):
            raise _wrong(name, number, field, "not a valid string")
    if edited == caption:
        raise _wrong(name, number, "text", "the edit is identical to the original caption")
    return WrittenEdit(number, caption, edited, str(meaning), **words)


def _text(record: Mapping[str, object], field: str, number: int, name: str) -> str:
    """Return the text in a field of a line. The field may have either of two names."""
    value = record.get(field, record.get(SYNONYMS[field]))
    if value is None:
        raise _wrong(name, number, field, f"missing (accepted names: '{SYNONYMS[field]}')")
    if not isinstance(value, str) or not value.strip():
        raise _wrong(name, number, field, "empty or not a string")
    if len(value) > MAX_CHARACTERS:
        raise _wrong(name, number, field, f"more than {MAX_CHARACTERS:,} characters")
    if _SURROGATE.search(value):
        raise _wrong(name, number, field, "incomplete character (a lone surrogate)")
    return value
