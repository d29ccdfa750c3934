"""Retrieval: how much of what a model finds is lost to captions and pictures that were altered (RoCOCO)."""

import streamlit as st

from vlprobe import views
from vlprobe.dashboard import chart_panels, figures, frame, influence, papers, state, tables

frame.enter()
st.title("Retrieval")
asked = frame.begin("rococo")
table = papers.paper(asked)

st.header("Which alterations do most harm")
kind = table.columns[0].metric.partition("_")[0]
places = st.columns(2, gap="medium")
for place, name in zip(places, ("drop_rate", "rsms"), strict=True):
    with place:
        chart_panels.by_subtype(asked, asked.metrics[f"{kind}_{name}"])
state.quiet(
    "Drop rate: the share of what was found first in the clean gallery that is no longer. Altered on top (RSMS): how "
    "often something altered comes first. Arms are 95 % intervals."
)
st.header("How strong must an alteration be")
figures.severity(asked)

st.header("Which words decide")
influence.word_influence(asked)

st.header("Which parts of a picture decide")
influence.occlusion(asked)
frame.notes(asked)
tables.about(state.view(views.runs.facts, asked.question_set))
frame.download(state.view(views.papers.remade, asked.question_set, table.number), "retrieval")
