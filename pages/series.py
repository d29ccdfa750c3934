"""The Series page: does a model find where a video changes, and does it rank pictures as people do (EqBen)?"""

import streamlit as st

from vlprobe.dashboard import frame, state
from vlprobe.dashboard.lab import figures, papers

frame.enter()
stored = papers.begin("series").questions

st.header("How near is the change found")
figures.boundaries(stored)

st.header("Is the order that of people")
names = ("order_agreement", "order_moved")
for column, name in zip(st.columns(2, gap="medium"), names, strict=True):
    with column:
        figures.by_subtype(stored, stored.metrics[name])
state.quiet(papers.OPENS)
figures.edited_orders(stored)
with papers.how_it_is_measured():
    state.quiet(
        "A boundary is where the frame before it and the frame after it fit their captions best "
        "together; of several equally good places the farthest from the truth counts. Orders are "
        "compared by Spearman's rank correlation; moved is how far it is from 1, halved. Arms are "
        "95 % intervals."
    )
papers.end(stored, "series")
