"""A sheet for verdicts on edits that hides the intended meaning: written in random order, read as untrusted input.

    id,caption,edit,verdict,note

`verdict` is one of VERDICTS, or its first letter, or empty. The column `judge` identifies judges, or the file's name
if it has no such column.
"""

import csv
import hashlib
import io
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from vlprobe.errors import InvalidInput
from vlprobe.perturb import edits_file
from vlprobe.perturb.draws import draw
from vlprobe.perturb.edits_file import EditsFile
from vlprobe.scoring import pictures
from vlprobe.storage import files
from vlprobe.storage.access import refuse_outside

VERDICTS = ("same", "different", "unsure", "broken")
COLUMNS = ("id", "caption", "edit", "verdict", "note")
MAX_BYTES = 64 << 20
MAX_EDITS_BYTES = 512 << 20
NAME_LENGTH = 60


class SheetEdit(NamedTuple):
    """An edit that people judge."""

    id: str  # of its caption, text and meaning, which it does not show
    caption: str
    text: str
    meaning: str  # that was intended
    subtype: str


class EditVerdict(NamedTuple):
    """Verdict of a judge on an edit."""

    judge: str
    id: str
    verdict: str  # one of VERDICTS


class JudgedFile(NamedTuple):
    """A file of edits, as people judge it."""

    name: str
    digest: str  # of its content
    content: bytes
    edits: tuple[SheetEdit, ...]


def open_edits(name: str) -> JudgedFile:
    """Load the edits of a file, each text of a caption once.

    Raises InvalidInput if it cannot or may not be read, or is not a file of edits.
    """
    path = files.parse_path(name)
    try:
        refuse_outside(path)
        if path.stat().st_size > MAX_EDITS_BYTES:
            raise InvalidInput(
                f"Edits '{path}' have more than {MAX_EDITS_BYTES >> 20} MiB. Cut them in parts."
            )
        content = files.read(path)
    except OSError as error:
        raise InvalidInput(
            f"Edits '{path}' cannot be read ({error.strerror}). Expected a file of edits: docs/edits.md."
        ) from None
    if edits_file.is_lgip_form(content):
        raise InvalidInput(
            f"Edits '{path}' are in LGIP's form. Expected an edit a line: vlprobe perturb --format edits."
        )
    edits = edits_of(edits_file.read(content, str(path)))
    return JudgedFile(str(path), pictures.digest(content), content, edits)


def edits_of(edits: EditsFile) -> tuple[SheetEdit, ...]:
    """Return the edits of a file to be judged, in its order."""
    by_id: dict[str, SheetEdit] = {}
    for row in edits.rows:
        key = f"{row.caption}\0{row.text}\0{row.meaning}".encode()
        edit_id = hashlib.blake2b(key, digest_size=6).hexdigest()
        by_id.setdefault(
            edit_id, SheetEdit(edit_id, row.caption, row.text, row.meaning, row.subtype)
        )
    return tuple(by_id.values())


def drawn(edits: Sequence[SheetEdit], sample: int, seed: int) -> list[SheetEdit]:
    """Return the edits in random order, the first `sample` of them; 0: all. A larger sample begins with a smaller
    one."""
    order = sorted(edits, key=lambda edit: (draw(seed, edit.id, 0, "sheet"), edit.id))
    return order[: sample or None]


def read_sheets(paths: Iterable[Path], judged: JudgedFile) -> list[EditVerdict]:
    """Return the verdicts of several sheets. Raises InvalidInput, also if a judge has judged an edit on two of them."""
    sheet_of: dict[tuple[str, str], Path] = {}
    verdicts = []
    for path in paths:
        for verdict in read_verdicts(path, judged):
            earlier = sheet_of.setdefault((verdict.judge, verdict.id), path)
            if earlier is not path:
                raise InvalidInput(
                    f"Sheets '{earlier}' and '{path}' have verdicts of '{verdict.judge}' on the same edit. Name each "
                    "file after its judge, or add a column 'judge'."
                )
            verdicts.append(verdict)
    return verdicts


def read_verdicts(path: Path, judged: JudgedFile) -> list[EditVerdict]:
    """Return the verdicts of a filled-in sheet; rows without one are passed over.

    Raises:
        InvalidInput: naming row and column of the first thing that is wrong.
    """
    try:
        if path.stat().st_size > MAX_BYTES:
            raise InvalidInput(
                f"Sheet '{path}' has more than {MAX_BYTES >> 20} MiB. Cut it in parts."
            )
        text = files.read(path).decode("utf-8-sig")
    except OSError as error:
        raise InvalidInput(
            f"Sheet '{path}' cannot be read ({error.strerror}). Write one: vlprobe sheet."
        ) from None
    except UnicodeDecodeError:
        raise InvalidInput(f"Sheet '{path}' is not UTF-8. Save it as CSV in UTF-8.") from None
    heading = text.partition("\n")[0]
    delimiter = max(",;\t", key=heading.count)
    reader = csv.DictReader(io.StringIO(text), delimiter=delimiter)
    try:
        rows = list(reader)
    except csv.Error as error:
        raise InvalidInput(
            f"Sheet '{path}', row {reader.line_num}: no CSV ({error}). Save it as CSV in UTF-8."
        ) from None
    for column in ("id", "verdict"):
        if column not in (reader.fieldnames or ()):
            raise InvalidInput(
                f"Sheet '{path}' has no column '{column}'. Expected {', '.join(COLUMNS)}, as vlprobe sheet writes them."
            )
    return _verdicts(rows, path, judged)


def _verdicts(
    rows: Iterable[Mapping[str, str | None]], path: Path, judged: JudgedFile
) -> list[EditVerdict]:
    ids = {edit.id for edit in judged.edits}
    row_of: dict[tuple[str, str], int] = {}
    verdicts = []
    for number, row in enumerate(rows, 2):
        word, edit_id = ((row.get(name) or "").strip() for name in ("verdict", "id"))
        judge = " ".join((row.get("judge") or path.stem).split())[:NAME_LENGTH]
        if not word:
            continue
        verdict = next((name for name in VERDICTS if word.lower() in (name, name[0])), "")
        if not verdict:
            raise _wrong(path, number, "verdict", f"'{word[:40]}', expected {', '.join(VERDICTS)}")
        if edit_id not in ids:
            raise _wrong(path, number, "id", f"'{judged.name}' has no edit '{edit_id[:40]}'")
        earlier = row_of.setdefault((judge, edit_id), number)
        if earlier != number:
            raise _wrong(path, number, "id", f"'{judge}' judged this edit in row {earlier} already")
        verdicts.append(EditVerdict(judge, edit_id, verdict))
    return verdicts


def _wrong(path: Path, row: int, column: str, defect: str) -> InvalidInput:
    return InvalidInput(
        f"Sheet '{path}', row {row}, column '{column}': {defect}. Mend the row or take it out."
    )
