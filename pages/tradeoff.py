"""Trade-off: which models are steady and alert at once, to which edits, and how strong must these be (LGIP)?"""

import streamlit as st

from vlprobe import ui

ui.enter()
st.title("Trade-off")
asked = ui.begin("lgip")
with st.container(horizontal=True):
    unit = ui.unit(asked)
    averaging = ui.averaging(asked)
up, printed = ui.trade_off(asked, averaging, unit)

st.header("By type of edit")
ui.types(asked, up, averaging, unit, printed)

left, right = st.columns(2, gap="medium")
with left:
    st.header("Weak and strong flips")
    ui.strength(asked, up, averaging, unit, printed)
with right:
    st.header("Simple and advanced rewordings")
    ui.wordings(asked, averaging, unit, printed)
ui.notes(asked)
ui.about(ui.view("facts", asked.key))
ui.download(ui.view("trade_off_by_type", asked.key, up, averaging, unit), "tradeoff")
