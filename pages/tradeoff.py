"""Trade-off: which models are steady and alert at once, to which edits, and how strong must these be (LGIP)?"""

import streamlit as st

from vlprobe import views
from vlprobe.dashboard import frame, state, tables, tradeoff

frame.enter()
st.title("Trade-off")
asked = frame.begin("lgip")
with st.container(horizontal=True):
    unit = frame.unit(asked)
    averaging = frame.averaging(asked)
up, printed = tradeoff.trade_off(asked, averaging, unit)

st.header("By type of edit")
tradeoff.types(asked, up, averaging, unit, printed)

left, right = st.columns(2, gap="medium")
with left:
    st.header("Weak and strong flips")
    tradeoff.strength(asked, up, averaging, unit, printed)
with right:
    st.header("Simple and advanced rewordings")
    tradeoff.wordings(asked, averaging, unit, printed)
frame.notes(asked)
tables.about(state.view(views.runs.facts, asked.question_set))
frame.download(
    state.view(views.tradeoff.trade_off_by_type, asked.question_set, up, averaging, unit),
    "tradeoff",
)
