"""The Retrieval page: how many correct search results are lost to altered captions and pictures (RoCOCO)?"""

import streamlit as st

from vlprobe.dashboard import frame, state
from vlprobe.dashboard.lab import figures, influence, papers

frame.enter()
stored = papers.begin("rococo")

if f"{stored.kind}_drop_rate" not in stored.metrics:
    state.quiet("Nothing is altered in these galleries, so no drop can be measured.")
    papers.end(stored, "retrieval")
    st.stop()
st.header("Most harmful alterations")
for column, name in zip(st.columns(2, gap="medium"), ("drop_rate", "rsms"), strict=True):
    with column:
        figures.by_subtype(stored, stored.metrics[f"{stored.kind}_{name}"])
state.quiet(papers.OPENS)
with papers.how_it_is_measured():
    state.quiet(
        "Drop rate: the share of correct first results that are lost once decoys are added. "
        "Altered on top (RSMS): how often a decoy ranks first. Lines are 95 % intervals."
    )
st.header("Effect of strength")
figures.severity(stored)

st.header("Influence of words")
influence.word_influence(stored)

st.header("Words that several models overlook")
influence.word_votes(stored)

st.header("Influence of picture parts")
influence.occlusion(stored)

st.header("Download the altered captions (RoCOCO format)")
papers.draw_altered_file(stored)
papers.end(stored, "retrieval")
