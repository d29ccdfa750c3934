"""Fields of the Run page for what an option of a probe or a setting of a run may be."""

from collections.abc import Iterable, Sequence

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from vlprobe import registry, views
from vlprobe.dashboard.state import view
from vlprobe.types.options import Option

COLUMNS = 3
WIDE_COLUMNS = 2  # of lists, which hold several values in a row


def draw(options: Sequence[Option], prefix: str, width: int = COLUMNS) -> dict[str, object]:
    """A field for each of these options, `width` in a row; what is in them by the options' names.

    Args:
        options: Of a probe, or of runs.
        prefix: Of the keys of the fields.
        width: Fields in a row.
    """
    return {
        option.name: _field(column, option, f"{prefix}_{option.name}")
        for start in range(0, len(options), width)
        for option, column in zip(
            options[start : start + width],
            st.columns(width, vertical_alignment="bottom"),
            strict=False,
        )
    }


def _field(column: DeltaGenerator, option: Option, key: str) -> object:
    """A field of the option's type; what is in it, as it was typed."""
    if option.type == "flag":
        return column.toggle(option.label, bool(option.default), key=key, help=option.help)
    if option.type == "number":
        return _number(column, option, key)
    choices = [str(choice) for choice in option.choices]
    if option.refers_to and not choices:
        choices = names(f"{option.refers_to}s")
    if option.type == "list":
        return _list(column, option, key, choices)
    if choices:
        selected = column.selectbox(
            option.label,
            choices,
            choices.index(str(option.default)) if option.default else None,
            key=key,
            help=option.help,
            accept_new_options=option.open,
            placeholder="None; or type a name",
        )
        return (selected or "").strip()
    return column.text_input(option.label, str(option.default), key=key, help=option.help).strip()


def _number(column: DeltaGenerator, option: Option, key: str) -> int:
    limits = [limit for limit in (option.minimum, option.off_value) if limit is not None]
    least = min(limits, default=None)
    number = column.number_input(
        option.label, least, option.maximum, int(str(option.default)), 1, key=key, help=option.help
    )
    return int(number)


def _list(column: DeltaGenerator, option: Option, key: str, choices: Sequence[str]) -> list[str]:
    """Entries in the order of the choices, those that were typed last: one
    selection, one name of its run.
    """
    selected = column.multiselect(
        option.label,
        choices,
        list(map(str, option.default)) if isinstance(option.default, tuple) else [],
        key=key,
        help=option.help,
        accept_new_options=option.open,
        placeholder="None; type a value and press Enter" if option.open else "None",
    )
    order = {choice: rank for rank, choice in enumerate(choices)}
    entries = [entry.strip() for entry in selected]
    return sorted(entries, key=lambda entry: order.get(entry, len(order)))


def names(folder: str) -> list[str]:
    """Names of `models` or `datasets` that can be chosen as they are, the demo's and
    those of earlier runs first.
    """
    if folder == "files":
        return []
    earlier: Iterable[str] = view(views.runs.runs)[folder.removesuffix("s")].tolist()
    complete = [name for name in registry.names(folder) if not registry.is_form(name)]
    return sorted(
        dict.fromkeys([*earlier, *complete]), key=lambda name: not name.startswith("demo")
    )
