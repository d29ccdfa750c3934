"""Spot the lie in a real browser: keys, hostile text, one room of two browsers."""

from pathlib import Path

import pytest

from tests.browser.conftest import (
    HOSTILE,
    PIXEL,
    browsing,
    idle,
    mount,
    serving,
    severe_violations,
    visit,
)
from vlprobe.storage import access

pytestmark = pytest.mark.browser

TEXT = "() => document.querySelector('#host').shadowRoot.querySelector('.root').textContent"
COUNT = "(selector) => document.querySelector('#host').shadowRoot.querySelectorAll(selector).length"


def component_props(text: str, **changes: object) -> dict:
    """Return the component's data with this text in every place that shows text."""
    caption = {"runs": [[text, ""], [text, "lie"]], "state": "", "label": text, "own": "", "more": text,
               "models": [{"name": text, "path": "M0 0", "color": "red"}]}  # fmt: skip
    score = {"name": text, "path": "", "color": "", "total": "1", "unit": text, "pips": ["right"]}
    return {
        "place": text, "heading": text, "status": text, "picture": PIXEL, "ahead": "", "alt": text,
        "captions": [caption, caption], "question": 0, "open": True, "next": "", "keys": True,
        "scores": [score], "note": text, "voter": "", **changes,
    }  # fmt: skip


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
@pytest.mark.parametrize("width", [1280, 390])
def test_text_stays_text_and_fits(blank, text: str, width: int):
    problems: list[str] = []
    blank.on("pageerror", lambda error: problems.append(str(error)))
    blank.set_viewport_size({"width": width, "height": 844})
    for picture in (PIXEL, "", "https://example.org/x.png", 'data:image/svg+xml,<svg onload="1">'):
        join = {"code": text, "address": text, "picture": picture}
        data = component_props(text, picture=picture, join=join)
        data["captions"][0]["own"] = text
        mount(blank, "quiz", data)
        assert blank.evaluate(COUNT, "img") == 2 * (picture == PIXEL)
        assert blank.evaluate(COUNT, "script, iframe, a") == 0
    assert blank.evaluate(TEXT).count(text) >= 10
    blank.wait_for_timeout(50)
    assert blank.evaluate("() => window.ran") is None and problems == []
    assert blank.evaluate("() => document.documentElement.scrollWidth") <= width
    assert blank.outside == []


def test_keys_vote_once_and_continue_and_are_ignored_while_typing(blank):
    mount(blank, "quiz", component_props("a red dog"))
    blank.keyboard.press("3")
    blank.keyboard.press("ArrowRight")
    blank.keyboard.press("Control+2")
    assert blank.evaluate("() => window.sent") == []
    blank.keyboard.press("2")
    blank.keyboard.press("1")
    assert blank.evaluate("() => window.sent") == [["vote", {"question": 0, "caption": 1}]]
    blank.evaluate(
        "(data) => window.draw(data)",
        component_props("a red dog", open=False, next="Next question"),
    )
    blank.keyboard.press("1")
    blank.keyboard.press("ArrowRight")
    assert blank.evaluate("() => window.sent").pop() == ["next", 0]
    blank.keyboard.press("s")
    assert len(blank.evaluate("() => window.sent")) == 2  # only where a question may be skipped
    blank.evaluate(
        "(data) => window.draw(data)", component_props("a red dog", question=1, skip=True)
    )
    blank.keyboard.press("s")
    assert blank.evaluate("() => window.sent").pop() == ["skip", 1]
    blank.evaluate("() => window.sent.splice(2)")
    blank.evaluate(
        "() => { const field = document.createElement('input'); document.body.append(field); field.focus(); }"
    )
    blank.keyboard.press("1")
    assert len(blank.evaluate("() => window.sent")) == 2


def test_f_toggles_full_screen(blank):
    mount(blank, "quiz", component_props("a red dog"))
    blank.keyboard.press("f")
    blank.wait_for_function("() => document.fullscreenElement === document.documentElement")
    blank.keyboard.press("f")
    blank.wait_for_function("() => document.fullscreenElement === null")


def test_in_full_screen_an_answer_with_long_captions_and_scores_fits(blank):
    data = component_props("A", open=False, next="Next question", skip=True)
    names = [f"Text-tuned CLIP {place}" for place in range(11)]
    models = [{"name": name, "path": "M0 0", "color": "red"} for name in names]
    data["scores"] = [data["scores"][0] | {"name": name} for name in names]
    long = [["A dog with a red ball sits next to a cat on a wooden table. ", ""]] * 2
    votes = {"share": "67 %", "count": "2 of 3 votes"}
    shown = data["captions"][0] | {"runs": long, "state": "was-true", "label": "True"}
    data["captions"] = [shown | {"models": models[:6], "votes": votes, "more": ""}] * 2
    for width, height in ((1280, 800), (1024, 768)):
        blank.set_viewport_size({"width": width, "height": height})
        mount(blank, "quiz", data)
        blank.keyboard.press("f")
        blank.wait_for_function("() => document.fullscreenElement")
        blank.locator(".root.full").wait_for()
        box = blank.locator(".scores").bounding_box()
        assert box is not None and box["y"] + box["height"] <= height
        blank.keyboard.press("f")
        blank.wait_for_function("() => document.fullscreenElement === null")


def test_the_last_screen_shows_all_ten_questions_on_a_phone(blank):
    blank.set_viewport_size({"width": 390, "height": 844})
    pips = ["right"] * 9 + ["tied"]
    row = {"name": "CLIP_TROHN-Text", "path": "", "color": "", "total": "9.5", "unit": "of 10"}
    end = {"detail": "", "pictures": [""] * 10, "rows": [row | {"pips": pips}], "credits": []}
    mount(blank, "quiz", component_props("a", end=end | {"source": ""}))
    widths = blank.locator(".scroll").evaluate("e => [e.scrollWidth, e.clientWidth]")
    assert widths[0] <= widths[1]
    blank.set_viewport_size({"width": 1280, "height": 900})


def test_neither_a_key_nor_a_press_of_the_host_is_a_vote(blank):
    join = {"code": "K7DP2M", "address": "", "picture": ""}
    mount(blank, "quiz", component_props("a", join=join, skip=True))
    blank.keyboard.press("1")
    assert blank.locator(".option").first.is_disabled()
    assert blank.locator(".keys kbd").all_inner_texts() == ["→", "S", "F"]
    assert blank.evaluate("() => window.sent") == []


@pytest.mark.parametrize("join", [None, {"code": "K7DP2M", "address": "", "picture": ""}])
def test_the_scores_of_eight_models_are_in_one_row_in_a_window(blank, join):
    blank.set_viewport_size({"width": 1280, "height": 760})
    data = component_props("a man and a dog", open=False, next="Next question", join=join)
    mount(blank, "quiz", data | {"scores": data["scores"] * 9})
    boxes = [one.bounding_box() for one in blank.locator(".score").all()]
    assert len({box["y"] for box in boxes}) == 1
    assert boxes[0]["y"] + boxes[0]["height"] < 760


def test_a_second_vote_for_the_own_caption_is_ignored_and_another_caption_changes_it(blank):
    data = component_props("a")
    data["captions"] = [data["captions"][0], data["captions"][1] | {"own": "you"}]
    mount(blank, "quiz", data)
    colors = [
        one.evaluate("e => getComputedStyle(e).borderColor")
        for one in blank.locator(".option").all()
    ]
    assert colors[0] != colors[1]  # the chosen one stands out
    for key in ("2", "1"):
        blank.keyboard.press(key)
    assert blank.evaluate("() => window.sent") == [["vote", {"question": 0, "caption": 0}]]


def test_the_focus_survives_a_redraw_and_moves_to_the_next_question(blank):
    root = "document.querySelector('#host').shadowRoot"
    focus = f"() => {root}.activeElement?.className || ''"
    second = f"{root}.querySelectorAll('.option')[1]"
    mount(blank, "quiz", component_props("a"))
    blank.evaluate(f"() => {second}.focus()")
    blank.evaluate("(data) => window.draw(data)", component_props("a", note="somebody voted"))
    assert blank.evaluate(f"() => {second} === {root}.activeElement")
    blank.evaluate(
        "(data) => window.draw(data)", component_props("a", open=False, next="Next question")
    )
    assert blank.evaluate(focus) == "next"
    blank.evaluate("(data) => window.draw(data)", component_props("a", question=1))
    assert blank.evaluate(focus) == "heading"


def test_a_vote_by_key_takes_the_focus_so_that_enter_and_the_arrow_key_continue(blank):
    mount(blank, "quiz", component_props("a"))
    blank.evaluate(
        """() => { const tab = document.createElement('button'); document.body.append(tab);
        tab.addEventListener('keydown', (event) => event.key === 'ArrowRight' && event.stopPropagation());
        tab.focus(); }"""
    )  # a tab handles the arrow keys
    blank.keyboard.press("1")
    blank.evaluate(
        "(data) => window.draw(data)", component_props("a", open=False, next="Next question")
    )
    blank.keyboard.press("Enter")
    blank.keyboard.press("ArrowRight")
    assert blank.evaluate("() => window.sent.slice(1)") == [["next", 0], ["next", 0]]


def test_a_marked_caption_of_two_lines_does_not_scroll(blank):
    blank.set_viewport_size({"width": 1280, "height": 844})
    data = component_props("a")
    data["captions"][0]["runs"] = [["two girls and a goat in a pen " * 4, ""], ["watch", "lie"]]
    mount(blank, "quiz", data)
    heights = "e => e.scrollHeight - e.clientHeight"
    assert blank.locator(".words").first.evaluate(heights) == 0


def test_the_last_screen_has_scores_and_credits_and_the_saved_picture_has_the_credits(blank):
    credit = {
        "label": "Photo",
        "page": "https://a.example/1",
        "license": "CC BY 2.0",
        "licenseUrl": "https://b.example",
    }
    row = component_props("A")["scores"][0] | {"pips": ["tied", "right"]}
    row |= {"path": "M0 0 H9 V9 Z", "total": "1", "unit": "of 2"}
    end = {"detail": "", "pictures": ["", ""], "rows": [row]}
    second = credit | {"page": "https://a.example/2"}
    end |= {"credits": [credit, second], "source": "From X.", "models": "A is small."}
    blank.set_viewport_size({"width": 390, "height": 844})
    mount(blank, "quiz", component_props("a", end=end, open=False, next="Ten more"))
    blank.evaluate("(data) => window.draw(data)", component_props("a", open=False, next="Result"))
    blank.keyboard.press("ArrowRight")
    ended = component_props("a", end=end, open=False, next="Ten more")
    blank.evaluate("(data) => window.draw(data)", ended)
    for key in ("ArrowRight", "Enter", " "):  # the table stays until someone goes on
        blank.keyboard.press(key)
    assert [name for name, _ in blank.evaluate("() => window.sent")].count("next") == 1
    cells = blank.locator("tbody td").all_inner_texts()
    assert cells[0].split() == ["1", "of", "2"] and "right in one order only" in cells[1]
    box = blank.locator("td.total").bounding_box()
    assert box is not None and box["x"] + box["width"] < 390
    assert blank.locator(".credit a").first.get_attribute("href") == credit["page"]
    blank.evaluate(
        """() => { window.drawn = []; const write = CanvasRenderingContext2D.prototype.fillText;
        CanvasRenderingContext2D.prototype.fillText = function (text, ...at) { window.drawn.push(text);
        write.call(this, text, ...at); }; }"""
    )
    with blank.expect_download():
        blank.get_by_text("Save as a picture").click()
    drawn = blank.evaluate("() => window.drawn")
    photos = "Photos: https://a.example/1, https://a.example/2 CC BY 2.0"
    assert {"From X.", "A is small.", photos} <= set(drawn)
    blank.get_by_text("Models and photographs").click()
    assert blank.locator(".credit").inner_text() == "Photos: 1, 2 CC BY 2.0"


def test_a_phone_shows_the_picture_the_verdict_and_the_button_after_a_vote(blank):
    blank.set_viewport_size({"width": 390, "height": 640})
    data = component_props("A boy runs after a dog in a park.", picture="")
    mount(blank, "quiz", data)
    blank.locator(".option").last.click()
    told = data | {"open": False, "next": "Next question", "scores": data["scores"] * 9}
    for turn in (told, told | {"question": 1}):
        blank.evaluate("(data) => window.draw(data)", turn)
        for part in (".photo", ".heading", ".next"):
            box = blank.locator(part).bounding_box()
            assert box["y"] >= 0 and box["y"] + box["height"] <= 640, part
        blank.evaluate("() => window.scrollTo(0, document.documentElement.scrollHeight)")
    models = [
        {"name": name, "path": "M0 0", "color": "red"} for name in ("CLIP_TROHN-Img", "GPT-4V")
    ]
    shown = {
        "state": "was-true",
        "label": "True",
        "models": models,
        "runs": [["A boy runs. " * 4, ""]],
    }
    blank.evaluate("() => window.scrollTo(0, 0)")
    told = told | {"captions": [shown | {"own": "You"}, shown]}
    blank.set_viewport_size({"width": 390, "height": 844})
    blank.evaluate(
        "(data) => window.draw(data)",
        told | {"heading": "Wrong. Two of five models believed it, too."},
    )
    box, menu = blank.locator(".option").last.bounding_box(), 132
    assert box["y"] + box["height"] <= 844 - menu


def test_names_of_models_break_only_between_words(blank):
    name = {"name": "CLIP_TROHN-Text", "path": "M0 0", "color": "red"}
    for width in (1280, 1024, 390):
        blank.set_viewport_size({"width": width, "height": 844})
        data = component_props("a")
        mount(blank, "quiz", data | {"scores": [data["scores"][0] | name] * 8})
        heights = blank.locator(".score .name span").evaluate_all(
            "all => all.map((one) => Math.round(one.offsetHeight / 18))"
        )
        assert max(heights) <= (1 if width == 390 else 2), (width, heights)


@pytest.mark.full
def test_two_browsers_share_one_room(driver, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv(access.QUIZ, "1")
    with serving(tmp_path) as url, browsing(url, driver) as host, browsing(url, driver) as guest:
        visit(host, f"{url}/present?round=3&quiz=fair")
        host.get_by_role("button", name="Room").click()
        host.get_by_role("button", name="Open a room").click()
        host.wait_for_url("**room=*")
        host.get_by_role("button", name="Reveal").wait_for()
        idle(host)
        assert not host.get_by_role("button", name="Close the room").is_visible()
        host.keyboard.press("f")
        host.wait_for_function("() => document.fullscreenElement")
        assert not host.get_by_role("button", name="Search").is_visible()
        assert host.locator(".photo").bounding_box()["width"] > 480
        host.keyboard.press("f")
        code = host.url.partition("room=")[2][:6]
        guest.set_viewport_size({"width": 390, "height": 844})
        guest.emulate_media(color_scheme="dark")
        visit(guest, f"{url}/present?room={code.lower()}")
        guest.locator(".option").first.click()
        assert not guest.get_by_role("button", name="Menu").is_visible()
        guest.get_by_role("heading", name="Your vote is in.").wait_for()
        host.get_by_text("1 of 1 voted.").wait_for()
        host.get_by_role("button", name="Reveal").click()
        guest.locator(".option.was-true").wait_for()
        host.locator(".option.was-lie").wait_for()
        assert "1 of 1 vote" in host.locator(".option").first.inner_text()
        assert host.locator(".track i").first.bounding_box()["width"] > 50
        for page in (host, guest):
            page.wait_for_timeout(300)
            assert severe_violations(page) == []
            width = page.viewport_size["width"]
            assert page.evaluate("document.documentElement.scrollWidth") <= width
        guest.reload()  # the same browser keeps its identity
        guest.locator(".option.was-true").wait_for()
        guest.locator(".chip.own").wait_for()
        host.get_by_role("button", name="Next question").click()
        guest.get_by_text("Question 2 of 10").wait_for()
        idle(host)
        assert host.outside == guest.outside == []
