"""Run: ask models a question, and watch."""

import streamlit as st

from vlprobe.dashboard import frame, jobs, verify
from vlprobe.dashboard.run import form

frame.enter()
frame.watched_job()
form.draw()
st.header("Earlier runs")
jobs.past()
verify.stored()
