"""A sheet for people's verdicts on edits, as a file for spreadsheets."""

import csv
import io
from collections.abc import Iterable, Mapping

from vlprobe.render.report.selection import defused
from vlprobe.runs.edits.sheet import COLUMNS, SheetEdit

BYTE_ORDER_MARK = "\ufeff"  # without which spreadsheets take UTF-8 for something else


def as_csv(edits: Iterable[SheetEdit], verdicts: Mapping[str, str], judge: str = "") -> str:
    """The edits in this order, without what was intended.

    Args:
        edits: As `runs.edits.sheet.drawn` orders them.
        verdicts: Those that were given, by id.
        judge: Who gave them, as a column of its own; "": it is told by the file's name.
    """
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    columns = (*COLUMNS, "judge") if judge else COLUMNS
    writer.writerow(columns)
    for edit in edits:
        row = [edit.id, defused(edit.caption), defused(edit.text), verdicts.get(edit.id, ""), ""]
        writer.writerow([*row, defused(judge)] if judge else row)
    return BYTE_ORDER_MARK + out.getvalue()
