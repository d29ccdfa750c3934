"""Pairs: can a model tell two pictures apart that differ in one thing (EqBen)?"""

import streamlit as st

from vlprobe import ui

ui.enter()
st.title("Pairs")
asked = ui.begin("eqben")
table = ui.paper(asked)

st.header("Which differences are seen")
ui.subsets(asked)

st.header("Does the score change evenly")
st.markdown(
    "When picture and caption both change, the score should change by as much one way as the other. The deviation "
    "is how much it does not."
)
ui.deviations(asked, ui.unit(asked))
ui.notes(asked)
ui.about(ui.view("facts", asked.key))
ui.download(ui.view("remade", asked.key, table.number), "pairs")
