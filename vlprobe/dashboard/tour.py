"""The first visit: three steps in words, each with the page where it is done."""

import streamlit as st

from vlprobe.dashboard.navigation import page_file

STEPS = (
    (
        "1 · Ask",
        "A run takes pictures with captions. Each caption is reworded, and made wrong in one word. Every model then "
        "says how well each text fits the picture. Begin with the demo, or choose models and pictures of your own.",
        "run",
        "Run",
        ":material/play_circle:",
    ),
    (
        "2 · Look",
        "Failures are the cases in which a wrong text fits a model as well as the true one, or better: the picture, "
        "both texts, the difference marked. Open one, and go through them with the arrow keys.",
        "failures",
        "Failures",
        ":material/image_search:",
    ),
    (
        "3 · Compare",
        "Compare sets models side by side on the same cases. Every number has an interval that says how far chance "
        "could have moved it; where it says tied, the difference may be chance alone.",
        "compare",
        "Compare",
        ":material/compare_arrows:",
    ),
)


def tour(open_: bool = False) -> None:
    """The three steps, unfolded where nothing has been run yet."""
    with st.expander(
        "New here? Three steps", expanded=open_, icon=":material/explore:", key="tour"
    ):
        for place, (title, text, page, label, icon) in zip(
            st.columns(3, gap="medium"), STEPS, strict=True
        ):
            with place:
                st.markdown(f"**{title}**")
                st.markdown(text)
                st.page_link(page_file(page), label=label, icon=icon)
        st.page_link(
            "pages/play.py",
            label="Or type a caption and watch: the Playground",
            icon=":material/draw:",
        )
