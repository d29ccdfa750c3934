"""The two halves of Play, and the quiz for one person: spot the lie, with the link to a room."""

from dataclasses import dataclass, field
from pathlib import Path

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from vlprobe import views
from vlprobe.dashboard import frame
from vlprobe.dashboard.play import playground, room
from vlprobe.dashboard.play.question import (
    draw_question,
    new_seed,
    participants,
    pick_round,
    sent_by,
)
from vlprobe.dashboard.state import PageSubject, choose, link_docs, view
from vlprobe.render import quiz as render_quiz
from vlprobe.render.quiz import Participant
from vlprobe.storage import access
from vlprobe.views.quiz import QuizRound

GAMES = {"quiz": "Spot the lie", "playground": "Playground"}
# URL parameters of the Playground; a link with one of these opens it.
STYLE = Path(__file__).with_name("style.css")
PLAYGROUND = (
    "caption",
    "item",
    "models",
    "from",
    "draw",
    "for",
    "lam",
    "edit",
    "word",
    "show",
    "k",
)


def draw() -> None:
    """The half that the address names: the quiz, or what was called
    Playground as a page of its own.
    """
    st.html(STYLE)
    if "game" not in st.query_params and any(name in st.query_params for name in PLAYGROUND):
        st.query_params["game"] = "playground"
    bar = st.container(horizontal=True, vertical_alignment="center", key="play_bar")
    with bar:
        game = choose("Play", "game", GAMES, "quiz", segments=True, bare=True)
    if game == "playground":
        playground.playground()
    else:
        _draw_quiz(bar)


CLOCKS = {0: "No clock", 10: "10 seconds", 20: "20 seconds"}
NO_VOTE = -1  # the clock ran out
KEY = "solo_quiz"  # of the component


@dataclass
class Solo:
    """A round for a single person."""

    quiz: QuizRound
    votes: list[int] = field(default_factory=list)  # the caption that was taken for true; NO_VOTE
    index: int = 0  # of the current question

    @property
    def rights(self) -> tuple[bool | None, ...]:
        """Return whether each vote so far was right; a missed one is wrong."""
        return tuple(
            vote == question.true_index
            for vote, question in zip(self.votes, self.quiz.questions, strict=False)
        )


def _draw_quiz(bar: DeltaGenerator) -> None:
    """The quiz.

    Args:
        bar: The row above it, which begins with the switch.
    """
    if problem := st.session_state.pop("quiz_problem", ""):
        st.error(link_docs(problem), icon=":material/error:")
    if access.quiz() and room.current():
        room.draw(bar)
        return
    with bar:
        st.space("stretch")
        clock = _clock()
        st.button(
            "New round",
            icon=":material/replay:",
            type="tertiary",
            key="new_round",
            on_click=new_seed,
        )
        with st.popover("Questions", icon=":material/tune:", type="tertiary", key="quiz_questions"):
            picked = pick_round()
        if access.quiz():
            with st.popover("Room", icon=":material/groups:", type="tertiary", key="quiz_room"):
                room.draw_door(picked[1] if picked else None)
    if picked is None:
        _draw_nothing()
        return
    stored, quiz = picked
    if not quiz.questions:
        st.info(
            "The pictures of these questions are not here.",
            icon=":material/image_not_supported:",
        )
        return
    frame.say_strangers(stored)
    _draw_solo(stored, _solo(quiz), clock)


def _draw_nothing() -> None:
    """Nothing that was run has two captions and a picture."""
    st.title("Spot the lie")
    if len(view(views.runs.question_sets)):
        st.info(
            "The stored runs search galleries, but the quiz needs a picture with a true "
            "caption and a lie. Run "
            "“Wording and meaning (LGIP)” on the same pictures.",
            icon=":material/info:",
        )
    else:
        st.info("Nothing has been run yet.", icon=":material/info:")
    st.page_link("pages/run.py", label="Run a test", icon=":material/play_arrow:")


def _clock() -> int:
    """Seconds for a vote; a press takes the next choice."""
    seconds = st.session_state.setdefault("quiz_clock", 0)
    st.button(
        CLOCKS[seconds],
        icon=":material/timer:",
        type="tertiary",
        key="clock",
        help="Time limit for a vote.",
        on_click=_next_clock,
    )
    return seconds


def _next_clock() -> None:
    choices = list(CLOCKS)
    index = choices.index(st.session_state["quiz_clock"])
    st.session_state["quiz_clock"] = choices[(index + 1) % len(choices)]


def _solo(quiz: QuizRound) -> Solo:
    """Return the votes of this round; a new one if the questions differ."""
    solo = st.session_state.get("quiz_solo")
    if solo is None or solo.quiz != quiz:
        solo = st.session_state["quiz_solo"] = Solo(quiz)
    return solo


@st.fragment
def _draw_solo(stored: PageSubject, solo: Solo, clock: int) -> None:
    """The question; a vote and the way to the next run this alone again."""
    _take(solo)
    quiz = solo.quiz
    is_told = len(solo.votes) > solo.index
    is_last = solo.index + 1 == len(quiz.questions)
    vote = solo.votes[solo.index] if is_told else None
    everybody = participants(stored, quiz, len(solo.votes), [Participant("You", solo.rights)])
    values: dict[str, object] = {
        "clock": clock,
        "next": ("New round" if is_last else "Next question") if is_told else "",
        "scores": render_quiz.scores_data(everybody) if solo.votes else [],
    }
    if is_told and is_last:
        summary = render_quiz.summary(solo.rights, everybody[1:])
        values |= {"note": f"{summary} {render_quiz.how_drawn(quiz)}"}
    draw_question(
        stored,
        quiz,
        solo.index,
        None if vote == NO_VOTE else vote,
        is_told,
        (0, 0),
        values,
        key=KEY,
    )


def _take(solo: Solo) -> None:
    """Handle the component's message: a vote, or a request for the next question. Anything else is ignored."""
    vote, next_index = sent_by(KEY, "vote"), sent_by(KEY, "next")
    is_told = len(solo.votes) > solo.index
    if isinstance(vote, dict) and vote.get("question") == solo.index and not is_told:
        caption = vote.get("caption")
        if type(caption) is int and caption in (0, 1, NO_VOTE):
            solo.votes.append(caption)
    elif type(next_index) is int and next_index == solo.index and is_told:
        if solo.index + 1 < len(solo.quiz.questions):
            solo.index += 1
        else:
            new_seed()
            st.rerun()
