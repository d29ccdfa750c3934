"""Agreement of people with the intended meaning of edits, and with each other.

People checked VISLA's edits and a hundred of PRSM's paraphrases; this module counts the verdicts on any file of edits.
"""

import math
from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from vlprobe.errors import InvalidInput
from vlprobe.metrics import agreement
from vlprobe.metrics.estimate import estimates
from vlprobe.perturb import edits_file
from vlprobe.runs.edits.sheet import VERDICTS, EditVerdict, JudgedFile, SheetEdit
from vlprobe.types import Estimate, Measure

MAJORITY = "most judges"


class AgreementRow(NamedTuple):
    """Agreement of a judge with the intended meaning."""

    judge: str  # or MAJORITY, of several
    meaning: str  # that was intended; "all"
    n_edits: int
    as_intended: Estimate  # of all verdicts, unsure and broken ones too
    unsure: int
    broken: int


class Dispute(NamedTuple):
    """An edit with a verdict that differs from the intended meaning."""

    edit: SheetEdit
    verdicts: dict[str, str]  # by judge


class AgreementReport(NamedTuple):
    """Verdicts of judges on a file of edits."""

    judges: tuple[str, ...]
    rows: tuple[AgreementRow, ...]
    between: Estimate  # Krippendorff's alpha between judges
    disputes: tuple[Dispute, ...]


def report(edits: Sequence[SheetEdit], verdicts: Sequence[EditVerdict]) -> AgreementReport:
    """Compute counts, intervals over captions, and disputes in the order of the file.

    Raises:
        InvalidInput: there is no verdict, or one on an unknown edit.
    """
    if not verdicts:
        raise InvalidInput("There is no verdict on these edits. Fill in a sheet (vlprobe sheet).")
    labels, judges = _labels(edits, verdicts)
    groups = _groups(edits)
    voices = [(judge, row) for judge, row in zip(judges, labels, strict=True)]
    if len(judges) > 1:
        voices.append((MAJORITY, _majority(edits, labels)))
    rows = [row for judge, voice in voices for row in _rows(judge, voice, edits, groups)]
    between = agreement.estimate(labels, len(VERDICTS), groups)
    disputes = [
        Dispute(edit, _said(judges, labels[:, number]))
        for number, edit in enumerate(edits)
        if any(
            label not in (agreement.UNJUDGED, VERDICTS.index(edit.meaning))
            for label in labels[:, number]
        )
    ]
    return AgreementReport(tuple(judges), tuple(rows), between, tuple(disputes))


def without_wrong(judged: JudgedFile, verdicts: Sequence[EditVerdict]) -> tuple[bytes, int]:
    """Return the file without edits that people judged wrong, with all other lines unchanged, and the number of
    removed edits.

    An edit is wrong unless more judges confirm the intended meaning than contradict it; "unsure" counts for neither
    side. Edits without a verdict stay.
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
    """Return positions in VERDICTS, shape (judges, edits), and the judges in alphabetical order."""
    judges = sorted({verdict.judge for verdict in verdicts})
    column = {edit.id: number for number, edit in enumerate(edits)}
    labels = np.full((len(judges), len(edits)), agreement.UNJUDGED)
    for judge, edit_id, verdict in verdicts:
        if edit_id not in column:
            raise InvalidInput(
                f"'{judge}' has a verdict on '{edit_id}', no edit of this file. Choose the file that was judged."
            )
        labels[judges.index(judge), column[edit_id]] = VERDICTS.index(verdict)
    return labels, judges


def _groups(edits: Sequence[SheetEdit]) -> np.ndarray:
    """Return the number of each edit's caption."""
    numbers: dict[str, int] = {}
    return np.array([numbers.setdefault(edit.caption, len(numbers)) for edit in edits], dtype=int)


def _majority(edits: Sequence[SheetEdit], labels: np.ndarray) -> np.ndarray:
    """Return the intended meaning if more than half of an edit's judges confirm it, else the most frequent other
    verdict."""
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


def _said(judges: Sequence[str], labels: np.ndarray) -> dict[str, str]:
    return {
        judge: VERDICTS[label]
        for judge, label in zip(judges, labels, strict=True)
        if label != agreement.UNJUDGED
    }


def sentence(written: AgreementReport) -> str:
    """Return the numbers of all judges in words, for a person."""
    whole = next(row for row in reversed(written.rows) if row.meaning == "all")
    words = f"{whole.judge}: {percent(whole.as_intended)} of {whole.n_edits:,} edits mean what was intended"
    if len(written.judges) > 1:
        value = written.between
        interval = "" if math.isnan(value.low) else f" ({value.low:.2f} to {value.high:.2f})"
        figure = "unknown" if math.isnan(value.value) else f"{value.value:.2f}{interval}"
        words += f"; Krippendorff's alpha between {len(written.judges)} judges: {figure}"
    return f"{words}; {len(written.disputes):,} disputes."


def percent(share: Estimate) -> str:
    """A share with its interval, for a person."""
    interval = (
        "" if math.isnan(share.low) else f" ({100 * share.low:.0f} to {100 * share.high:.0f})"
    )
    return f"{100 * share.value:.0f} %{interval}"
