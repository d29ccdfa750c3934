"""Retrieval: how much of what a model finds is lost to captions and pictures
that were altered (RoCOCO).
"""

import streamlit as st

from vlprobe.dashboard import frame, state
from vlprobe.dashboard.lab import (
    altered_files,
    chart_panels,
    consensus,
    figures,
    influence,
    paper_page,
)

frame.enter()
opening = paper_page.begin("rococo")
stored = opening.questions

if f"{opening.kind}_drop_rate" not in stored.metrics:
    state.quiet("Nothing is altered in these galleries, so there is no harm to be measured.")
    paper_page.end(stored, "retrieval")
    st.stop()
st.header("Which alterations do most harm")
for column, name in zip(st.columns(2, gap="medium"), ("drop_rate", "rsms"), strict=True):
    with column:
        chart_panels.by_subtype(stored, stored.metrics[f"{opening.kind}_{name}"])
state.quiet(paper_page.OPENS)
with paper_page.how_it_is_measured():
    state.quiet(
        "Drop rate: the share of what was found first in the clean gallery that is no longer. "
        "Altered on top (RSMS): how often something altered comes first. Arms are 95 % intervals."
    )
st.header("How strong must an alteration be")
figures.severity(stored)

st.header("Which words decide")
influence.word_influence(stored)

st.header("Do models overlook the same words")
consensus.draw(stored)

st.header("Which parts of a picture decide")
influence.occlusion(stored)

st.header("Download the altered captions (RoCOCO format)")
altered_files.draw(stored)
paper_page.end(stored, "retrieval")
