"""Rooms of the quiz: one vote per person and question, limits, hostile callers, many people at once."""

import dataclasses
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from vlprobe.dashboard.play import rooms as play_rooms
from vlprobe.dashboard.play.rooms import Rooms, new_secret, parse_code
from vlprobe.errors import InvalidInput
from vlprobe.views.quiz import Ballot, QuizQuestion, QuizRound

SET = "a" * 16
HOSTILE = [
    "",
    "'; DROP TABLE",
    "<img onerror=1>",
    "K7DP2",
    "ÄÖÜäöü",
    "0O1IL0",
    "x" * 5000,
    "\u202eK7DP2M",
]


def questions(count: int = 3) -> tuple[QuizQuestion, ...]:
    """Return invented questions; every second one has its true caption first."""
    segments = ((("one", True),), (("two", True),))
    return tuple(
        QuizQuestion(
            place, f"id{place}", f"item{place}", "flip", "number", f"{place}.png", place % 2,
            ("one", "two"), segments, place % 2, (),
        )
        for place in range(count)
    )  # fmt: skip


def quiz(count: int = 3, draw: str = "fair") -> QuizRound:
    assert draw in ("fair", "hard")
    return QuizRound(SET, "flip", draw, questions(count), (), 100, 100, 0, ())


class Clock:
    """A clock that a test sets."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def rooms(clock: Clock) -> Rooms:
    return Rooms(clock)


def join_people(rooms: Rooms, code: str, count: int) -> list[str]:
    secrets = [new_secret() for _ in range(count)]
    for secret in secrets:
        rooms.join(code, secret)
    return secrets


def test_people_vote_and_all_see_the_outcome_once_the_host_reveals_it(rooms: Rooms):
    host = new_secret()
    code = rooms.open(quiz(), host)
    ann, bob = join_people(rooms, code, 2)
    rooms.vote(code, ann, 0, 0, 0)
    rooms.vote(code, bob, 0, 0, 1)
    before = rooms.tally(code, ann)
    assert (before.n_people, before.n_votes, before.own_vote) == (2, 2, 0)
    assert (before.votes, before.is_revealed, before.rights) == ((0, 0), False, ())
    rooms.reveal(code, host)
    after = rooms.tally(code, bob)
    assert (after.votes, after.rights, after.own_rights) == ((1, 1), (False,), (False,))
    assert rooms.tally(code, ann).own_rights == (True,) and not after.is_host
    rooms.advance(code, host)
    later = rooms.tally(code, host)
    assert (later.question, later.is_revealed, later.own_rights) == (1, False, (None,))
    assert later.is_host


def test_a_person_has_one_vote_per_question_and_can_change_it_until_the_answer(rooms: Rooms):
    host = new_secret()
    code = rooms.open(quiz(), host)
    (ann,) = join_people(rooms, code, 1)
    rooms.vote(code, ann, 0, 0, 0)
    rooms.join(code, ann)  # a reload: the browser still has its secret
    rooms.vote(code, ann, 0, 0, 1)
    tally = rooms.tally(code, ann)
    assert (tally.own_vote, tally.n_votes, tally.n_people) == (1, 1, 1)
    rooms.reveal(code, host)
    with pytest.raises(InvalidInput, match="answer was revealed"):
        rooms.vote(code, ann, 0, 0, 0)
    assert rooms.tally(code, ann).votes == (0, 1)


def test_a_vote_after_the_answer_is_refused(rooms: Rooms):
    host = new_secret()
    code = rooms.open(quiz(), host)
    (ann,) = join_people(rooms, code, 1)
    rooms.reveal(code, host)
    with pytest.raises(InvalidInput, match="answer was revealed"):
        rooms.vote(code, ann, 0, 0, 0)
    rooms.advance(code, host)
    with pytest.raises(InvalidInput, match="is over"):
        rooms.vote(code, ann, 0, 0, 0)
    rooms.vote(code, ann, 0, 1, 0)


def test_the_host_does_not_vote_and_is_not_one_of_the_people(rooms: Rooms):
    host = new_secret()
    code = rooms.open(quiz(), host)
    with pytest.raises(InvalidInput, match="does not vote"):
        rooms.vote(code, host, 0, 0, 0)
    join_people(rooms, code, 1)
    tally = rooms.tally(code, host)
    assert (tally.n_people, tally.n_votes, tally.own_vote) == (1, 0, None)


def test_only_the_host_can_reveal_advance_close_and_start_a_round(rooms: Rooms):
    code = rooms.open(quiz(), new_secret())
    (ann,) = join_people(rooms, code, 1)
    for action in (rooms.reveal, rooms.advance, rooms.close):
        with pytest.raises(InvalidInput, match="Only the person who opened"):
            action(code, ann)
    with pytest.raises(InvalidInput, match="Only the person who opened"):
        rooms.skip(code, ann, 0)
    with pytest.raises(InvalidInput, match="Only the person who opened"):
        rooms.new_round(code, ann, quiz())


def test_a_skipped_question_ends_and_remains_in_the_human_baseline(rooms: Rooms):
    host = new_secret()
    code = rooms.open(quiz(2), host)
    (ann,) = join_people(rooms, code, 1)
    rooms.vote(code, ann, 0, 0, 0)
    for _ in range(2):  # two tabs of the host
        rooms.skip(code, host, 0)
    tally = rooms.tally(code, ann)
    assert (tally.question, tally.is_revealed, tally.skipped) == (1, False, {0})
    assert [ballot.case for ballot in rooms.ballots(SET, "flip")] == [0]
    for _ in range(2):
        rooms.skip(code, host, 1)
    assert rooms.tally(code, ann).is_over and rooms.tally(code, ann).skipped == {0, 1}


def test_advancing_needs_a_revealed_answer_and_stops_at_the_last_question(rooms: Rooms):
    host = new_secret()
    code = rooms.open(quiz(2), host)
    rooms.advance(code, host)
    assert rooms.tally(code, host).question == 0
    for _ in range(3):
        rooms.reveal(code, host)
        rooms.reveal(code, host)
        rooms.advance(code, host)
    last = rooms.tally(code, host)
    assert (last.question, last.is_revealed, len(last.own_rights)) == (1, True, 2)
    assert last.is_over and last.rights == (None, None) and last.n_people == 0


@pytest.mark.parametrize("typed", HOSTILE)
def test_an_invalid_code_is_refused_in_one_short_line(rooms: Rooms, typed: str):
    with pytest.raises(InvalidInput) as refused:
        rooms.join(typed, new_secret())
    assert str(refused.value) == "A room code has 6 letters and digits, but no 0, 1, I or O."


@pytest.mark.parametrize("secret", [*HOSTILE, "g" * 32, "A" * 32, "0" * 33])
def test_an_invalid_secret_is_refused(rooms: Rooms, secret: str):
    code = rooms.open(quiz(), new_secret())
    for action in (rooms.join, rooms.tally, rooms.reveal):
        with pytest.raises(InvalidInput):
            action(code, secret)
    with pytest.raises(InvalidInput):
        rooms.open(quiz(), secret)


@pytest.mark.parametrize(
    "vote",
    [
        (0, 0, 2),
        (0, 0, -1),
        (0, 3, 0),
        (1, 0, 0),
        (0, 0, True),
        (0, "0", 0),
        (0, 0, 0.0),
        (0, 0, None),
    ],
)
def test_an_invalid_vote_is_refused_and_changes_nothing(rooms: Rooms, vote: tuple):
    code = rooms.open(quiz(), new_secret())
    (ann,) = join_people(rooms, code, 1)
    with pytest.raises(InvalidInput):
        rooms.vote(code, ann, *vote)
    assert rooms.tally(code, ann).n_votes == 0


def test_people_outside_a_room_can_neither_vote_nor_see_the_votes(rooms: Rooms):
    code = rooms.open(quiz(), new_secret())
    stranger = new_secret()
    with pytest.raises(InvalidInput, match="not in this room"):
        rooms.vote(code, stranger, 0, 0, 0)
    with pytest.raises(InvalidInput, match="not in this room"):
        rooms.tally(code, stranger)
    with pytest.raises(InvalidInput, match="No room has this code"):
        rooms.join("AAAAAA" if code != "AAAAAA" else "BBBBBB", stranger)


def test_codes_are_random_and_readable_and_are_parsed_as_people_type_them(rooms: Rooms):
    codes = [rooms.open(quiz(), new_secret()) for _ in range(play_rooms.MAX_ROOMS)]
    assert len(set(codes)) == len(codes) and not set("".join(codes)) & set("IO01")
    assert parse_code(f" {codes[0][:3].lower()}-{codes[0][3:]} ") == codes[0]
    assert len(play_rooms.LETTERS) ** play_rooms.CODE_LENGTH > 1e9


def test_a_room_is_deleted_after_a_day(rooms: Rooms, clock: Clock):
    host = new_secret()
    code = rooms.open(quiz(), host)
    clock.now = play_rooms.LIFETIME - 1
    assert rooms.tally(code, host).n_people == 0
    clock.now += 1
    assert rooms.ballots(SET, "flip") == []
    with pytest.raises(InvalidInput, match="No room has this code"):
        rooms.tally(code, host)


def test_an_idle_room_is_replaced_when_all_rooms_are_open(rooms: Rooms, clock: Clock):
    hosts = [new_secret() for _ in range(play_rooms.MAX_ROOMS)]
    codes = [rooms.open(quiz(), host) for host in hosts]
    clock.now = play_rooms.IDLE - 1
    with pytest.raises(InvalidInput, match="in use"):
        rooms.open(quiz(), new_secret())
    (ann,) = join_people(rooms, codes[0], 1)
    rooms.vote(codes[0], ann, 0, 0, 0)
    clock.now += 1
    rooms.open(quiz(), new_secret())
    assert rooms.tally(codes[0], hosts[0]).n_votes == 1
    with pytest.raises(InvalidInput, match="No room has this code"):
        rooms.tally(codes[1], hosts[1])


def test_the_number_of_people_in_all_rooms_is_limited(rooms: Rooms):
    codes = [rooms.open(quiz(), new_secret()) for _ in range(2)]
    known = join_people(rooms, codes[0], play_rooms.MAX_PEOPLE - 2)
    with pytest.raises(InvalidInput, match="All rooms are full"):
        rooms.join(codes[1], new_secret())
    with pytest.raises(InvalidInput, match="All rooms are full"):
        rooms.open(quiz(), new_secret())
    rooms.join(codes[0], known[0])  # a person in the room stays in it
    assert rooms.tally(codes[0], known[0]).n_people == play_rooms.MAX_PEOPLE - 2


def test_a_closed_page_frees_its_place_and_its_vote_still_counts(rooms: Rooms, clock: Clock):
    host = new_secret()
    code = rooms.open(quiz(), host)
    voter, watcher, *gone = join_people(rooms, code, play_rooms.MAX_PEOPLE - 1)
    rooms.vote(code, voter, 0, 0, 1)
    clock.now = play_rooms.AWAY
    rooms.tally(code, watcher)  # as an open page does regularly
    with pytest.raises(InvalidInput, match="All rooms are full"):
        rooms.join(code, new_secret())
    clock.now += 1
    rooms.join(code, new_secret())
    assert rooms.tally(code, host).n_people == 3
    assert rooms.tally(code, voter).own_vote == 1 and rooms.tally(code, watcher).n_votes == 1
    with pytest.raises(InvalidInput, match="not in this room"):
        rooms.tally(code, gone[0])
    rooms.join(code, gone[0])
    assert rooms.tally(code, gone[0]).n_people == 4


def test_the_number_of_rounds_is_limited_and_empty_rounds_are_refused(rooms: Rooms):
    host = new_secret()
    code = rooms.open(quiz(), host)
    for _ in range(play_rooms.MAX_ROUNDS - 1):
        rooms.new_round(code, host, quiz())
    with pytest.raises(InvalidInput, match="at most"):
        rooms.new_round(code, host, quiz())
    nothing = dataclasses.replace(quiz(), questions=())
    with pytest.raises(InvalidInput, match="no question"):
        rooms.open(nothing, new_secret())


def test_ballots_are_the_first_votes_on_revealed_questions_drawn_at_random(rooms: Rooms):
    host = new_secret()
    code = rooms.open(quiz(), host)
    hard = rooms.open(quiz(draw="hard"), new_secret())
    ann, bob = join_people(rooms, code, 2)
    rooms.join(hard, ann)
    rooms.vote(hard, ann, 0, 0, 0)
    rooms.vote(code, ann, 0, 0, 0)
    rooms.vote(code, bob, 0, 0, 1)
    assert rooms.ballots(SET, "flip") == []
    rooms.reveal(code, host)
    ballots = rooms.ballots(SET, "flip")
    assert [(ballot.case, ballot.is_right) for ballot in ballots] == [(0, True), (0, False)]
    assert isinstance(ballots[0], Ballot)
    assert rooms.ballots(SET, "combined") == rooms.ballots("b" * 16, "flip") == []
    # A person has the same identity in another room.
    again = rooms.open(quiz(), new_secret())
    rooms.join(again, ann)
    rooms.vote(again, ann, 0, 0, 1)
    host_of_again = next(secret for secret in rooms._rooms[again].people if secret != ann)
    rooms.reveal(again, host_of_again)
    people = [ballot.person for ballot in rooms.ballots(SET, "flip")]
    assert people[0] == people[2] != people[1]


def test_every_vote_of_a_hundred_simultaneous_people_counts_once(rooms: Rooms):
    host = new_secret()
    code = rooms.open(quiz(5), host)
    secrets = [new_secret() for _ in range(100)]
    barrier = threading.Barrier(20)
    refused: list[str] = []

    def take_part(secret: str) -> None:
        rooms.join(code, secret)
        for caption in (0, 1):
            try:
                rooms.vote(code, secret, 0, 0, caption)
            except InvalidInput as error:
                refused.append(str(error))

    def block(secrets_of_thread: list[str]) -> None:
        barrier.wait()
        for secret in secrets_of_thread:
            take_part(secret)
            take_part(secret)  # from a second tab

    with ThreadPoolExecutor(20) as pool:
        list(pool.map(block, [secrets[start::20] for start in range(20)]))
    rooms.reveal(code, host)
    tally = rooms.tally(code, host)
    assert (tally.n_people, tally.n_votes, tally.votes) == (100, 100, (0, 100))
    assert refused == [] and tally.rights == (False,)
