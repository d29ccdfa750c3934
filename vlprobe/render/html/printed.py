"""The printed cells of the papers as an HTML table, one row per cell, with a run's number next to it."""

import math
from collections.abc import Sequence

from vlprobe.render.html.elements import breakable, column_heads, table, tag
from vlprobe.views.records import PrintedCell

TITLES = ("Table", "Model", "Of what", "Printed", "Yours", "Remark")
WORDS = {"doubted": "Doubted", "differs": "Contradicted elsewhere", "remark": "Remark"}
UNITS = {"percent": " %", "million": " million", "billion": " billion"}


def printed(rows: Sequence[PrintedCell], name: str) -> str:
    """The rows as a table; `name` is for those who do not see it. Narrow screens stack its cells.

    A remark that repeats the row above is shown once.
    """
    notes = ["", *(row.note for row in rows)]
    lines = [_line(row, note) for row, note in zip(rows, notes, strict=False)]
    return table(name, column_heads(TITLES), lines, "vp-prose vp-printed")


def own_number(row: PrintedCell, value: float) -> str:
    """A number of a run with as many decimals as the printed one has, "-" where it is unknown.

    >>> own_number(PrintedCell("lgip", 2, "coco", "all", "A", "m", "percent", "86.60", 0.5, 0, 1, False, "", ""), 9.128)
    '9.13'
    """
    decimals = len(row.printed.partition(".")[2])
    return "-" if math.isnan(value) else f"{value:.{decimals}f}"


def _line(row: PrintedCell, note_above: str) -> str:
    unit = UNITS.get(row.unit, "")
    where = " · ".join(
        text.replace("_", " ")
        for text in (row.metric, row.dataset, row.split)
        if text not in ("all", "none")
    )
    number = own_number(row, row.run)
    if number != "-":
        ends = f"{own_number(row, row.low)} to {own_number(row, row.high)}"
        small = "" if math.isnan(row.low) else tag("small", ends)
        number = (
            f"{number}{unit}{small}{tag('small', 'the same weights') if row.same_weights else ''}"
        )
    remark = ""
    if row.mark:
        role = ' class="vp-doubted"' if row.mark == "doubted" else ""
        words = "as above" if row.note == note_above else row.note.removeprefix("suspect: ")
        remark = f"<strong{role}>{WORDS[row.mark]}</strong> {tag('small', words)}"
    cells = (
        breakable(row.model),
        breakable(where),
        f"{row.printed}{unit}",
        number,
        remark,
    )
    body = "".join(
        f'<td data-title="{title}">{cell}</td>' if cell else '<td class="vp-none"></td>'
        for title, cell in zip(TITLES[1:], cells, strict=True)
    )
    return f"<tr>{tag('th', f'Table {row.table}', scope='row')}{body}</tr>"
