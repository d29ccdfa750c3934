"""The Model checks page: the metadata of each model, and its results in checks with known answers."""

import streamlit as st

from vlprobe.dashboard import frame, state
from vlprobe.dashboard.lab import models

frame.enter()
st.title("Model checks", anchor=False)
st.markdown(
    "A model's numbers are meaningful only if it was loaded the way it was trained. This page shows each "
    "model's metadata, and its results in checks that every working model passes."
)
models.matrix()
models.draw_form()
check_rows = models.examined()
models.verdict(check_rows)
st.header("Checks")
models.checks(check_rows)
st.header("Edits that never reach the model")
state.quiet(
    "A tokenizer may undo an edit, such as a change of case, before the model sees it. Such edits "
    "are counted here; they do not show that the model is robust."
)
models.erased(check_rows)
st.header("Passport")
models.passport(check_rows)
