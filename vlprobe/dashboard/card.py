"""One case as people look at it: the picture, both captions with the changed words marked, and what each model said.

Captions are data: they are escaped and never go through Markdown. Pictures are only those that the store names.
"""

import functools
from collections.abc import Mapping

import streamlit as st

from vlprobe.dashboard.state import Questions
from vlprobe.errors import VlprobeError
from vlprobe.render.html import cards, cases
from vlprobe.render.html.cases import Shot
from vlprobe.render.html.elements import tag
from vlprobe.render.words import presentations
from vlprobe.storage.annotations import Annotation
from vlprobe.types import Picture
from vlprobe.types.presentation import KindPresentation
from vlprobe.views.filter import Filter

SHOWN = 5  # models on a card where nobody chose two


def shown(asked: Questions, chosen: Filter, everything: bool = False) -> tuple[str, ...]:
    """The models on a card: those that are compared, or a few; or all of them."""
    first = [chosen.model, chosen.other] if chosen.other else [chosen.model]
    names = (*first, *(name for name in asked.models if name not in first))
    return names if everything else names[: 2 if chosen.other else SHOWN]


def card(
    row: object,
    said: Mapping[str, Mapping],
    asked: Questions,
    chosen: Filter,
    everything: bool = False,
) -> str:
    """Verdict, texts and scores of one case as HTML, of the models that are `shown`."""
    names = shown(asked, chosen, everything)
    source = functools.partial(_source, side=280 if everything else 112)
    parts = [
        cards.card(
            row,
            presentations()[asked.probe],
            said,
            names,
            asked.looks,
            source,
            everything,
            beside=bool(chosen.other),
        )
    ]
    if len(names) < len(asked.models) and not chosen.other:
        parts.append(
            tag(
                "p",
                f"{len(asked.models) - len(names)} more models in the details.",
                class_="vp-quiet",
            )
        )
    return f'<div class="vp-card">{"".join(parts)}</div>'


def chips(said: Annotation | None) -> str:
    """What people said of a case, as HTML; nothing where nobody did."""
    return cards.chips(said.tags, said.note) if said else ""


def case_pictures(row: object, kind: KindPresentation, mine: Mapping, side: int) -> None:
    """The case's pictures, or a line that says why one cannot be shown."""
    found = cases.shots(row, kind, mine)
    places = st.columns(len(found), gap="small") if len(found) > 1 else [st]
    for shot, place in zip(found, places, strict=len(found) > 0):
        if shot.label:
            css = "vp-label vp-wrong" if shot.wrong else "vp-label"
            place.html(
                tag(
                    "p",
                    shot.label,
                    class_=css if kind.body == "picture_search" else f"{css} vp-one",
                )
            )
        _picture(place, shot, row, side)


def _picture(place: object, shot: Shot, row: object, side: int) -> None:
    picture = Picture.from_name(shot.name)
    try:
        data = _thumbnail(shot.name, changed(picture), side)
    except VlprobeError:
        place.html(tag("div", cards.missing(shot.name), class_="vp-missing"))
        return
    frame = place.container(key=f"wrong_{side}_{row.case}") if shot.wrong else place
    frame.image(data, width="stretch", alt=shot.label or row.texts[0])


def changed(picture: Picture) -> int:
    """When the picture's file was last written, so that what is remembered of it can be told from what it is now."""
    return picture.path.stat().st_mtime_ns if picture.path.exists() else 0


@st.cache_data(max_entries=400, show_spinner=False)
def _thumbnail(name: str, changed: int, side: int) -> bytes:
    """A JPEG of at most this many pixels a side; `changed`, the file's time, makes a new one of a changed file."""
    return cards.jpeg(name, side)


def _source(name: str, side: int) -> str:
    """A small picture as what an <img> shows; nothing where it cannot be read."""
    try:
        return cards.inline(_thumbnail(name, changed(Picture.from_name(name)), side))
    except VlprobeError:
        return ""
