"""Breakdown: which kinds of edit, rules or pictures are easy, and which are hard?"""

import streamlit as st

from vlprobe import charts, ui

ui.enter()
st.title("Breakdown")
st.markdown("One number for a model hides where it comes from. Here it is taken apart.")
asked = ui.questions()
columns = st.columns(2)
with columns[0]:
    metric = ui.metric(asked)
with columns[1]:
    by = ui.by(asked)
ui.explain(metric)
with st.container(horizontal=True):
    unit = ui.unit(asked, metric.name)
    averaging = ui.averaging(asked, metric)

table = ui.sliced(asked, metric, by, averaging, unit)
names = ui.slice_names(table)
figure = charts.dots(table, metric, unit, names, asked.looks)
ui.chart(figure, "dots", f"{metric.label} of each slice, a mark a model; the table has the numbers.")
ui.quiet(
    "Marks are means, arms are 95 % intervals from resampling pictures: long arms mean few pictures, and where arms "
    f"overlap the order may be chance. {ui.AGREED}"
)
ui.slices(table, metric, unit, names, asked.models, asked.looks, "Part")
ui.quiet("n = 0 and a dash: no case of this slice, so nothing is known. A tie counts as wrong.")
ui.notes(asked)
ui.about(ui.view("facts", asked.key))
ui.download(table, "breakdown")
