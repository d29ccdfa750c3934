"""Pairs: can a model tell two pictures apart that differ in one thing (EqBen)?"""

import streamlit as st

from vlprobe.dashboard import frame
from vlprobe.dashboard.lab import figures, paper_page

frame.enter()
stored = paper_page.begin("eqben").questions

st.header("Which differences are seen")
figures.subsets(stored)

if figures.has_deviations(stored):
    figure_slot = st.container()
    with paper_page.how_it_is_measured():
        unit = frame.unit(stored)
    with figure_slot:
        figures.deviations(stored, unit)
paper_page.end(stored, "pairs")
