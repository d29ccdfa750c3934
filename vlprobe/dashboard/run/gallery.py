"""The gallery on the Run page, which shows each kind of caption edit and picture change before and after.

The probes make the cases, so that the gallery omits the same kinds as a run would for the chosen picture.
"""

from collections.abc import Sequence
from itertools import islice
from pathlib import Path
from typing import cast

import htpy
import streamlit as st
from PIL import Image

from vlprobe import registry
from vlprobe.dashboard.state import quiet, store
from vlprobe.dashboard.widgets import error_text
from vlprobe.datasets import demo
from vlprobe.errors import VlprobeError
from vlprobe.perturb import lgip, picture_changes
from vlprobe.render.html.elements import column_heads, table
from vlprobe.render.words import value_label
from vlprobe.scoring.pictures import open_picture
from vlprobe.types import Case, Item, Picture
from vlprobe.views.changes import word_runs

SEED = 42  # the default of a run
SIDE = 224  # pixels of a picture in the gallery
N_SCENES = 8  # drawn scenes to choose from
TRIED = 20  # pictures, of which the one with the most kinds of edit in the run is shown first
MOST_ITEMS = 200  # maximum number of pictures to choose from
WIDTH = 152  # pixels on the page: two in a row on a phone
CAPTION_KINDS = (  # subtypes of LGIP's cases
    *("color", "number", "object", "negation", "relation", "attribute-swap", "word-order"),
    *("simple", "advanced", "case", "punctuation", "typo"),
)
NOT_IN_CAPTION = "not in this caption"
MEANINGS = {"same": "same meaning", "different": "wrong"}


@st.cache_resource(
    ttl=30, max_entries=3, show_spinner=False
)  # .2 s for 283 photographs, at each press
def pictured_items(dataset: str, root: str) -> tuple[int, int, list[Item]]:
    """Return the numbers of items with a picture and of pictures in a dataset, and the first items whose picture is
    on this machine.

    Raises NotFound, InvalidInput or OSError.
    """
    items = [item for item in registry.load_dataset(dataset, Path(root)).items if item.image]
    pictured = (item for item in items if item.image and not item.image.absent)
    n_pictures = len({item.image for item in items})
    return len(items), n_pictures, list(islice(pictured, MOST_ITEMS))


def first_items(dataset: str) -> list[Item]:
    """Return the first items of a dataset with a picture on this machine. Raises NotFound, InvalidInput or OSError."""
    if dataset in ("", demo.PREFIX):  # drawing all scenes takes half a minute
        return [item for item, _ in demo.draw_items("demo", store().root, N_SCENES)]
    return pictured_items(dataset, str(store().root))[-1]


def draw(dataset: str, changes_pictures: bool) -> None:
    """Draw the gallery for a dataset, or for the demo's drawn scenes if `dataset` is "". Picture changes are included
    if a chosen test makes them.
    """
    try:
        pictured = first_items(dataset)
        if not pictured:
            quiet("This dataset has no pictures on this machine.")
            return
        uses, tried = _chosen_kinds(), range(min(len(pictured), TRIED))
        first = max(tried, key=lambda number: len(uses & _edits(pictured[number]).keys()))
        _draw_gallery(pictured, first, changes_pictures)
    except (VlprobeError, OSError) as error:
        quiet(error_text(error))


@st.fragment
def _draw_gallery(items: Sequence[Item], first: int, changes_pictures: bool) -> None:
    number = st.selectbox(
        "Picture",
        range(len(items)),
        first,
        format_func=lambda number: f"{items[number].id}: {items[number].captions[0]}",
        key="gallery_picture",
    )
    item = items[min(number, len(items) - 1)]
    image = open_picture(cast(Picture, item.image))
    image.thumbnail((SIDE, SIDE))
    st.image(image, width=WIDTH, alt=item.captions[0])
    _draw_captions(item)
    if changes_pictures:
        label, severities = "Severity of picture changes", picture_changes.SEVERITIES
        severity = st.segmented_control(label, severities, default=3, key="gallery_severity") or 3
        _draw_pictures(item, image, severity)


def _chosen_kinds() -> set[str]:
    """Return the subtypes of LGIP's cases that a run with the form's options makes."""
    state, defaults = st.session_state, registry.load_probe("lgip").defaults
    kinds, types = (state.get(f"run_lgip_{name}", defaults[name]) for name in ("kinds", "flips"))
    of_kinds = {"flip": types, "paraphrase": ("simple", "advanced")}
    return {subtype for kind in kinds for subtype in of_kinds.get(kind, (kind,))}


def _edits(item: Item) -> dict[str, Case]:
    """Return the first case of each subtype that LGIP makes from an item."""
    probe = registry.load_probe("lgip")
    options = {**probe.defaults, "kinds": list(lgip.ALL_KINDS), "k_same": 50, "k_diff": 50}
    cases, _ = probe.cases(item, options, SEED)
    return {case.edit.subtype: case for case in reversed(cases) if case.edit.kind != "combined"}


def _draw_captions(item: Item) -> None:
    edited, uses = _edits(item), _chosen_kinds()
    rows = []
    for kind in sorted(CAPTION_KINDS, key=lambda kind: kind not in uses):
        case = edited.get(kind)
        before, after = case.texts[:2] if case else (NOT_IN_CAPTION, "")
        label = f"{value_label(kind)}: {MEANINGS[case.roles[1]]}" if case else value_label(kind)
        texts = [
            htpy.td(".vp-wrap")[
                (htpy.span(".vp-changed")[text] if differs else text for text, differs in runs)
            ]
            for runs in (word_runs(before, after, is_after) for is_after in (False, True))
        ]
        label += "" if kind in uses else " (not in this run)"
        rows.append(
            str(htpy.tr[htpy.td(".vp-wrap")[label], texts if case else htpy.td[NOT_IN_CAPTION]])
        )
    st.html(table("Caption edits", column_heads(("Caption edit", "Before", "After")), rows))


def _draw_pictures(item: Item, image: Image.Image, severity: int) -> None:
    """Draw an item's picture and its changes of one severity."""
    kinds = list(picture_changes.KINDS)
    probe = registry.load_probe("pictures")
    options = {"changes": kinds, "severities": [severity]}
    cases, _ = probe.cases(item, options, SEED)
    change_of = {case.edit.subtype: case.images[1].change for case in cases}
    shown = [("Before", image)]
    missing = []
    for kind in kinds:
        if change := change_of.get(kind):
            shown.append((value_label(kind), picture_changes.apply(image, change)))
        else:
            missing.append(value_label(kind))
    st.image([each for _, each in shown], [label for label, _ in shown], width=WIDTH)
    if missing:
        quiet(f"Not available for this picture and its captions: {', '.join(missing)}.")
