"""The altered captions of stored questions as a file in the layout in which RoCOCO was released."""

from functools import partial

import pyarrow.compute as pc
import streamlit as st

from vlprobe import views
from vlprobe.dashboard.state import PageSubject, choose, quiet, store, view
from vlprobe.probes import released_layout
from vlprobe.render.words import value_label
from vlprobe.types import Picture, Reader


def draw(stored: PageSubject) -> None:
    """A picker of the policy, or of one of its draws, and the press that makes the file."""
    choices = view(views.estimates.choices, stored.question_set)
    rules = list(dict.fromkeys(choices.loc[choices["kind"] == "i2t", "rule"]))
    if not rules:
        quiet("No caption is altered in these questions.")
        return
    with st.container(horizontal=True, vertical_alignment="bottom"):
        rule = choose(
            "Altered captions", "altered", {name: value_label(name) for name in rules}, rules[0]
        )
        st.download_button(
            "Download as released",
            partial(content, partial(store().cases(stored.key).blocks, "cases"), rule),
            f"{released_layout.file_names([rule])[rule]}.json",
            "application/json",
            icon=":material/download:",
            on_click="ignore",
            key="altered_file",
            help="A JSON list of `image` and `caption`: five or six captions of the picture, then five altered ones. "
            "`rococo:FILE@PICTURES` reads it, and so does what reads RoCOCO's own files.",
        )
    quiet(
        "Pictures with fewer than five captions, more than six, or one that could not be altered have no place in "
        "that layout and are left out. Mixed pictures are written by vlprobe perturb DATASET FOLDER --probe rococo."
    )


def content(cases: Reader, rule: str) -> bytes:
    """The file of one rule, made on a click."""
    names = {
        name
        for block in cases(["kind", "images"])
        for images in block.filter(pc.field("kind") == "i2t")["images"].to_pylist()
        for name in images
    }
    _, name_of = released_layout.image_names(map(Picture.from_name, sorted(names)))
    layouts = released_layout.layouts(cases, name_of, rule)
    return layouts.get(rule, released_layout.Layout()).encoded()
