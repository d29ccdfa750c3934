"""One case in a drawer: the picture, the true caption and the preferred one, every model, the link to the next."""

import functools
from dataclasses import replace
from typing import TypeVar

import htpy
import streamlit as st

from vlprobe import views
from vlprobe.case import html, json
from vlprobe.case.card import CaseCard, case_card, wrong_captions
from vlprobe.dashboard.access import changes
from vlprobe.dashboard.case_links import query
from vlprobe.dashboard.cases.pictures import draw_pictures
from vlprobe.dashboard.components import component
from vlprobe.dashboard.navigation import page_file
from vlprobe.dashboard.photographs import draw_download
from vlprobe.dashboard.state import (
    PageSubject,
    attempt,
    counts,
    link_docs,
    model_name,
    n_passing,
    plain,
    renamed,
    store,
    view,
)
from vlprobe.render.html.elements import tag
from vlprobe.render.sentences import shorten
from vlprobe.render.wall import pattern_words
from vlprobe.scoring.thumbnails import addresses
from vlprobe.storage import annotations
from vlprobe.storage.annotations import Annotation, Annotations
from vlprobe.surfaces.report import case as report_case
from vlprobe.views.filter import Filter
from vlprobe.views.wall import Neighbours, WallCard

PLAYGROUND = "pages/play.py"
SHOWN_ALIKE = 4  # thumbnails
MARGIN = "Margin = score of the true caption minus score of the wrong one (the smallest, if there are several)."
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
    number = view(views.rows.case_number, stored.question_set, case_id)
    if number is None:
        st.info("This case is not in the question set.", icon=":material/search_off:")
        return
    (card,) = view(views.wall.cards, stored.question_set, case_filter, (number,))
    kind = stored.presentation.kind(card.kind)
    near = view(views.wall.neighbors, stored.question_set, case_filter, number, is_grouped)
    n_cards = near.total_pictures if is_grouped else n_passing(stored, case_filter)
    with st.container(key="case_head", gap="xsmall"):  # stays in view while the rest scrolls
        _draw_steps(near, n_cards, size, is_picture=is_grouped and bool(card.images))
        if problem := st.session_state.pop("problem", ""):
            st.error(link_docs(problem), icon=":material/error:")
    described = case_card(card, kind)
    draw_pictures(described)
    if card.images and not views.rows.are_here(card.images):
        draw_download(stored, "case_download")
    st.html(str(html.captions(described.texts)))
    for strip in described.strips():
        st.html(str(htpy.fragment[html.strips([strip], _thumbnail)]))
    st.html(str(html.bars(described, stored.looks, renamed())))
    _draw_ways_on(stored, described, near)
    _draw_pattern(stored, case_filter, described)
    component("keys")(key="case_keys", data={"words": _has_words(card)})
    with st.expander("Details", key="case_details", icon=":material/data_object:"):
        _draw_details(stored, case_filter, card)


def _draw_steps(near: Neighbours, n_cards: int, size: int, is_picture: bool) -> None:
    """Draw the position of the case on the wall, and the links to its neighbors."""
    where = html.place_text(near.place, n_cards, is_picture)
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
    return views.rows.are_here(card.images[:1])


def _thumbnail(name: str) -> str:
    """A small picture as what an <img> shows; "" if it cannot be read."""
    return addresses(store().root, [name])[name]


def _draw_ways_on(stored: PageSubject, described: CaseCard, near: Neighbours) -> None:
    """The other cases of the picture, and the Playground."""
    card = described.case
    is_listed = st.session_state.get("case_more_open", False)
    with st.container(horizontal=True, key="case_ways"):
        if near.same_picture:
            st.button(
                html.more_label(near.n_same_picture, wrong_captions(described.kind)),
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
                _draw_sibling(case_card(sibling, described.kind))


def _toggle_more() -> None:
    st.session_state["case_more_open"] = not st.session_state.get("case_more_open", False)


def _draw_sibling(sibling: CaseCard) -> None:
    source, target = sibling.changed_words
    words = f"{source} → {target}"
    if not (source and target):
        words = sibling.case.wrong_text or sibling.case.true_text
    st.button(
        f"{plain(shorten(words, LISTED_CAPTION))} · {sibling.count_text}",
        key=f"case_sibling_{sibling.case.case}",
        type="tertiary",
        on_click=_go,
        args=(sibling.case.id,),
    )


def _draw_pattern(stored: PageSubject, case_filter: Filter, described: CaseCard) -> None:
    """Other pictures on which the same words fool the model."""
    card, kind = described.case, described.kind
    key = view(views.patterns.pattern_of, stored.question_set, card.kind, card.case)
    if not key or kind.is_movement:
        return
    alike = Filter(case_filter.model, card.kind, pair=(key,))
    counted = counts(stored, alike)
    cards, n_pictures, _ = view(views.wall.wall, stored.question_set, alike, 1, SHOWN_ALIKE + 1)
    others = [case_card(neighbour, kind) for neighbour in cards if neighbour.images != card.images][
        :SHOWN_ALIKE
    ]
    if not others:
        return
    n_others = n_pictures - (card.margin <= 0)
    with st.container(horizontal=True, key="case_pattern", gap="small"):
        words = html.others_text(len(others), n_others)
        source, target = pattern_words(key)
        text = htpy.div(".vp-pattern")[
            htpy.strong[source, htpy.span(".vp-quiet")[" → "], target],
            htpy.p(".vp-quiet.vp-small")[f"fooled {counted['fooled']:,} of {counted['all']:,}"],
            htpy.p(".vp-quiet.vp-small")[words],
        ]
        with st.container(width=128, gap="xsmall"):
            st.html(str(text))
            has_more = n_others > len(others)
            if has_more and st.button("Show all", key="case_pattern_all", type="tertiary"):
                st.switch_page(page_file("explore"), query_params=query(stored, alike))
        names = [shot.name for neighbour in others for shot in neighbour.front]
        sources = addresses(store().root, names)
        values = {
            "label": words,
            "strip": True,
            "cards": [
                json.wall_card(neighbour, sources.__getitem__, renamed=renamed(), badge=False)
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
    answers = view(views.rows.answer_rows, stored.question_set, (card.case,))
    kind = stored.presentation.kind(card.kind)
    described = case_card(card, kind, answers[card.case])
    if stored.question_set.is_scored:
        st.html(tag("p", MARGIN, class_="vp-quiet vp-small"))
    if kind.legend:
        st.html(tag("p", kind.legend, class_="vp-quiet vp-small"))
    compared = filter(None, (case_filter.model, case_filter.other))
    models = tuple(dict.fromkeys((*compared, *stored.models)))
    names = {name: model_name(name) for name in models}
    beside = bool(case_filter.other)
    shown = described.strips()
    answer = described.answers[case_filter.model]
    more = (
        html.verdict(kind, answer.margin, answer.is_scored),
        html.captions(described.more_texts),
        html.strips([row for row in described.strips(True) if row not in shown], _thumbnail),
        html.numbers(described, models, stored.looks, names, beside),
    )
    st.html(str(htpy.div(".vp-card")[more]))
    st.html(html.properties(described))
    run = stored.question_set.run(case_filter.model)
    st.html(tag("p", "The same in a terminal:", class_="vp-quiet"))
    st.code(html.command(run.key, described), language="bash", wrap_lines=True)
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
            "One file that includes the pictures, to send or keep. It works offline and "
            "runs no code."
        ),
    )


def _draw_annotation(stored: PageSubject, card: WallCard) -> None:
    """Tags and a note: to read, and to write where that is allowed."""
    written = annotations.read(store(), stored.key)
    current = _annotation(written, card)
    if not changes("Tags and notes cannot be changed here."):
        if current.tags or current.note:
            st.html(str(htpy.fragment[html.chips(current.tags, current.note)]))
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
