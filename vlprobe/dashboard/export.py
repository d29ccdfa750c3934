"""Ways to keep what is on the page: a link, a saved view, the cases as a file, the list of what people said."""

import functools
from urllib.parse import parse_qs

import streamlit as st

from vlprobe import views
from vlprobe.dashboard.access import changes
from vlprobe.dashboard.state import Questions, address, attempt, plain, query, quiet, store, view
from vlprobe.errors import VlprobeError
from vlprobe.render.html.elements import tag
from vlprobe.render.report import report
from vlprobe.render.report import selection as report_selection
from vlprobe.storage import annotations, bookmarks
from vlprobe.views.filter import Filter

LISTED = 50  # cases with tags or notes


def link() -> None:
    """The address of this view, to copy."""
    with st.popover("Link", icon=":material/link:"):
        quiet(
            "Opens exactly this view, wherever this dashboard runs on the same results. The button copies it."
        )
        st.code(address(), language=None, wrap_lines=True)


def selection(asked: Questions, chosen: Filter, total: int) -> None:
    """The cases that pass the filter, as files."""
    with st.popover("Export", icon=":material/download:", disabled=not total):
        most = report_selection.MOST
        told = (
            f"All {total:,} cases"
            if total <= most
            else f"The first {most:,} of {total:,} cases, in this order"
        )
        quiet(f"{told}: what was asked, the scores, every model's margin, and your tags and notes.")
        files = (
            ("CSV", report_selection.as_csv, "text/csv"),
            ("JSON", report_selection.as_json, "application/json"),
        )
        with st.container(horizontal=True):
            for label, make, kind in files:
                st.download_button(
                    label,
                    functools.partial(make, store(), asked.question_set, chosen),
                    f"vlprobe_cases.{label.lower()}",
                    kind,
                    key=f"export_{label}",
                    icon=":material/download:",
                    on_click="ignore",
                )


def report_button(asked: Questions) -> None:
    """The whole comparison as one file."""
    st.download_button(
        "Download as a report",
        functools.partial(report.report, store(), asked.question_set),
        f"vlprobe_{asked.probe}_{asked.key[:8]}.html",
        "text/html",
        icon=":material/description:",
        on_click="ignore",
        help="One web page with the numbers, figures, worst failures with their pictures, notes and commands. "
        "It opens without a network and runs nothing.",
    )


def shelf(asked: Questions) -> None:
    """Saved views, and the cases of which people said something."""
    with st.container(horizontal=True, vertical_alignment="bottom"):
        with st.popover("Saved views", icon=":material/bookmark:", key="saved"):
            _saved()
        with st.popover("Tags and notes", icon=":material/sell:", key="annotated"):
            _annotated(asked)


def _saved() -> None:
    try:
        known = bookmarks.read(store())
    except VlprobeError as error:
        st.error(plain(str(error)), icon=":material/error:")
        return
    if not known:
        quiet(
            "None yet. A saved view is a set of filters with a name, for all who use these results."
        )
    allowed = changes("Views cannot be saved or removed here.")
    for place, (name, kept) in enumerate(known.items()):
        with st.container(horizontal=True, vertical_alignment="center", key=f"saved_{place}"):
            st.page_link(
                "pages/explore.py", label=plain(name), query_params=parse_qs(kept), width="stretch"
            )
            if allowed:
                st.button(
                    "Remove",
                    key=f"forget_{place}",
                    help=f"Forget the view {plain(name)}",
                    type="tertiary",
                    on_click=attempt,
                    args=(bookmarks.remove, store(), name),
                )
    if allowed:
        with st.form("save_view", border=False, clear_on_submit=True):
            st.text_input("Save this view as", key="view_name", max_chars=bookmarks.NAME_LENGTH)
            st.form_submit_button("Save", icon=":material/bookmark_add:", on_click=_save)


def _save() -> None:
    attempt(bookmarks.save, store(), st.session_state["view_name"], query("case", "page"))


def _annotated(asked: Questions) -> None:
    known = annotations.read(store(), asked.key)
    if known.damaged:
        st.warning(
            f"Damaged, and left out: {plain('; '.join(known.damaged))}.", icon=":material/warning:"
        )
    if not known.current:
        quiet("None yet. Open the details of a case to tag it or to write a note.")
        return
    quiet(
        f"{len(known.current):,} {'case' if len(known.current) == 1 else 'cases'}, latest first."
        + (f" Here: {LISTED}." if len(known.current) > LISTED else "")
    )
    shown = known.current[:LISTED]
    texts = view(
        views.cases.questions, asked.question_set, tuple(sorted(one.case for one in shown))
    ).set_index("case")["texts"]
    for one in shown:
        if one.case not in texts.index:
            continue  # the file names a case that these questions do not have
        text = texts[one.case][min(1, len(texts[one.case]) - 1)]
        asks = {
            name: st.query_params[name]
            for name in ("set", "model", "kind")
            if name in st.query_params
        }
        st.page_link("pages/explore.py", label=plain(text), query_params=asks | {"case": one.id})
        said = [*one.tags, one.note]
        st.html(tag("p", " · ".join(filter(None, said)), class_="vp-quiet vp-small"))
