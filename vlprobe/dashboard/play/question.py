"""The drawing of one question: its picture, large; and all data that the component receives."""

from collections.abc import Mapping, Sequence

import streamlit as st

from vlprobe.dashboard.components import component
from vlprobe.dashboard.pictures import large_picture
from vlprobe.dashboard.state import PageSubject, renamed
from vlprobe.render import quiz as render_quiz
from vlprobe.render.attribution import credit_values
from vlprobe.render.quiz import Participant
from vlprobe.render.sentences import sentence_names
from vlprobe.views.quiz import QuizRound

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
