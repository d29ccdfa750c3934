"""Compare: which of two to four models is better at the same questions, at what, and is it more than chance?"""

import streamlit as st

from vlprobe import ui

ui.enter()
st.title("Compare")
st.markdown(
    "Models that answered the same questions, side by side: each against a baseline, picture by picture, with how far "
    "apart they are and whether that may be chance."
)
asked = ui.questions()
models = ui.compared(asked)
with st.container(horizontal=True):
    unit = ui.unit(asked)
    averaging = ui.averaging(asked)
table = ui.view("compare", asked.key, models, averaging, unit)
ui.in_words(asked, table, unit)

st.header("The numbers")
ui.differences(asked, table, unit)

st.header("Case by case")
chosen = ui.margins(asked, models)
ui.cards(asked, chosen)
ui.notes(asked)
ui.about(ui.view("facts", asked.key))
ui.download(table, "compare")
