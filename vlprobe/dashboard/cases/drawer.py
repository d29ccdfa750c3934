"""One case in a drawer: the picture, the true caption and the preferred one, every model, the link to the next."""

import functools
from dataclasses import replace
from typing import TypeVar

import streamlit as st

from vlprobe import views
from vlprobe.dashboard.access import changes
from vlprobe.dashboard.case_links import query
from vlprobe.dashboard.cases.pictures import draw_pictures
from vlprobe.dashboard.cases.scores import scores
from vlprobe.dashboard.components import component
from vlprobe.dashboard.navigation import page_file
from vlprobe.dashboard.photographs import draw_download
from vlprobe.dashboard.state import (
    PageSubject,
    attempt,
    counts,
    n_passing,
    plain,
    renamed,
    store,
    view,
)
from vlprobe.render import series
from vlprobe.render import wall as render_wall
from vlprobe.render.html import cards as html_cards
from vlprobe.render.html import drawer
from vlprobe.render.html.elements import tag
from vlprobe.render.sentences import shorten
from vlprobe.render.wall import changed_words, count_text, pattern_words, top_lists
from vlprobe.scoring.thumbnails import addresses
from vlprobe.storage import annotations
from vlprobe.storage.annotations import Annotation, Annotations
from vlprobe.surfaces.report import case as report_case
from vlprobe.types.presentation import KindPresentation
from vlprobe.views.filter import Filter
from vlprobe.views.records import CaseRow, answer_records, records
from vlprobe.views.wall import Neighbours, WallCard

PLAYGROUND = "pages/play.py"
SHOWN_ALIKE = 4  # thumbnails
MARGIN = (
    "The margin is the score of what should win minus the score of what should lose; where several "
    "comparisons should hold, at the one that comes out worst."
)
T = TypeVar("T")
UNDO = "case_undo_before"  # in the session: question set and annotation before the last change
LISTED_CAPTION = 60  # characters of a caption on a button


def _close() -> None:
    st.query_params.pop("case", None)
    for name in ("case_more_open", UNDO):
        st.session_state.pop(name, None)


@st.dialog("One case", width="small", position="right", on_dismiss=_close)
def draw_case(stored: PageSubject, case_filter: Filter, size: int, is_grouped: bool) -> None:
    """The case that the URL names, whether or not it passes the filter.

    Args:
        stored: The question set.
        case_filter: The filter of the wall.
        size: Cards on one of its pages.
        is_grouped: Whether the wall has one card per picture; otherwise one per case.
    """
    case_id = st.query_params.get("case", "")
    number = view(views.cases.case_number, stored.question_set, case_id)
    if number is None:
        st.info("There is no such case in this question set.", icon=":material/search_off:")
        return
    (card,) = view(views.wall.cards, stored.question_set, case_filter, (number,))
    kind = stored.presentation.kind(card.kind)
    near = view(views.wall.neighbours, stored.question_set, case_filter, number, is_grouped)
    n_cards = near.total_pictures if is_grouped else n_passing(stored, case_filter)
    with st.container(key="case_head", gap="xsmall"):  # stays in view while the rest scrolls
        _draw_steps(near, n_cards, size, is_picture=is_grouped and bool(card.images))
        if problem := st.session_state.pop("problem", ""):
            st.error(plain(problem), icon=":material/error:")
    draw_pictures(card, kind)
    if card.images and not views.cases.are_here(card.images):
        draw_download(stored, "case_download")
    st.html(drawer.captions(card, kind))
    if kind.body == "rankings":
        names = {name for ranking in top_lists(card) for name in ranking}
        st.html(drawer.ranking_strips(card, addresses(store().root, names)))
    if kind.body == "series":
        names = {shot.name for shot in series.strip(card.kind, card.images, card.answer)}
        st.html(drawer.series_strip(card, addresses(store().root, names)))
    st.html(drawer.bars(card, kind, stored.looks, renamed()))
    _draw_ways_on(stored, card, kind, near)
    _draw_pattern(stored, case_filter, card)
    component("keys")(key="case_keys", data={"words": _has_words(card)})
    with st.expander("Details", key="case_details", icon=":material/data_object:"):
        _draw_details(stored, case_filter, card)


def _draw_steps(near: Neighbours, n_cards: int, size: int, is_picture: bool) -> None:
    """Draw the position of the case on the wall, and the links to its neighbors."""
    where = drawer.place_text(near.place, n_cards, is_picture)
    with st.container(horizontal=True, vertical_alignment="center", key="case_steps"):
        st.html(tag("p", where, class_="vp-quiet vp-small"), width="stretch")
        steps = (
            ("Previous", "Left", ":material/chevron_left:", near.previous, near.place - 1),
            ("Next", "Right", ":material/chevron_right:", near.next, near.place + 1),
        )
        for label, shortcut, icon, case_id, position in steps:
            st.button(
                label,
                key=f"case_{label.lower()}",
                icon=icon,
                type="tertiary",
                shortcut=shortcut,
                on_click=_step,
                args=(case_id, 1 + (position - 1) // size),
                disabled=not case_id,
            )


def _step(case_id: str, page: int) -> None:
    """Another case; the wall behind goes to its page."""
    st.query_params["case"] = case_id
    st.query_params["page"] = str(page)
    st.session_state.pop("case_more_open", None)


def _has_words(card: WallCard) -> bool:
    """Return whether the picture can be tested with the user's words."""
    return views.cases.are_here(card.images[:1])


def _draw_ways_on(
    stored: PageSubject, card: WallCard, kind: KindPresentation, near: Neighbours
) -> None:
    """The other cases of the picture, and the Playground."""
    is_listed = st.session_state.get("case_more_open", False)
    with st.container(horizontal=True, key="case_ways"):
        if near.same_picture:
            st.button(
                drawer.more_label(near.n_same_picture, kind.lies),
                key="case_more",
                icon=":material/photo_library:",
                on_click=_toggle_more,
            )
        if _has_words(card):
            st.page_link(
                PLAYGROUND,
                label="Try your own words",
                icon=":material/draw:",
                query_params={
                    "from": stored.question_set.runs[0].dataset,
                    "item": card.item,
                    "caption": card.true_text,
                },
            )
    if is_listed:
        with st.container(key="case_more_list", gap=None):
            for sibling in near.same_picture:
                _draw_sibling(sibling)


def _toggle_more() -> None:
    st.session_state["case_more_open"] = not st.session_state.get("case_more_open", False)


def _draw_sibling(sibling: WallCard) -> None:
    source, target = changed_words(sibling)
    words = f"{source} → {target}"
    if not (source and target):
        words = sibling.wrong_text or sibling.true_text
    st.button(
        f"{plain(shorten(words, LISTED_CAPTION))} · {count_text(sibling)}",
        key=f"case_sibling_{sibling.case}",
        type="tertiary",
        on_click=_go,
        args=(sibling.id,),
    )


def _draw_pattern(stored: PageSubject, case_filter: Filter, card: WallCard) -> None:
    """Other pictures on which the same words fool the model."""
    kind = stored.presentation.kind(card.kind)
    key = view(views.patterns.pattern_of, stored.question_set, card.kind, card.case)
    if not key or kind.is_movement:
        return
    alike = Filter(case_filter.model, card.kind, pair=(key,))
    counted = counts(stored, alike)
    cards, n_pictures, _ = view(views.wall.wall, stored.question_set, alike, 1, SHOWN_ALIKE + 1)
    others = [neighbour for neighbour in cards if neighbour.images != card.images][:SHOWN_ALIKE]
    if not others:
        return
    n_others = n_pictures - (card.margin <= 0)
    with st.container(horizontal=True, key="case_pattern", gap="small"):
        words = drawer.others_text(len(others), n_others)
        text = drawer.pattern_text(pattern_words(key), (counted["fooled"], counted["all"]), words)
        with st.container(width=128, gap="xsmall"):
            st.html(text)
            has_more = n_others > len(others)
            if has_more and st.button("Show all", key="case_pattern_all", type="tertiary"):
                st.switch_page(page_file("explore"), query_params=query(stored, alike))
        names = [name for neighbour in others for name, _ in render_wall.frames(neighbour, kind)]
        sources = addresses(store().root, names)
        values = {
            "label": words,
            "strip": True,
            "cards": [
                render_wall.card_data(
                    neighbour, kind, sources.__getitem__, renamed=renamed(), badge=False
                )
                for neighbour in others
            ],
        }
        component("wall")(key="case_alike", data=values, on_open_change=_go_alike)


def _go_alike() -> None:
    case_id = st.session_state["case_alike"].get("open")
    if case_id:
        _go(str(case_id))


def _go(case_id: str) -> None:
    st.query_params["case"] = case_id


def _draw_details(stored: PageSubject, case_filter: Filter, card: WallCard) -> None:
    """Tags, scores, rule, the saved page, the terminal's command."""
    _draw_annotation(stored, card)
    table = view(views.cases.questions, stored.question_set, (card.case,))
    (row,) = records(CaseRow, table)
    answers = view(views.cases.answers, stored.question_set, (card.case,))
    by_model = answer_records(answers)[card.case]
    if stored.question_set.is_scored:
        st.html(tag("p", MARGIN, class_="vp-quiet vp-small"))
    if legend := stored.presentation.kind(card.kind).legend:
        st.html(tag("p", legend, class_="vp-quiet vp-small"))
    st.html(scores(row, by_model, stored, case_filter))
    st.html(html_cards.about(row, stored.probe))
    run = stored.question_set.run(case_filter.model)
    st.html(tag("p", "The same in a terminal:", class_="vp-quiet"))
    st.code(html_cards.command(run.key, row), language="bash", wrap_lines=True)
    st.download_button(
        "Save as a web page",
        functools.partial(
            report_case.case_page,
            store(),
            stored.question_set,
            case_filter.model,
            card.case,
            case_filter.other,
        ),
        f"vlprobe_case_{card.case}.html",
        "text/html",
        icon=":material/download:",
        on_click="ignore",
        help=(
            "One file with the pictures in it, to send or to keep. It needs no network and runs "
            "nothing."
        ),
    )


def _draw_annotation(stored: PageSubject, card: WallCard) -> None:
    """Tags and a note: to read, and to write where that is allowed."""
    written = annotations.read(store(), stored.key)
    current = _annotation(written, card)
    if not changes("Tags and notes cannot be changed here."):
        if current.tags or current.note:
            st.html(html_cards.chips(current.tags, current.note))
        return
    tags_key, note_key = f"case_tags_{card.case}", f"case_note_{card.case}"
    offered = dict.fromkeys([*current.tags, *written.tags, *annotations.SUGGESTED])
    with st.container(key="case_tags", gap="xsmall"):
        with st.container(horizontal=True, vertical_alignment="center", key="case_saved"):
            st.html(tag("p", "Your tags", class_="vp-part"), width="stretch")
            _draw_saved(stored.key, card)
        st.multiselect(
            "Your tags",
            list(offered),
            _value(tags_key, list(current.tags)),
            key=tags_key,
            label_visibility="collapsed",
            max_selections=annotations.MAX_CASE_TAGS,
            accept_new_options=True,
            placeholder="Choose, or type a new one",
            on_change=_save,
            args=(stored.key, card, "tags", tags_key),
        )
        st.text_area(
            "Note",
            _value(note_key, current.note) or "",
            key=note_key,
            max_chars=annotations.NOTE_LENGTH,
            height=80,
            on_change=_save,
            args=(stored.key, card, "note", note_key),
        )


def _value(key: str, stored: T) -> T | None:
    """Return what a field begins with; None for one that is on the page, which is changed only if
    another person wrote meanwhile or its value was refused. Setting it each time could replace
    what is being typed.
    """
    if key not in st.session_state:
        return stored
    if st.session_state[key] != stored:
        st.session_state[key] = stored
    return None


def _annotation(written: Annotations, card: WallCard) -> Annotation:
    """Return the annotation of a case, an empty one where there is none."""
    of_case = (annotation for annotation in written.current if annotation.case == card.case)
    return next(of_case, Annotation(card.case, card.id))


def _save(case_key: str, card: WallCard, field: str, widget_key: str) -> None:
    """Store the tags or the note of a case when the field changes."""
    value = st.session_state[widget_key]
    before = _annotation(annotations.read(store(), case_key), card)
    changed = {"tags": tuple(value)} if field == "tags" else {"note": value}
    attempt(annotations.write, store(), case_key, replace(before, **changed))
    if "problem" not in st.session_state:
        st.session_state[UNDO] = (case_key, before)


def _draw_saved(case_key: str, card: WallCard) -> None:
    """Say that the last change of this case is stored, with a button that takes it back."""
    saved_key, before = st.session_state.get(UNDO, ("", None))
    if before is None or (saved_key, before.case) != (case_key, card.case):
        return
    st.html(tag("p", "✓ Saved", class_="vp-saved", role="status"), width="content")
    st.button("Undo", key="case_undo", type="tertiary", on_click=_undo, args=(case_key, before))


def _undo(case_key: str, before: Annotation) -> None:
    attempt(annotations.write, store(), case_key, before)
    st.session_state.pop(UNDO, None)
