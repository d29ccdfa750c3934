"""What every model answered to one case: verdict, texts and scores, for
the details of the drawer.
"""

import functools
from collections.abc import Mapping

import streamlit as st

from vlprobe.dashboard.pictures import changed_at
from vlprobe.dashboard.state import Questions
from vlprobe.errors import VlprobeError
from vlprobe.render.html import cards
from vlprobe.render.words import presentations
from vlprobe.types import Picture
from vlprobe.views.filter import Filter
from vlprobe.views.records import CaseRow

SIDE = 280  # pixels of the small pictures of a ranking, at most


def scores(
    row: CaseRow, answers: Mapping[str, Mapping], stored: Questions, case_filter: Filter
) -> str:
    """The case as HTML, the filter's models first.

    Args:
        row: The case.
        answers: Columns of the answers by model.
        stored: The question set.
        chosen: Names the model whose verdict it is, and the one that it is compared with.
    """
    compared = filter(None, (case_filter.model, case_filter.other))
    models = tuple(dict.fromkeys((*compared, *stored.models)))
    card = cards.card(
        row,
        presentations()[stored.probe],
        answers,
        models,
        stored.looks,
        functools.partial(_source, side=SIDE),
        everything=True,
        beside=bool(case_filter.other),
    )
    return f'<div class="vp-card">{card}</div>'


@st.cache_data(max_entries=400, show_spinner=False)
def _thumbnail(name: str, changed: int, side: int) -> bytes:
    """A JPEG of at most this many pixels a side; `changed`, the file's time, makes a
    new one of a changed file.
    """
    return cards.jpeg(name, side)


def _source(name: str, side: int) -> str:
    """A small picture as what an <img> shows; nothing where it cannot be read."""
    try:
        return cards.inline(_thumbnail(name, changed_at(Picture.from_name(name)), side))
    except VlprobeError:
        return ""
