"""Compare: which of two to four models is better at the same questions, at what, and is it more than chance?"""

import streamlit as st

from vlprobe import views
from vlprobe.dashboard import cards, compare, frame, state, tables

frame.enter()
st.title("Compare")
st.markdown(
    "Models that answered the same questions, side by side: each against a baseline, picture by picture, with how far "
    "apart they are and whether that may be chance."
)
asked = state.pick_question_set()
models = compare.compared(asked)
with st.container(horizontal=True):
    unit = frame.unit(asked)
    averaging = frame.averaging(asked)
table = state.view(views.compare.compare, asked.question_set, models, averaging, unit)
compare.in_words(asked, table, unit)

st.header("The numbers")
compare.differences(asked, table, unit)

st.header("Case by case")
chosen = compare.margins(asked, models)
cards.cards(asked, chosen)
frame.notes(asked)
tables.about(state.view(views.runs.facts, asked.question_set))
frame.download(table, "compare")
