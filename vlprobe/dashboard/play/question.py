"""The questions of a round, which the address names, and the drawing of one question."""

import random
from collections.abc import Callable, Mapping, Sequence

import streamlit as st

from vlprobe import views
from vlprobe.dashboard.cases.sentence import stored_kinds
from vlprobe.dashboard.components import component
from vlprobe.dashboard.pictures import large_picture
from vlprobe.dashboard.state import (
    PageSubject,
    carry,
    choose,
    dataset_name,
    page_subject,
    quiet,
    renamed,
    view,
)
from vlprobe.datasets import bundled
from vlprobe.errors import VlprobeError
from vlprobe.render import quiz as render_quiz
from vlprobe.render.attribution import credit_values
from vlprobe.render.quiz import Participant
from vlprobe.render.sentences import sentence_names
from vlprobe.render.words import presentations
from vlprobe.views.quiz import Draw, QuizRound

DRAWS: dict[str, str] = {"hard": "Hard ones", "fair": "Random"}
LARGEST_SEED = 10**6
ABOUT_DRAWS = (
    "Hard: lies that fooled at least two thirds of the models. Random: every lie is "
    "equally likely, so people can be compared with models."
)


def pick_round() -> tuple[PageSubject, QuizRound] | None:
    """The questions that the address names; None if no stored run is eligible."""
    sets = _quiz_sets()
    if not sets:
        return None
    set_key = _pick("Questions of", "set", sets)
    stored = page_subject(set_key)
    presentation = stored.presentation
    quiz_kinds = views.quiz.quiz_kinds(stored.probe)
    in_order = sorted(quiz_kinds, key=lambda kind: kind not in stored_kinds(stored))
    kinds = {kind: presentation.kind(kind).label for kind in in_order}
    kind = _pick("Kind of lie", "kind", kinds)
    draw = choose("Chosen", "quiz", DRAWS, "hard", segments=True, help_=ABOUT_DRAWS)
    quiz = _drawn(stored, kind, "fair" if draw == "fair" else "hard")
    if not quiz.questions and draw == "hard":
        quiet("No trained model has answered these questions, so they are drawn at random.")
        quiz = _drawn(stored, kind, "fair")
    return stored, quiz


def _quiz_sets() -> dict[str, str]:
    """Question sets that have kinds with two captions, as people read them: published questions
    about photographs, then by probe, the most complete first.
    """
    table = view(views.runs.question_sets)
    keys: dict[str, list[str]] = {probe: [] for probe in presentations()}
    labels: dict[str, str] = {}
    for case_key, probe, dataset in zip(
        table["case_key"], table["probe"], table["dataset"], strict=True
    ):
        if views.quiz.quiz_kinds(probe):
            keys[probe].append(case_key)
            labels[case_key] = f"{dataset_name(dataset)}: {presentations()[probe].name}"
    in_order = [key for of_probe in keys.values() for key in of_probe]
    is_published = dict(
        zip(table["case_key"], table["dataset"].str.startswith(f"{bundled.PREFIX}:"), strict=True)
    )
    in_order.sort(key=lambda key: not is_published[key])
    is_twin = {key: list(labels.values()).count(labels[key]) > 1 for key in in_order}
    return {key: f"{labels[key]} · {key[:6]}" if is_twin[key] else labels[key] for key in in_order}


def _pick(label: str, name: str, options: dict[str, str]) -> str:
    """A picker shared with other pages; their choice is kept for them if it is not eligible here."""
    carried = st.session_state.get(f"carried_{name}", "")
    linked = st.query_params.get(name, "")
    if linked and linked not in options and (linked == carried or _is_stored(name, linked)):
        del st.query_params[name]
    value = choose(label, name, options, next(iter(options)))
    if carried and carried not in options:
        carry(name, carried)
    return value


def _is_stored(name: str, value: str) -> bool:
    """Return whether a link's value is stored but not eligible: it names results that exist here."""
    if name == "set":
        return value in set(view(views.runs.question_sets)["case_key"])
    return any(value in presentation.kinds for presentation in presentations().values())


def _drawn(stored: PageSubject, kind: str, draw: Draw) -> QuizRound:
    return view(views.quiz.quiz_round, stored.question_set, kind, draw, seed())


def seed() -> int:
    """The number of the round in the address; without one, a new one."""
    seed_text = st.query_params.get("round", "")
    if seed_text.isdecimal() and len(seed_text) < 9:
        return int(seed_text)
    new_seed()
    return int(st.query_params["round"])


def new_seed() -> None:
    """Another round."""
    st.query_params["round"] = str(random.randrange(LARGEST_SEED))


def attempted(action: Callable[..., object], *arguments: object) -> bool:
    """Return whether an action of a room came off; what went wrong is kept for the page to say."""
    try:
        action(*arguments)
    except VlprobeError as error:
        st.session_state["quiz_problem"] = str(error)
        return False
    return True


SIDE, DRAWN_SIDE = 720, 672  # pixels of a picture, and of a scene of the demo, drawn again


def draw_question(
    stored: PageSubject,
    quiz: QuizRound,
    index: int,
    own_vote: int | None,
    is_told: bool,
    votes: tuple[int, int],
    extra_values: Mapping[str, object],
    key: str,
) -> None:
    """Draw one question; callbacks read what the component sent from the session, under `key`.

    Args:
        stored: Whose looks models have.
        quiz: The round.
        index: Index of the question, from 0.
        own_vote: The caption that was voted for; None: none.
        is_told: Whether the truth is shown.
        votes: Votes of a room, for each caption.
        extra_values: Further data for the component; it precedes the data made here.
        key: Key of the component.
    """
    question = quiz.questions[index]
    names = sentence_names(quiz.models, renamed())
    own_right = None if own_vote is None else own_vote == question.true_index
    heading = render_quiz.outcome(own_right, question) if is_told else render_quiz.ASKED
    ahead = quiz.questions[index + 1].picture if index + 1 < len(quiz.questions) else ""
    values = {
        "place": f"Question {index + 1} of {len(quiz.questions)}",
        "heading": heading,
        "status": heading,
        "picture": large_picture(question.picture, SIDE, DRAWN_SIDE),
        "credit": credit_values(question.picture),
        "ahead": large_picture(ahead, SIDE, DRAWN_SIDE) if ahead and is_told else "",
        "alt": question.captions[question.true_index]
        if is_told
        else "The picture of this question",
        "question": index,
        "open": not is_told and own_vote is None,
        "next": "",
        "clock": 0,
        "keys": True,
        "scores": [],
        "note": render_quiz.how_drawn(quiz),
        "voter": "",
        **render_quiz.question_data(question, names, stored.looks, is_told, own_vote, votes),
        **extra_values,
    }
    component("quiz")(
        key=key,
        data=values,
        on_vote_change=_nothing,
        on_next_change=_nothing,
        on_voter_change=_nothing,
    )


EVENTS = ("vote", "next", "voter")


def sent_by(key: str, event: str) -> object:
    """Return the message that the component of this key sent with this run; None if it sent nothing."""
    state = st.session_state.get(key)
    return None if state is None else state.get(event)


def _nothing() -> None:
    """Do nothing: a component's message is read by the code that draws it."""


def participants(
    stored: PageSubject, quiz: QuizRound, n_told: int, people: Sequence[Participant]
) -> list[Participant]:
    """The people and all models of a round, at the revealed questions."""
    names = sentence_names(quiz.models, renamed())
    rights = render_quiz.model_rights(quiz, n_told)
    models = [
        Participant(names[model], rights[model], stored.looks[model]) for model in quiz.models
    ]
    return [*people, *models]
