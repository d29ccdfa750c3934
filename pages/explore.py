"""Failures: what does a model get wrong, and what does that look like?"""

import streamlit as st

from vlprobe import views
from vlprobe.dashboard import cards, export, filters, frame, state, tables

frame.enter()
st.title("Failures")
st.markdown(
    "Every case in which a model was asked to choose: the picture, the captions, and what each model said."
)
asked = state.pick_question_set()
export.shelf(asked)
chosen = filters.filters(asked)
cards.summary(asked, chosen)
cards.cards(asked, chosen)
frame.notes(asked)
tables.about(state.view(views.runs.facts, asked.question_set))
