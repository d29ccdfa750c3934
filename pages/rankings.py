"""Rankings: do the same pictures come first when a query is reworded (PRSM)?"""

import streamlit as st

from vlprobe import views
from vlprobe.dashboard import chart_panels, figures, frame, papers, state, tables

frame.enter()
st.title("Rankings")
asked = frame.begin("prsm")
table = papers.paper(asked)

st.header("Which rewordings move the ranking")
places = st.columns(2, gap="medium")
for place, name in zip(places, ("prsm_local_10", "prsm_local_100"), strict=True):
    with place:
        chart_panels.by_subtype(asked, asked.metrics[name])
state.quiet(
    "Share of the first pictures that two wordings of a query have in common. Arms are 95 % intervals; on the dotted "
    "line the pictures are drawn by lot from the gallery."
)
st.header("How deep do the rankings agree")
figures.depths(asked)
frame.notes(asked)
tables.about(state.view(views.runs.facts, asked.question_set))
frame.download(state.view(views.papers.remade, asked.question_set, table.number), "rankings")
