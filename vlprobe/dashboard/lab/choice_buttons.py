"""A row of buttons, one per verdict, each with its key."""

from collections.abc import Callable, Mapping
from typing import TypeVar

import streamlit as st

from vlprobe.dashboard.state import attempt

Choice = TypeVar("Choice", bound=str)


def draw_choices(
    prefix: str,
    choices: Mapping[Choice, tuple[str, str, str]],
    current: str,
    choose: Callable[[Choice], None],
) -> None:
    """Draw the buttons side by side; the current choice stands out.

    Args:
        prefix: What the buttons' keys begin with.
        choices: The label, the key and the icon of each choice.
        current: The choice that was made, "" without one.
        choose: Called with the choice of the pressed button; its errors are shown on the page.
    """
    with st.container(horizontal=True, key=f"{prefix}_buttons"):
        for choice, (label, key, icon) in choices.items():
            st.button(
                label,
                icon=icon,
                key=f"{prefix}_{choice}",
                shortcut=key,
                type="primary" if choice == current else "secondary",
                on_click=attempt,
                args=(choose, choice),
            )
