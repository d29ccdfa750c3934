"""The Triplets page: does a model see which two of three captions mean the same (VISLA, SugarCrepe++)?"""

import streamlit as st

from vlprobe.dashboard import frame
from vlprobe.dashboard.lab import figures, papers

frame.enter()
stored = papers.begin("visla")

st.header("Meaning or wording")
figures.triplets(stored)
figures.lexical(stored)
figures.both_sides(stored)
st.header("Size and training data")
figures.accuracy_over_size(stored)
papers.end(stored, "triplets")
