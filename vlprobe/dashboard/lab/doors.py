"""The first page of Lab: a door to each of the pages below it, and where results are stored."""

import streamlit as st

from vlprobe import __version__
from vlprobe.dashboard.navigation import BELOW, page_file
from vlprobe.dashboard.state import quiet, store

DOORS = {  # page: the question it answers, its icon
    "models": (
        "Model metadata, and checks with known answers.",
        ":material/health_and_safety:",
    ),
    "breakdown": (
        "Every number by kind of edit, rule, strength and tag.",
        ":material/bar_chart:",
    ),
    "repair": (
        "Models before and after training on pairs, wrong words and mixed pictures.",
        ":material/build:",
    ),
    "retrieval": (
        "How often a search returns a decoy first, in the format of RoCOCO's tables.",
        ":material/search:",
    ),
    "pairs": (
        "Text, image and group score of two pictures with one difference, in EqBen's format.",
        ":material/compare:",
    ),
    "triplets": (
        "Two captions that mean the same and one that does not, in VISLA's format.",
        ":material/change_history:",
    ),
    "rankings": (
        "How stable a search is when it is reworded, in PRSM's format.",
        ":material/format_list_numbered:",
    ),
    "series": (
        "Where a video changes (EqBen, table 12), and whether models rank pictures as people do.",
        ":material/view_column:",
    ),
    "published": (
        "Every number in the five papers next to yours, with remarks on doubtful ones.",
        ":material/menu_book:",
    ),
    "suspects": (
        "Cases that every strong model rejects: hard, or mislabeled? Judge them with one key.",
        ":material/flag:",
    ),
    "docs": (
        "Guides, and the formula and a worked example of every number.",
        ":material/description:",
    ),
}


def draw() -> None:
    """The doors, and the version and place of what is shown."""
    st.title("Lab")
    st.markdown("In depth: model checks, breakdowns, fine-tuning, paper tables.")
    grid = st.grid(min_column_width=300, border=True, gap="small", key="doors")
    for page, name in BELOW.items():
        answer, icon = DOORS[page]
        with grid.cell():
            st.page_link(page_file(page), label=f"**{name}**", icon=icon)
            quiet(answer)
    quiet(f"vlprobe {__version__} · results in {store().address}")
