"""Folds whose contents are made only while they are open; the URL names those that are (`open`)."""

import contextlib
from collections.abc import Iterator, Sequence

import streamlit as st

BETWEEN = "|"  # names in the URL


@contextlib.contextmanager
def fold(name: str, label: str, icon: str, parameters: Sequence[str] = ()) -> Iterator[bool]:
    """A fold; gives whether it is open.

    Args:
        name: In the URL.
        label: Its title.
        icon: Before the title.
        parameters: Parameters of the URL, that apply only inside of this fold: a link that names one
            opens it.
    """
    key = f"fold_{name}"
    if any(parameter in st.query_params for parameter in parameters):
        _set_open(name, True)
    st.session_state[key] = name in open_folds()
    with st.expander(label, icon=icon, key=key, on_change=_toggle, args=(name, parameters)):
        yield st.session_state[key]


def open_folds() -> list[str]:
    """Names of the folds that the URL says are open."""
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
