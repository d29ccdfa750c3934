"""Retrieval: how much of what a model finds is lost to captions and pictures that were altered (RoCOCO)."""

import streamlit as st

from vlprobe import ui

ui.enter()
st.title("Retrieval")
asked = ui.begin("rococo")
table = ui.paper(asked)

st.header("Which alterations do most harm")
kind = table.columns[0].metric.partition("_")[0]
places = st.columns(2, gap="medium")
for place, name in zip(places, ("drop_rate", "rsms"), strict=True):
    with place:
        ui.by_subtype(asked, asked.metrics[f"{kind}_{name}"])
ui.quiet(
    "Drop rate: the share of what was found first in the clean gallery that is no longer. Altered on top (RSMS): how "
    "often something altered comes first. Arms are 95 % intervals."
)
st.header("How strong must an alteration be")
ui.severity(asked)

st.header("Which words decide")
ui.word_influence(asked)

st.header("Which parts of a picture decide")
ui.occlusion(asked)
ui.notes(asked)
ui.about(ui.view("facts", asked.key))
ui.download(ui.view("remade", asked.key, table.number), "retrieval")
