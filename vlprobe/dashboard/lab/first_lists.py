"""Repair: the first five pictures of a search before a fine-tuning and after it (EqBen, figure 9)."""

import streamlit as st

from vlprobe import views
from vlprobe.dashboard.state import model_name, page_subject, quiet, store, view
from vlprobe.render.html import strips
from vlprobe.scoring.thumbnails import addresses

SHOWN = 6  # captions


def draw(before: str, after: str) -> None:
    """Captions whose first five changed, each with both lists; nothing if unknown."""
    key = view(views.repair.repair_sets, (before, after)).get("rococo")
    if not key:
        return
    stored = page_subject(key).question_set
    lists = view(views.first_lists.first_lists, stored, before, after, SHOWN)
    with st.expander("The first five before and after", key="first_lists"):
        if not lists:
            quiet("No caption of the searches that were kept has another first five after it.")
            return
        picture_of = view(views.first_lists.pictures, stored)
        shown = {picture_of[item] for row in lists for item in (*row.before, *row.after)}
        source = addresses(store().root, shown)
        names = [model_name(model) for model in (before, after)]
        for row in lists:
            st.html(strips.before_and_after(row, picture_of, source, names))
        quiet(
            "Captions of the drawn or own gallery without altered pictures, those first whose own "
            "picture (solid frame) rose most; dashed: new in the list. Chosen among those that changed, "
            "so they say what a change looks like and not how many there are."
        )
