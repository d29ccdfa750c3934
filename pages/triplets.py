"""Triplets: does a model see which two of three captions mean the same (VISLA, SugarCrepe++)?"""

import streamlit as st

from vlprobe.dashboard import chart_panels, figures, frame
from vlprobe.dashboard.lab import paper_page

frame.enter()
asked = paper_page.begin("visla").questions

st.header("Meaning or looks")
chart_panels.triplets(asked)
figures.lexical(asked)
paper_page.end(asked, "triplets")
