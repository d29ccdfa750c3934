"""Overview: which models are steady when a caption is reworded, and alert when it is made wrong?"""

import streamlit as st

from vlprobe import ui

ui.enter()
st.title("Overview")
st.markdown(
    "A model that understands captions is **steady**: its score hardly moves when a caption is only reworded. "
    "And it is **alert**: its score falls when a word is made wrong. Here is every model on both counts."
)
ui.first_start()
asked = ui.questions()
with st.container(horizontal=True):
    unit = ui.unit()
    averaging = ui.averaging()
ui.trade_off(asked, averaging, unit)

st.header("The numbers")
table = ui.view("estimates", asked.key, "all", averaging, unit)
ui.headline(table, asked.metrics, unit, asked.models, asked.looks)
ui.quiet(
    "Bold: the best of these models. Below each value its 95 % interval, from resampling pictures, and n, the number "
    "of pictures it rests on. Rates count a tie as wrong."
)
ui.notes(asked)
ui.about(ui.view("facts", asked.key))
ui.download(table, "overview")
