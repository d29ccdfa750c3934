"""Models: what is each of them, and is it fit to be believed?"""

import streamlit as st

from vlprobe import ui

ui.enter()
st.title("Models")
st.markdown(
    "A number says something about a model only if the model was loaded as it was trained. Here is what each model is, "
    "and how it did in checks that every healthy model passes."
)
found = ui.examined()
ui.verdict(found)
st.header("Checks")
ui.checks(found)
st.header("Edits that never reach it")
ui.quiet(
    "A tokenizer may undo an edit, such as a change of case, before the model sees it. Such edits are counted here and "
    "are no sign that the model is steady."
)
ui.erased(found)
st.header("Passport")
ui.passport(found)
