"""Triplets: does a model see which two of three captions mean the same (VISLA, SugarCrepe++)?"""

import streamlit as st

from vlprobe.dashboard import frame
from vlprobe.dashboard.lab import chart_panels, figures, paper_page

frame.enter()
stored = paper_page.begin("visla").questions

st.header("Meaning or looks")
chart_panels.triplets(stored)
figures.lexical(stored)
paper_page.end(stored, "triplets")
