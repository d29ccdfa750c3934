"""Messages on pages about stored data that cannot be read, and the way to repair it."""

import streamlit as st

from vlprobe import views
from vlprobe.dashboard.navigation import page_file
from vlprobe.dashboard.state import link_docs, quiet, view
from vlprobe.errors import StoredDamage, VlprobeError
from vlprobe.storage import access

PRESS = "In Lab, press 'Check stored results', then 'Compute again'."
UNREAD = 3  # lines above a page about what cannot be read


def left_out() -> None:
    """Draw, above a page, the stored data that cannot be read, one line per entry. The rest is shown."""
    try:
        errors = view(views.runs.unread)
    except VlprobeError:  # nothing is known of the stored data, and the page reports that itself
        return
    for error in errors[:UNREAD]:
        st.warning(link_docs(error_text(error)), icon=":material/warning:")
    if len(errors) > UNREAD:
        quiet(f"And {len(errors) - UNREAD:,} more. `vlprobe verify` lists all of them.")
    for error in [error for error in errors if isinstance(error, StoredDamage)][:1]:
        way_out(error)


def way_out(error: VlprobeError) -> None:
    """Below an error that says something stored is damaged: the way to the button."""
    if isinstance(error, StoredDamage) and not access.read_only():
        st.page_link(
            page_file("lab"),
            label="Check stored results and compute them again",
            icon=":material/fact_check:",
        )


def error_text(error: VlprobeError) -> str:
    """An error as a page says it: the button that mends what is stored, in place of the command."""
    if isinstance(error, StoredDamage) and error.remedy and not access.read_only():
        return f"{error.problem} {PRESS}"
    return str(error)
