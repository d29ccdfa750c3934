"""Playground: what do the models make of a picture and a caption of one's own?"""

import streamlit as st

from vlprobe.dashboard import frame, playground

frame.enter()
st.title("Playground")
st.markdown(
    "Type a caption that is true of the picture. vlprobe rewords it and makes it wrong in every way it knows, and each "
    "model says how well the picture fits: live, while you type."
)
playground.playground()
