"""Spot the lie, without a browser: a round for one person, a room of two, hostile values, and data sent to browsers."""

import functools
import json
from typing import Any

import pytest
import segno
import streamlit as st
from streamlit.testing.v1 import AppTest

from tests.dashboard.test_pages import bodies, open_page, words
from vlprobe import registry, views
from vlprobe.dashboard import decks, loaded, navigation
from vlprobe.dashboard.play import page
from vlprobe.dashboard.play import rooms as play_rooms
from vlprobe.dashboard.play.rooms import Rooms, new_secret
from vlprobe.errors import InvalidInput
from vlprobe.models.demo_weights import FOLDER
from vlprobe.render.quiz import how_drawn
from vlprobe.storage import access
from vlprobe.storage.store import Store
from vlprobe.views.quiz import QuizRound
from vlprobe.views.story import default_cases

HOSTILE = [None, "", "1", 1, -1, 2, True, 0.0, [], {}, {"question": 0}, {"question": "0", "caption": 0},
           {"question": 0, "caption": "<img onerror=1>"}, {"question": 0, "caption": True},
           {"question": 10**30, "caption": 0}, {"question": 0, "caption": -5}]  # fmt: skip


class Screen:
    """The component in a browser: the data that it receives, and the events that it sends."""

    def __init__(self) -> None:
        self.told: dict[str, Any] = {}

    def __call__(self, key: str, data: dict, **callbacks: object) -> None:
        json.dumps(data)
        self.told = data


@pytest.fixture
def screen(monkeypatch: pytest.MonkeyPatch) -> Screen:
    shown = Screen()
    monkeypatch.setattr(page, "component", lambda name: shown)
    return shown


@pytest.fixture
def rooms(monkeypatch: pytest.MonkeyPatch) -> Rooms:
    """Return the rooms of a server that allows rooms."""
    monkeypatch.setenv(access.QUIZ, "1")
    of_server = Rooms()
    monkeypatch.setattr(page, "all_rooms", lambda: of_server)
    return of_server


@pytest.fixture
def show_quiz(monkeypatch: pytest.MonkeyPatch, every_probe: Store):
    return functools.partial(open_page, monkeypatch, every_probe, "present", tab="quiz")


@pytest.fixture
def key(every_probe: Store) -> dict[str, str]:
    table = views.runs.question_sets(every_probe)
    return {
        str(probe): str(key) for probe, key in zip(table["probe"], table["case_key"], strict=True)
    }


def parameter(at: AppTest, name: str) -> str:
    """Return a parameter of the address, or "" if it is missing."""
    value = at.query_params.get(name, "")
    return value if isinstance(value, str) else value[0]


def send(at: AppTest, component: str, **events: object) -> AppTest:
    """Send events of the component, and run the page."""
    at.session_state[component] = events
    at.run()
    assert not at.exception, at.exception[0].message
    at.session_state[component] = {}
    return at


def vote(at: AppTest, caption: int, question_number: int, component: str = page.KEY) -> AppTest:
    return send(at, component, vote={"question": question_number, "caption": caption})


def solo(at: AppTest) -> page.Solo:
    return at.session_state["quiz_solo"]


def test_one_person_plays_a_round_from_its_first_question_to_the_next_round(
    show_quiz, screen: Screen, monkeypatch: pytest.MonkeyPatch
):
    at = show_quiz(round="3", quiz="fair")
    assert [block.proto.popover.label for block in at.get("popover")] == [
        "Search",
        "Questions",
        "Room",
    ]
    quiz = solo(at).quiz
    assert len(quiz.questions) == 10
    for index, question in enumerate(quiz.questions):
        data = screen.told
        assert data["place"] == f"Question {index + 1} of 10" and data["open"]
        assert data["heading"] == "Which caption is true?" and not data["next"]
        choice = index % 2
        vote(at, choice, index)
        assert screen.told["heading"].startswith(
            "Right" if choice == question.true_index else "Wrong"
        )
        assert [one["state"] for one in screen.told["captions"]][question.true_index] == "was-true"
        assert screen.told["captions"][choice]["own"] == "You" and not screen.told["open"]
        pips = screen.told["scores"][0]["pips"]
        assert len(pips) == index + 1 and pips[-1] == (
            "right" if choice == question.true_index else "wrong"
        )
        if index < 9:
            assert screen.told["next"] == "Next question"
            send(at, page.KEY, next=index)
    assert screen.told["next"] == "See the result"
    send(at, page.KEY, next=9)
    data = screen.told
    assert data["heading"].startswith("You spotted") and data["next"] == "Ten more"
    you, *models = data["end"]["rows"]
    assert you["name"] == "You" and int(you["total"]) == solo(at).person.total
    assert len(models) == len(quiz.models) and len(data["end"]["pictures"]) == 10
    for row in data["end"]["rows"]:
        assert len(row["pips"]) == 10 and int(row["total"]) == row["pips"].count("right")
        assert row["unit"] == "of 10"
    assert data["end"]["credits"] == [] and data["end"]["source"].endswith(", vlprobe.")
    assert data["note"] == how_drawn(quiz)
    opened: list[object] = []
    monkeypatch.setattr(page, "open_page", lambda *link: opened.append(link))
    send(at, page.KEY, slides=True)
    assert opened == [("present", {"tab": "slides"})]
    send(at, page.KEY, next=10)
    assert solo(at).quiz != quiz and solo(at).votes == [] and parameter(at, "round") != "3"


@pytest.mark.parametrize("in_room", [False, True])
def test_the_true_caption_is_not_sent_before_it_is_revealed(
    show_quiz, screen: Screen, rooms: Rooms, in_room: bool
):
    at = show_quiz(round="3", quiz="fair")
    if in_room:
        at.button(key="open_room").click().run()
        vote(show_quiz(room=parameter(at, "room")), 0, 0, page.ROOM_KEY)
        assert screen.told["heading"] == "Your vote is in."
    data = screen.told
    assert all(
        not one["state"] and not one["label"] and not one["models"] for one in data["captions"]
    )
    assert all(not style for one in data["captions"] for _, style in one["runs"])
    question = solo(at).quiz.questions[0]
    assert data["alt"] != question.captions[question.true_index] and not data["ahead"]
    assert "true_index" not in json.dumps(data)


def test_hostile_values_from_the_component_change_nothing(show_quiz, screen: Screen, rooms: Rooms):
    at = show_quiz(round="3", quiz="fair")
    for sent in HOSTILE:
        send(at, page.KEY, vote=sent, next=sent, voter=sent)
        assert (solo(at).votes, solo(at).index) == ([], 0), sent
    at.button(key="open_room").click().run()
    code = parameter(at, "room")
    secret = at.session_state["quiz_secret"]
    for sent in HOSTILE:
        send(at, page.ROOM_KEY, vote=sent, voter=sent)
        tally = rooms.tally(code, secret)
        counted = tally.n_votes, tally.question, tally.is_revealed, tally.n_people
        assert counted == (0, 0, False, 0), sent


def test_a_question_can_be_skipped_before_and_after_the_answer(show_quiz, screen: Screen):
    at = show_quiz(round="3", quiz="fair")
    assert screen.told["skip"]
    for invalid in (7, "0", True):
        send(at, page.KEY, skip=invalid)
    assert solo(at).index == 0 and solo(at).votes == []
    send(at, page.KEY, skip=0)
    vote(at, 0, 1)
    send(at, page.KEY, skip=1)
    assert solo(at).index == 2 and {one["unit"] for one in screen.told["scores"]} == {""}
    vote(at, solo(at).quiz.questions[2].true_index, 2)
    assert screen.told["scores"][0]["pips"] == ["skipped", "skipped", "right"]
    for index in range(2, 10):
        send(at, page.KEY, skip=index)
    assert screen.told["heading"] == "You skipped every question."
    assert "skipped, not counted" in screen.told["end"]["detail"]


def test_a_vote_counts_once_and_a_late_vote_does_not_count(show_quiz, screen: Screen):
    at = show_quiz(round="3", quiz="fair")
    vote(at, 0, 0)
    vote(at, 1, 0)
    assert solo(at).votes == [0]
    send(at, page.KEY, next=0)
    send(at, page.KEY, next=0)  # clicked twice
    assert solo(at).index == 1
    vote(at, 1, 0)
    assert solo(at).votes == [0]


def test_a_new_round_has_other_questions_and_a_link_opens_the_same_round(show_quiz, screen: Screen):
    at = show_quiz(round="3", quiz="fair")
    before = solo(at).quiz
    assert solo(show_quiz(round="3", quiz="fair")).quiz == before
    at.button(key="new_round").click().run()
    assert solo(at).quiz.questions != before.questions
    assert before.draw == "fair" and "Drawn at random" in screen.told["note"]


def test_a_new_hard_round_has_other_pictures_and_its_link_opens_it_again(
    monkeypatch: pytest.MonkeyPatch, screen: Screen, bundled: Store
):
    show = functools.partial(open_page, monkeypatch, bundled, "present", tab="quiz")
    at = show(round="2000030")
    first = solo(at).quiz
    at.button(key="new_round").click().run()
    second = solo(at).quiz
    assert first.draw == second.draw == "hard" and parameter(at, "round") == "2000031"
    pictures = [{each.picture for each in one.questions} for one in (first, second)]
    assert [len(each) for each in pictures] == [10, 10] and not pictures[0] & pictures[1]
    *openers, of_types = default_cases(views.runs.question_set(bundled, first.set_key), first.kind)
    on_slides = {
        card.images[0] for card in (*(each.card for each in openers if each), *of_types.values())
    }
    assert on_slides and not on_slides & (pictures[0] | pictures[1])
    assert solo(show(round="2000031")).quiz == second
    del at.query_params["round"]  # on the way back from another page
    at.run()
    assert parameter(at, "round") == "2000032"
    for earlier in ("30", "1000030"):  # a link of an earlier version
        old = show(round=earlier)
        old.button(key="new_round").click().run()
        assert parameter(old, "round") == "2000031"


def test_with_only_controls_the_questions_are_drawn_at_random_and_the_page_explains_it(
    show_quiz, screen: Screen
):
    at = show_quiz(round="3")
    assert solo(at).quiz.draw == "fair" and "drawn at random" in words(at)


@pytest.mark.parametrize("nonsense", ["-1", "<b>", "9" * 40, "٣", "1e3"])
def test_an_invalid_round_in_the_url_starts_a_new_round(show_quiz, screen: Screen, nonsense: str):
    at = show_quiz(round=nonsense)
    assert parameter(at, "round").isdecimal() and screen.told["open"]


@pytest.mark.parametrize("probe", registry.names("probes"))
def test_the_quiz_offers_the_question_sets_with_a_wrong_caption_for_a_picture(
    show_quiz, every_probe: Store, key, screen: Screen, probe: str
):
    at = show_quiz(set=key[probe], kind="foil")  # the kind of the set before
    kinds = views.quiz.quiz_kinds(probe)
    assert not at.warning, "these results are here"
    assert at.selectbox(key="set").value == key[probe if kinds else "lgip"]
    in_set = views.runs.list_kinds(every_probe, key[probe], probe)
    offered = [kind for kind in kinds if kind in in_set]
    assert not kinds or len(at.selectbox(key="kind").options) == len(offered)
    for kind in offered[1:]:
        at.selectbox(key="kind").set_value(kind).run()
        assert not at.exception and parameter(at, "kind") == kind


def test_a_question_set_that_the_quiz_cannot_use_stays_selected_on_other_pages(
    show_quiz, key, screen: Screen
):
    at = show_quiz()
    at.session_state["carried_set"] = key["prsm"]
    at.run()
    assert at.session_state["carried_set"] == key["prsm"]
    assert at.selectbox(key="set").value == key["lgip"]
    said = "The test in the slides has no quiz. Showing "
    assert any(said in one.proto.body for one in at.get("html")), "the change is said"
    at.session_state["carried_set"] = key["lgip"]
    at.run()
    assert not any(said in one.proto.body for one in at.get("html"))


def test_an_unreadable_picture_is_named_and_the_captions_remain(
    show_quiz, screen: Screen, monkeypatch
):
    monkeypatch.setattr(page, "large_picture", lambda name, *sides: "")
    show_quiz(round="3", quiz="fair")
    assert screen.told["picture"] == "" and screen.told["alt"] and len(screen.told["captions"]) == 2


def test_without_results_the_quiz_links_to_run_a_test(monkeypatch, store: Store, screen: Screen):
    monkeypatch.setenv("VLPROBE_SHIPPED", "")
    at = open_page(monkeypatch, store, "present", tab="quiz")
    assert "Nothing has been run yet" in at.info[0].value and not screen.told
    assert [link.proto.label for link in at.get("page_link")] == ["Run a test"]


def test_without_the_setting_the_quiz_offers_no_rooms(show_quiz, screen: Screen):
    at = show_quiz(room="K7DP2M")
    assert "open_room" not in [button.key for button in at.button] and not at.error
    assert at.code[0].value.endswith("dashboard --quiz --read-only --address 0.0.0.0")


@pytest.mark.parametrize("read_only", [False, True])
def test_two_people_play_in_one_room(
    show_quiz, screen: Screen, rooms: Rooms, monkeypatch, read_only: bool
):
    if read_only:
        monkeypatch.setenv(access.READ_ONLY, "1")
    host = show_quiz(round="3", quiz="fair")
    host.button(key="open_room").click().run()
    code = parameter(host, "room")
    assert screen.told["next"] == "Reveal" and "<b>No one has joined yet.</b>" in bodies(host)
    assert screen.told["join"]["code"] == code
    guest = show_quiz()
    guest.text_input(key="room_code").set_value(f" {code[:3].lower()} {code[3:]}")
    next(button for button in guest.button if button.label == "Join").click().run()
    assert parameter(guest, "room") == code and not screen.told["next"]
    assert "join" not in screen.told
    question = rooms.quiz(code).questions[0]
    vote(guest, question.true_index, 0, page.ROOM_KEY)
    assert screen.told["heading"] == "Your vote is in." and screen.told["open"]
    vote(guest, 1 - question.true_index, 0, page.ROOM_KEY)
    vote(guest, question.true_index, 0, page.ROOM_KEY)  # a click by mistake
    assert "1 of 1 voted." in words(guest)
    assert "The person who opened the room reveals the answer." in words(guest)
    send(guest, page.ROOM_KEY, next=0)  # a guest cannot reveal the answer
    assert not rooms.tally(code, guest.session_state["quiz_secret"]).is_revealed
    vote(host, question.true_index, 0, page.ROOM_KEY)
    assert host.warning[0].value == "The person who opened the room does not vote."
    other = show_quiz(room=code)
    vote(other, 1 - question.true_index, 0, page.ROOM_KEY)
    send(host, page.ROOM_KEY, next=0)
    assert screen.told["next"] == "Next question"
    assert next(score["name"] for score in screen.told["scores"]) == "The room (2)"
    assert screen.told["join"]["code"] == code  # for those who come late
    guest.run()
    assert screen.told["heading"].startswith("Right") and not screen.told["open"]
    of_room = [one["votes"] for one in screen.told["captions"]]
    assert of_room == [{"share": "50 %", "count": "1 of 2 votes"}] * 2
    people = [score["name"] for score in screen.told["scores"]][:2]
    assert people == ["You", "The room (2)"]
    room = screen.told["scores"][1]
    assert (room["total"], room["unit"]) == ("0", "of 1")  # a tie is not a majority
    assert screen.told["note"].startswith("A tied room counts as wrong. ")
    send(host, page.ROOM_KEY, next=0)
    guest.run()
    assert screen.told["question"] == 1 and screen.told["open"]
    secret = host.session_state["quiz_secret"]
    while rooms.tally(code, secret).question < 9:
        rooms.reveal(code, secret)
        rooms.advance(code, secret)
    rooms.reveal(code, secret)
    host.run()
    assert screen.told["next"] == "See the result"
    send(host, page.ROOM_KEY, next=9)
    assert screen.told["heading"] == "The room spotted none of one lie."
    room = screen.told["end"]["rows"][0]
    assert room["unit"] == "of 1" and room["pips"][1:] == ["none"] * 9
    ballots = rooms.ballots(rooms.quiz(code).set_key, rooms.quiz(code).kind)
    assert [ballot.is_right for ballot in ballots] == [True, False]
    send(host, page.ROOM_KEY, next=9)  # a second click on "See the result"
    assert screen.told["next"] == "Ten more" and rooms.tally(code, secret).is_over
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(play_rooms, "MAX_ROUNDS", 1)
        host = send(host, page.ROOM_KEY, next=screen.told["question"])
        assert [warning.value for warning in host.warning] == [
            "A room can have at most 1 rounds. Open another room."
        ]
        assert parameter(host, "room") == code
    send(host, page.ROOM_KEY, next=screen.told["question"])
    assert screen.told["question"] == 1000 and screen.told["next"] == "Reveal"


def test_a_room_opened_after_playing_alone_has_other_questions(
    show_quiz, screen: Screen, rooms: Rooms
):
    host = show_quiz(round="2000003", quiz="fair")
    alone = solo(host).quiz
    vote(host, 0, 0)
    host.button(key="open_room").click().run()
    code = parameter(host, "room")
    assert rooms.quiz(code) == solo(show_quiz(round="2000004", quiz="fair")).quiz != alone


def test_a_vote_after_the_answer_was_revealed_is_refused_with_a_warning(
    show_quiz, screen: Screen, rooms: Rooms
):
    host = show_quiz(round="3", quiz="fair")
    host.button(key="open_room").click().run()
    guest = show_quiz(room=parameter(host, "room"))
    send(host, page.ROOM_KEY, next=0)
    vote(guest, 0, 0, page.ROOM_KEY)
    assert "after the answer was revealed" in guest.warning[0].value


def test_a_reloaded_browser_keeps_its_identity_and_vote(show_quiz, screen: Screen, rooms: Rooms):
    host = show_quiz(round="3", quiz="fair")
    host.button(key="open_room").click().run()
    code = parameter(host, "room")
    guest = show_quiz(room=code)
    vote(guest, 1, 0, page.ROOM_KEY)
    before = guest.session_state["quiz_secret"]
    again = show_quiz(room=code)  # a reload: a new session
    own_marks = [one["own"] for one in screen.told["captions"]]
    assert own_marks == ["", ""] and rooms.tally(code, before).n_people == 2
    send(again, page.ROOM_KEY, voter=before)
    assert again.session_state["quiz_secret"] == before
    assert [one["own"] for one in screen.told["captions"]] == ["", "You"]
    assert rooms.tally(code, before).n_people == 1


def test_a_guest_of_a_room_has_no_slides_and_a_host_keeps_them_after_a_reload(
    show_quiz, screen: Screen, rooms: Rooms, every_probe: Store, monkeypatch: pytest.MonkeyPatch
):
    def has_slides(at: AppTest) -> bool:
        return any("Slides" in group.options for group in at.button_group)

    host = show_quiz(round="3", quiz="fair")
    host.button(key="open_room").click().run()
    code, secret = parameter(host, "room"), host.session_state["quiz_secret"]
    assert has_slides(host)
    guest = show_quiz(room=code)
    assert not has_slides(guest) and guest.session_state[decks.GUEST]
    here = "http://10.0.0.7:8501/present"
    with monkeypatch.context() as elsewhere:  # with the host's link from another computer
        elsewhere.setattr("streamlit.runtime.context.ContextProxy.url", property(lambda _: here))
        stranger = open_page(monkeypatch, every_probe, "present", room=code, tab="slides")
    assert not has_slides(stranger) and stranger.session_state[decks.GUEST]
    # A reload is a new session
    slides = open_page(monkeypatch, every_probe, "present", room=code, tab="slides")
    assert has_slides(slides) and parameter(slides, "tab") == "slides"
    assert rooms.tally(code, secret).n_people == 2  # the guests only
    again = show_quiz(room=code)
    send(again, page.ROOM_KEY, voter=secret)
    assert has_slides(again) and not again.session_state[decks.GUEST]
    while not rooms.tally(code, secret).is_over:
        rooms.reveal(code, secret)
        rooms.advance(code, secret)
    host.run()
    assert screen.told["end"]["back"] and "?: no answer." in screen.told["end"]["detail"]
    guest.run()
    assert not screen.told["end"]["back"]


def test_the_host_starts_another_round_with_other_questions_and_closes_the_room(
    show_quiz,
    screen: Screen,
    rooms: Rooms,
    every_probe: Store,
    monkeypatch: pytest.MonkeyPatch,
):
    monkeypatch.setattr(page.random, "randrange", lambda count: 4)
    host = show_quiz(round="3", quiz="fair")
    host.button(key="open_room").click().run()
    code = parameter(host, "room")
    guest = open_page(monkeypatch, every_probe, "present", room=code)  # the link names no tab
    keys = [button.key for button in guest.button]
    assert "leave_room" in keys and not {"close_room", "ask_round"} & set(keys)
    first = rooms.quiz(code)
    host.button(key="ask_round").click().run()
    assert rooms.quiz(code) != first and screen.told["question"] == 1000
    host.button(key="close_room").click().run()
    assert not host.query_params.get("room")
    with pytest.raises(InvalidInput, match="No room has this code"):
        rooms.quiz(code)
    lost = open_page(monkeypatch, every_probe, "present", room="XXXXXX")
    for at in (guest.run(), lost):
        assert "No room has this code" in at.error[0].value and not at.query_params.get("room")
        assert parameter(at, "tab") == "quiz"


def test_a_guest_who_leaves_is_not_counted(show_quiz, screen: Screen, rooms: Rooms):
    host = show_quiz(round="3", quiz="fair")
    host.button(key="open_room").click().run()
    code = parameter(host, "room")
    guest = show_quiz(room=code)
    guest.button(key="leave_room").click().run()
    assert rooms.tally(code, host.session_state["quiz_secret"]).n_people == 0


@pytest.mark.parametrize("typed", ["", "AAAAAA", "<img src=x onerror=alert(1)>", "x" * 20])
def test_an_invalid_room_code_is_refused_in_one_line(
    show_quiz, screen: Screen, rooms: Rooms, typed: str
):
    at = show_quiz(round="3", quiz="fair")
    at.text_input(key="room_code").set_value(typed)
    next(button for button in at.button if button.label == "Join").click().run()
    assert len(at.error) == 1 and "room" in at.error[0].value and "onerror" not in at.error[0].value
    assert not at.query_params.get("room")


def test_clearing_streamlit_s_caches_keeps_the_rooms_and_the_models():
    """Clear the caches as the server does on the message `clear_cache`, which anyone may send."""
    names = ("control:random", f"demo:weak@{FOLDER / 'weak.safetensors'}")
    rooms, models = page.all_rooms(), [loaded.load_player(name) for name in names]
    st.cache_resource.clear()
    st.cache_data.clear()
    assert page.all_rooms() is rooms
    assert all(loaded.load_player(name) is model for name, model in zip(names, models, strict=True))


def test_opening_a_room_above_the_limit_shows_an_error(
    show_quiz, screen: Screen, rooms: Rooms, monkeypatch
):
    monkeypatch.setattr("vlprobe.dashboard.play.rooms.MAX_ROOMS", 1)
    at = show_quiz(round="3", quiz="fair")
    quiz: QuizRound = solo(at).quiz
    rooms.open(quiz, new_secret())
    at.button(key="open_room").click().run()
    assert "in use" in at.error[0].value


def test_the_quiz_and_try_it_share_no_url_parameters():
    quiz = {"game", "round", "room", "set", "kind", "quiz", "tab"}
    assert not quiz & set(navigation.TRY_PARAMETERS)


@pytest.mark.parametrize(
    ("old", "query", "page", "expected"),
    [
        ("play", {}, "present", {"tab": ["quiz"]}),
        ("play", {"round": "3"}, "present", {"round": ["3"], "tab": ["quiz"]}),
        ("play", {"game": "playground"}, "try", {}),
        ("play", {"caption": "Two dogs"}, "try", {"caption": ["Two dogs"]}),
        ("playground", {"caption": "Two dogs"}, "try", {"caption": ["Two dogs"]}),
    ],
)
def test_former_addresses_redirect_to_the_quiz_and_to_try_it(
    monkeypatch: pytest.MonkeyPatch, old: str, query: dict, page: str, expected: dict
):
    opened: list[tuple] = []
    monkeypatch.setattr(
        navigation.st, "switch_page", lambda file, query_params: opened.append((file, query_params))
    )
    params = {name: [value] for name, value in query.items()}

    class Linked(dict):
        def get_all(self, name: str) -> list[str]:
            return self[name]

    monkeypatch.setattr(navigation.st, "query_params", Linked(params))
    navigation.lead_on(old)
    assert opened == [(f"pages/{page}.py", expected)]


@pytest.mark.parametrize("host", ["localhost", "[::1]", "10.0.0.7"])
@pytest.mark.parametrize("is_open", [False, True])
def test_a_room_that_others_can_reach_has_a_qr_code(
    show_quiz, screen, rooms, monkeypatch, host: str, is_open: bool
):
    options = {"server.port": 8640}
    if is_open:  # the person who opens the room may use the address that works only there
        options["server.address"] = "::" if "::" in host else "0.0.0.0"
        monkeypatch.setattr(page, "_own_address", lambda: "10.0.0.7")
    monkeypatch.setattr(page.st, "get_option", lambda name: options.get(name, ""))
    here = f"http://{host}:8501/present"
    monkeypatch.setattr("streamlit.runtime.context.ContextProxy.url", property(lambda _: here))
    at = show_quiz()
    commands = [code.value for code in at.code]
    assert bool(commands) == ("10.0.0.7" not in here and not is_open)  # before a room is opened
    assert all(command.endswith("--address 0.0.0.0 --port 8640") for command in commands)
    at.button(key="open_room").click().run()
    if is_open:
        here = "http://10.0.0.7:8501/present"
    room = f"{here}?room={parameter(at, 'room')}"
    assert room in [code.value for code in at.code]
    sources = [image.url for grid in at.get("image") for image in grid.proto.imgs]
    join = screen.told["join"]
    if "10.0.0.7" not in here:
        assert join == {"code": parameter(at, "room"), "address": "", "picture": ""}
        assert not sources and page.NO_PHONES in words(at)
    else:  # in the menu, and next to the question
        picture = segno.make(room, error="m").png_data_uri(scale=8)
        assert sources == [picture]
        assert join == {"code": parameter(at, "room"), "address": room, "picture": picture}
