"""*Share*: a link, saved views, the cases as a file, a report, and the
list of what people wrote.
"""

import functools
from urllib.parse import parse_qs, urlsplit

import streamlit as st

from vlprobe import views
from vlprobe.dashboard.access import changes
from vlprobe.dashboard.export import report_button
from vlprobe.dashboard.state import (
    PageSubject,
    address,
    attempt,
    link_docs,
    plain,
    query,
    quiet,
    store,
    view,
)
from vlprobe.errors import VlprobeError
from vlprobe.render.html.elements import tag
from vlprobe.storage import annotations, bookmarks
from vlprobe.storage.annotations import Annotation
from vlprobe.surfaces.report import selection
from vlprobe.views.filter import Filter

LISTED = 50  # cases with tags or notes
PAGE = "pages/explore.py"
LOCAL_HOSTS = ("localhost", "127.0.0.1", "::1")
LINK = "Opens this view for everyone with access to this dashboard."
LOCAL_LINK = "Works only on this computer. To share this view, use “Download as a report” below."


def draw_share(stored: PageSubject, case_filter: Filter, n_cases: int) -> None:
    """The popover, in four parts."""
    with st.popover("Share", icon=":material/ios_share:", key="share", type="tertiary"):
        _heading("Link")
        quiet(LOCAL_LINK if urlsplit(address()).hostname in LOCAL_HOSTS else LINK)
        with st.container(key="share_link"):
            st.code(address(), language=None, wrap_lines=True)
        _heading("Files")
        _files(stored, case_filter, n_cases)
        _heading("Saved views")
        _saved_views()
        _heading("Tags and notes")
        _annotated(stored)


def _heading(text: str) -> None:
    st.html(tag("p", text, class_="vp-part"))


def _files(stored: PageSubject, case_filter: Filter, n_cases: int) -> None:
    """The cases that pass the filter, and the whole comparison."""
    limit = selection.MOST
    extent = f"The first {limit:,} of {n_cases:,} cases, in this order"
    if n_cases <= limit:
        extent = f"All {n_cases:,} cases"
    quiet(f"{extent}: the captions, the scores, every model's margin, and your tags and notes.")
    files = (
        ("CSV", selection.as_csv, "text/csv"),
        ("JSON", selection.as_json, "application/json"),
    )
    with st.container(horizontal=True):
        for label, make, kind in files:
            st.download_button(
                label,
                functools.partial(make, store(), stored.question_set, case_filter),
                f"vlprobe_cases.{label.lower()}",
                kind,
                key=f"export_{label}",
                icon=":material/download:",
                on_click="ignore",
                disabled=not n_cases,
            )
        report_button(stored)


def _saved_views() -> None:
    try:
        saved = bookmarks.read(store())
    except VlprobeError as error:
        st.error(link_docs(str(error)), icon=":material/error:")
        return
    if not saved:
        quiet("None yet. Saved views are shared with everyone who uses this cache.")
    may_change = changes("Views cannot be saved or removed here.")
    for index, (name, saved_query) in enumerate(saved.items()):
        with st.container(horizontal=True, vertical_alignment="center", key=f"saved_{index}"):
            st.page_link(
                PAGE, label=plain(name), query_params=parse_qs(saved_query), width="stretch"
            )
            if may_change:
                st.button(
                    "Remove",
                    key=f"forget_{index}",
                    help=f"Delete the view {plain(name)}",
                    type="tertiary",
                    on_click=attempt,
                    args=(bookmarks.remove, store(), name),
                )
    if may_change:
        with st.form("save_view", border=False, clear_on_submit=True):
            st.text_input("Save this view as", key="view_name", max_chars=bookmarks.NAME_LENGTH)
            st.form_submit_button("Save", icon=":material/bookmark_add:", on_click=_save)


def _save() -> None:
    attempt(bookmarks.save, store(), st.session_state["view_name"], query("case", "page"))


def _annotated(stored: PageSubject) -> None:
    """Links to the cases that people tagged or wrote about."""
    written = annotations.read(store(), stored.key)
    if written.damaged:
        damaged = plain("; ".join(written.damaged))
        st.warning(f"Damaged and left out: {damaged}.", icon=":material/warning:")
    if not written.current:
        quiet("None yet. Open a case to tag it or to write a note.")
        return
    n_cases = len(written.current)
    limit = f" Here: {LISTED}." if n_cases > LISTED else ""
    quiet(f"{n_cases:,} {'case' if n_cases == 1 else 'cases'}, latest first.{limit}")
    listed = written.current[:LISTED]
    numbers = tuple(sorted(annotation.case for annotation in listed))
    table = view(views.rows.questions, stored.question_set, numbers)
    texts = dict(zip(table["case"], table["texts"], strict=True))
    for annotation in listed:
        if annotation.case in texts:  # else the file names a case that was never asked
            _annotated_case(annotation, texts[annotation.case])


def _annotated_case(annotation: Annotation, texts: list[str]) -> None:
    text = texts[min(1, len(texts) - 1)]
    parameters = {
        name: st.query_params[name] for name in ("set", "model", "kind") if name in st.query_params
    }
    st.page_link(PAGE, label=plain(text), query_params=parameters | {"case": annotation.id})
    words = " · ".join(filter(None, [*annotation.tags, annotation.note]))
    st.html(tag("p", words, class_="vp-quiet vp-small"))
