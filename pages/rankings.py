"""Rankings: do the same pictures come first when a query is reworded (PRSM)?"""

import streamlit as st

from vlprobe import ui

ui.enter()
st.title("Rankings")
asked = ui.begin("prsm")
table = ui.paper(asked)

st.header("Which rewordings move the ranking")
places = st.columns(2, gap="medium")
for place, name in zip(places, ("prsm_local_10", "prsm_local_100"), strict=True):
    with place:
        ui.by_subtype(asked, asked.metrics[name])
ui.quiet(
    "Share of the first pictures that two wordings of a query have in common. Arms are 95 % intervals; on the dotted "
    "line the pictures are drawn by lot from the gallery."
)
st.header("How deep do the rankings agree")
ui.depths(asked)
ui.notes(asked)
ui.about(ui.view("facts", asked.key))
ui.download(ui.view("remade", asked.key, table.number), "rankings")
