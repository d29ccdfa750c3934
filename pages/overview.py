"""Overview: which models are steady when a caption is reworded, and alert when it is made wrong?"""

import streamlit as st

from vlprobe import ui

ui.enter()
st.title("Overview")
ui.first_start()
asked = ui.questions()
ui.sentence(asked)
with st.container(horizontal=True):
    unit = ui.unit(asked)
    averaging = ui.averaging(asked)
ui.headline_figure(asked, averaging, unit)

st.header("The numbers")
table = ui.view("estimates", asked.key, "all", averaging, unit)
leaders, chances = ui.view("leaders", asked.key, averaging, unit), ui.view("chances", asked.key)
ui.headline(table, asked.metrics, unit, asked.models, asked.looks, chances, leaders)
ui.quiet(
    f"{ui.BOLD} Below each value its 95 % interval, from resampling pictures, and n, the number of pictures it rests "
    f"on. {ui.AGREED} Tied: cases in which right and wrong score the same; rates count them as wrong."
)
ui.notes(asked)
ui.about(ui.view("facts", asked.key))
with st.container(horizontal=True):
    ui.download(table, "overview")
    ui.report_button(asked)
if asked.probe == "lgip":
    st.header("Beside the paper")
    ui.paper(asked)
