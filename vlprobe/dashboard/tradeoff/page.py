"""Trade-off, top to bottom: the sentence, the finding, the picture with the worst mistake next to it, the folds."""

from pathlib import Path

import streamlit as st

from vlprobe.dashboard import frame
from vlprobe.dashboard.tradeoff import measured, picture, sentence

STYLE = Path(__file__).with_name("style.css")


def draw_page() -> None:
    """The whole page."""
    st.html(STYLE)
    about = sentence.subject()
    with st.container(horizontal=True, vertical_alignment="center", gap="small", key="sentence"):
        sentence.draw_sentence(about)
        st.space("stretch")
        how = measured.draw_measured(about)
        measured.draw_share(about, how)
    finding = picture.draw_finding(about, how)
    frame.say_strangers(about, about.models)
    picture.draw_picture(about, how, finding.best)
    measured.draw_folds(about, how)
