"""Failures: what does a model get wrong, and what does that look like?"""

import streamlit as st

from vlprobe import ui

ui.enter()
st.title("Failures")
st.markdown("Every case in which a model was asked to choose: the picture, the captions, and what each model said.")
asked = ui.questions()
ui.shelf(asked)
chosen = ui.filters(asked)
ui.summary(asked, chosen)
ui.cards(asked, chosen)
ui.notes(asked)
ui.about(ui.view("facts", asked.key))
