"""Fields of the Run page for what an option of a probe or a setting of a run may be.

They are in folds and are drawn while theirs is open. Values set in them, and in the three steps, are kept when a fold
is closed and when the page is left.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, TypeVar

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from vlprobe import registry, views
from vlprobe.dashboard.folds import fold
from vlprobe.dashboard.state import view
from vlprobe.types.options import Option

COLUMNS = 3
WIDE_COLUMNS = 2  # of lists, which hold several values in a row
WIDE = ("choice", "list")  # types of option
Value = TypeVar("Value")
KEPT = "run_fields"  # in the session: the value of each field when it was last drawn, by its key


def draw_fold(
    name: str, label: str, groups: Sequence[Sequence[Option]], prefix: str
) -> dict[str, object]:
    """A fold with a field for each option.

    Args:
        name: Name of the fold, in the URL.
        label: Its title; it shows the number of values that are not the defaults.
        groups: Options of a probe, or of runs; each group begins a new row.
        prefix: Prefix of the keys of the fields.

    Returns:
        The values of the fields by the options' names. Fields that were never opened are left out: they have their
        defaults.
    """
    options = [option for group in groups for option in group]
    values = _kept(options, prefix)
    n_changed = sum(
        _typed(option, values[option.name]) != _typed(option, _default(option))
        for option in options
        if option.name in values
    )
    changes = f" · {n_changed} changed" if n_changed else ""
    with fold(name, label + changes, ":material/tune:") as is_open:
        if is_open:
            for group in groups:
                _draw(group, prefix)
            values = _kept(options, prefix)
    return {
        option.name: _typed(option, values[option.name])
        for option in options
        if option.name in values
    }


def _kept(options: Sequence[Option], prefix: str) -> dict[str, Any]:
    """Return the values of these options' fields, current or when they were last drawn, by the options' names."""
    state, values = st.session_state, st.session_state.get(KEPT, {})
    keys = {option.name: f"{prefix}_{option.name}" for option in options}
    return {
        name: state[key] if key in state else values[key]
        for name, key in keys.items()
        if key in state or key in values
    }


def _draw(options: Sequence[Option], prefix: str) -> None:
    """A field for each option, several in a row; keeps what is in them."""
    width = WIDE_COLUMNS if all(option.type in WIDE for option in options) else COLUMNS
    for start in range(0, len(options), width):
        columns = st.columns(width, vertical_alignment="bottom")
        for option, column in zip(options[start : start + width], columns, strict=False):
            key = f"{prefix}_{option.name}"
            keep(key, _default(option), partial(_field, column, option, key))


def keep(
    key: str, default: Value, draw: Callable[[], Value], choices: Sequence[Value] = ()
) -> Value:
    """Draw the field with this key. It begins with what it held last, on an earlier visit of the page too.

    Args:
        key: Key of the field.
        default: Its first value.
        draw: Draws it, and returns what is in it.
        choices: Of which it can hold one; empty: anything.
    """
    values = st.session_state.setdefault(KEPT, {})
    if key not in st.session_state:
        st.session_state[key] = values.get(key, default)
    if choices and st.session_state[key] not in choices:
        st.session_state[key] = default
    values[key] = draw()
    return values[key]


def _field(column: DeltaGenerator, option: Option, key: str) -> object:
    """A field of the option's type, which begins with the session's value; return its value."""
    if option.type == "flag":
        return column.toggle(option.label, key=key, help=option.help)
    if option.type == "number":
        limits = [limit for limit in (option.minimum, option.off_value) if limit is not None]
        least = min(limits, default=None)
        return column.number_input(
            option.label, least, option.maximum, step=1, key=key, help=option.help
        )
    choices = _choices(option)
    if option.type == "list":
        return column.multiselect(
            option.label,
            choices,
            key=key,
            help=option.help,
            accept_new_options=option.open,
            placeholder="None; type a value and press Enter" if option.open else "None",
        )
    if choices:
        return column.selectbox(
            option.label,
            choices,
            key=key,
            help=option.help,
            accept_new_options=option.open,
            placeholder="None; or type a name",
        )
    return column.text_input(option.label, key=key, help=option.help)


def _choices(option: Option) -> list[str]:
    """Return the choices of a field: all that the option allows, or else known names."""
    if option.refers_to and not option.choices:
        return names(f"{option.refers_to}s")
    return [str(choice) for choice in option.choices]


def _default(option: Option) -> object:
    """The default, as a field holds it."""
    if isinstance(option.default, tuple):
        return [str(entry) for entry in option.default]
    if option.type in ("flag", "number"):
        return option.default
    return str(option.default) or (None if _choices(option) else "")


def _typed(option: Option, value: Any) -> object:
    """Return the value of a field, in the form that `parse_options` takes. Entries of a list are in the order of the
    choices, those that were typed last: one selection, one name of its run.
    """
    if option.type in ("flag", "number"):
        return value
    if option.type != "list":
        return (value or "").strip()
    order = {choice: rank for rank, choice in enumerate(_choices(option))}
    entries = [entry.strip() for entry in value]
    return sorted(entries, key=lambda entry: order.get(entry, len(order)))


def names(folder: str) -> list[str]:
    """Names of `models` or `datasets` that can be chosen unchanged, the demo's and
    those of earlier runs first.
    """
    if folder == "files":
        return []
    earlier = view(views.runs.runs)[folder.removesuffix("s")].tolist()
    complete = [name for name in registry.names(folder) if not registry.is_form(name)]
    return sorted(
        dict.fromkeys([*earlier, *complete]), key=lambda name: not name.startswith("demo")
    )
