"""Home's line with both sets of bundled results: answers about photographs, and drawn scenes."""

import streamlit as st

from vlprobe import views
from vlprobe.dashboard.home.subject import Link
from vlprobe.dashboard.navigation import page_file
from vlprobe.dashboard.state import dataset_name, quiet, view
from vlprobe.datasets import bundled
from vlprobe.views.mixed.searches import KIND
from vlprobe.views.records import QuestionSetRow


def draw_sets() -> None:
    """Draw the line where both sets are shown: links to what each of them has."""
    rows: list[QuestionSetRow] = [row for row in view(views.runs.question_set_rows) if row.shipped]
    published = {
        dataset_name(row.dataset): Link("home", {"set": row.case_key})
        for row in rows
        if row.dataset.startswith(f"{bundled.PREFIX}:")
    }
    drawn = {row.probe: row.case_key for row in rows if row.dataset == "demo"}
    if not published or not {"lgip", "rococo"} <= drawn.keys():
        return
    scenes = {
        "Rewording": Link("home", {"set": drawn["lgip"]}),
        "Mixed pictures": Link("explore", {"set": drawn["rococo"], "kind": KIND}),
        "Trade-off by edits": Link("tradeoff", {"set": drawn["lgip"]}),
        "Playground": Link("play", {"game": "playground"}),
    }
    with st.container(horizontal=True, vertical_alignment="center", gap="small", key="home_sets"):
        for title, links in (("Photographs:", published), ("Drawn scenes:", scenes)):
            with st.container(width="content"):
                quiet(title)
            for label, link in links.items():
                st.page_link(
                    page_file(link.page), label=label, query_params=link.query, width="content"
                )
