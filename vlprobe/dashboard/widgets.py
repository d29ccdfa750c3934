"""Buttons, links, rows, expanders and error messages that all pages use."""

import contextlib
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import parse_qs

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from vlprobe import views
from vlprobe.dashboard.components import component
from vlprobe.dashboard.navigation import is_current, page_file
from vlprobe.dashboard.state import attempt, link_docs, quiet, view
from vlprobe.errors import StoredDamage, VlprobeError
from vlprobe.render.sentences import capitalized, counted
from vlprobe.storage import access

T = TypeVar("T")


def press(
    label: str, action: Callable[..., object], *arguments: object, icon: str = "", **settings: Any
) -> None:
    """Draw a button. If its action raises a VlprobeError, the page shows the error.

    Args:
        label: Label of the button.
        action: Function that is called with `arguments` after a click, before the page is drawn again.
        *arguments: Arguments for the action.
        icon: Name of a Material icon.
        **settings: Other settings for `st.button`.
    """
    icons = {"icon": f":material/{icon}:"} if icon else {}
    st.button(label, on_click=attempt, args=(action, *arguments), **icons, **settings)


def draw_toast() -> None:
    """Show the sentence that an action left in the session. A callback of a fragment may draw nothing itself."""
    if text := st.session_state.pop("toast", ""):
        st.toast(text, icon=":material/check:")


def link_page(
    page: str, label: str, query: Mapping[str, Any] | None = None, icon: str = "", **settings: Any
) -> None:
    """Draw a link to a page, with `query` as its URL parameters.

    A link to the page itself is a button, because `st.page_link` would leave the browser's URL as it was.
    """
    icons = {"icon": f":material/{icon}:"} if icon else {}
    if not is_current(page):
        st.page_link(page_file(page), label=label, query_params=query, **icons, **settings)
    elif st.button(label, type="tertiary", key=f"link {label} {query}", **icons, **settings):
        open_page(page, query or {})


def open_page(page: str, query: Mapping[str, Any]) -> None:
    """Switch to a page, with `query` as its URL parameters."""
    st.switch_page(page_file(page), query_params=query)


def follow_links() -> None:
    """Open links of the class `vp-go` in this page, without loading it again."""
    follow_link(component("links")(key="links"))


def follow_link(pressed: Mapping[str, Any], offered: Container[str] | None = None) -> None:
    """Open the page behind a link that a component reports as pressed, if it is one of the offered addresses."""
    address = str(pressed.get("go") or "")
    if address and (offered is None or address in offered):
        path, _, query = address.partition("?")
        open_page(path, parse_qs(query, keep_blank_values=True))


def draw_row(key: str | None = None, **settings: Any) -> DeltaGenerator:
    """Draw a container that places its elements side by side, vertically centered."""
    return st.container(horizontal=True, vertical_alignment="center", key=key, **settings)


def draw_styles(*names: str) -> None:
    """Add the style sheets NAME.css in this folder to the page."""
    for name in names:
        st.html(Path(__file__).with_name(f"{name}.css"))


BETWEEN = "|"  # separates names in the URL


def fold(
    name: str, label: str, icon: str, draw: Callable[[], T], parameters: Sequence[str] = ()
) -> T | None:
    """Draw an expander whose state is stored in the URL.

    Args:
        name: Name of the expander in the URL.
        label: Title of the expander.
        icon: Name of the Material icon before the title.
        draw: Function that draws the content. It is called, and its result returned, only while the expander is open.
        parameters: URL parameters that apply only inside the expander. A link with one of them opens the
        expander.
    """
    key = f"fold_{name}"
    if any(parameter in st.query_params for parameter in parameters):
        _set_open(name, True)
    st.session_state[key] = name in open_folds()
    icon = f":material/{icon}:"
    with st.expander(label, icon=icon, key=key, on_change=_toggle, args=(name, parameters)):
        return draw() if st.session_state[key] else None


def open_folds() -> list[str]:
    """Return the names of the expanders that are open according to the URL."""
    return [name for name in st.query_params.get("open", "").split(BETWEEN) if name]


def _toggle(name: str, parameters: Sequence[str]) -> None:
    is_open = bool(st.session_state[f"fold_{name}"])
    _set_open(name, is_open)
    if not is_open:
        for parameter in (*parameters, *(("page",) if parameters else ())):
            st.query_params.pop(parameter, None)


def _set_open(name: str, is_open: bool) -> None:
    names = [each for each in open_folds() if each != name] + [name] * is_open
    if names:
        st.query_params["open"] = BETWEEN.join(names)
    else:
        st.query_params.pop("open", None)


PRESS = "In Lab, press 'Check stored results', then 'Compute again'."
UNREAD = 3  # maximum number of warnings above a page


def left_out() -> None:
    """Draw a warning for each stored run that cannot be read. The page below shows the other runs."""
    try:
        errors = view(views.runs.unread)
    except VlprobeError:  # the stored data cannot be listed, and the page reports that itself
        return
    for error in errors[:UNREAD]:
        st.warning(link_docs(error_text(error)), icon=":material/warning:")
    if len(errors) > UNREAD:
        quiet(
            f"{capitalized(counted(len(errors) - UNREAD, 'more result'))} cannot be read. "
            "`vlprobe verify` lists all of them."
        )
    for error in [error for error in errors if isinstance(error, StoredDamage)][:1]:
        way_out(error)


def way_out(error: VlprobeError) -> None:
    """Draw a link to the repair button below an error about damaged results."""
    if isinstance(error, StoredDamage) and not access.read_only():
        st.page_link(
            page_file("lab"),
            label="Check stored results and compute them again",
            icon=":material/fact_check:",
        )


@contextlib.contextmanager
def show_errors() -> Iterator[None]:
    """Draw an error that occurs in the block or in the decorated function, and continue below it."""
    try:
        yield
    except VlprobeError as error:
        draw_error(error)


def draw_error(error: Exception) -> None:
    """Draw an error, with links to the documentation pages that it names."""
    st.error(link_docs(error_text(error)), icon=":material/error:")


def error_text(error: Exception) -> str:
    """Return the text of an error for a page. For damaged results, it names the repair button, not the command."""
    if isinstance(error, StoredDamage) and error.remedy and not access.read_only():
        return f"{error.problem} {PRESS}"
    return str(error)
