"""Votes of rooms become a sentence in Compare, if enough lies were drawn at random."""

import dataclasses
import math

import pytest

from tests.dashboard.test_pages import open_page
from vlprobe import views
from vlprobe.dashboard import state
from vlprobe.dashboard.play import page
from vlprobe.dashboard.play.rooms import Rooms, new_secret
from vlprobe.metrics.crossed import CrossedMean
from vlprobe.render.quiz import human_sentence
from vlprobe.storage import access
from vlprobe.storage import store as store_module
from vlprobe.storage.store import Store
from vlprobe.views.quiz import HumanBaseline, ModelBesidePeople, QuizRound

MODELS = ("dealt:1", "dealt:2")


@pytest.fixture
def rooms(monkeypatch: pytest.MonkeyPatch, filled: Store) -> Rooms:
    monkeypatch.setenv(access.QUIZ, "1")
    monkeypatch.setattr(store_module, "DEFAULT", filled.root)
    of_server = Rooms()
    monkeypatch.setattr(page, "all_rooms", lambda: of_server)
    return of_server


def play_room(rooms: Rooms, quiz: QuizRound, n_people: int = 8) -> None:
    """Play a room in which all people answer every question correctly and every answer is revealed."""
    host = new_secret()
    code = rooms.open(quiz, host)
    people = [new_secret() for _ in range(n_people)]
    for secret in people:
        rooms.join(code, secret)
    for index, question in enumerate(quiz.questions):
        for secret in people:
            rooms.vote(code, secret, 0, index, question.true_index)
        rooms.reveal(code, host)
        rooms.advance(code, host)


@pytest.mark.parametrize(("draw", "kind", "count", "says"), [
    ("fair", "combined", 34, True), ("fair", "combined", 29, False), ("hard", "combined", 34, False),
])  # fmt: skip
def test_people_are_compared_with_models_on_enough_randomly_drawn_lies(
    rooms: Rooms, filled: Store, key: str, draw, kind, count, says, monkeypatch: pytest.MonkeyPatch
):
    subject = state.page_subject(key)
    quiz = views.quiz.quiz_round(subject.question_set, kind, "fair", 1, count)
    assert len(quiz.questions) == count
    assert page.human_sentences(subject, MODELS) == []
    play_room(rooms, dataclasses.replace(quiz, draw=draw))
    sentences = page.human_sentences(subject, MODELS)
    assert bool(sentences) is says
    at = open_page(monkeypatch, filled, "compare", set=key, base=MODELS[0])
    assert any("first votes on" in one.value for one in at.markdown) is says
    if says:
        assert "Eight people are right 100.0 % of the time" in sentences[0]
        assert f"based on {8 * count} first votes on {count} lies drawn at random" in sentences[0]
        assert "people are right more often than" in sentences[0]


def test_without_rooms_compare_omits_people(
    rooms: Rooms, key: str, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.delenv(access.QUIZ)
    assert page.human_sentences(state.page_subject(key), MODELS) == []


def poll(n_people: int = 12, n_cases: int = 40, verdicts: tuple[str, ...] = ()) -> HumanBaseline:
    models = tuple(
        ModelBesidePeople(f"m{place}", 0.5, CrossedMean(0.1, 0.0, 0.2, 0.01), 0.02, verdict)
        for place, verdict in enumerate(verdicts)
    )
    return HumanBaseline(n_people, 400, n_cases, 20, CrossedMean(0.9, 0.85, 0.95, 0.001), models)


@pytest.mark.parametrize(("given", "expected"), [
    (poll(n_cases=29, verdicts=("better",)), ""),
    (poll(), "12 people are right 90.0 % of the time (95 % interval 85.0 % to 95.0 %), "
     "based on 400 first votes on 40 lies"),
    (poll(verdicts=("",)), "drawn at random."),
    (poll(verdicts=("better", "tied", "worse")), "than A (50.0 %); right less often than C (50.0 %); tied with B"),
    (poll(1, verdicts=("tied",)), "On the same lies, this person is tied with A (50.0 %)."),
    (poll(1), "One person is right 90.0 % of the time"),
])  # fmt: skip
def test_the_sentence_states_only_what_the_votes_support(given: HumanBaseline, expected: str):
    sentence = human_sentence(given, {"m0": "A", "m1": "B", "m2": "C"})
    assert expected in sentence and (sentence == "") == (expected == "")


def test_an_unknown_interval_is_not_printed():
    votes = dataclasses.replace(poll(), right=CrossedMean(0.9, math.nan, math.nan, math.nan))
    assert "interval" not in human_sentence(votes, {}) and "nan" not in human_sentence(votes, {})
