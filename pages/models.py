"""Models: what is each of them, and is it fit to be believed?"""

import streamlit as st

from vlprobe.dashboard import frame, models, state
from vlprobe.dashboard.lab import names

frame.enter()
st.title("Which models can be believed?", anchor=False)
st.markdown(
    "A number says something about a model only if the model was loaded as it was trained. Here is what each model is, "
    "and how it did in checks that every healthy model passes."
)
models.matrix()
names.draw_form()
found = models.examined()
models.verdict(found)
st.header("Checks")
models.checks(found)
st.header("Edits that never reach it")
state.quiet(
    "A tokenizer may undo an edit, such as a change of case, before the model sees it. Such edits are counted here and "
    "are no sign that the model is steady."
)
models.erased(found)
st.header("Passport")
models.passport(found)
