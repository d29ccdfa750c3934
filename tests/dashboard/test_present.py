"""Present, without a browser: the pickers, the slides of every probe, the next case, the exported file."""

import base64
import io
import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
import streamlit as st
from PIL import Image
from streamlit.testing.v1 import AppTest

from tests.conftest import case_key_of, make_tiny, question_set_of, tiers
from tests.dashboard.walls import component_values, send
from vlprobe import registry, views
from vlprobe.dashboard import access as dashboard_access
from vlprobe.dashboard import decks, export, frame, present
from vlprobe.errors import InvalidInput
from vlprobe.render import charts
from vlprobe.render.attribution import credit_values
from vlprobe.render.sentences import sentence_names
from vlprobe.render.slides import arrangement as arrangements
from vlprobe.render.slides import deck, values
from vlprobe.render.slides.arrangement import CASE, TEXT, Arrangement
from vlprobe.render.slides.values import Slide
from vlprobe.render.words import presentations
from vlprobe.runs.request import Request
from vlprobe.runs.run import execute
from vlprobe.storage import access, shipped
from vlprobe.storage.store import Store
from vlprobe.surfaces import paper, powerpoint
from vlprobe.views.story import opener, order, story


def talk(at: AppTest) -> dict:
    """Return the data of the slides."""
    ((_, sent),) = component_values(at, "slides")
    return sent


def first_of(value: str | list[str]) -> str:
    """Return a parameter of the address, which is a list once a page has set it."""
    return value if isinstance(value, str) else value[0]


@pytest.mark.parametrize("probe", tiers(registry.names("probes"), ("rococo", "series", "visla")))
def test_every_probe_has_a_talk(
    show_page, every_probe: Store, probe: str, monkeypatch: pytest.MonkeyPatch
):
    if probe == "lgip":  # then the button says how to install what is missing
        monkeypatch.setattr(powerpoint, "is_installed", lambda: False)
    key = dict(views.runs.question_sets(every_probe).set_index("probe")["case_key"])[probe]
    at = show_page(every_probe, "present", set=key)
    sent = talk(at)
    assert sent["heading"] == "All models here are controls, which should fail."
    assert [slide["id"] for slide in sent["slides"]][:2] in (["vote", "reveal"], ["truth", "lie"])
    keys = {one["key"] for slide in sent["slides"] for one in slide["pictures"]}
    assert keys == set(sent["pictures"])
    assert all(source.startswith("data:image/webp;base64,") for source in sent["pictures"].values())
    assert sum(map(len, sent["pictures"].values())) < 1_000_000
    buttons = {element.proto.label: element.proto for element in at.get("download_button")}
    assert "HTML" in buttons
    is_needed = buttons["PowerPoint"].disabled
    assert is_needed != powerpoint.is_installed()
    assert ("pip install 'vlprobe[slides]'" in buttons["PowerPoint"].help) == is_needed


def test_another_one_opens_the_next_case_and_writes_it_to_the_address(show_page, compared: Store):
    at = show_page(compared, "present", model="guess")
    first = talk(at)["slides"][0]
    at.button(key="another").click().run()
    case_id = first_of(at.query_params["case"])
    assert talk(at)["slides"][0] != first
    again = show_page(compared, "present", case=case_id)
    assert talk(again)["slides"] == talk(at)["slides"]


def test_another_opening_case_keeps_the_standings_and_the_mixture(show_page, mixed_store: Store):
    link = {"set": case_key_of(mixed_store), "kind": "i2t"}
    first = talk(show_page(mixed_store, "present", **link))["slides"]
    follows = next(slide["case"] for slide in first if slide["id"] == "more")
    other = talk(show_page(mixed_store, "present", **link, case=follows))["slides"]
    assert [slide["id"] for slide in other] == [slide["id"] for slide in first]
    assert other[0]["case"] == follows != first[0]["case"]
    before, after = (
        {slide["id"]: (slide["heading"], slide["bars"], slide["note"]) for slide in slides}
        for slides in (first, other)
    )
    assert "mixed" in after
    for name in {*after} & {"models", "better", "often", "mixed"}:
        assert after[name] == before[name]


def test_a_full_deck_opens_on_a_linked_case_only_if_it_has_it(
    show_page, store_copy: Store, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(decks, "store", lambda: store_copy)
    monkeypatch.setattr(present, "MOST_SLIDES", 10)
    key = case_key_of(store_copy)
    at = show_page(store_copy, "present", kind="flip")
    added, other = [one["id"].removeprefix(CASE) for one in talk(at)["suggestions"]][:2]
    decks.add_cases(key, "flip", [added])
    texts = tuple(f"text:{number}" for number in range(10))
    arrangement = decks.read(f"{key} flip")
    decks.save(f"{key} flip", replace(arrangement, order=(*arrangement.order, *texts)))
    full = talk(show_page(store_copy, "present", kind="flip", case=added))
    assert full["opened"] == f"{CASE}{added}"
    without = talk(show_page(store_copy, "present", kind="flip", case=other))
    assert without["opened"] == ""
    assert [slide["id"] for slide in without["slides"]] == [slide["id"] for slide in full["slides"]]


def test_a_deck_without_a_checked_slide_can_be_neither_started_nor_downloaded(
    show_page, store_copy: Store
):
    at = show_page(store_copy, "present", kind="flip")
    ids = [slide["id"] for slide in talk(at)["slides"]]
    sent = {"titles": {}, "notes": {}, "known": ids}
    for is_on in (False, True):
        send_deck(at, sent | {"order": ids, "included": dict.fromkeys(ids, is_on)})
        buttons = {one.proto.label: one.proto for one in at.get("download_button")}
        assert buttons["HTML"].disabled != is_on
        assert (talk(at)["detail"] == present.NO_SLIDE) != is_on


def test_each_tab_shows_its_content_when_selected_again(show_page, compared: Store):
    at = show_page(compared, "present")
    for tab in ("quiz", "slides", "quiz", "slides"):
        at.segmented_control(key="tab").set_value(tab).run()
        assert not at.exception and at.segmented_control(key="tab").value == tab


def test_another_kind_has_another_talk(show_page, compared: Store):
    at = show_page(compared, "present", kind="flip")
    believed = talk(at)["slides"]
    subjects = at.selectbox(key="about")
    assert subjects.value == f"{case_key_of(compared)} flip"
    assert any(label.endswith(": a rewording") for label in subjects.options)
    subjects.set_value(f"{case_key_of(compared)} paraphrase").run()
    moved = talk(at)["slides"]
    assert believed[1]["options"] and {one["style"] for one in believed[1]["options"]} == {
        "true",
        "lie",
    }
    assert moved[1]["tag"] == ["Same meaning, different words", ""]
    assert first_of(at.query_params["kind"]) == "paraphrase"


def test_a_case_of_another_kind_opens_the_first_case_of_the_chosen_kind(show_page, compared: Store):
    question_set = question_set_of(compared)
    other = views.cases.failures(
        question_set, views.filter.Filter("guess", "paraphrase", outcome="all")
    )[0]["id"].iloc[0]
    first = talk(show_page(compared, "present", kind="flip"))["slides"]
    assert talk(show_page(compared, "present", kind="flip", case=other))["slides"] == first


def test_a_deck_keeps_its_first_case_when_the_url_names_a_case_of_another_kind(
    show_page, store_copy: Store
):
    name = f"{views.runs.question_sets(store_copy)['case_key'].iloc[0]} flip"
    at = show_page(store_copy, "present", kind="flip")
    send_deck(at, {"order": [], "included": {}, "titles": {}, "notes": {"closing": "Thanks"}})
    at.button(key="another").click().run()
    opening, first = decks.read(name).opening, talk(at)["slides"][0]
    assert opening == first_of(at.query_params["case"])
    foreign = views.cases.failures(
        views.runs.question_set(store_copy, name.split()[0]),
        views.filter.Filter("guess", "paraphrase", outcome="all"),
    )[0]["id"].iloc[0]
    at = show_page(store_copy, "present", kind="flip", case=foreign)
    assert talk(at)["slides"][0] == first
    send_deck(at, {"order": [], "included": {}, "titles": {}, "notes": {"closing": "Bye"}})
    assert decks.read(name).opening == opening


def test_after_another_one_the_deck_has_two_cases(show_page, compared: Store):
    at = show_page(compared, "present", kind="flip")
    for _ in range(2):
        at.button(key="another").click().run()
        pictures = {slide["id"]: slide["pictures"] for slide in talk(at)["slides"]}
        assert pictures["more"][0]["alt"] != pictures["reveal"][0]["alt"]


def send_deck(at: AppTest, sent: dict) -> AppTest:
    """Send an arrangement from the slides, with the keys of all their slides."""
    known = [slide["id"] for slide in talk(at)["slides"]]
    return send(at, "slides", "deck", {**sent, "known": known})


def test_a_deck_keeps_its_order_ticks_titles_notes_and_added_cases(
    show_page, store_copy: Store, monkeypatch: pytest.MonkeyPatch
):
    at = show_page(store_copy, "present", kind="flip")
    ids = [slide["id"] for slide in talk(at)["slides"]]
    keys = [slide["key"] for slide in talk(at)["slides"]]
    suggested = talk(at)["suggestions"][0]["id"]
    order = [ids[1], ids[0], suggested, *ids[2:]]
    send_deck(
        at,
        {
            "order": order,
            "included": {ids[2]: False},
            "titles": {keys[1]: "Ours"},
            "notes": {keys[0]: "One\nTwo"},
        },
    )
    again = talk(show_page(store_copy, "present", kind="flip"))["slides"]
    assert [slide["id"] for slide in again] == order
    by_id = {slide["id"]: slide for slide in again}
    assert by_id[ids[1]]["heading"] == [["Ours", ""]] and by_id[ids[0]]["notes"] == ["One", "Two"]
    assert not by_id[ids[2]]["on"] and by_id[suggested]["on"]
    assert suggested not in [
        one["id"] for one in talk(show_page(store_copy, "present", kind="flip"))["suggestions"]
    ]
    other = talk(show_page(store_copy, "present", kind="paraphrase"))["slides"]
    assert suggested not in [slide["id"] for slide in other]


def test_a_deck_is_reset_and_the_reset_is_undone(show_page, store_copy: Store):
    at = show_page(store_copy, "present", kind="flip")
    assert "reset" not in [button.key for button in at.button]
    slides = talk(at)["slides"]
    ids = [slide["id"] for slide in slides]
    order = [ids[1], talk(at)["suggestions"][0]["id"], ids[0], *ids[2:]]
    texts = {slides[0]["key"]: "Ours"}
    send_deck(at, {"order": order, "included": {ids[0]: False}, "titles": texts, "notes": texts})
    changed = talk(at)["slides"]
    assert [slide["id"] for slide in changed] == order
    # Another page changes the deck meanwhile: Undo restores what is stored, not what was drawn
    elsewhere = show_page(store_copy, "present", kind="flip")
    again = {"order": order, "included": {ids[0]: False}, "titles": {}, "notes": {}}
    send_deck(elsewhere, again | {"known": order})
    changed = talk(elsewhere)["slides"]
    for label, expected in (("Reset the deck", slides), ("Undo reset", changed)):
        assert at.button(key="reset").label == label
        at.button(key="reset").click().run()
        assert talk(at)["slides"] == expected
        assert talk(show_page(store_copy, "present", kind="flip"))["slides"] == expected


def test_a_slide_with_text_has_a_title_and_lines_and_is_removed(show_page, store_copy: Store):
    at = show_page(store_copy, "present", kind="flip")
    ids = [slide["id"] for slide in talk(at)["slides"]]
    order = ["text:1", *ids]
    send_deck(at, {"order": order, "included": {}, "titles": {}, "notes": {}})
    assert talk(at)["slides"][0]["heading"] == [["Title", ""]]
    titles = {"text:1": "What models see\nA talk\n26 November"}
    send_deck(at, {"order": order, "included": {}, "titles": titles, "notes": {}})
    added = talk(show_page(store_copy, "present", kind="flip"))["slides"][0]
    assert added["heading"] == [["What models see", ""]] and added["on"]
    assert added["detail"] == "A talk\n26 November"
    send_deck(at, {"order": ids, "included": {}, "titles": {}, "notes": {}})
    assert [
        slide["id"] for slide in talk(show_page(store_copy, "present", kind="flip"))["slides"]
    ] == ids


def test_a_title_and_a_note_belong_to_the_case_of_the_slide(
    show_page, store_copy: Store, monkeypatch: pytest.MonkeyPatch
):
    at = show_page(store_copy, "present", kind="flip")
    first = talk(at)["slides"][0]["case"]

    def first_two() -> list[tuple[object, object]]:
        return [(slide["titled"], slide["noted"]) for slide in talk(at)["slides"]][:2]

    def give(title: str) -> None:
        slides = talk(at)["slides"]
        sent = {"order": [slide["id"] for slide in slides], "included": {}}
        texts = {slides[0]["key"]: title}
        send_deck(at, {**sent, "titles": texts, "notes": texts})

    give("Ours")
    assert first_two() == [("Ours", "Ours"), (None, None)]
    at.button(key="another").click().run()
    assert first_two() == [(None, None), (None, None)]
    give("Theirs")
    assert first_two()[0] == ("Theirs", "Theirs")
    again = show_page(store_copy, "present", kind="flip")  # as from the navigation, without case
    assert talk(again)["slides"][0]["titled"] == "Theirs"
    again.button(key="another").click().run()
    third = talk(again)["slides"][0]
    assert third["titled"] is None
    assert talk(show_page(store_copy, "present", kind="flip"))["slides"][0] == third
    linked = show_page(store_copy, "present", kind="flip", case=first)
    added, slides = f"case:{first}", talk(linked)["slides"]
    assert talk(linked)["opened"] == added and slides[0] == third
    assert [each for each in slides if each["id"] != added] == talk(again)["slides"]
    assert added not in [each["id"] for each in talk(linked)["suggestions"]]
    names = [each["id"] for each in slides if each["id"] != added]
    send_deck(
        linked,
        {"order": names, "included": {}, "known": [*names, added], "titles": {}, "notes": {}},
    )
    assert added not in [each["id"] for each in talk(linked)["slides"]]  # removed
    shown = show_page(store_copy, "present", kind="flip", case=third["case"])
    assert talk(shown)["opened"] == "vote" and talk(shown)["slides"][0] == third


def test_a_question_that_is_one_slide_with_its_answer_has_its_own_title_and_note(
    show_page, store_copy: Store
):
    at = show_page(store_copy, "present", kind="flip")
    slides = talk(at)["slides"]
    (more,) = (slide for slide in slides if slide["question"])
    texts = {more["question"]["key"]: "Guess."}
    order = [slide["id"] for slide in slides]
    send_deck(at, {"order": order, "included": {}, "titles": texts, "notes": texts})
    (changed,) = (slide for slide in talk(at)["slides"] if slide["question"])
    assert changed["question"]["heading"] == [["Guess.", ""]]
    assert changed["question"]["notes"] == ["Guess."]
    assert (changed["heading"], changed["notes"]) == (more["heading"], more["notes"])


def test_after_another_one_the_previous_case_returns_with_its_title_order_and_notes(
    show_page, store_copy: Store
):
    at = show_page(store_copy, "present", kind="flip")
    slides = talk(at)["slides"]
    texts = {slides[0]["key"]: "Ours"}
    assert "browsers" not in talk(at)["detail"]
    order = [slide["id"] for slide in (slides[2], *slides[:2], *slides[3:])]
    send_deck(at, {"order": order, "included": {}, "titles": texts, "notes": texts})
    edited = talk(at)["slides"]
    assert talk(at)["detail"].endswith(" All browsers on this computer share your changes.")
    assert edited[1]["titled"] == "Ours" and "previous" not in [each.key for each in at.button]
    for _ in range(2):
        at.button(key="another").click().run()
    assert talk(at)["slides"][1]["titled"] is None
    for _ in range(2):
        at.button(key="previous").click().run()
    assert talk(at)["slides"] == edited and "previous" not in [each.key for each in at.button]
    assert talk(show_page(store_copy, "present", kind="flip"))["slides"] == edited


@pytest.mark.parametrize("n_before", [0, 1])
def test_cases_that_the_deck_chooses_are_never_those_that_the_user_added(
    show_page, store_copy: Store, monkeypatch: pytest.MonkeyPatch, n_before: int
):
    monkeypatch.setattr(decks, "store", lambda: store_copy)
    at = show_page(store_copy, "present", kind="flip")
    for _ in range(n_before):
        at.button(key="another").click().run()
    cases = {slide["id"]: slide["case"] for slide in talk(at)["slides"]}
    key = case_key_of(store_copy)
    decks.add_cases(key, "flip", [cases["more"], cases["vote"]][: 2 - n_before])
    at.run()
    for page in (at, at, at, show_page(store_copy, "present", kind="flip")):
        if page is at:
            at.button(key="another").click().run()
        slides = [slide for slide in talk(page)["slides"] if slide["id"] not in ("vote", "said")]
        shown = [slide["case"] for slide in slides if slide["case"]]
        assert cases["more"] in shown and len(set(shown)) == len(shown) >= 3


def test_an_added_case_is_before_the_last_slide_and_a_damaged_or_too_long_deck_is_one_line(
    show_page, store_copy: Store, monkeypatch: pytest.MonkeyPatch
):
    at = show_page(store_copy, "present", kind="flip")
    case_id = talk(at)["suggestions"][0]["id"].removeprefix(CASE)
    key = case_key_of(store_copy)
    monkeypatch.setattr(decks, "store", lambda: store_copy)
    for _ in range(2):  # the second one changes nothing
        decks.add_cases(key, "flip", [case_id])
    added = show_page(store_copy, "present", kind="flip")
    ids = [slide["id"] for slide in talk(added)["slides"]]
    assert ids.index(f"{CASE}{case_id}") == ids.index("closing") - 1
    for sent in ({"order": [str(number) for number in range(241)]}, {"order": 3}, "deck"):
        send(added, "slides", "deck", sent)
        assert len(added.error) == 1 and not added.exception
        assert [slide["id"] for slide in talk(added)["slides"]] == ids


@pytest.mark.parametrize("server", ["read-only", "sign-in", "another computer"])
def test_a_visitor_s_deck_is_stored_for_the_session_only(
    show_page, compared: Store, monkeypatch: pytest.MonkeyPatch, server: str
):
    if server == "another computer":
        monkeypatch.setattr(dashboard_access, "LOCAL_HOSTS", ())
    else:
        setting = access.READ_ONLY if server == "read-only" else access.SIGN_IN
        monkeypatch.setenv(setting, "1")
        monkeypatch.setattr(frame, "admit", lambda: None)
    at = show_page(compared, "present", kind="flip")
    is_own = server != "another computer"
    saved = "Saved until you close this page" if is_own else "Saved in this browser"
    assert talk(at)["saved"] == saved
    ids = [slide["id"] for slide in talk(at)["slides"]]
    sent = {"order": ids[::-1], "included": {}, "titles": {}, "notes": {}}
    send_deck(at, sent)
    assert [slide["id"] for slide in talk(at)["slides"]] == ids[::-1]
    assert "browsers" not in talk(at)["detail"]
    assert not (compared.root / "mine" / "decks.json").exists()


def test_only_this_computer_has_the_stored_deck_and_another_browser_restores_its_deck(
    show_page, store_copy: Store, monkeypatch: pytest.MonkeyPatch
):
    at = show_page(store_copy, "present", kind="flip")
    ids = [slide["id"] for slide in talk(at)["slides"]]
    sent = {"order": ids[::-1], "included": {}, "titles": {}, "notes": {}}
    send_deck(at, sent | {"titles": {talk(at)["slides"][0]["key"]: "The presenter's title"}})
    assert talk(at)["kept"] is None
    monkeypatch.setattr(dashboard_access, "LOCAL_HOSTS", ())
    phone = show_page(store_copy, "present", kind="flip")
    assert [slide["id"] for slide in talk(phone)["slides"]] == ids
    assert "The presenter's title" not in json.dumps(talk(phone))
    assert talk(phone)["kept"]["text"] == ""
    send_deck(phone, sent | {"order": [*ids[:2], f"{TEXT}1", *ids[2:]]})
    kept = talk(phone)["kept"]
    files: dict[str, Callable[[], str]] = {}
    monkeypatch.setattr(present, "file_button", lambda *given, **_: files.update([given[:2]]))
    phone.run()
    assert kept["text"] and '"kept":null' in files["HTML"]()
    again = show_page(store_copy, "present", kind="flip")  # after a reload
    send_deck(again, sent | {"order": [*ids, f"{TEXT}2"]})  # a slide added before the deck arrived
    send(again, "slides", "kept", json.loads(kept["text"]))
    expected = [*ids[:2], f"{TEXT}1", *ids[2:-1], f"{TEXT}2", ids[-1]]
    assert [slide["id"] for slide in talk(again)["slides"]] == expected
    send(again, "slides", "kept", {"order": 3})
    assert len(again.error) == 1 and not again.exception
    monkeypatch.setattr(dashboard_access, "LOCAL_HOSTS", ("localhost",))
    presenter = show_page(store_copy, "present", kind="flip")
    assert [slide["id"] for slide in talk(presenter)["slides"]] == ids[::-1]


@pytest.mark.parametrize("page", ["tradeoff", "compare"])
def test_a_figure_of_a_page_is_a_slide_until_it_is_removed(
    show_page, compared: Store, monkeypatch: pytest.MonkeyPatch, page: str
):
    drawn = Image.new("RGB", (1344, 800), "white")
    buffer = io.BytesIO()
    drawn.save(buffer, "PNG")
    monkeypatch.setattr(export, "can_render", lambda: True)
    monkeypatch.setattr(paper, "exported", lambda figure, suffix: buffer.getvalue())
    monkeypatch.setattr(dashboard_access, "LOCAL_HOSTS", ())  # stored for the session
    at = show_page(compared, page, tab="differences", kind="flip")
    name = {"tradeoff": "tradeoff", "compare": "forest"}[page]
    at.button(key=f"deck_{name}").click().run()
    assert at.toast[0].value == "Added to the slides." and not at.error
    deck_of_page = dict(at.session_state[decks.DECK])
    at = show_page(compared, "present", kind="flip")
    at.session_state[decks.DECK] = deck_of_page
    at.run()
    slides = talk(at)["slides"]
    ((place, slide),) = [pair for pair in enumerate(slides) if pair[1]["layout"] == "figure"]
    assert slides[place + 1]["id"] == "closing" and slide["on"]
    assert len(slide["heading"][0][0]) > 10  # the finding of the page
    source = talk(at)["pictures"][slide["pictures"][0]["key"]]
    content = base64.b64decode(source.partition(",")[2])
    assert Image.open(io.BytesIO(content)).size == drawn.size
    order = [one["id"] for one in slides]
    sent = {"order": order[::-1], "included": {}, "titles": {slide["key"]: "Ours"}, "notes": {}}
    send_deck(at, sent)
    assert [one["id"] for one in talk(at)["slides"]] == order[::-1]
    assert [one["titled"] for one in talk(at)["slides"] if one["id"] == slide["id"]] == ["Ours"]
    send_deck(at, {**sent, "order": [each for each in order if each != slide["id"]]})
    assert slide["id"] not in [one["id"] for one in talk(at)["slides"]]
    (text,) = at.session_state[decks.DECK].values()
    assert "data:image" not in text


def test_a_deck_accepts_a_limited_number_of_figures_and_only_embedded_pictures():
    arrangement = Arrangement()
    for number in range(arrangements.MOST_FIGURES):
        arrangement = arrangement.with_figure(f"figure:{number}", arrangements.PICTURE, "A finding")
    with pytest.raises(InvalidInput, match="Remove one first"):
        arrangement.with_figure("figure:x", arrangements.PICTURE, "")
    hostile = {**json.loads(arrangement.text()), "figures": {"figure:0": "https://example.org"}}
    assert not arrangements.parse(hostile).figures


def test_a_deck_is_saved_for_the_drawn_case_and_keeps_later_additions(
    compared: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    store = Store(tmp_path / "cache")
    monkeypatch.setattr(decks, "store", lambda: store)
    sent = {
        "order": ["vote", "case:kept", "closing"],
        "included": {},
        "titles": {"vote a": "New"},
        "known": ["vote", "case:kept", "case:removed", "figure:removed", "closing"],
    }
    other = arrangements.parse({"order": ["vote"], "included": {}, "titles": {"vote b": "B"}})
    decks.save("set other", other)
    picture = arrangements.PICTURE
    before = {
        "order": ["case:kept", "case:removed", "figure:removed", "case:elsewhere", "figure:new"],
        "included": {},
        "titles": {"vote a": "Old", "vote b": "B", "case:elsewhere": "C"},
        "figures": {"figure:removed": picture, "figure:new": picture},
    }
    decks.save("set flip", arrangements.parse(before))
    monkeypatch.setitem(present.st.session_state, present.SLIDES_KEY, {"deck": sent})
    monkeypatch.setitem(present.st.query_params, "case", "b")
    present._save_sent("set flip", ["vote a", "case:kept", "closing"], "a")
    saved = decks.read("set flip")
    assert saved.opening == "a"
    assert saved.order == ("vote", "case:kept", "case:elsewhere", "figure:new", "closing")
    assert saved.titles == {"vote b": "B", "case:elsewhere": "C", "vote a": "New"}
    assert list(saved.figures) == ["figure:new"] and decks.read("set other") == other


def test_a_slide_that_a_stored_deck_does_not_know_comes_before_the_closing_one():
    slides = [Slide(name, ((name, ""),)) for name in ("vote", "models", "closing")]
    arranged = arrangements.arrange(slides, Arrangement(order=("closing", "vote")))
    assert [slide.id for slide in arranged] == ["models", "closing", "vote"]


def test_an_added_case_keeps_its_title_from_an_earlier_deck():
    case = Slide(id="case:k1", heading=(("Found", ""),), case="k1")
    deck_before = {"order": ["case:k1"], "included": {}, "titles": {"case:k1": "Mine"}}
    (slide,) = arrangements.arrange([case], arrangements.parse(deck_before))
    assert slide.title == "Mine"


def test_without_results_present_shows_a_note(show_page, tmp_path):
    at = show_page(Store(tmp_path / "none"), "present")
    assert not component_values(at, "slides")
    assert any("No results yet" in element.proto.body for element in at.get("html"))


def build_slides(store: Store, key: str, kind: str) -> tuple[tuple[Slide, ...], values.Values]:
    question_set = views.runs.question_set(store, key)
    slides = deck.slides(story(question_set, kind))
    looks = charts.styles.styles(question_set.models)
    names = sentence_names(list(looks), {})
    addresses = dict.fromkeys(values.picture_names(slides), "data:image/webp;base64,AAAA")
    return slides, values.talk_values(slides, looks, addresses, names, "Heading", "Detail")


def test_the_last_slide_shows_a_picture_that_fooled_the_best_model():
    question_set = question_set_of(Store(shipped.PUBLISHED_FOLDER), dataset="bundled:SugarCrepe")
    told = story(question_set, "foil")
    closing = deck.slides(told)[-1]
    cards = [*told.examples.values(), *(each.card for each in (told.opener, told.more) if each)]
    fooled = {
        one.model
        for card in cards
        if card.images[0] == closing.pictures[0].name
        for one in card.verdicts
        if one.margin <= 0
    }
    assert told.standings.fit[0].model in fooled


def test_every_kind_of_every_probe_has_slides_that_can_be_sent(every_probe: Store):
    for row in views.runs.question_sets(every_probe).itertuples():
        question_set = views.runs.question_set(every_probe, row.case_key)
        for kind in set(views.estimates.choices(question_set)["kind"]):
            slides, sent = build_slides(every_probe, row.case_key, kind)
            ids = [slide.id for slide in slides]
            assert ids[:2] in (["vote", "reveal"], ["truth", "lie"]) and "closing" in ids
            assert len(set(ids)) == len(ids) <= 8
            assert all(slide.spoken for slide in slides)
            assert all(len(run) == 2 for slide in slides for run in slide.heading)
            json.dumps(sent, allow_nan=False)
            better = next((slide for slide in slides if slide.id == "better"), None)
            assert better is None or not any(bar.style == "best" for bar in better.bars)
            if presentations()[row.probe].kind(kind).is_movement:
                assert not any("believe" in slide.spoken for slide in slides)


def test_a_mixture_has_a_slide_in_the_talks_of_other_kinds(mixed_store: Store):
    key = case_key_of(mixed_store)
    slides, _ = build_slides(mixed_store, key, "i2t")
    mixed = next(slide for slide in slides if slide.id == "mixed")
    assert [one.label for one in mixed.pictures] == [
        "The right picture",
        "The other picture",
        "Ranked first instead",
    ]
    assert mixed.note.startswith("Table (captions.csv): ")
    assert mixed.title == "A fifth of another picture is enough to lose the right one."
    assert "mixed" not in [slide.id for slide in build_slides(mixed_store, key, "t2i")[0]]


def test_a_mixture_of_other_models_or_other_pictures_is_not_in_the_deck(
    mixed_store: Store, tmp_path: Path
):
    store = Store(shutil.copytree(mixed_store.root, tmp_path / "cache"))
    searched = views.runs.question_sets(store)["dataset"].iloc[0]
    others = ("control:random", "control:constant")
    execute(Request(others, searched, "lgip", examine=False), store)
    execute(Request(others[:1], make_tiny(tmp_path / "tiny"), "lgip", examine=False), store)
    for row in views.runs.question_sets(store).itertuples():
        if row.probe == "lgip":
            assert story(views.runs.question_set(store, row.case_key), "flip").mixture is None
        else:
            of_its_own = story(views.runs.question_set(store, row.case_key), "i2t").mixture
            assert of_its_own is not None and of_its_own.dataset == searched


def test_a_model_that_failed_its_checks_is_not_counted_in_a_talk(
    mixed_store: Store, monkeypatch: pytest.MonkeyPatch
):
    question_set = question_set_of(mixed_store)
    everyone = story(question_set, "i2t").models
    failed = question_set.run(everyone[0])
    digests = {(failed.model_digest, failed.dataset_digest)}
    monkeypatch.setattr(views.paired_tests.examine, "models_at_chance", lambda store: digests)
    talk_story = story(question_set, "i2t")
    assert talk_story.models == everyone[1:] and len(everyone) == 3
    fooled = [
        {row["case"] for row in rows if row["kind"] == "i2t" and row["margin"] <= 0}
        for model in talk_story.models
        for rows in [mixed_store.run(question_set.run(model).key).table("scores").to_pylist()]
    ]
    n_fooled = [sum(case in each for each in fooled) for case in order(question_set, "i2t")]
    assert n_fooled == sorted(n_fooled, reverse=True) and len(set(n_fooled)) > 1
    assert talk_story.mixture is not None and talk_story.mixture.n_models == 2
    assert deck.describe_questions(talk_story, presentations()["rococo"].kind("i2t")).startswith(
        "Two models, "
    )
    both = replace(talk_story, mixture=replace(talk_story.mixture, n_fooled=2))
    (mixed,) = (slide for slide in deck.slides(both) if slide.id == "mixed")
    assert mixed.detail.endswith(" Both models lose this picture to its own mixture.")


def test_a_talk_begins_with_a_case_whose_picture_is_here_and_draws_no_empty_frame(
    show_page, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    store, name = Store(tmp_path / "cache"), make_tiny(tmp_path / "tiny") + "+unpictured"
    execute(Request(("control:constant",), name, "lgip", examine=False), store)
    key = store.read_runs()[0][0]["case_key"]
    question_set = views.runs.question_set(store, key)
    pictures = sorted((tmp_path / "tiny").rglob("*.png"))
    kept = pictures.pop()
    for picture in pictures:
        picture.unlink()
    opening = opener(question_set, "flip")
    assert opening is not None
    assert [Path(image).name for image in opening.card.images] == [kept.name]
    kept.unlink()
    show_page(store, "present", kind="flip")
    monkeypatch.setattr(decks, "store", lambda: store)
    decks.add_cases(key, "flip", [opening.card.id])
    said = "Added to the slides without its picture, which is not on this computer."
    assert st.session_state["toast"].startswith(said)
    at = show_page(store, "present", kind="flip")
    added = next(slide for slide in talk(at)["slides"] if slide["id"].startswith(CASE))
    for slide in (added, added["question"]):
        assert slide["options"] and not slide["pictures"]
        assert slide["lacks"]
    assert any("“No picture”" in one.proto.body for one in at.get("html"))
    assert at.button(key="slides_download_ask")
    slides, _ = build_slides(store, key, "flip")
    assert not values.picture_names(slides)
    assert {slide.layout for slide in slides if slide.id in ("vote", "reveal")} == {"stacked"}


def test_a_slide_credits_the_photographer_whom_the_data_name(tmp_path: Path):
    store, (name, *others) = Store(tmp_path / "cache"), ("<b>Ann Bee</b>", "")
    rows = ["image,caption,Photographer"]
    for color, author in (("red", name), ("blue", others[0])):
        Image.new("RGB", (40, 30), color).save(tmp_path / f"{color}.png")
        rows.append(f"{color}.png,A {color} dog on a bench.,{author}")
    (tmp_path / "all.csv").write_text("\n".join(rows))
    dataset = f"csv:{tmp_path / 'all.csv'}"
    execute(Request(("control:constant",), dataset, "lgip", examine=False), store)
    key = store.read_runs()[0][0]["case_key"]
    question_set = views.runs.question_set(store, key)
    credits = {}
    for case in store.cases(key).table("cases").to_pylist():
        slides = deck.slides(
            replace(story(question_set, "flip"), opener=opener(question_set, "flip", case["id"]))
        )
        (picture,) = slides[0].pictures
        credits[Path(picture.name).stem] = credit_values(picture.name, picture.author)
    expected = {"label": f"Photo: {name}", "page": "", "license": "", "licenseUrl": ""}
    assert credits == {"red": expected, "blue": None}


def test_a_deck_of_many_pictures_loads_large_ones_only_near_the_open_slide(
    show_page, compared: Store, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(present, "MANY_PICTURES", 1)
    monkeypatch.setattr(present, "NEAR", 1)
    large: list[str] = []
    monkeypatch.setattr(present, "large_picture", lambda name, _side: large.append(name) or "")
    at = show_page(compared, "present", kind="flip")
    slides = talk(at)["slides"]
    assert talk(at)["near"] == [slides[0]["id"]]
    assert f"{len(slides)} slides; a deck has at most 240." in talk(at)["detail"]
    large.clear()
    at.session_state[present.SLIDES_KEY] = {"near": slides[1]["id"]}
    at.run()
    assert talk(at)["near"] == [slide["id"] for slide in slides[:2]]
    shots = {shot["name"] for slide in slides[:2] for shot in slide["pictures"]}
    assert shots
    assert {Path(name).name for name in large} == shots


def test_the_font_of_exported_slides_is_found_in_streamlit():
    assert present._font().startswith(b"wOF2")
