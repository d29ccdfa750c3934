"""Triplets: does a model see which two of three captions mean the same (VISLA, SugarCrepe++)?"""

import streamlit as st

from vlprobe import views
from vlprobe.dashboard import chart_panels, figures, frame, papers, state, tables

frame.enter()
st.title("Triplets")
asked = frame.begin("visla")
table = papers.paper(asked)

st.header("Meaning or looks")
chart_panels.triplets(asked)
figures.lexical(asked)
frame.notes(asked)
tables.about(state.view(views.runs.facts, asked.question_set))
frame.download(state.view(views.papers.remade, asked.question_set, table.number), "triplets")
