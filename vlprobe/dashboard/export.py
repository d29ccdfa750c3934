"""Ways to keep what is on the page: a link, the cases as a file, the comparison as a report."""

import functools

import streamlit as st

from vlprobe.dashboard.state import Questions, address, quiet, store
from vlprobe.render.report import report
from vlprobe.render.report import selection as report_selection
from vlprobe.views.filter import Filter


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
