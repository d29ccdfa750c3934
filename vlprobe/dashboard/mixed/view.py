"""Explore's view of mixed pictures: right + partner = mixture, a slider, both galleries, where each
model turns.

The URL names the case (`case`), else the mixture (`mixture`) whose first case is shown; `wall`
leads to all cases.
"""

import contextlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import streamlit as st
from streamlit.errors import StreamlitInvalidLayoutContextError

from vlprobe import views
from vlprobe.dashboard.components import component
from vlprobe.dashboard.mixed import asking, sources
from vlprobe.dashboard.pictures import ahead
from vlprobe.dashboard.state import PageSubject, mark_picked, model_name, plain, quiet, view
from vlprobe.render import mixed as render_mixed
from vlprobe.render.attribution import credits_line
from vlprobe.render.html.elements import tag
from vlprobe.render.words import value_label
from vlprobe.storage import access
from vlprobe.views.mixed.case import MixedCase
from vlprobe.views.mixed.searches import KIND, Place
from vlprobe.views.mixed.shares import ModelTurn
from vlprobe.views.runs import QuestionSet

PAGE = "pages/explore.py"
STYLE = Path(__file__).with_name("style.css")
WALL = "wall"  # the URL's parameter that asks for all cases
OWN_PARAMETERS = ("set", "model", "kind", "case", "mixture")  # any other is about the wall
RUN_AGAIN = "This run did not store the top results. Run it again to see them."


@dataclass(frozen=True)
class MixedCasePosition:
    """The case that the view shows, and its place among the searches lost to such mixtures."""

    subject: PageSubject
    subtype: str  # of the mixture
    number: int | None  # of the case; None: no search is lost to such a mixture
    position: Place


def is_shown(stored: PageSubject, kind: str) -> bool:
    """Return whether the address asks for this view: searches for a picture, and
    nothing that is about the wall.
    """
    return (
        kind == KIND
        and stored.probe == "rococo"
        and all(name in OWN_PARAMETERS for name in st.query_params)
    )


def current(subject: PageSubject) -> MixedCasePosition:
    """The case that the URL names, else the first that the model loses to its own mixture."""
    question_set = subject.question_set
    strengths = view(views.mixed.searches.strengths, question_set)
    number, subtype = None, st.query_params.get("mixture", "")
    if case_id := st.query_params.get("case", ""):
        number = view(views.rows.case_number, question_set, case_id)
        if number is not None:
            row = view(views.rows.questions, question_set, (number,)).iloc[0]
            number = number if row["kind"] == KIND else None
            subtype = row["subtype"]
    if subtype not in strengths:
        subtype = strengths[0]
    position = view(views.mixed.searches.place, question_set, subject.model, subtype, number)
    if number is None and position.next:
        number = view(views.rows.case_number, question_set, position.next)
        position = view(views.mixed.searches.place, question_set, subject.model, subtype, number)
    return MixedCasePosition(subject, subtype, number, position)


def draw_steps(about: MixedCasePosition) -> None:
    """The right half of the row of controls: the case before and after, all cases."""
    with st.container(
        horizontal=True,
        vertical_alignment="center",
        gap="small",
        width="content",
        key="mixed_steps",
    ):
        _draw_step("Previous case", "Left", ":material/chevron_left:", about.position.previous)
        position, among = render_mixed.place_text(about.position, model_name(about.subject.model))
        words = tag("span", position) + tag("span", f" {among}", class_="vp-among")
        st.html(f'<p class="vp-quiet vp-small vp-place">{words}</p>', width="content")
        _draw_step("Next case", "Right", ":material/chevron_right:", about.position.next)
        st.page_link(
            PAGE, label="All cases", icon=":material/grid_view:", query_params=_wall_query(about)
        )


def _pick_mixture(about: MixedCasePosition) -> None:
    """Pick the mixture, if the question set has several."""
    strengths = view(views.mixed.searches.strengths, about.subject.question_set)
    if len(strengths) < 2:
        return
    labels = {subtype: value_label(subtype) for subtype in strengths}
    st.session_state["mixture"] = about.subtype
    st.selectbox(
        "Mixture",
        strengths,
        key="mixture",
        format_func=lambda subtype: labels[subtype],
        on_change=_change_mixture,
        label_visibility="collapsed",
        width=186,
    )


def _draw_step(label: str, shortcut: str, icon: str, case_id: str) -> None:
    st.button(
        label,
        key=f"mixed_{label.split()[0].lower()}",
        icon=icon,
        type="tertiary",
        shortcut=shortcut,
        on_click=_go,
        args=(case_id,),
        disabled=not case_id,
    )


def _wall_query(about: MixedCasePosition, **more: str) -> dict[str, str]:
    return {
        "set": about.subject.key,
        "model": about.subject.model,
        "kind": KIND,
        WALL: "1",
        "lost": "own",
        "type": about.subtype,
        **more,
    }


def _change_mixture() -> None:
    mark_picked()
    st.query_params.pop("case", None)
    st.query_params["mixture"] = st.session_state["mixture"]


def _go(case_id: str) -> None:
    st.query_params["case"] = case_id


def draw_view(about: MixedCasePosition) -> None:
    """All below the row of controls."""
    st.html(STYLE)
    name = model_name(about.subject.model)
    counts = view(
        views.mixed.searches.counts, about.subject.question_set, about.subject.model, about.subtype
    )
    kind, lam = views.mixed.searches.strength(about.subtype)
    subtitle = render_mixed.subtitle(counts, round(100 * lam), kind == "patch", name)
    if about.number is None:
        _draw_heading(about, "No search is lost to its own mixture here", subtitle)
        return
    case = view(
        views.mixed.case.mixed_case, about.subject.question_set, about.number, about.subject.model
    )
    _draw_heading(about, render_mixed.heading(case, about.subject.model, name), subtitle)
    _draw_case(about, case)
    st.page_link(
        PAGE,
        label="Scores, tags and notes of this case",
        icon=":material/data_object:",
        query_params=_wall_query(about, case=case.id),
    )
    _prepare(about)


def _draw_heading(about: MixedCasePosition, heading: str, subtitle: str) -> None:
    st.html(
        tag("h1", heading, class_="vp-mixed-heading")
        + tag("p", subtitle, class_="vp-quiet vp-mixed-subtitle")
    )
    with st.container(horizontal=True, horizontal_alignment="right", key="mixed_strength"):
        _pick_mixture(about)


@st.fragment
def _draw_case(about: MixedCasePosition, case: MixedCase) -> None:
    """Pictures, slider, galleries and turns; asking the models runs this alone again."""
    question_set = about.subject.question_set
    loaded_names = asking.loaded_here()
    shares = asking.shares_at_hand(case, question_set, about.subject.model, sorted(loaded_names))
    scores = shares.scores.get(about.subject.model)
    answers = render_mixed.MixedAnswers(
        model=about.subject.model,
        fronts=case.fronts,
        standings=views.mixed.shares.standings(case, about.subject.model, case.fronts, scores),
        turns=_turns(about, case, shares),
        waiting=shares.waiting,
    )
    collected = sources.Sources([case.right, case.partner])
    values = render_mixed.component_data(
        case, answers, collected.place, sources.size(case.right), about.subject.looks, model_name
    )
    values["sources"] = collected.addresses()
    component("mixed")(key="mixed", data=values, on_ask_change=_remember(case.id))
    if credit := credits_line(collected.names):
        st.html(str(credit))
    if case.fronts is None and not shares.waiting:
        quiet(RUN_AGAIN)
    if shares.others and not access.read_only():
        _offer(shares.others)
    if st.session_state.pop("mixed_ask", "") == case.id and shares.waiting:
        asking.ask(
            case, question_set, shares.waiting
        )  # the elements above stay unchanged meanwhile
        with contextlib.suppress(StreamlitInvalidLayoutContextError):
            st.rerun(scope="fragment")
        st.rerun()  # the whole page was being drawn


def _remember(case_id: str) -> Callable[[], None]:
    def remember() -> None:
        st.session_state["mixed_ask"] = case_id

    return remember


def _turns(
    about: MixedCasePosition, case: MixedCase, shares: asking.Shares
) -> tuple[ModelTurn, ...]:
    """Return the share at which each model turns: the earliest first, always including the selected model."""
    models = about.subject.question_set.ordered_models
    question_set = about.subject.question_set
    stored = view(views.mixed.case.stored_wins, question_set, case, models)
    turns = [
        views.mixed.shares.model_turn(name, shares.scores.get(name), stored[name], case.share)
        for name in models
    ]
    ordered = views.mixed.shares.by_turn(turns)
    if len(ordered) > render_mixed.MOST_ROWS:
        ordered.sort(key=lambda each: each.model != about.subject.model)
    return tuple(ordered)


def _offer(models: tuple[str, ...]) -> None:
    """Draw a button for models that take long to load: they run only on request."""
    names = ", ".join(model_name(name) for name in models[:3])
    remainder = f" and {len(models) - 3} more" if len(models) > 3 else ""
    st.button(
        f"Ask {plain(names)}{remainder} on every mixture",
        key="mixed_load",
        icon=":material/download:",
        help="Loading may take a while and downloads weights that are not on this machine.",
        on_click=_load,
        args=(models[:3],),
    )


def _load(models: tuple[str, ...]) -> None:
    asking.loaded_here().update(models)


def _prepare(about: MixedCasePosition) -> None:
    """The next case is made ready while this one is looked at."""
    if about.position.next:
        question_set = about.subject.question_set
        ahead(make_ready, question_set, about.subject.model, about.subtype, about.position.next)


def make_ready(question_set: QuestionSet, model: str, subtype: str, case_id: str) -> None:
    """Cache the content of a case: answers about it, large and small pictures. For any thread."""
    number = view(views.rows.case_number, question_set, case_id)
    if number is None:
        return
    view(views.rows.questions, question_set, (number,))
    view(views.mixed.searches.place, question_set, model, subtype, number)
    case = view(views.mixed.case.mixed_case, question_set, number, model)
    view(views.mixed.case.stored_wins, question_set, case, question_set.ordered_models)
    sources.prepare(case)
