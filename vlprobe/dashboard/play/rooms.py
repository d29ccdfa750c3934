"""Rooms in which several people take the quiz together. Rooms exist only in this server's memory.

A room is found by its random code. The person who opens it reveals the questions; each other person has one vote per
question until the answer is revealed. No one has a name, only a secret that only that person's browser has; ballots
have numbers instead. Votes are deleted with their room, after a day at the latest.
"""

import re
import secrets
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import wraps
from typing import Concatenate, ParamSpec, TypeVar

from vlprobe.errors import InvalidInput
from vlprobe.views.quiz import Ballot, QuizRound

MAX_ROOMS = 20
MAX_PEOPLE = 200  # in all rooms
MAX_ROUNDS = 50  # in one room
NUMBERS = 1000  # numbers of questions reserved for one round
LIFETIME = 24 * 3600.0  # seconds
IDLE = 3600.0  # seconds without a vote after which a room may make way for a new one
# Seconds after which a page counts as closed; one in the background asks once a minute
AWAY = 300.0
LETTERS = "ABCDEFGHJKLMNPQRSTUVWXYZ23456789"  # no letters or digits that are easily confused
CODE_LENGTH = 6
Parameters = ParamSpec("Parameters")
Answer = TypeVar("Answer")


@dataclass(frozen=True, slots=True)
class Tally:
    """The data about a room's current question that a person in the room may see."""

    round_number: int
    question: int  # index of the question, from 0
    is_revealed: bool
    is_over: bool  # whether the result of the round is shown
    n_people: int  # without the host
    n_votes: int  # on this question
    votes: tuple[int, int]  # for each caption; (0, 0) until the answer is revealed
    # For each question so far, whether more than half of the votes were right; None: nobody voted
    rights: tuple[bool | None, ...]
    own_vote: int | None
    own_rights: tuple[bool | None, ...]  # for each question so far; None: no vote
    skipped: frozenset[int]  # indices of questions that do not count
    is_host: bool

    @property
    def number(self) -> int:
        """Number of the question, unique in the room."""
        return NUMBERS * self.round_number + self.question


@dataclass(slots=True)
class _Round:
    quiz: QuizRound
    revealed: int = 0  # number of questions revealed so far
    current: int = 0
    is_over: bool = False
    # For each question: the caption chosen by each person
    votes: list[dict[str, int]] = field(default_factory=list)
    skipped: set[int] = field(default_factory=set)


@dataclass(slots=True)
class _Room:
    opened_at: float
    voted_at: float
    host: str
    people: dict[str, float]  # when each person was last seen, by secret
    rounds: list[_Round]

    def has_voted(self, secret: str) -> bool:
        """Return whether a person has voted in any round."""
        return any(secret in votes for each in self.rounds for votes in each.votes)


def _locked(
    method: Callable[Concatenate["Rooms", Parameters], Answer],
) -> Callable[Concatenate["Rooms", Parameters], Answer]:
    """Decorate a method of `Rooms` so that it holds the lock and first closes rooms that are a day old."""

    @wraps(method)
    def call(rooms: "Rooms", *arguments: Parameters.args, **named: Parameters.kwargs) -> Answer:
        with rooms.lock:
            rooms.close_old()
            return method(rooms, *arguments, **named)

    return call


class Rooms:
    """All rooms on a server. Methods raise InvalidInput if a room does not exist or an action is not allowed."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self.lock = threading.RLock()
        self._clock = clock
        self._rooms: dict[str, _Room] = {}

    def close_old(self) -> None:
        """Delete rooms that were opened at least a day ago."""
        now = self._clock()
        for code in [
            code for code, room in self._rooms.items() if now - room.opened_at >= LIFETIME
        ]:
            del self._rooms[code]

    @_locked
    def open(self, quiz: QuizRound, secret: str) -> str:
        """Open a room with a first round, and return the room's code. The person with the given secret is the host."""
        _check_secret(secret)
        if not quiz.questions:
            raise InvalidInput("The quiz has no questions.")
        if len(self._rooms) >= MAX_ROOMS:
            self._make_way()
        self._make_room_for_one()
        now = self._clock()
        code = self._new_code()
        self._rooms[code] = _Room(now, now, secret, {secret: now}, [_started(quiz)])
        return code

    @_locked
    def join(self, code: str, secret: str) -> str:
        """Add a person to a room, unless they are already in it. Returns the room's code in its normal form.

        Args:
            code: The code as the person typed it.
            secret: Secret of the person.
        """
        _check_secret(secret)
        code = parse_code(code)
        room = self._room(code)
        if secret not in room.people:
            self._make_room_for_one()
            room.people[secret] = self._clock()
        return code

    @_locked
    def leave(self, code: str, secret: str) -> None:
        """Remove a person from a room. People who voted keep their place and votes. The host cannot leave."""
        room = self._joined(code, secret)
        if secret == room.host:
            raise InvalidInput("The person who opened the room can close it but not leave it.")
        if not room.has_voted(secret):
            del room.people[secret]

    @_locked
    def vote(
        self, code: str, secret: str, round_number: int, question: int, caption: object
    ) -> None:
        """Record a person's vote on the current question, which replaces an earlier one until the answer is revealed.

        Args:
            code: Code of the room.
            secret: Secret of the person.
            round_number: Index of the round, from 0.
            question: Index of the question, from 0.
            caption: Index of the caption that the person thinks is true, 0 or 1.
        """
        room = self._joined(code, secret)
        if secret == room.host:
            raise InvalidInput("The person who opened the room does not vote.")
        current = room.rounds[-1]
        if type(round_number) is not int or type(question) is not int:
            raise InvalidInput("Invalid vote: question and caption must be whole numbers.")
        if type(caption) is not int or caption not in (0, 1):
            raise InvalidInput("Invalid vote: choose the first or the second caption.")
        if (round_number, question) != (len(room.rounds) - 1, current.current):
            raise InvalidInput("That question is over.")
        if current.revealed > question:
            raise InvalidInput("Your vote came after the answer was revealed.")
        current.votes[question][secret] = caption
        room.voted_at = self._clock()

    @_locked
    def reveal(self, code: str, secret: str) -> None:
        """Reveal the answer to the current question, which ends voting on it. Only the host may do this."""
        room = self._hosted(code, secret)
        current = room.rounds[-1]
        if current.revealed == current.current:
            current.revealed += 1

    @_locked
    def advance(self, code: str, secret: str) -> None:
        """Move to the next question in the round, or from the last one to the result. Only the host may do this."""
        room = self._hosted(code, secret)
        current = room.rounds[-1]
        if current.revealed > current.current:
            current.is_over = current.current + 1 == len(current.votes)
            current.current += not current.is_over

    @_locked
    def skip(self, code: str, secret: str, number: int) -> None:
        """Leave the current question out of the round's score, and move on. Only the host may do this. If another tab
        has moved on from the question with this number (`Tally.number`), nothing changes.

        It remains one of the `ballots`: otherwise the host could choose the questions of the human baseline.
        """
        room = self._hosted(code, secret)
        current = room.rounds[-1]
        is_meant = number == NUMBERS * (len(room.rounds) - 1) + current.current
        if is_meant and not current.is_over:
            current.skipped.add(current.current)
            self.reveal(code, secret)
            self.advance(code, secret)

    @_locked
    def new_round(self, code: str, secret: str, quiz: QuizRound) -> None:
        """Start another round and keep the votes from earlier rounds. Only the host may do this."""
        room = self._hosted(code, secret)
        if len(room.rounds) >= MAX_ROUNDS:
            raise InvalidInput(f"A room can have at most {MAX_ROUNDS} rounds. Open another room.")
        if not quiz.questions:
            raise InvalidInput("The quiz has no questions.")
        room.rounds.append(_started(quiz))

    @_locked
    def close(self, code: str, secret: str) -> None:
        """Close a room and delete its votes. Only the host may do this."""
        self._hosted(code, secret)
        del self._rooms[code]

    @_locked
    def quiz(self, code: str) -> QuizRound:
        """Return the questions in the current round."""
        return self._room(code).rounds[-1].quiz

    @_locked
    def tally(self, code: str, secret: str) -> Tally:
        """Return the data about the current question that a person in the room may see now."""
        room = self._joined(code, secret)
        current = room.rounds[-1]
        truths = [question.true_index for question in current.quiz.questions]
        is_revealed = current.revealed > current.current
        votes = list(current.votes[current.current].values())
        over = list(zip(truths, current.votes, strict=True))[: current.revealed]
        return Tally(
            round_number=len(room.rounds) - 1,
            question=current.current,
            is_revealed=is_revealed,
            is_over=current.is_over,
            n_people=len(room.people) - 1,
            n_votes=len(votes),
            votes=(votes.count(0), votes.count(1)) if is_revealed else (0, 0),
            rights=tuple(
                2 * list(of_question.values()).count(true) > len(of_question)
                if of_question
                else None
                for true, of_question in over
            ),
            own_vote=current.votes[current.current].get(secret),
            own_rights=tuple(
                of_question[secret] == true if secret in of_question else None
                for true, of_question in over
            ),
            skipped=frozenset(current.skipped),
            is_host=secret == room.host,
        )

    @_locked
    def ballots(self, set_key: str, kind: str) -> list[Ballot]:
        """Return the votes on revealed questions from one set and kind in randomly drawn rounds, oldest room first. A
        person has the same number in all rooms.
        """
        numbers: dict[str, int] = {}
        return [
            Ballot(
                numbers.setdefault(secret, len(numbers)),
                question.case,
                question.picture_code,
                caption == question.true_index,
            )
            for room in self._rooms.values()
            for quiz_round in room.rounds
            if quiz_round.quiz.draw == "fair"
            and (quiz_round.quiz.set_key, quiz_round.quiz.kind) == (set_key, kind)
            for question, votes in zip(
                quiz_round.quiz.questions[: quiz_round.revealed], quiz_round.votes, strict=False
            )
            for secret, caption in votes.items()
        ]

    def _room(self, code: str) -> _Room:
        room = self._rooms.get(code)
        if room is None:
            raise InvalidInput("No room has this code. Check the code; codes expire after a day.")
        return room

    def _joined(self, code: str, secret: str) -> _Room:
        """Return a room that a person has joined, and note that they are still there. Raises InvalidInput if they have
        not joined it.
        """
        room = self._room(code)
        _check_secret(secret)
        if secret not in room.people:
            raise InvalidInput("You are not in this room. Enter its code to join.")
        room.people[secret] = self._clock()
        return room

    def _hosted(self, code: str, secret: str) -> _Room:
        room = self._joined(code, secret)
        if secret != room.host:
            raise InvalidInput("Only the person who opened the room can do that.")
        return room

    def _make_way(self) -> None:
        """Close the room that has gone longest without a vote. Raises InvalidInput if all rooms are in use."""
        code, room = min(self._rooms.items(), key=lambda entry: entry[1].voted_at)
        if self._clock() - room.voted_at < IDLE:
            raise InvalidInput(f"All {MAX_ROOMS} rooms on this server are in use. Try again later.")
        del self._rooms[code]

    def _make_room_for_one(self) -> None:
        if self._n_people() >= MAX_PEOPLE:
            self._free_abandoned_places()
        if self._n_people() >= MAX_PEOPLE:
            raise InvalidInput(f"All rooms are full ({MAX_PEOPLE} people). Try again later.")

    def _n_people(self) -> int:
        return sum(len(room.people) for room in self._rooms.values())

    def _free_abandoned_places(self) -> None:
        """Remove people who have closed the page, except hosts and people who have voted."""
        for room in self._rooms.values():
            for secret, seen_at in list(room.people.items()):
                is_away = self._clock() - seen_at > AWAY
                if is_away and secret != room.host and not room.has_voted(secret):
                    del room.people[secret]

    def _new_code(self) -> str:
        while True:
            code = "".join(secrets.choice(LETTERS) for _ in range(CODE_LENGTH))
            if code not in self._rooms:
                return code


def parse_code(typed: str) -> str:
    """Convert a typed room code to its normal form. Raises InvalidInput if the text cannot be a code.

    >>> parse_code(" k7d-p2m ")
    'K7DP2M'
    """
    code = re.sub(r"[\s-]", "", typed[:100]).upper()
    if not re.fullmatch(f"[{LETTERS}]{{{CODE_LENGTH}}}", code):
        raise InvalidInput(
            f"A room code has {CODE_LENGTH} letters and digits, but no 0, 1, I or O."
        )
    return code


def new_secret() -> str:
    """Create a random secret that identifies one person. No one else sees it."""
    return secrets.token_hex(16)


def is_secret(text: object) -> bool:
    """Return whether a value has the form of a secret from `new_secret`."""
    return isinstance(text, str) and bool(re.fullmatch("[0-9a-f]{32}", text))


def _check_secret(secret: str) -> None:
    if not is_secret(secret):
        raise InvalidInput("Your session was not recognized. Reload the page.")


def _started(quiz: QuizRound) -> _Round:
    return _Round(quiz, votes=[{} for _ in quiz.questions])
