"""The Series page: does a model find where a video changes, and does it rank pictures as people do (EqBen)?"""

import streamlit as st

from vlprobe.dashboard import frame, state
from vlprobe.dashboard.lab import figures, papers

frame.enter()
stored = papers.begin("series")

st.header("Accuracy of boundaries")
figures.boundaries(stored)

st.header("Agreement with human rankings")
names = ("order_agreement", "order_moved")
for column, name in zip(st.columns(2, gap="medium"), names, strict=True):
    with column:
        figures.by_subtype(stored, stored.metrics[name])
state.quiet(papers.OPENS)
figures.edited_orders(stored)
with papers.how_it_is_measured():
    state.quiet(
        "The predicted boundary is where the frames before and after it fit their captions best. "
        "If several places are equally good, the one farthest from the true boundary counts. "
        "Agreement is Spearman's rank correlation with the human order. The change after the "
        "edit is (1 - r) / 2, where r is the rank correlation of the model's orders before and "
        "after the edit. Lines are 95 % intervals."
    )
papers.end(stored, "series")
