"""The quiz on the Present page, *Spot the lie*, for one person or for a room."""

import contextlib
import random
import socket
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

import segno
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from vlprobe import views
from vlprobe.dashboard import decks, frame, photographs
from vlprobe.dashboard.access import is_local
from vlprobe.dashboard.components import component
from vlprobe.dashboard.pictures import large_picture
from vlprobe.dashboard.play.rooms import NUMBERS, Rooms, Tally, is_secret, new_secret
from vlprobe.dashboard.sentence import list_kinds
from vlprobe.dashboard.state import (
    PageSubject,
    attempt,
    carry,
    choose,
    command,
    dataset_name,
    page_subject,
    quiet,
    renamed,
    short_set_labels,
    store,
    view,
)
from vlprobe.dashboard.widgets import draw_error, draw_styles, link_page, open_page, press
from vlprobe.datasets import bundled
from vlprobe.errors import VlprobeError
from vlprobe.render import quiz as render_quiz
from vlprobe.render.attribution import (
    credit_values,
    distinct_credits,
    photo_values,
    published_text,
)
from vlprobe.render.html.elements import tag
from vlprobe.render.quiz import IN_ONE_ORDER, MOST_ROWS, MOST_SCORES, SKIPPED, Participant
from vlprobe.render.sentences import CHANGES, count_word, sentence_names
from vlprobe.render.slides.models import describe_models, full_names, slide_names
from vlprobe.render.words import presentations
from vlprobe.scoring.thumbnails import addresses
from vlprobe.storage import access
from vlprobe.views.quiz import Draw, QuizRound
from vlprobe.views.story import default_cases

KEY = "solo_quiz"  # of the component
SIGNS = {  # in the table of answers (quiz.js)
    IN_ONE_ORDER: f"½: {CHANGES}.",
    SKIPPED: "–: skipped, not counted.",
    "none": "?: no answer.",
}


@dataclass
class Solo:
    """One round of the quiz for a single person."""

    quiz: QuizRound
    # Index of the caption taken for true; None: the question was skipped
    votes: list[int | None] = field(default_factory=list)
    index: int = 0  # index of the current question

    @property
    def skipped(self) -> list[int]:
        """Indices of the questions that do not count."""
        return [place for place, vote in enumerate(self.votes) if vote is None]

    @property
    def person(self) -> Participant:
        """The person with the results so far."""
        votes = zip(self.votes, self.quiz.questions, strict=False)
        rights = [vote == question.true_index for vote, question in votes]
        return Participant("You", render_quiz.states_of(rights, self.skipped))


def draw_quiz(bar: DeltaGenerator) -> None:
    """Draw the quiz, for one person or, if the user is in a room, for the room.

    Args:
        bar: The row above the quiz that contains the tabs of the page.
    """
    draw_styles("play")
    if access.quiz() and current():
        draw_room(bar)
        return
    with bar:
        st.space("stretch")
        press("New round", new_seed, icon="replay", type="tertiary", key="new_round")
        with st.popover("Questions", icon=":material/tune:", type="tertiary", key="quiz_questions"):
            picked = pick_round()
        if access.quiz() or not access.read_only():
            with st.popover("Room", icon=":material/groups:", type="tertiary", key="quiz_room"):
                draw_door(picked)
    if picked is None:
        _draw_nothing()
        return
    subject, quiz = picked
    if st.session_state.get("carried_set") != subject.key:
        shown = dataset_name(subject.question_set.runs[0].dataset)
        quiet(f"The test in the slides has no quiz. Showing {shown}.")
    if not quiz.questions:
        st.info(
            "The pictures for these questions are not on this machine.",
            icon=":material/image_not_supported:",
        )
        return
    solo = st.session_state.get("quiz_solo")
    if solo is None or solo.quiz != quiz:  # other questions begin another round
        solo = st.session_state["quiz_solo"] = Solo(quiz)
    _draw_solo(subject, solo)
    # Below, where a phone shows both answers first
    frame.say_strangers(subject, names=full_names(renamed()))


def _draw_nothing() -> None:
    """Draw a message that no stored run has questions with two captions and a picture."""
    st.title("Spot the lie")
    remark = "Nothing has been run yet."
    if len(view(views.runs.question_sets)):
        remark = (
            "The stored runs are searches in galleries, but the quiz needs a picture with a true "
            "caption and a lie. Run “Wording and meaning (LGIP)” on the same pictures."
        )
    st.info(remark, icon=":material/info:")
    link_page("run", "Run a test", icon="play_arrow")


@st.fragment
def _draw_solo(subject: PageSubject, solo: Solo) -> None:
    """Draw the current question. A vote or a step to the next question reruns only this part of the page."""
    _take(solo)
    quiz = solo.quiz
    everybody = participants(subject, quiz, len(solo.votes), [solo.person], solo.skipped)
    if solo.index == len(quiz.questions):
        summary = render_quiz.summary(solo.person, everybody[1:], quiz.is_selected)
        heading, _, sentence = summary.partition(". ")
        texts = f"{heading.rstrip('.')}.", sentence
        following = _more(quiz)
        rows = render_quiz.scores_data(everybody, MOST_ROWS)
        _draw_end(subject, quiz, solo.index, texts, rows, following, KEY)
        return
    is_told = len(solo.votes) > solo.index
    is_last = solo.index + 1 == len(quiz.questions)
    vote = solo.votes[solo.index] if is_told else None
    values: dict[str, object] = {
        "next": ("See the result" if is_last else "Next question") if is_told else "",
        "skip": True,
        "scores": render_quiz.scores_data(everybody) if solo.votes else [],
    }
    draw_question(subject, quiz, solo.index, vote, is_told, (0, 0), values, key=KEY)


def _more(quiz: QuizRound) -> str:
    """Return the label of the button that starts another round."""
    return f"{count_word(len(quiz.questions)).capitalize()} more"


def _draw_end(
    subject: PageSubject,
    quiz: QuizRound,
    number: int,
    texts: tuple[str, str],
    rows: Sequence[Mapping[str, Any]],
    following: str,
    key: str,
) -> None:
    """Draw the last screen of a round: each question in a column, with the answers of people and models.

    Args:
        number: Number of the question that the component gets.
        texts: The heading, and the sentence below it.
        following: Label of the button, "" without one.
        key: Key of the component.
    """
    heading, sentence = texts
    for state, remark in SIGNS.items():
        if any(state in row["pips"] for row in rows):
            sentence = f"{sentence} {remark}".strip()
    names = [question.picture for question in quiz.questions]
    sources = addresses(store().root, names)
    note, runs = render_quiz.how_drawn(quiz), subject.question_set.runs
    is_part = quiz.n_cases < quiz.n_all and not photographs.refusal(runs[0].dataset)
    others = f"Drawn from {quiz.n_pictures} photographs. Explore can download the others."
    values = {
        "question": number,
        "open": False,
        "next": following,
        "heading": heading,
        "end": {
            "back": not st.session_state.get(decks.GUEST),
            "detail": sentence,
            "others": others * is_part,
            "pictures": [sources.get(name, "") for name in names],
            "rows": rows,
            "models": " ".join(describe_models(quiz.models, slide_names(quiz.models, renamed()))),
            "credits": [photo_values(credit) for credit in distinct_credits(names)],
            "source": published_text(runs, full_names(renamed()))
            or f"{dataset_name(runs[0].dataset)}, vlprobe.",
        },
        "note": note,
    }
    _draw_component(key, values)


def _take(solo: Solo) -> None:
    """Handle a message from the quiz component: a vote or a request for the next question. Others are ignored."""
    vote, next_index, skip = (sent_by(KEY, event) for event in ("vote", "next", "skip"))
    is_told = len(solo.votes) > solo.index
    if isinstance(vote, dict) and vote.get("question") == solo.index and not is_told:
        caption = vote.get("caption")
        if type(caption) is int and caption in (0, 1):
            solo.votes.append(caption)
    elif sent_by(KEY, "slides"):
        open_page("present", {"tab": "slides"})
    elif type(skip) is int and skip == solo.index < len(solo.quiz.questions):
        solo.votes[solo.index :] = [None]
        solo.index += 1
    elif type(next_index) is int and next_index == solo.index:
        if solo.index == len(solo.quiz.questions):
            new_seed()
            st.rerun()
        elif is_told:
            solo.index += 1


DRAWS: dict[str, str] = {"hard": "Hard ones", "fair": "Random"}
LARGEST_SEED = 10**6
# Rounds from this number on avoid the pictures on the slides. Links to earlier ones open the questions that they had
FIRST_BESIDE_SLIDES = 2 * 10**6
# Consecutive rounds that avoid each other's pictures. A link opens the same round: it depends only on seeds and slides
ROUNDS = 10
ABOUT_DRAWS = (
    "Hard: lies that fooled many of the models. Random: every lie is "
    "equally likely, so people can be compared with models."
)


def pick_round() -> tuple[PageSubject, QuizRound] | None:
    """Draw pickers for the question set and the questions in a round. Returns None if no stored run is eligible."""
    sets = _quiz_sets()
    if not sets:
        return None
    subject = page_subject(_pick("Questions of", "set", sets))
    of_probe, available = views.quiz.quiz_kinds(subject.probe), list_kinds(subject)
    in_set = [kind for kind in of_probe if kind in available]
    kinds = {kind: subject.presentation.kind(kind).label for kind in in_set or of_probe}
    kind = _pick("Kind of lie", "kind", kinds)
    draw = choose("Chosen", "quiz", DRAWS, "hard", segments=True, help_=ABOUT_DRAWS)
    quiz = _quiz_round(subject, kind, "fair" if draw == "fair" else "hard")
    if not quiz.questions and draw == "hard":
        quiet("No trained model has answered these questions, so they are drawn at random.")
        quiz = _quiz_round(subject, kind, "fair")
    return subject, quiz


def _quiz_sets() -> dict[str, str]:
    """Return labels for all question sets with two captions per case, by key: bundled ones first, then by probe."""
    probes = list(presentations())
    rows = [row for row in view(views.runs.question_set_rows) if views.quiz.quiz_kinds(row.probe)]
    rows.sort(
        key=lambda row: (not row.dataset.startswith(f"{bundled.PREFIX}:"), probes.index(row.probe))
    )
    return short_set_labels(rows)


def _pick(label: str, name: str, options: dict[str, str]) -> str:
    """Draw a picker whose choice other pages share. If their choice is not eligible here, those pages still keep it."""
    carried = st.session_state.get(f"carried_{name}", "")
    linked = st.query_params.get(name, "")
    # Also what is not eligible for the quiz
    known = set(view(views.runs.question_sets)["case_key"])
    if name == "kind":
        known = {kind for presentation in presentations().values() for kind in presentation.kinds}
    if linked and linked not in options and linked in (carried, *known):
        del st.query_params[name]
        carried = linked
    value = choose(label, name, options, next(iter(options)))
    if carried and carried not in options:
        carry(name, carried)
    return value


def _quiz_round(subject: PageSubject, kind: str, draw: Draw) -> QuizRound:
    """Return the round that the URL names. A hard round avoids the pictures on the slides and, until all have been
    shown, those of the rounds before it.
    """
    seed = round_seed()
    first = seed if draw == "fair" else seed - seed % ROUNDS
    question_set, pictures, on_slides = subject.question_set, set(), ()
    if draw == "hard" and seed >= FIRST_BESIDE_SLIDES:
        *openers, examples = view(default_cases, question_set, kind)
        cards = [*(each.card for each in openers if each), *examples.values()]
        on_slides = tuple(card.case for card in cards)
    shown = on_slides
    for each in range(first, seed):
        drawn = view(views.quiz.quiz_round, question_set, kind, draw, each, shown=shown)
        of_round = {question.picture_code for question in drawn.questions}
        if of_round & pictures:  # begin again
            shown, pictures = on_slides, set()
        shown += tuple(question.case for question in drawn.questions)
        pictures |= of_round
    return view(views.quiz.quiz_round, question_set, kind, draw, seed, shown=shown)


SEED = "quiz_seed"  # session key: seed of the last round


def round_seed() -> int:
    """Return the seed for the round from the URL. If there is none, start a new round."""
    seed_text = st.query_params.get("round", "")
    if not (seed_text.isdecimal() and len(seed_text) < 9):
        new_seed()
    st.session_state[SEED] = int(st.query_params["round"])
    return st.session_state[SEED]


def new_seed() -> None:
    """Start the next round, or the first one with a random seed. After a link to an earlier version's round, continue
    at the same place among today's rounds.
    """
    last = st.session_state.get(SEED, ROUNDS * random.randrange(LARGEST_SEED // ROUNDS) - 1)
    if last + 1 < FIRST_BESIDE_SLIDES:
        last = last % LARGEST_SEED + FIRST_BESIDE_SLIDES
    st.query_params["round"] = str(last + 1)


SIDE, DRAWN_SIDE = 720, 672  # maximum pixels of a picture, and of a redrawn demo scene


def draw_question(
    subject: PageSubject,
    quiz: QuizRound,
    index: int,
    own_vote: int | None,
    is_told: bool,
    votes: tuple[int, int],
    extra_values: Mapping[str, object],
    key: str,
) -> None:
    """Draw one quiz question. The component's messages are stored in the session under `key` (see `sent_by`).

    Args:
        subject: The question set, with the looks of models.
        quiz: The round.
        index: Index of the question, from 0.
        own_vote: Index of the caption that the user voted for, or None before a vote.
        is_told: Whether to reveal which caption is true.
        votes: Number of votes for each caption in a room.
        extra_values: Further data for the component, which overrides the data built here.
        key: Key of the component.
    """
    question = quiz.questions[index]
    names = slide_names(quiz.models, renamed())
    own_right = None if own_vote is None else own_vote == question.true_index
    heading = render_quiz.outcome(own_right, question) if is_told else render_quiz.ASKED
    ahead = quiz.questions[index + 1].picture if index + 1 < len(quiz.questions) else ""
    truth = question.captions[question.true_index]
    values = {
        "place": f"Question {index + 1} of {len(quiz.questions)}",
        "heading": heading,
        "picture": large_picture(question.picture, SIDE, DRAWN_SIDE),
        "credit": credit_values(question.picture),
        "ahead": large_picture(ahead, SIDE, DRAWN_SIDE) if ahead and is_told else "",
        "alt": truth if is_told else "The picture of this question",
        "question": index,
        "open": not is_told and own_vote is None,
        "next": "",
        "scores": [],
        "note": render_quiz.how_chosen(quiz),
        **render_quiz.question_data(question, names, subject.looks, is_told, own_vote, votes),
        **extra_values,
    }
    _draw_component(key, values)


EVENTS = ("vote", "next", "skip", "voter", "slides")


def _draw_component(key: str, values: Mapping[str, object]) -> None:
    """Draw the quiz component. The code that draws it also reads its messages (see `sent_by`)."""
    # Streamlit delivers a message only if a callback is set
    listeners: dict[str, Any] = {f"on_{event}_change": lambda: None for event in EVENTS}
    component("quiz")(key=key, data=values, **listeners)


def sent_by(key: str, event: str) -> object:
    """Return the message that a component sent for this rerun of the page, or None if it sent nothing."""
    return (st.session_state.get(key) or {}).get(event)


def participants(
    subject: PageSubject,
    quiz: QuizRound,
    n_told: int,
    people: Sequence[Participant],
    skipped: Collection[int],
) -> list[Participant]:
    """Return all people and models in a round, with their results on the questions so far. The `skipped` ones do not
    count.
    """
    names = slide_names(quiz.models, renamed())
    states = render_quiz.model_states(quiz, n_told, skipped)
    models = [
        Participant(names[model], states[model], subject.looks[model]) for model in quiz.models
    ]
    return [*people, *models]


ROOM_KEY = "room_quiz"  # of the component
QR_SIDE = 280  # pixels of the QR code in the menu of a room
LOOK = 1.5  # seconds between two refreshes of a room
_rooms = Rooms()  # not in a Streamlit cache, because a message from any visitor clears those
REVEALS = "The person who opened the room reveals the answer. Until then, you can change your vote."
NO_PHONES = (
    "Phones cannot join yet: this dashboard listens on this computer only. Stop it, and start it "
    "with this command, which lets visitors vote and read, but not run or upload anything:"
)
FOR_PHONES = "dashboard --quiz --read-only --address 0.0.0.0"
DEFAULT_PORT = "8501"  # of `vlprobe dashboard`
EVERY_INTERFACE = ("0.0.0.0", "::")  # addresses of a server that other computers can reach
ABOUT_ROOMS = (
    "Everyone in a room gets the same questions. Votes are anonymous; they stay in this server's "
    "memory and are deleted after a day. Votes on random questions give the human baseline on "
    "Compare."
)


def all_rooms() -> Rooms:
    """Return the rooms on this server."""
    return _rooms


def person_secret() -> str:
    """Return the secret that identifies the current user. It is created on first use."""
    return st.session_state.setdefault("quiz_secret", new_secret())


def current() -> str:
    """Join the room that the URL names, and return its code. Returns "" if the URL names none or joining fails."""
    code = st.query_params.get("room", "")
    if not code:
        return ""
    try:
        code = all_rooms().join(code, person_secret())
    except VlprobeError as error:
        draw_error(error)
        del st.query_params["room"]
        return ""
    if st.query_params["room"] != code:
        st.query_params["room"] = code
    return code


def is_guest() -> bool:
    """Return whether the user is in a room that someone else leads, in which people only vote. The session keeps it.

    A guest's URL names the tab of the quiz, which says so when the room closes.
    """
    if access.quiz() and (code := current()):
        is_led = not all_rooms().tally(code, person_secret()).is_host
        st.session_state[decks.GUEST] = is_led
        if is_led and st.query_params.get("tab") != "quiz":
            st.query_params["tab"] = "quiz"
        return is_led
    return False


def draw_door(picked: tuple[PageSubject, QuizRound] | None) -> None:
    """Draw a button that opens a room with the picked questions, and a form for joining a room by its code. If this
    dashboard has no rooms or phones cannot reach it, say how to start one that they reach.
    """
    if not access.quiz():
        _draw_phones("In a room, a group votes with phones. To open rooms, restart with:")
        return
    is_here = is_local(_room_address(""))
    if is_here:
        _draw_phones(NO_PHONES)
    is_empty = picked is None or not picked[1].questions
    look = {"icon": "add", "type": "secondary" if is_here else "primary", "key": "open_room"}
    label = "Open a room on this computer only" if is_here else "Open a room"
    press(label, _open_room, *picked or (), disabled=is_empty, **look)
    quiet(ABOUT_ROOMS)
    with st.form("join_room", border=False):
        st.text_input("Code of a room", key="room_code", max_chars=20, placeholder="K7DP2M")
        st.form_submit_button(
            "Join",
            icon=":material/login:",
            on_click=lambda: attempt(_enter, all_rooms().join, st.session_state["room_code"]),
        )


def _open_room(subject: PageSubject, quiz: QuizRound) -> None:
    """Open a room with a round, or with the next one if the host has already played it alone."""
    solo = st.session_state.get("quiz_solo")
    if solo is not None and solo.quiz == quiz and solo.votes:
        new_seed()
        quiz = _quiz_round(subject, quiz.kind, quiz.draw)
    _enter(all_rooms().open, quiz)


def _enter(find: Callable[..., str], *arguments: object) -> None:
    st.query_params["room"] = find(*arguments, person_secret())
    new_seed()  # the next round has other questions


def draw_room(bar: DeltaGenerator) -> None:
    """Draw the room that the user is in."""
    code = st.query_params["room"]
    tally = all_rooms().tally(code, person_secret())
    with bar:
        st.space("stretch")
        if tally.is_host:
            with st.popover(
                "New round", icon=":material/replay:", type="tertiary", key="room_round"
            ):
                picked = pick_round()

                def ask(quiz: QuizRound) -> None:
                    all_rooms().new_round(code, person_secret(), quiz)
                    new_seed()

                arguments = picked[1:] if picked else ()
                look = {"type": "primary", "key": "ask_round", "disabled": picked is None}
                press("Ask these", ask, *arguments, **look)
        # Other keys than that of the door, so that it is closed after a click on "Open a room"
        menu = "room_menu" if tally.is_host else "guest_menu"
        with st.popover(f"Room {code}", icon=":material/groups:", type="tertiary", key=menu):
            st.html(tag("p", code, class_="vp-code"))
            quiet(ABOUT_ROOMS)
            _draw_room_address(code)
            if tally.is_host:
                press("Close the room", _leave, all_rooms().close, code, key="close_room")
            else:
                press("Leave", _leave, all_rooms().leave, code, key="leave_room")
    st.fragment(_draw_room_question, run_every=LOOK)(code)


def _room_address(code: str) -> str:
    """Return the address of a room: on a server that phones can reach, not the one that works only on this computer."""
    page = st.context.url or ""
    if is_local(page) and st.get_option("server.address") in EVERY_INTERFACE:
        parts = urlsplit(page)
        host = _own_address() or "localhost"
        page = parts._replace(netloc=f"{host}:{parts.port}" if parts.port else host).geturl()
    return f"{page}?room={code}"


def _own_address() -> str:
    """Return this computer's address in its network, or "" without a network."""
    with contextlib.suppress(OSError), socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.connect(("192.0.2.1", 9))  # sends nothing: it only chooses the network
        return probe.getsockname()[0]
    return ""


def _draw_room_address(code: str) -> None:
    """Draw the address of a room and, if others can reach it, its QR code."""
    room = _room_address(code)
    if picture := _qr_code(room):
        st.image(picture, width=QR_SIDE, alt=f"QR code of {room}")
    st.code(room, language=None, wrap_lines=True)
    if is_local(room):
        _draw_phones(NO_PHONES)


def _qr_code(room: str) -> str:
    """Return the QR code of a room's address as a data URL, or "" if others cannot reach it."""
    is_reached = st.context.url and not is_local(room)
    return segno.make(room, error="m").png_data_uri(scale=8) if is_reached else ""


def _draw_phones(remark: str) -> None:
    """Draw a remark and the command that starts a dashboard with rooms that phones can reach, on the same results."""
    quiet(remark)
    port = str(st.get_option("server.port") or DEFAULT_PORT)
    words = [*FOR_PHONES.split(), *["--port", port] * (port != DEFAULT_PORT)]
    st.code(command(*words), language=None, wrap_lines=True)


def _leave(action: Callable[..., object], code: str) -> None:
    """Close or leave a room with the given action, and remove the room from the URL."""
    st.query_params.pop("room", None)
    action(code, person_secret())


def _draw_room_question(code: str) -> None:
    """Draw the room's current question. It is redrawn at short intervals, because the host may move to the next one."""
    rooms = all_rooms()
    try:
        # Join again, in case the place was freed while this page was closed
        rooms.join(code, person_secret())
        _take_room(rooms, code)
        tally, quiz = rooms.tally(code, person_secret()), rooms.quiz(code)
    except VlprobeError:  # the room was closed, or is a day old
        st.session_state["problem"] = "This room is closed."
        st.query_params.pop("room", None)
        st.rerun()
    if problem := st.session_state.pop("vote_problem", ""):
        st.warning(problem, icon=":material/info:")
    subject = page_subject(quiz.set_key)
    if tally.is_over:
        scores, texts = _room_scores(subject, quiz, tally), render_quiz.room_summary(_room(tally))
        following = _more(quiz) if tally.is_host else ""
        _draw_end(subject, quiz, tally.number + 1, texts, scores, following, ROOM_KEY)
        frame.say_strangers(subject, names=full_names(renamed()))
        return
    # Drawn outside the component, which is sent again with its picture whenever a value changes
    if not tally.is_revealed:
        _draw_votes(tally)
    draw_question(
        subject,
        quiz,
        tally.question,
        tally.own_vote,
        tally.is_revealed,
        tally.votes,
        _room_values(subject, quiz, tally, code),
        key=ROOM_KEY,
    )
    frame.say_strangers(subject, names=full_names(renamed()))


def _draw_votes(tally: Tally) -> None:
    """Draw how many people have voted, and what a guest waits for."""
    voted = f"{tally.n_votes:,} of {tally.n_people:,} voted."
    voted = tag("b", voted if tally.n_people else "No one has joined yet.")
    waits = "" if tally.is_host else tag("span", REVEALS)
    st.html(f'<p class="vp-voted">{voted}{waits}</p>')


def _room_values(
    subject: PageSubject, quiz: QuizRound, tally: Tally, code: str
) -> dict[str, object]:
    """Build the data about the room that the quiz component receives with a question. The host's screen shows how
    others join, also after the answer.
    """
    is_last = tally.question + 1 == len(quiz.questions)
    values: dict[str, object] = {
        "question": tally.number,
        "open": not tally.is_revealed,
        "scores": _room_scores(subject, quiz, tally) if tally.rights else [],
        "voter": person_secret(),
    }
    if tally.own_vote is not None and not tally.is_revealed:
        values["heading"] = "Your vote is in."
    if tally.is_revealed and tally.votes[0] == tally.votes[1] > 0:
        values["note"] = f"A tied room counts as wrong. {render_quiz.how_chosen(quiz)}"
    if tally.is_host:
        following = "See the result" if is_last else "Next question"
        values["next"] = following if tally.is_revealed else "Reveal"
        values["skip"] = True
        room = _room_address(code)
        address = "" if is_local(room) else room  # the menu of the room says the rest
        values["join"] = {"code": code, "address": address, "picture": _qr_code(room)}
    return values


def _room_scores(subject: PageSubject, quiz: QuizRound, tally: Tally) -> list[dict[str, Any]]:
    """Build the score list: the user unless they are the host, the room, and the models."""
    own = Participant("You", render_quiz.states_of(tally.own_rights, tally.skipped))
    people = [*[own] * (not tally.is_host), _room(tally)]
    everybody = participants(subject, quiz, len(tally.rights), people, tally.skipped)
    return render_quiz.scores_data(everybody, MOST_ROWS if tally.is_over else MOST_SCORES)


def _room(tally: Tally) -> Participant:
    """Return the room as a participant, which is right on a question if most of its votes are."""
    states = render_quiz.states_of(tally.rights, tally.skipped)
    return Participant(f"The room ({tally.n_people:,})", states)


def _take_room(rooms: Rooms, code: str) -> None:
    """Handle a message from the component: a vote, the host's next step, or the identity stored in the browser.

    Raises InvalidInput if the room no longer exists.
    """
    events = "vote", "next", "skip", "voter"
    vote, next_question, skip, voter = (sent_by(ROOM_KEY, event) for event in events)
    if sent_by(ROOM_KEY, "slides"):
        open_page("present", {"tab": "slides"})
    if is_secret(voter) and voter != person_secret():
        _become(rooms, code, str(voter))
    try:
        if isinstance(vote, dict):
            position = vote.get("question")
            round_number, index = divmod(position, NUMBERS) if type(position) is int else (-1, -1)
            rooms.vote(code, person_secret(), round_number, index, vote.get("caption"))
        elif type(skip) is int:
            rooms.skip(code, person_secret(), skip)
        elif type(next_question) is int:
            _move_on(rooms, code, next_question)
    except VlprobeError as error:
        rooms.quiz(code)
        st.session_state["vote_problem"] = str(error)


def _move_on(rooms: Rooms, code: str, question: int) -> None:
    """Reveal a question for its host, open the next one, or begin another round after the last."""
    tally = rooms.tally(code, person_secret())
    if tally.is_host and tally.is_over and question == tally.number + 1:
        quiz = rooms.quiz(code)
        drawn = _quiz_round(page_subject(quiz.set_key), quiz.kind, quiz.draw)
        rooms.new_round(code, person_secret(), drawn)
        new_seed()
    elif tally.is_host and question == tally.number:
        (rooms.advance if tally.is_revealed else rooms.reveal)(code, person_secret())


def _become(rooms: Rooms, code: str, voter: str) -> None:
    """Restore the identity and the votes of a person who was in the room before with the same browser."""
    if rooms.tally(code, person_secret()).is_host:
        return
    rooms.leave(code, person_secret())
    st.session_state["quiz_secret"] = voter
    rooms.join(code, voter)
    st.rerun()  # also the tabs and the menu of the room, which a host has again


def human_sentences(subject: PageSubject, models: Sequence[str]) -> list[str]:
    """Describe people's results in a sentence for each kind of lie with enough votes. Empty if rooms are disabled."""
    if not access.quiz():
        return []
    names = sentence_names(models, renamed())
    sentences = []
    for kind in views.quiz.quiz_kinds(subject.probe):
        if ballots := tuple(all_rooms().ballots(subject.key, kind)):
            arguments = subject.question_set, kind, ballots, tuple(models)
            baseline = view(views.quiz.human_baseline, *arguments)
            sentences.append(render_quiz.human_sentence(baseline, names))
    return [sentence for sentence in sentences if sentence]
