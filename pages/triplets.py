"""Triplets: does a model see which two of three captions mean the same (VISLA, SugarCrepe++)?"""

import streamlit as st

from vlprobe.dashboard import frame
from vlprobe.dashboard.lab import chart_panels, crossed, figures, paper_page, sizes

frame.enter()
begun = paper_page.begin("visla")
stored = begun.questions

st.header("Meaning or looks")
chart_panels.triplets(stored)
figures.lexical(stored, begun.model)
crossed.both_sides(stored)
st.header("Size and training data")
sizes.accuracy_over_size(stored)
paper_page.end(stored, "triplets")
