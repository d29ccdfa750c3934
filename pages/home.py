"""Overview: which models are steady when a caption is reworded, and alert when it is made wrong?"""

import streamlit as st

from vlprobe import views
from vlprobe.dashboard import export, frame, papers, state, tables, tradeoff
from vlprobe.render import words

frame.enter()
st.title("Overview")
frame.first_start()
asked = state.pick_question_set()
frame.sentence(asked)
with st.container(horizontal=True):
    unit = frame.unit(asked)
    averaging = frame.averaging(asked)
tradeoff.headline_figure(asked, averaging, unit)

st.header("The numbers")
table = state.view(views.estimates.estimates, asked.question_set, "all", averaging, unit)
leaders, chances = (
    state.view(views.leaders.leaders, asked.question_set, averaging, unit),
    state.view(views.papers.chances, asked.question_set),
)
tables.headline(table, asked.metrics, unit, asked.models, asked.looks, chances, leaders)
state.quiet(
    f"{frame.BOLD} Below each value its 95 % interval, from resampling pictures, and n, the number of pictures it "
    f"rests on. {words.AGREED} Tied: cases in which right and wrong score the same; rates count them as wrong."
)
frame.notes(asked)
tables.about(state.view(views.runs.facts, asked.question_set))
with st.container(horizontal=True):
    frame.download(table, "overview")
    export.report_button(asked)
if asked.probe == "lgip":
    st.header("Beside the paper")
    papers.paper(asked)
