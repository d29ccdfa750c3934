"""Cases as people look at them: the picture, both captions with the changed words marked, and what each model said.

Captions are data: they are escaped and never go through Markdown. Pictures are only those that the store names.
"""

import functools
from urllib.parse import urlencode

import pandas as pd
import streamlit as st

from vlprobe import markup_cards, markup_cases
from vlprobe.errors import VlprobeError
from vlprobe.markup import tag
from vlprobe.markup_cases import Shot
from vlprobe.types import Picture
from vlprobe.ui_filters import sorting
from vlprobe.ui_state import Questions, plain, quiet, turn, view
from vlprobe.views import Filter

SIZE = 12  # cards on a page
WIDE = 340  # of cards with several pictures; pixels


def cards(asked: Questions, chosen: Filter) -> None:
    """One page of cards, how many there are in all, the order, the link to this view, and the details of one."""
    bar = st.columns([3, 2, 1], vertical_alignment="bottom")
    with bar[1]:
        sorting(chosen.kind)
    total = view("outcomes", asked.key, chosen)[chosen.outcome]
    with bar[0]:
        page = turn(total, SIZE)
    with bar[2], st.popover("Link", icon=":material/link:", width="stretch"):
        quiet("Opens exactly this view, wherever this dashboard runs on the same results.")
        st.code(f"{st.context.url or ''}?{urlencode(st.query_params.to_dict())}", language=None, wrap_lines=True)
    table, _ = view("failures", asked.key, chosen, page, SIZE)
    if table.empty:
        st.info("No case passes these filters. Widen them, or choose another outcome.", icon=":material/search_off:")
        return
    said = view("answers", asked.key, tuple(int(case) for case in table["case"]))
    rows = list(table.itertuples())
    if chosen.kind in markup_cards.LEGENDS:
        quiet(markup_cards.LEGENDS[chosen.kind])
    grid = st.grid(
        min_column_width=WIDE if chosen.kind in ("pair", "t2i", "ranking") else 245,
        border=True,
        gap="small",
        key="cards",
    )
    for row in rows:
        with grid.cell():
            own = said[said["case"] == row.case]
            _pictures(row, _mine(own, chosen.model), 480)
            st.html(_card(row, own, asked, chosen.model))
            st.button("Details", key=f"open_{row.case}", on_click=_open, args=(row.id,), width="stretch")
    if st.query_params.get("case", "") in set(table["id"]):
        _details(rows, said, asked, chosen)


def _open(case_id: str) -> None:
    st.query_params["case"] = case_id


def _close() -> None:
    st.query_params.pop("case", None)


@st.dialog("One case", width="medium", position="right", on_dismiss=_close)
def _details(rows: list, said: pd.DataFrame, asked: Questions, chosen: Filter) -> None:
    ids = [row.id for row in rows]
    place = ids.index(st.query_params["case"])
    row = rows[place]
    with st.container(horizontal=True, vertical_alignment="center"):
        before, after = ids[max(place - 1, 0)], ids[min(place + 1, len(ids) - 1)]
        st.button("Previous", shortcut="Left", on_click=_open, args=(before,), disabled=place == 0)
        st.button("Next", shortcut="Right", on_click=_open, args=(after,), disabled=place == len(ids) - 1)
        st.html(tag("p", f"{place + 1} of {len(ids)} on this page", class_="vp-quiet"))
    own = said[said["case"] == row.case]
    with st.container(key="bigger"):
        _pictures(row, _mine(own, chosen.model), 1000)
    st.html(_card(row, own, asked, chosen.model, everything=True))
    st.html(markup_cards.about(row, asked.probe))
    st.html(tag("p", "The same in a terminal:", class_="vp-quiet"))
    st.code(markup_cards.command(_run(asked, chosen.model), row), language="bash", wrap_lines=True)


def _run(asked: Questions, model: str) -> str:
    stored = view("runs")
    return stored[(stored["case_key"] == asked.key) & (stored["model"] == model)]["key"].iloc[0]


def _mine(said: pd.DataFrame, model: str) -> pd.Series:
    return said[said["model"] == model].iloc[0]


def _pictures(row: object, mine: pd.Series, side: int) -> None:
    """The case's pictures, or a line that says why one cannot be shown."""
    found = markup_cases.shots(row, mine)
    places = st.columns(len(found), gap="small") if len(found) > 1 else [st.container()]
    for shot, place in zip(found, places, strict=len(found) > 0):
        if shot.label:
            css = "vp-label vp-wrong" if shot.wrong else "vp-label"
            place.html(tag("p", shot.label, class_=css if row.kind == "t2i" else f"{css} vp-one"))
        _picture(place, shot, row, side)


def _picture(place: object, shot: Shot, row: object, side: int) -> None:
    picture = Picture.named(shot.name)
    try:
        data = _thumbnail(shot.name, _changed(picture), side)
    except VlprobeError:
        place.html(tag("div", f"The picture {picture.path.name} is missing or damaged.", class_="vp-missing"))
        return
    frame = place.container(key=f"wrong_{side}_{row.case}") if shot.wrong else place
    frame.image(data, width="stretch", alt=shot.label or row.texts[0])


def _changed(picture: Picture) -> int:
    return picture.path.stat().st_mtime_ns if picture.path.exists() else 0


@st.cache_data(max_entries=400, show_spinner=False)
def _thumbnail(name: str, changed: int, side: int) -> bytes:
    """A JPEG of at most this many pixels a side; `changed`, the file's time, makes a new one of a changed file."""
    return markup_cards.jpeg(name, side)


def _card(row: object, said: pd.DataFrame, asked: Questions, model: str, everything: bool = False) -> str:
    """Verdict, texts and scores of one case as HTML."""
    others = [name for name in asked.models if name != model]
    names = [model, *others] if everything else [model, *others[:4]]
    source = functools.partial(_source, side=280 if everything else 112)
    parts = [markup_cards.card(row, said, names, asked.looks, source, everything)]
    if len(names) < len(asked.models):
        parts.append(tag("p", f"{len(asked.models) - len(names)} more models in the details.", class_="vp-quiet"))
    return f'<div class="vp-card">{"".join(parts)}</div>'


def _source(name: str, side: int) -> str:
    """A small picture as what an <img> shows; nothing where it cannot be read."""
    try:
        return markup_cards.inline(_thumbnail(name, _changed(Picture.named(name)), side))
    except VlprobeError:
        return ""


def summary(asked: Questions, chosen: Filter) -> None:
    """How often the model is fooled, in a sentence."""
    counts = view("outcomes", asked.key, chosen)
    model = plain(chosen.model)
    if chosen.kind == "paraphrase":
        st.markdown(
            f"**{counts['all']:,}** rewordings kept a caption's meaning, so the score of {model} should stay too. "
            f"The cards show how far it moved; it stayed exactly the same **{counts['tied']:,}** times."
        )
    elif chosen.kind == "ranking":
        st.markdown(
            f"**{counts['all']:,}** queries were asked in several wordings, so {model} should rank the same pictures "
            "first. Moved is the share of the first 100 that two wordings do not have in common (in a small gallery: "
            f"of the first 10, or 1 minus the rank correlation); nothing moved **{counts['tied']:,}** times."
        )
    elif counts["all"]:
        share = f"{100 * counts['fooled'] / counts['all']:.1f} %"
        ties = f", {counts['tied']:,} of them by a tie" if counts["tied"] else ""
        several = chosen.kind in ("pair", "t2t") or (chosen.kind == "i2t" and asked.probe != "rococo")
        st.markdown(
            f"{markup_cards.asked(asked.probe, chosen.kind)} {model} was fooled **{counts['fooled']:,}** times of "
            f"**{counts['all']:,}** ({share}){ties}. "
            "The margin is the score of what should win minus the score of what should lose"
            f"{', at the comparison that comes out worst' if several else ''}."
        )
