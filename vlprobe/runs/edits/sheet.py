"""Sheets in which people judge edits. A sheet hides the intended meaning, lists the edits in random order, and is
read as untrusted input.

    id,caption,edit,verdict,note

`verdict` is one of VERDICTS, or its first letter, or empty. The column `judge` identifies judges; without that column,
the file name does.

As in VISLA and PRSM, whose authors had people check the edits, `report` counts the verdicts on a
file of edits: agreement with the intended meaning and between judges. Verdicts that were stored on a dashboard
page before version 0.3 still count:

    mine/verdicts/<digest of the file>.jsonl    one line per verdict; a judge's latest verdict on an edit counts

The digest is computed from the file's content, so verdicts do not depend on the file name.
"""

import csv
import hashlib
import io
import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from vlprobe.errors import InvalidInput
from vlprobe.metrics import agreement
from vlprobe.metrics.estimate import estimates
from vlprobe.perturb import edits_file
from vlprobe.perturb.draws import draw
from vlprobe.scoring import pictures
from vlprobe.storage import files, mine
from vlprobe.storage.access import refuse_outside
from vlprobe.storage.store import Store
from vlprobe.types import Estimate, Measure

VERDICTS = ("same", "different", "unsure", "broken")
COLUMNS = ("id", "caption", "edit", "verdict", "note")
MAX_BYTES = 64 << 20
MAX_EDITS_BYTES = 512 << 20
NAME_LENGTH = 60


class SheetEdit(NamedTuple):
    """An edit for people to judge."""

    id: str  # digest of the caption, text and meaning; does not reveal the meaning
    caption: str
    text: str
    meaning: str  # intended meaning
    subtype: str


class EditVerdict(NamedTuple):
    """One judge's verdict on one edit."""

    judge: str
    id: str
    verdict: str  # one of VERDICTS


class JudgedFile(NamedTuple):
    """A file of edits for people to judge."""

    name: str
    digest: str  # digest of the content
    content: bytes
    edits: tuple[SheetEdit, ...]


def open_edits(name: str) -> JudgedFile:
    """Load the edits from a file. Each combination of caption, text and meaning occurs once.

    Raises InvalidInput if the file cannot be read, reading it is not allowed, or it is not a file
    of edits.
    """
    path = files.parse_path(name)
    try:
        refuse_outside(path)
        if path.stat().st_size > MAX_EDITS_BYTES:
            raise InvalidInput(
                f"The edits file '{path}' is larger than {MAX_EDITS_BYTES >> 20} MiB. Split the file."
            )
        content = files.read(path)
    except OSError as error:
        raise InvalidInput(
            f"The edits file '{path}' cannot be read ({error.strerror}). docs/edits.md describes "
            "the format."
        ) from None
    if edits_file.is_lgip_form(content):
        raise InvalidInput(
            f"The edits file '{path}' is in LGIP format. Expected one edit per line, as written "
            "by vlprobe perturb --format edits."
        )
    by_id: dict[str, SheetEdit] = {}
    for row in edits_file.read(content, str(path)).rows:
        key = f"{row.caption}\0{row.text}\0{row.meaning}".encode()
        edit_id = hashlib.blake2b(key, digest_size=6).hexdigest()
        by_id.setdefault(
            edit_id, SheetEdit(edit_id, row.caption, row.text, row.meaning, row.subtype)
        )
    return JudgedFile(str(path), pictures.digest(content), content, tuple(by_id.values()))


def sample_edits(edits: Sequence[SheetEdit], sample: int, seed: int) -> list[SheetEdit]:
    """Shuffle the edits reproducibly and return the first `sample` of them, or all of them if `sample` is 0. A larger
    sample begins with the same edits as a smaller one.
    """
    order = sorted(edits, key=lambda edit: (draw(seed, edit.id, 0, "sheet"), edit.id))
    return order[: sample or None]


def read_sheets(paths: Iterable[Path], judged: JudgedFile) -> list[EditVerdict]:
    """Return the verdicts from several sheets. Raises InvalidInput for an invalid sheet, or if the same judge
    judged an edit on two sheets.
    """
    sheet_of: dict[tuple[str, str], Path] = {}
    verdicts = []
    for path in paths:
        for verdict in read_verdicts(path, judged):
            earlier = sheet_of.setdefault((verdict.judge, verdict.id), path)
            if earlier is not path:
                raise InvalidInput(
                    f"Sheets '{earlier}' and '{path}' both have a verdict by '{verdict.judge}' "
                    "on the same edit. Name each file after its judge, or add a 'judge' column."
                )
            verdicts.append(verdict)
    return verdicts


def read_verdicts(path: Path, judged: JudgedFile) -> list[EditVerdict]:
    """Return the verdicts from a completed sheet. Rows without a verdict are skipped.

    Raises:
        InvalidInput: the sheet is not valid; the message gives the row and column of the first error.
    """
    try:
        if path.stat().st_size > MAX_BYTES:
            raise InvalidInput(
                f"Sheet '{path}' is larger than {MAX_BYTES >> 20} MiB. Split the file."
            )
        text = files.read(path).decode("utf-8-sig")
    except OSError as error:
        raise InvalidInput(
            f"Sheet '{path}' cannot be read ({error.strerror}). Create a sheet with vlprobe sheet."
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
            f"Sheet '{path}', row {reader.line_num}: not valid CSV ({error}). Save it as "
            "CSV in UTF-8."
        ) from None
    for column in ("id", "verdict"):
        if column not in (reader.fieldnames or ()):
            raise InvalidInput(
                f"Sheet '{path}' has no column '{column}'. Expected the columns that `vlprobe sheet` "
                f"writes: {', '.join(COLUMNS)}."
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
            raise _wrong(path, number, "id", f"'{judge}' already judged this edit in row {earlier}")
        verdicts.append(EditVerdict(judge, edit_id, verdict))
    return verdicts


def _wrong(path: Path, row: int, column: str, defect: str) -> InvalidInput:
    return InvalidInput(
        f"Sheet '{path}', row {row}, column '{column}': {defect}. Fix or delete the row."
    )


def read_stored(store: Store, digest: str) -> list[EditVerdict]:
    """Return the verdicts on a file of edits that an earlier version of vlprobe stored, sorted by
    judge. Withdrawn verdicts are omitted.
    """
    path = mine.path(store.root, "verdicts") / f"{digest}.jsonl"
    try:
        lines = files.read(path).split(b"\n")[:-1]
    except FileNotFoundError:
        return []
    except OSError as error:
        raise files.unreadable(path, error) from None
    parsed = filter(None, map(_parse, lines))
    latest = {(verdict.judge, verdict.id): verdict for verdict in parsed}
    return sorted(
        (verdict for verdict in latest.values() if verdict.verdict),
        key=lambda verdict: verdict.judge,
    )


def _parse(line: bytes) -> EditVerdict | None:
    try:
        fields = files.parse_json_object(line.decode())
        return EditVerdict(*(str(fields[name]) for name in ("judge", "edit", "verdict")))
    except (ValueError, KeyError):
        return None


MAJORITY = "most judges"


class AgreementRow(NamedTuple):
    """One judge's agreement with the intended meaning of the edits, for one meaning or all meanings."""

    judge: str  # or MAJORITY if there are several judges
    meaning: str  # intended meaning, or "all"
    n_edits: int
    as_intended: Estimate  # share among all verdicts, including unsure and broken ones
    unsure: int
    broken: int


class Dispute(NamedTuple):
    """An edit with at least one verdict that differs from the intended meaning."""

    edit: SheetEdit
    verdicts: dict[str, str]  # by judge


class AgreementReport(NamedTuple):
    """All judges' verdicts on a file of edits, and how well they agree."""

    judges: tuple[str, ...]
    rows: tuple[AgreementRow, ...]
    between: Estimate  # Krippendorff's alpha between judges
    disputes: tuple[Dispute, ...]


def report(edits: Sequence[SheetEdit], verdicts: Sequence[EditVerdict]) -> AgreementReport:
    """Compute the judges' agreement with the intended meaning and with each other, and list the
    disputes in file order. Intervals are resampled by caption.

    Raises:
        InvalidInput: `verdicts` is empty or names an unknown edit.
    """
    if not verdicts:
        raise InvalidInput(
            "These edits have no verdicts. Create a sheet with `vlprobe sheet`, and fill it in."
        )
    labels, judges = _labels(edits, verdicts)
    numbers: dict[str, int] = {}  # edits of one caption have one number
    groups = np.array([numbers.setdefault(edit.caption, len(numbers)) for edit in edits], dtype=int)
    voices = [(judge, row) for judge, row in zip(judges, labels, strict=True)]
    if len(judges) > 1:
        voices.append((MAJORITY, _majority(edits, labels)))
    rows = [row for judge, voice in voices for row in _rows(judge, voice, edits, groups)]
    between = agreement.estimate(labels, len(VERDICTS), groups)
    disputes = []
    for edit, of_edit in zip(edits, labels.T, strict=True):
        by_judge = zip(judges, of_edit, strict=True)
        verdicts_of = {
            name: VERDICTS[label] for name, label in by_judge if label != agreement.UNJUDGED
        }
        if {*verdicts_of.values()} - {edit.meaning}:
            disputes.append(Dispute(edit, verdicts_of))
    return AgreementReport(tuple(judges), tuple(rows), between, tuple(disputes))


def without_wrong(judged: JudgedFile, verdicts: Sequence[EditVerdict]) -> tuple[bytes, int]:
    """Return the file without the edits that the judges rejected, and the number of removed edits.
    All other lines stay unchanged.

    An edit is rejected unless more judges confirm the intended meaning than contradict it; "unsure"
    counts for neither side. Edits without a verdict are kept.
    """
    votes: Counter[str] = Counter()
    meaning = {edit.id: edit.meaning for edit in judged.edits}
    for verdict in verdicts:
        if verdict.verdict != "unsure":
            votes[verdict.id] += 1 if verdict.verdict == meaning[verdict.id] else -1
    wrong = {edit[1:4] for edit in judged.edits if edit.id in votes and votes[edit.id] <= 0}
    rows = edits_file.read(judged.content, judged.name).rows
    lines = judged.content.removeprefix(b"\xef\xbb\xbf").split(b"\n")
    left_out = {row.row for row in rows if (row.caption, row.text, row.meaning) in wrong}
    remaining = [lines[row.row - 1].rstrip(b"\r") for row in rows if row.row not in left_out]
    return b"".join(line + b"\n" for line in remaining), len(left_out)


def _labels(
    edits: Sequence[SheetEdit], verdicts: Sequence[EditVerdict]
) -> tuple[np.ndarray, list[str]]:
    """Return an array of positions in VERDICTS, shape (judges, edits), and the judges in alphabetical order."""
    judges = sorted({verdict.judge for verdict in verdicts})
    column = {edit.id: number for number, edit in enumerate(edits)}
    labels = np.full((len(judges), len(edits)), agreement.UNJUDGED)
    for judge, edit_id, verdict in verdicts:
        if edit_id not in column:
            raise InvalidInput(
                f"'{judge}' has a verdict on '{edit_id}', which is not in this file. "
                "Choose the file that was judged."
            )
        labels[judges.index(judge), column[edit_id]] = VERDICTS.index(verdict)
    return labels, judges


def _majority(edits: Sequence[SheetEdit], labels: np.ndarray) -> np.ndarray:
    """Return each edit's intended meaning if more than half of its judges confirm it, else the most frequent other
    verdict.
    """
    labels_of_most = np.full(len(edits), agreement.UNJUDGED)
    for number, edit in enumerate(edits):
        counts = Counter(label for label in labels[:, number].tolist() if label >= 0)
        intended = VERDICTS.index(edit.meaning)
        if counts and 2 * counts[intended] > counts.total():
            labels_of_most[number] = intended
        elif counts:
            del counts[intended]
            labels_of_most[number] = counts.most_common(1)[0][0]
    return labels_of_most


def _rows(
    judge: str, labels: np.ndarray, edits: Sequence[SheetEdit], groups: np.ndarray
) -> list[AgreementRow]:
    meanings = np.array([edit.meaning for edit in edits])
    intended = np.array([VERDICTS.index(edit.meaning) for edit in edits])
    is_judged = labels != agreement.UNJUDGED
    rows = []
    for meaning in ("all", *edits_file.MEANINGS):
        counted = is_judged & ((meanings == meaning) | (meaning == "all"))
        if not counted.any():
            continue
        _, codes = np.unique(groups[counted], return_inverse=True)
        agrees = (labels == intended)[counted].astype(float)
        measure = Measure(agrees, np.ones(len(agrees)), codes)
        share = estimates([measure], int(codes.max()) + 1, are_rates=True)[0]
        unsure, broken = (
            int((labels[counted] == VERDICTS.index(word)).sum()) for word in ("unsure", "broken")
        )
        rows.append(AgreementRow(judge, meaning, int(counted.sum()), share, unsure, broken))
    return rows


def sentence(agreements: AgreementReport) -> str:
    """Describe in one sentence how well the judges agree with the intended meaning and with each other."""
    overall = next(row for row in reversed(agreements.rows) if row.meaning == "all")
    words = f"{overall.judge}: {percent(overall.as_intended)} of {overall.n_edits:,} edits mean what was intended"
    if len(agreements.judges) > 1:
        value = agreements.between
        interval = "" if math.isnan(value.low) else f" ({value.low:.2f} to {value.high:.2f})"
        figure = "unknown" if math.isnan(value.value) else f"{value.value:.2f}{interval}"
        words += f"; Krippendorff's alpha between {len(agreements.judges)} judges: {figure}"
    return f"{words}; {len(agreements.disputes):,} disputes."


def percent(share: Estimate) -> str:
    """Format a share and its interval as percentages."""
    interval = (
        "" if math.isnan(share.low) else f" ({100 * share.low:.0f} to {100 * share.high:.0f})"
    )
    return f"{100 * share.value:.0f} %{interval}"
