"""The Pairs page: can a model distinguish two pictures that differ in one thing (EqBen)?"""

import streamlit as st

from vlprobe import views
from vlprobe.dashboard import frame
from vlprobe.dashboard.lab import figures, papers
from vlprobe.dashboard.state import view

frame.enter()
stored = papers.begin("eqben")

st.header("Accuracy by type of difference")
figures.subsets(stored)

if not view(views.papers.deviations, stored.question_set, "cosine", "").empty:
    figure_slot = st.container()
    with papers.how_it_is_measured():
        unit = frame.unit(stored)
    with figure_slot:
        figures.deviations(stored, unit)
papers.end(stored, "pairs")
