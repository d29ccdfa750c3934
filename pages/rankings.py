"""The Rankings page: does a reworded query return the same pictures (PRSM)?"""

import streamlit as st

from vlprobe.dashboard import frame, state
from vlprobe.dashboard.lab import figures, papers

frame.enter()
stored = papers.begin("prsm")

st.header("Rewordings that change the ranking")
names = ("prsm_local_10", "prsm_local_100")
for column, name in zip(st.columns(2, gap="medium"), names, strict=True):
    with column:
        figures.by_subtype(stored, stored.metrics[name])
state.quiet(papers.OPENS)
with papers.how_it_is_measured():
    state.quiet(
        "Share of the top pictures that two wordings of a query have in common. Lines are 95 % "
        "intervals; the dotted line is the overlap expected for pictures drawn at random from "
        "the gallery."
    )
st.header("Each comparison")
figures.ten_rows(stored)
st.header("Agreement by depth")
figures.depths(stored)
papers.end(stored, "rankings")
