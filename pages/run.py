"""Run: ask models a probe's questions, and watch."""

import streamlit as st

from vlprobe.dashboard import form, frame, jobs, verify

frame.enter()
st.title("Run")
st.markdown(
    "Choose models and pictures with captions. The captions are edited, each model scores the original and the edit "
    "against the picture, and the other pages show where it is fooled. A run goes on when you close this page; what is "
    "finished is kept, and is never computed twice."
)
frame.watched_job()
form.form()
st.header("Earlier jobs")
jobs.past()
verify.stored()
