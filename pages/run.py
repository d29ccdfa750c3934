"""The Run page: test models and follow the progress of runs."""

import streamlit as st

from vlprobe.dashboard import frame, jobs
from vlprobe.dashboard.run import form, progress

frame.enter()
jobs.find_again()
frame.watched_job(besides=st.session_state.get(progress.OPENED, ""))
form.draw()
st.header("Earlier runs")
progress.past()
