"""A blind sheet of edits that people judge one by one, and how far their verdicts agree.

The URL names the file (`edits`), how many of its edits are drawn (`sample`) and by which seed (`seed`).
"""

import functools
from collections.abc import Sequence

import streamlit as st

from vlprobe.dashboard.access import changes
from vlprobe.dashboard.folds import fold
from vlprobe.dashboard.lab.choice_buttons import draw_choices
from vlprobe.dashboard.state import choose, plain, quiet, search, store, tag
from vlprobe.dashboard.tables import show
from vlprobe.errors import InvalidInput
from vlprobe.render.sheet import as_csv
from vlprobe.runs.edits import agreement
from vlprobe.runs.edits.agreement import AgreementRow, Dispute, Report
from vlprobe.runs.edits.sheet import JudgedFile, SheetEdit, Verdict, drawn, open_edits
from vlprobe.storage import verdicts as stored_verdicts

CHOICES = {  # verdict: what the button says, its key, its icon
    "same": ("Same meaning", "s", ":material/drag_handle:"),
    "different": ("Different", "d", ":material/call_split:"),
    "unsure": ("Unsure", "u", ":material/help:"),
    "broken": ("Broken text", "b", ":material/broken_image:"),
}
SAMPLES = {"100": "100 edits", "20": "20 edits", "50": "50 edits", "500": "500 edits", "0": "All"}
FIRST_SEED = 42
MOST_DISPUTES = 200  # shown; the command line lists all
EXAMPLE = (
    "vlprobe edits coco:DIR edits.jsonl --with http:URL#MODEL\n"
    "vlprobe perturb coco:DIR --format edits > edits.jsonl"
)


def draw_page() -> None:
    """The sheet, and below it what was said so far."""
    st.title("Do the edits mean what they should?", anchor=False)
    st.markdown(
        "A reworded caption should mean the same and a false one something else. Rules and language models err, so "
        "look at a sample: you see a caption and its edit, and not what was intended."
    )
    with st.container(horizontal=True, vertical_alignment="bottom", key="sheet_subject"):
        name = search("File of edits", "edits", "edits.jsonl")
        sample = choose("How many", "sample", SAMPLES, "100", width=140)
        seed = search("Drawn by seed", "seed", str(FIRST_SEED))
        judge = st.text_input(
            "Your name", key="judge", max_chars=stored_verdicts.JUDGE_LENGTH, autocomplete="off"
        )
    if not name:
        st.info("Name a file of edits. These commands write one:", icon=":material/info:")
        st.code(EXAMPLE, language=None, wrap_lines=True)  # colours of options lack contrast
        return
    judged = open_edits(name)
    sheet = drawn(judged.edits, int(sample), _number(seed))
    verdicts = [Verdict(*row) for row in stored_verdicts.read(store(), judged.digest)]
    if changes("Nobody can judge edits here."):
        _draw_sheet(judged, sheet, verdicts, " ".join(judge.split()))
    with fold(
        "agreement", "Agreement, which shows what was intended", ":material/groups:"
    ) as is_open:
        if is_open:
            _draw_agreement(judged, verdicts)


def _number(text: str) -> int:
    if not text:
        return FIRST_SEED
    if not text.isascii() or not text.isdecimal() or len(text) > 9:
        raise InvalidInput(
            f"'{text[:40]}' is no seed. Expected a whole number such as {FIRST_SEED}."
        )
    return int(text)


def _draw_sheet(
    judged: JudgedFile, sheet: Sequence[SheetEdit], verdicts: Sequence[Verdict], judge: str
) -> None:
    """One edit with its four buttons; how far the judge is, and the sheet as a file."""
    if not judge:
        quiet("Say your name to begin: it tells your verdicts from those of others.")
        return
    verdict_of = {verdict.id: verdict.verdict for verdict in verdicts if verdict.judge == judge}
    remaining = [edit for edit in sheet if edit.id not in verdict_of]
    n_judged = len(sheet) - len(remaining)
    current = _shown(sheet, remaining)
    st.progress(n_judged / len(sheet), f"{n_judged:,} of {len(sheet):,} judged")
    with st.container(border=True, key="pair"):
        if current is None:
            st.success("All are judged. Thank you.", icon=":material/check_circle:")
        else:
            _draw_edit(current, judged, judge, verdict_of.get(current.id, ""))
    with st.container(horizontal=True):
        st.button(
            "Back",
            icon=":material/arrow_back:",
            type="tertiary",
            key="verdict_back",
            shortcut="Left",
            disabled=not _before(sheet, current),
            on_click=_go_back,
            args=(sheet, current),
        )
        st.download_button(
            "Download as CSV",
            as_csv(sheet, verdict_of, judge),
            f"{judge}.csv",
            "text/csv",
            icon=":material/download:",
            type="tertiary",
        )


def _shown(sheet: Sequence[SheetEdit], remaining: Sequence[SheetEdit]) -> SheetEdit | None:
    """The edit that the judge went back to, else the next one without a verdict."""
    revisited_id = st.session_state.get("verdict_edit", "")
    revisited = next((edit for edit in sheet if edit.id == revisited_id), None)
    return revisited or next(iter(remaining), None)


def _before(sheet: Sequence[SheetEdit], current: SheetEdit | None) -> SheetEdit | None:
    """The edit before the one that is shown, the last one where all are judged."""
    number = sheet.index(current) if current else len(sheet)
    return sheet[number - 1] if number else None


def _go_back(sheet: Sequence[SheetEdit], current: SheetEdit | None) -> None:
    before = _before(sheet, current)
    st.session_state["verdict_edit"] = before.id if before else ""


def _draw_edit(edit: SheetEdit, judged: JudgedFile, judge: str, verdict: str) -> None:
    for label, text in (("Caption", edit.caption), ("Edit", edit.text)):
        st.html(tag("p", label, class_="vp-quiet vp-small") + tag("p", text, class_="vp-pair"))
    draw_choices(
        "verdict", CHOICES, verdict, functools.partial(_give, judged.digest, judge, edit.id)
    )


def _give(digest: str, judge: str, edit: str, verdict: str) -> None:
    stored_verdicts.write(store(), digest, judge, edit, verdict)
    st.session_state["verdict_edit"] = ""


def _draw_agreement(judged: JudgedFile, verdicts: Sequence[Verdict]) -> None:
    if not verdicts:
        quiet("Nobody judged an edit of this file yet.")
        return
    report = agreement.report(judged.edits, verdicts)
    st.markdown(plain(agreement.sentence(report)))
    _draw_table(report)
    _draw_disputes(report.disputes)
    content, n_left_out = agreement.without_wrong(judged, verdicts)
    st.download_button(
        f"Download the edits without {n_left_out:,} that were judged wrong",
        content,
        "edits.jsonl",
        "application/jsonl",
        icon=":material/download:",
        key="verdict_right",
    )


def _draw_table(report: Report) -> None:
    titles = ("Judge", "Intended", "Judged", "Says what was intended", "Unsure", "Broken")
    show(
        "Agreement with what was intended",
        "".join(tag("th", title, scope="col") for title in titles),
        [_row(row) for row in report.rows],
    )


def _row(row: AgreementRow) -> str:
    cells = (
        row.meaning,
        f"{row.n_edits:,}",
        agreement.percent(row.as_intended),
        f"{row.unsure:,}",
        f"{row.broken:,}",
    )
    head = tag("th", row.judge, scope="row")
    return f'<tr class="first">{head}{"".join(tag("td", cell) for cell in cells)}</tr>'


def _draw_disputes(disputes: Sequence[Dispute]) -> None:
    if not disputes:
        return
    st.subheader(f"{len(disputes):,} disputes", anchor=False)
    rows = []
    for edit, verdict_by_judge in disputes[:MOST_DISPUTES]:
        words = ", ".join(f"{judge}: {verdict}" for judge, verdict in verdict_by_judge.items())
        cells = "".join(tag("td", cell) for cell in (edit.text, edit.meaning, words))
        rows.append(f'<tr class="first">{tag("th", edit.caption, scope="row")}{cells}</tr>')
    titles = ("Caption", "Edit", "Intended", "Verdicts")
    show("Disputes", "".join(tag("th", title, scope="col") for title in titles), rows)
    if len(disputes) > MOST_DISPUTES:
        quiet(f"The first {MOST_DISPUTES}. All: vlprobe verdicts EDITS --disputes")
