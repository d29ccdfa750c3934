"""Explore's view of one mixed picture: the right picture and its partner, a slider that mixes them, the search
results with and without mixtures, and the result for each model.

The URL names the case (`case`), or else the mixture (`mixture`) whose first case is shown; `wall`
switches to the wall of all cases.
"""

import contextlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, partial
from typing import Any

import streamlit as st
from PIL import Image
from streamlit.errors import StreamlitInvalidLayoutContextError

from vlprobe import views
from vlprobe.dashboard.components import component
from vlprobe.dashboard.loaded import SLOW, load_player, loads_at_once
from vlprobe.dashboard.pictures import changed_at, large_picture
from vlprobe.dashboard.state import (
    PageSubject,
    model_name,
    pick,
    plain,
    quiet,
    store,
    view,
    write_choice,
)
from vlprobe.dashboard.widgets import draw_row, draw_styles, link_page, press
from vlprobe.datasets import drawn
from vlprobe.errors import InvalidInput, VlprobeError
from vlprobe.probes.rococo import parse_strength
from vlprobe.render import mixed as render_mixed
from vlprobe.render.attribution import credits_line
from vlprobe.render.html.elements import tag
from vlprobe.render.words import value_label
from vlprobe.scoring import mixtures, pictures, thumbnails
from vlprobe.scoring.mixtures import ShareScores
from vlprobe.storage import access, containers
from vlprobe.storage.memory import SingleFlightCache
from vlprobe.types import Picture, PictureEdit
from vlprobe.views.mixed.case import MixedCase
from vlprobe.views.mixed.searches import KIND, Place
from vlprobe.views.mixed.shares import ModelTurn
from vlprobe.views.runs import QuestionSet

WALL = "wall"  # URL parameter that selects the wall of all cases
# Any other parameter concerns the wall
OWN_PARAMETERS = ("set", "model", "kind", "case", "mixture")
RUN_AGAIN = "This run did not store the top results. Run it again to see them."


def wall_query(kind: str) -> dict[str, str]:
    """Return the parameters of a URL that opens all cases of a kind on Explore, which otherwise shows a single search
    among mixed pictures.
    """
    return {WALL: "1"} if kind == KIND else {}


@dataclass(frozen=True)
class MixedCasePosition:
    """The case to show, and its position among the searches that the model loses to the same kind of mixture."""

    subject: PageSubject
    subtype: str  # kind of mixture
    number: int | None  # number of the case; None if no search is lost to this kind of mixture
    position: Place


def is_shown(subject: PageSubject, kind: str) -> bool:
    """Return whether to show this view: the URL selects searches for pictures and has no parameters for the wall."""
    return (
        kind == KIND
        and subject.probe == "rococo"
        and all(name in OWN_PARAMETERS for name in st.query_params)
    )


def current(subject: PageSubject) -> MixedCasePosition:
    """Return the case that the URL names, or else the first search in which the model prefers a mixture."""
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


def draw_steps(case_position: MixedCasePosition) -> None:
    """Draw links to the previous case, the next case and all cases."""
    with draw_row("mixed_steps", width="content"):
        _draw_step("Previous case", "Left", "chevron_left", case_position.position.previous)
        position, among = render_mixed.place_text(
            case_position.position, model_name(case_position.subject.model)
        )
        words = tag("span", position) + tag("span", f" {among}", class_="vp-among")
        st.html(f'<p class="vp-quiet vp-small vp-place">{words}</p>', width="content")
        _draw_step("Next case", "Right", "chevron_right", case_position.position.next)
        link_page("explore", "All cases", _wall_query(case_position), icon="grid_view")


def _draw_step(label: str, shortcut: str, icon: str, case_id: str) -> None:
    settings: dict[str, Any] = {"type": "tertiary", "shortcut": shortcut, "disabled": not case_id}
    key, change = f"mixed_{label.split()[0].lower()}", ("case", case_id)
    press(label, st.query_params.__setitem__, *change, icon=icon, key=key, **settings)


def _wall_query(case_position: MixedCasePosition, **more: str) -> dict[str, str]:
    return {
        "set": case_position.subject.key,
        "model": case_position.subject.model,
        "kind": KIND,
        WALL: "1",
        "lost": "own",
        "type": case_position.subtype,
        **more,
    }


def draw_view(case_position: MixedCasePosition) -> None:
    """Draw the heading, the pictures and the models' results for the selected case."""
    draw_styles("mixed")
    question_set, model = case_position.subject.question_set, case_position.subject.model
    name = model_name(model)
    counts = view(views.mixed.searches.counts, question_set, model, case_position.subtype)
    kind, lam = parse_strength(case_position.subtype)
    subtitle = render_mixed.subtitle(counts, round(100 * lam), kind == "patch", name)
    if case_position.number is None:
        _draw_heading(
            case_position, "No right picture is outranked by its own mixture here", subtitle
        )
        return
    case = view(views.mixed.case.mixed_case, question_set, case_position.number, model)
    _draw_heading(case_position, render_mixed.heading(case, model, name), subtitle)
    _draw_case(case_position, case)
    label, query = "Scores, tags and notes of this case", _wall_query(case_position, case=case.id)
    link_page("explore", label, query, icon="data_object")


def _draw_heading(case_position: MixedCasePosition, heading: str, subtitle: str) -> None:
    """Draw the heading, and a picker for the kind of mixture, if the question set has several."""
    st.html(
        tag("h1", heading, class_="vp-mixed-heading")
        + tag("p", subtitle, class_="vp-quiet vp-mixed-subtitle")
    )
    strengths = view(views.mixed.searches.strengths, case_position.subject.question_set)
    labels = {subtype: value_label(subtype) for subtype in strengths}
    with st.container(horizontal=True, horizontal_alignment="right", key="mixed_strength"):
        if len(labels) > 1:
            pick(
                *("Mixture", "mixture", labels, case_position.subtype),
                lambda: write_choice({"mixture": st.session_state["mixture"]}),
                bare=True,
                width=186,
            )


@st.fragment
def _draw_case(case_position: MixedCasePosition, case: MixedCase) -> None:
    """Draw the pictures, the slider, the search results and the models. Running models reruns only this part."""
    question_set = case_position.subject.question_set
    loaded_names = loaded_here()
    shares = shares_at_hand(case, question_set, case_position.subject.model, sorted(loaded_names))
    scores = shares.scores.get(case_position.subject.model)
    answers = render_mixed.MixedAnswers(
        model=case_position.subject.model,
        fronts=case.fronts,
        standings=views.mixed.shares.standings(
            case, case_position.subject.model, case.fronts, scores
        ),
        turns=_turns(case_position, case, shares),
        waiting=shares.waiting,
    )
    places: dict[str, int] = {}  # of each picture among those that are sent to the browser

    def place(name: str) -> int:
        return places.setdefault(name, len(places)) if name else -1

    values = render_mixed.component_data(
        case, answers, place, size(case.right), case_position.subject.looks, model_name
    )
    large = [name for name in places if name in (case.right, case.partner)]
    sources = thumbnails.addresses(store().root, [name for name in places if name not in large])
    sources |= {name: large_picture(name, SIDE) for name in large}
    values["sources"] = [sources[name] for name in places]
    remember = partial(st.session_state.__setitem__, "mixed_ask", case.id)
    component("mixed")(key="mixed", data=values, on_ask_change=remember)
    if credit := credits_line(tuple(places)):
        st.html(str(credit))
    if case.fronts is None and not shares.waiting:
        quiet(RUN_AGAIN)
    if shares.others and not access.read_only():  # models that take long to load
        names = ", ".join(model_name(name) for name in shares.others[:3])
        remainder = f" and {len(shares.others) - 3} more" if len(shares.others) > 3 else ""
        look = {"icon": "download", "key": "mixed_load", "help": SLOW}
        label = f"Test {plain(names)}{remainder} on every mixture"
        press(label, loaded_here().update, shares.others[:3], **look)
    if st.session_state.pop("mixed_ask", "") == case.id and shares.waiting:
        ask(case, question_set, shares.waiting)  # meanwhile, the elements above stay unchanged
        with contextlib.suppress(StreamlitInvalidLayoutContextError):
            st.rerun(scope="fragment")
        st.rerun()  # the whole page was being drawn


def _turns(
    case_position: MixedCasePosition, case: MixedCase, shares: "Shares"
) -> tuple[ModelTurn, ...]:
    """Return the mixing share at which each model starts to prefer the right picture, smallest first. If there are more
    models than rows, the selected model comes first.
    """
    question_set = case_position.subject.question_set
    models = question_set.ordered_models
    wins = view(views.mixed.case.stored_wins, question_set, case, models)
    turns = [
        views.mixed.shares.model_turn(name, shares.scores.get(name), wins[name], case.share)
        for name in models
    ]
    ordered = views.mixed.shares.by_turn(turns)
    if len(ordered) > render_mixed.MOST_ROWS:
        ordered.sort(key=lambda each: each.model != case_position.subject.model)
    return tuple(ordered)


KEPT_SCORES = 4096  # number of cached answers, each for one model and case at all shares
MOST_ASKED = 9  # models that run without a click; the selected one is among them
Asked = tuple[str, ...]

# 43 ms of CPU for a case at all shares with a demo model; up to nine models run.
_scores = SingleFlightCache(KEPT_SCORES)
_refused: dict[str, str] = {}  # the reason why a model cannot run, by model name


@dataclass(frozen=True, slots=True)
class Shares:
    """The models' scores at every mixing share, and the models that have not run."""

    scores: dict[str, ShareScores]  # by name, for models that ran
    waiting: Asked  # models that can run but have not run yet
    others: Asked  # models that need a click, because loading them may take long


def shares_at_hand(
    case: MixedCase, question_set: QuestionSet, model: str, loaded_names: Sequence[str]
) -> "Shares":
    """Return the scores that are cached, without running a model.

    Args:
        case: The search.
        question_set: The question set with the models' runs.
        model: The selected model.
        loaded_names: Models that the user asked to load in this session.
    """
    if case.edit is None:
        return Shares({}, (), ())
    others = (name for name in question_set.ordered_models if name != model)
    usable = [name for name in (model, *others) if name not in _refused]
    ready = [name for name in usable if loads_at_once(name) or name in loaded_names]
    scores: dict[str, ShareScores] = {}
    waiting: list[str] = []
    for name in ready[:MOST_ASKED]:
        known = _scores.peek(_key(case, case.edit, question_set.run(name).model_digest))
        if known is None:
            waiting.append(name)
        else:
            scores[name] = known
    return Shares(scores, tuple(waiting), tuple(name for name in usable if name not in ready))


def ask(case: MixedCase, question_set: QuestionSet, models: Sequence[str]) -> None:
    """Run the given models on a case at every mixing share, one after the other. A failed model is not tried again."""
    if case.edit is None:
        return
    mix = cache(partial(_mixtures, case))  # 10 ms a picture, and all models see the same
    for name in models:
        digest = question_set.run(name).model_digest
        reason = "the weights differ from those of the run, or the model only scores pairs"
        try:
            player = load_player(name)
            if player.model.digest != digest or not mixtures.can_ask(player.model):
                raise InvalidInput(reason)
            compute = partial(lambda player: player.share_scores(case.caption, mix()), player)
            _scores.get(_key(case, case.edit, digest), compute)
        except VlprobeError as error:
            _refused[name] = str(error)


def _mixtures(case: MixedCase) -> list[Image.Image]:
    """Mix the right picture and its partner at every share."""
    assert case.edit
    right, partner = (_opened(Picture.from_name(each)) for each in (case.right, case.partner))
    return mixtures.pictures_by_share(right, partner, case.edit)


def _opened(picture: Picture) -> Image.Image:
    """Open a picture in full size. If the file of a demo scene is missing, the same scene is drawn again."""
    if not containers.is_file(picture.path) and (image := drawn.draw(picture)):
        return image
    return pictures.open_picture(picture)


def _key(case: MixedCase, edit: PictureEdit, digest: str) -> tuple:
    """Return the cache key for a model's scores on a case: the model's digest, followed by all inputs."""
    files = [(name, changed_at(Picture.from_name(name))) for name in (case.right, case.partner)]
    return digest, case.caption, edit.kind, edit.seed, *files


def loaded_here() -> set[str]:
    """Return the models that the user asked to load in this session."""
    return st.session_state.setdefault("mixed_loaded", set())


SIDE = 528  # maximum pixels of a large picture, twice its size on the page


def size(name: str) -> tuple[int, int]:
    """Return the width and height of a picture in pixels, or (1, 1) if the picture cannot be read."""
    try:
        return pictures.open_picture(Picture.from_name(name)).size
    except VlprobeError:
        return (1, 1)
