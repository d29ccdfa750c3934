"""Pairs: can a model tell two pictures apart that differ in one thing (EqBen)?"""

import streamlit as st

from vlprobe import views
from vlprobe.dashboard import figures, frame, papers, state, tables

frame.enter()
st.title("Pairs")
asked = frame.begin("eqben")
table = papers.paper(asked)

st.header("Which differences are seen")
figures.subsets(asked)

st.header("Does the score change evenly")
st.markdown(
    "When picture and caption both change, the score should change by as much one way as the other. The deviation "
    "is how much it does not."
)
figures.deviations(asked, frame.unit(asked))
frame.notes(asked)
tables.about(state.view(views.runs.facts, asked.question_set))
frame.download(state.view(views.papers.remade, asked.question_set, table.number), "pairs")
