"""Breakdown: which kinds of edit, rules or pictures are easy, and which are hard?"""

import streamlit as st

from vlprobe import views
from vlprobe.dashboard import chart_panels, frame, state, tables
from vlprobe.render import charts, words

frame.enter()
st.title("Breakdown")
st.markdown("One number for a model hides where it comes from. Here it is taken apart.")
asked = state.pick_question_set()
columns = st.columns(2)
with columns[0]:
    metric = frame.metric(asked)
with columns[1]:
    by = frame.by(asked)
tables.explain(metric)
with st.container(horizontal=True):
    unit = frame.unit(asked, metric.name)
    averaging = frame.averaging(asked, metric)

table = frame.sliced(asked, metric, by, averaging, unit)
names = frame.slice_names(table)
figure = charts.dots.dots(table, metric, unit, names, asked.looks)
chart_panels.chart(
    figure, "dots", f"{metric.label} of each slice, a mark a model; the table has the numbers."
)
state.quiet(
    "Marks are means, arms are 95 % intervals from resampling pictures: long arms mean few pictures, and where arms "
    f"overlap the order may be chance. {words.AGREED}"
)
tables.slices(table, metric, unit, names, asked.models, asked.looks, "Part")
state.quiet("n = 0 and a dash: no case of this slice, so nothing is known. A tie counts as wrong.")
frame.notes(asked)
tables.about(state.view(views.runs.facts, asked.question_set))
frame.download(table, "breakdown")
