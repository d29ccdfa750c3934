"""The pictures of one case, as large as the drawer has room for and never cropped."""

import streamlit as st

from vlprobe.case import html
from vlprobe.case.card import CaseCard, Shot
from vlprobe.dashboard.pictures import large_picture
from vlprobe.render.attribution import credit_line
from vlprobe.render.html.elements import tag

SIDE = 1000  # pixels at most
DRAWN_SIDE = 448  # of a drawn scene: twice the size of its file


def draw_pictures(card: CaseCard) -> None:
    """The case's pictures side by side, each with the caption that is true of it as alternative text."""
    shots = card.pictures if card.has_large_pictures else []
    if not shots:
        return
    with st.container(key="case_pictures"):
        columns = st.columns(len(shots), gap="small") if len(shots) > 1 else [st.container()]
        for shot, column in zip(shots, columns, strict=True):
            label = f"{shot.label}{shot.detail}"
            with column, st.container(key=f"case_picture_{shot.style or 'plain'}{label}"):
                _draw_picture(shot)
                if label:
                    st.html(tag("p", label, class_="vp-quiet vp-small"))


def _draw_picture(shot: Shot) -> None:
    if source := large_picture(shot.name, SIDE, DRAWN_SIDE):
        st.image(source, width="stretch", alt=shot.alt)
    else:
        st.html(tag("div", html.missing(shot.name), class_="vp-missing"))
    if credit := credit_line(shot.name):
        st.html(str(credit))
