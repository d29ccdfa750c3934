"""The page of a room: the door, the current question, and the controls of its host; and the votes of this server's
rooms next to the models of a comparison.
"""

from collections.abc import Callable, Sequence

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from vlprobe import views
from vlprobe.dashboard.play.question import (
    EVENTS,
    attempted,
    draw_question,
    new_seed,
    participants,
    pick_round,
    sent_by,
)
from vlprobe.dashboard.play.rooms import Rooms, Tally, is_secret, new_secret
from vlprobe.dashboard.state import (
    PageSubject,
    link_docs,
    page_subject,
    plain,
    quiet,
    renamed,
    view,
)
from vlprobe.errors import VlprobeError
from vlprobe.render import quiz as render_quiz
from vlprobe.render.html.elements import tag
from vlprobe.render.quiz import Participant
from vlprobe.render.sentences import sentence_names
from vlprobe.storage import access
from vlprobe.views.quiz import QuizRound

KEY = "room_quiz"  # of the component
LOOK = 1.5  # seconds between two looks at a room
_rooms = Rooms()  # not in a cache of Streamlit, which a message of any visitor clears
ABOUT = (
    "Everyone in a room gets the same questions. Votes are anonymous; they stay in this server's memory and are "
    "deleted after a day. Votes on random questions give the human baseline in Compare."
)


def all_rooms() -> Rooms:
    """Return the rooms of this server."""
    return _rooms


def secret() -> str:
    """The identity of this person."""
    return st.session_state.setdefault("quiz_secret", new_secret())


def current() -> str:
    """The code of the room that the address names, once one is in it; "" if one is in none."""
    code = st.query_params.get("room", "")
    if not code:
        return ""
    try:
        code = all_rooms().join(code, secret())
    except VlprobeError as error:
        st.error(link_docs(str(error)), icon=":material/error:")
        del st.query_params["room"]
        return ""
    if st.query_params["room"] != code:
        st.query_params["room"] = code
    return code


def draw_door(quiz: QuizRound | None) -> None:
    """Ways into a room: open one with the questions that are picked, or join by a code."""
    quiet(ABOUT)
    st.button(
        "Open a room",
        type="primary",
        icon=":material/add:",
        key="open_room",
        disabled=quiz is None or not quiz.questions,
        on_click=_enter,
        args=(all_rooms().open, quiz),
    )
    with st.form("join_room", border=False):
        st.text_input("Code of a room", key="room_code", max_chars=20, placeholder="K7DP2M")
        st.form_submit_button(
            "Join",
            icon=":material/login:",
            on_click=lambda: _enter(all_rooms().join, st.session_state["room_code"]),
        )


def _enter(find: Callable[..., str], *arguments: object) -> None:
    try:
        st.query_params["room"] = find(*arguments, secret())
    except VlprobeError as error:
        st.session_state["quiz_problem"] = str(error)


def draw(bar: DeltaGenerator) -> None:
    """The room that one is in."""
    code = st.query_params["room"]
    tally = all_rooms().tally(code, secret())
    with bar:
        st.space("stretch")
        if tally.is_host:
            with st.popover(
                "New round", icon=":material/replay:", type="tertiary", key="room_round"
            ):
                picked = pick_round()
                st.button(
                    "Ask these",
                    type="primary",
                    key="ask_round",
                    disabled=picked is None,
                    on_click=_new_round,
                    args=(code, picked[1] if picked else None),
                )
        with st.popover(f"Room {code}", icon=":material/groups:", type="tertiary", key="quiz_room"):
            st.html(tag("p", code, class_="vp-code"))
            quiet(ABOUT)
            st.code(f"{st.context.url or ''}?room={code}", language=None, wrap_lines=True)
            if tally.is_host:
                st.button(
                    "Close the room",
                    key="close_room",
                    on_click=_leave,
                    args=(all_rooms().close, code),
                )
            else:
                st.button(
                    "Leave", key="leave_room", on_click=_leave, args=(all_rooms().leave, code)
                )
    st.fragment(_draw_asked, run_every=LOOK)(code)


def _new_round(code: str, quiz: QuizRound | None) -> None:
    if quiz is not None and attempted(all_rooms().new_round, code, secret(), quiz):
        new_seed()


def _leave(action: Callable[..., object], code: str) -> None:
    """Close or leave the room."""
    attempted(action, code, secret())
    st.query_params.pop("room", None)


def _draw_asked(code: str) -> None:
    """Draw the current question; polled at short intervals, because the host leads."""
    rooms = all_rooms()
    try:
        rooms.join(code, secret())  # again, if the place was freed while this page was closed
        _take(rooms, code)
        tally, quiz = rooms.tally(code, secret()), rooms.quiz(code)
    except VlprobeError:  # closed, or a day old
        st.session_state["quiz_problem"] = "This room is closed."
        st.query_params.pop("room", None)
        st.rerun()
    if problem := st.session_state.pop("vote_problem", ""):
        st.warning(problem, icon=":material/info:")
    stored = page_subject(quiz.set_key)
    draw_question(
        stored,
        quiz,
        tally.question,
        tally.own_vote,
        tally.is_revealed,
        tally.votes,
        _told(stored, quiz, tally),
        key=KEY,
    )
    # Not in the component, which is sent again, with its picture, whenever a value changes.
    if not tally.is_revealed:
        voted = f"{tally.n_votes:,} of {tally.n_people:,} voted."
        leads = "" if tally.is_host else " The person who opened the room reveals the answer."
        quiet(voted + leads)


def _told(stored: PageSubject, quiz: QuizRound, tally: Tally) -> dict[str, object]:
    """Return the data of the room that the component receives with the question."""
    is_last = tally.question + 1 == len(quiz.questions)
    scores: list[dict[str, object]] = []
    if tally.rights:
        people = [Participant("You", tally.own_rights)]
        scores = render_quiz.scores_data(participants(stored, quiz, len(tally.rights), people))
        scores.insert(1, _room_score(tally))
    values: dict[str, object] = {
        "question": 1000 * tally.round_number + tally.question,
        "scores": scores,
        "voter": secret(),
    }
    if tally.own_vote is not None and not tally.is_revealed:
        values["heading"] = "Your vote is in."
    if tally.is_host:
        label = "Next question" if tally.is_revealed else "Reveal"
        values["next"] = "" if tally.is_revealed and is_last else label
    return values


def _room_score(tally: Tally) -> dict[str, object]:
    """Return the result of the room, in percent; at each question, whether more were right than wrong."""
    return {
        "name": f"The room ({tally.n_people:,})",
        "path": "",
        "color": "",
        "total": str(round(sum(tally.rights) / len(tally.rights))),
        "unit": "%",
        "pips": ["right" if right > 50 else "wrong" for right in tally.rights],
    }


def _take(rooms: Rooms, code: str) -> None:
    """Handle the component's message: a vote, the host's next step, or the browser's earlier identity.

    Raises InvalidInput if the room is gone.
    """
    vote, next_question, voter = (sent_by(KEY, event) for event in EVENTS)
    if is_secret(voter) and voter != secret():
        _become(rooms, code, str(voter))
    if isinstance(vote, dict):
        position = vote.get("question")
        round_number, index = divmod(position, 1000) if type(position) is int else (-1, -1)
        try:
            rooms.vote(code, secret(), round_number, index, vote.get("caption"))
        except VlprobeError as error:
            rooms.quiz(code)
            st.session_state["vote_problem"] = str(error)
    elif type(next_question) is int:
        tally = rooms.tally(code, secret())
        if tally.is_host and next_question == 1000 * tally.round_number + tally.question:
            (rooms.advance if tally.is_revealed else rooms.reveal)(code, secret())


def _become(rooms: Rooms, code: str, voter: str) -> None:
    """The same browser came back: it is the person that it was, and has that person's votes."""
    if rooms.tally(code, secret()).is_host:
        return
    rooms.leave(code, secret())
    st.session_state["quiz_secret"] = voter
    rooms.join(code, voter)


def human_sentences(stored: PageSubject, models: Sequence[str]) -> list[str]:
    """A sentence or two for each kind of lie of which people have answered
    enough; none without rooms.
    """
    if not access.quiz():
        return []
    names = sentence_names(models, renamed())
    sentences = []
    for kind in views.quiz.quiz_kinds(stored.probe):
        ballots = tuple(all_rooms().ballots(stored.key, kind))
        if ballots:
            baseline = view(
                views.quiz.human_baseline, stored.question_set, kind, ballots, tuple(models)
            )
            sentences.append(render_quiz.human_sentence(baseline, names))
    return [sentence for sentence in sentences if sentence]


def draw_human_baseline(stored: PageSubject, models: Sequence[str]) -> None:
    """Draw the results of people on the same lies, if rooms have voted on enough of them."""
    for sentence in human_sentences(stored, models):
        st.markdown(f":material/groups: {plain(sentence)}")
