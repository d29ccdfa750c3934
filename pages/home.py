"""The Home page: one failure, and how often models are fooled."""

import streamlit as st

from vlprobe.dashboard import frame, home, navigation

frame.enter()
if st.query_params.keys() & {*navigation.OVERVIEW_PARAMETERS}:
    navigation.lead_on("overview")
home.draw_page()
