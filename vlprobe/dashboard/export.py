"""Ways to keep what is on a page: a table as a file, the comparison as a report."""

import functools

import pandas as pd
import streamlit as st

from vlprobe.dashboard.state import PageSubject, store
from vlprobe.surfaces.report import report, selection


def report_button(stored: PageSubject) -> None:
    """The whole comparison as one file."""
    st.download_button(
        "Download as a report",
        functools.partial(report.report, store(), stored.question_set),
        f"vlprobe_{stored.probe}_{stored.key[:8]}.html",
        "text/html",
        icon=":material/description:",
        on_click="ignore",
        help="One web page with Home, Explore, Compare and the other pages of these results, all numbers, notes and "
        "commands. It works offline and sends no data.",
    )


def download(table: pd.DataFrame, name: str, label: str = "Download as CSV") -> None:
    """The table that is shown, as CSV."""
    st.download_button(
        label,
        table.map(selection.defused).to_csv(index=False),
        f"vlprobe_{name}.csv",
        "text/csv",
        icon=":material/download:",
    )
