"""Models: what is each of them, and is it fit to be believed?"""

import streamlit as st

from vlprobe.dashboard import frame, state
from vlprobe.dashboard.lab import models

frame.enter()
st.title("Which models can be believed?", anchor=False)
st.markdown(
    "A number says something about a model only if the model was loaded as it was trained. Here is "
    "what each model is, and how it did in checks that every healthy model passes."
)
models.matrix()
models.draw_form()
check_rows = models.examined()
models.verdict(check_rows)
st.header("Checks")
models.checks(check_rows)
st.header("Edits that never reach it")
state.quiet(
    "A tokenizer may undo an edit, such as a change of case, before the model sees it. Such edits "
    "are counted here and are no sign that the model is steady."
)
models.erased(check_rows)
st.header("Passport")
models.passport(check_rows)
