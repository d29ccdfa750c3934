"""One search among mixed pictures, as the drawer shows it: the right picture and its partner, a slider that mixes them,
the search results with and without mixtures, and the result for each model.
"""

import contextlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, partial

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
    plain,
    quiet,
    store,
    view,
)
from vlprobe.dashboard.widgets import press
from vlprobe.datasets import drawn
from vlprobe.errors import InvalidInput, VlprobeError
from vlprobe.render import mixed as render_mixed
from vlprobe.render.attribution import credits_line
from vlprobe.scoring import mixtures, pictures, thumbnails
from vlprobe.scoring.mixtures import ShareScores
from vlprobe.storage import access, containers
from vlprobe.storage.memory import SingleFlightCache
from vlprobe.types import Picture, PictureEdit
from vlprobe.views.mixed.case import MixedCase
from vlprobe.views.mixed.shares import ModelTurn
from vlprobe.views.runs import QuestionSet

RUN_AGAIN = "This run did not store the top results. Run it again to see them."


@st.fragment
def draw_search(subject: PageSubject, model: str, case: MixedCase) -> None:
    """Draw the pictures, the slider, the galleries and the models of a search. Running models reruns only this part.

    Args:
        subject: The question set.
        model: The model whose search results are shown.
        case: The search.
    """
    question_set = subject.question_set
    loaded_names = loaded_here()
    shares = shares_at_hand(case, question_set, model, sorted(loaded_names))
    answers = render_mixed.MixedAnswers(
        model=model,
        fronts=case.fronts,
        standings=views.mixed.shares.standings(case, model, case.fronts, shares.scores.get(model)),
        turns=_turns(question_set, model, case, shares),
        waiting=shares.waiting,
    )
    places: dict[str, int] = {}  # of each picture among those that are sent to the browser

    def place(name: str) -> int:
        return places.setdefault(name, len(places)) if name else -1

    values = render_mixed.component_data(
        case, answers, place, size(case.right), subject.looks, model_name
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
    question_set: QuestionSet, model: str, case: MixedCase, shares: "Shares"
) -> tuple[ModelTurn, ...]:
    """Return the mixing share at which each model starts to prefer the right picture, smallest first. If there are more
    models than rows, the selected model comes first.
    """
    models = question_set.ordered_models
    wins = view(views.mixed.case.stored_wins, question_set, case, models)
    turns = [
        views.mixed.shares.model_turn(name, shares.scores.get(name), wins[name], case.share)
        for name in models
    ]
    ordered = views.mixed.shares.by_turn(turns)
    if len(ordered) > render_mixed.MOST_ROWS:
        ordered.sort(key=lambda each: each.model != model)
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
