"""Triplets: does a model see which two of three captions mean the same (VISLA, SugarCrepe++)?"""

import streamlit as st

from vlprobe import ui

ui.enter()
st.title("Triplets")
asked = ui.begin("visla")
table = ui.paper(asked)

st.header("Meaning or looks")
ui.triplets(asked)
ui.lexical(asked)
ui.notes(asked)
ui.about(ui.view("facts", asked.key))
ui.download(ui.view("remade", asked.key, table.number), "triplets")
