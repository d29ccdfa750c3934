"""The details of one case: all there is, the way to the next one, what people say of it, and a page to take along."""

import functools

import streamlit as st

from vlprobe import views
from vlprobe.dashboard.access import changes
from vlprobe.dashboard.card import card, case_pictures
from vlprobe.dashboard.state import Questions, attempt, counts, plain, store, turned, view
from vlprobe.render.html import cards
from vlprobe.render.html.elements import tag
from vlprobe.render.report import case
from vlprobe.render.words import presentations
from vlprobe.storage import annotations
from vlprobe.storage.annotations import Annotation
from vlprobe.views.filter import Filter


def _close() -> None:
    st.query_params.pop("case", None)


@st.dialog("One case", width="medium", position="right", on_dismiss=_close)
def details(asked: Questions, chosen: Filter, size: int) -> None:
    """The case that the URL names, whether or not it passes the filter.

    Args:
        asked: The question set.
        chosen: What is next to what.
        size: Cards on a page.
    """
    if problem := st.session_state.pop("problem", ""):
        st.error(plain(problem), icon=":material/error:")
    case_id = st.query_params.get("case", "")
    number = view(views.cases.case_number, asked.question_set, case_id)
    if number is None:
        st.info("There is no such case in this question set.", icon=":material/search_off:")
        return
    row = next(view(views.cases.questions, asked.question_set, (number,)).itertuples())
    said = cards.by_case(view(views.cases.answers, asked.question_set, (number,)))[number]
    _steps(asked, chosen, size, number)
    with st.container(key="bigger"):
        case_pictures(row, presentations()[asked.probe].kind(row.kind), said[chosen.model], 1000)
    st.html(card(row, said, asked, chosen, everything=True))
    _annotate(asked, row)
    st.html(cards.about(row, asked.probe))
    run = asked.question_set.run(chosen.model)
    st.html(tag("p", "The same in a terminal:", class_="vp-quiet"))
    st.code(cards.command(run.key, row, run.shipped), language="bash", wrap_lines=True)
    st.download_button(
        "Save as a web page",
        functools.partial(
            case.case_page, store(), asked.question_set, chosen.model, number, chosen.other
        ),
        f"vlprobe_case_{number}.html",
        "text/html",
        icon=":material/download:",
        on_click="ignore",
        help="One file with the pictures in it, to send or to keep. It needs no network and runs nothing.",
    )


def _steps(asked: Questions, chosen: Filter, size: int, number: int) -> None:
    """Where the case is among all that pass the filter, and the way to its neighbours, over the ends of pages."""
    total = counts(asked, chosen)[chosen.outcome]
    page = turned(total, size)
    cases = view(views.cases.failures, asked.question_set, chosen, page, size)[0]["case"].tolist()
    place = (page - 1) * size + cases.index(number) + 1 if number in cases else 0
    with st.container(horizontal=True, vertical_alignment="center"):
        for label, key, to in (("Previous", "Left", place - 1), ("Next", "Right", place + 1)):
            off = not place or not 1 <= to <= total
            st.button(
                label, shortcut=key, on_click=_step, args=(asked, chosen, size, to), disabled=off
            )
        told = f"{place:,} of {total:,}" if place else "Not among the cases that pass the filters"
        st.html(tag("p", told, class_="vp-quiet"))


def _step(asked: Questions, chosen: Filter, size: int, to: int) -> None:
    page, place = divmod(to - 1, size)
    ids = view(views.cases.failures, asked.question_set, chosen, page + 1, size)[0]["id"].tolist()
    if place < len(ids):
        st.query_params["case"] = ids[place]
        st.query_params["page"] = str(page + 1)


def _annotate(asked: Questions, row: object) -> None:
    """Tags and a note: to read, and to write where that is allowed."""
    known = annotations.read(store(), asked.key)
    own = next((one for one in known.current if one.case == row.case), Annotation(row.case, row.id))
    if not changes("Tags and notes cannot be changed here."):
        if own.tags or own.note:
            st.html(cards.chips(own.tags, own.note))
        return
    key = f"{row.case}_{hash(own)}"  # what another person has kept since is shown, and nothing typed here before
    offered = list(dict.fromkeys([*own.tags, *known.tags, *annotations.SUGGESTED]))
    with st.form(key=f"said_{key}", border=False):
        st.multiselect(
            "Your tags",
            offered,
            own.tags,
            key=f"tags_{key}",
            max_selections=annotations.MAX_CASE_TAGS,
            accept_new_options=True,
            placeholder="Choose, or type a new one",
        )
        st.text_area(
            "Note", own.note, key=f"note_{key}", max_chars=annotations.NOTE_LENGTH, height=80
        )
        st.form_submit_button(
            "Keep", icon=":material/save:", on_click=_keep, args=(asked.key, own, key)
        )


def _keep(case_key: str, own: Annotation, key: str) -> None:
    tags, note = st.session_state[f"tags_{key}"], st.session_state[f"note_{key}"]
    attempt(annotations.write, store(), case_key, Annotation(own.case, own.id, tuple(tags), note))
