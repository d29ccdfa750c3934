"""The Pairs page: can a model distinguish two pictures that differ in one thing (EqBen)?"""

import streamlit as st

from vlprobe.dashboard import frame
from vlprobe.dashboard.lab import figures, papers

frame.enter()
stored = papers.begin("eqben")

st.header("Accuracy by type of difference")
figures.subsets(stored)

if figures.has_deviations(stored):
    figure_slot = st.container()
    with papers.how_it_is_measured():
        unit = frame.unit(stored)
    with figure_slot:
        figures.deviations(stored, unit)
papers.end(stored, "pairs")
