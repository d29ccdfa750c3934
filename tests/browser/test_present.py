"""The file for offline use, opened from the disk with the network off: keys, notes, hostile text."""

import json
import re

import pytest

from tests.browser.conftest import PIXEL, another, mount
from tests.browser.test_keyboard import ACTIVE
from tests.conftest import tiers
from tests.render.test_slides import hostile_file

pytestmark = pytest.mark.browser
READ = """() => { const show = document.querySelector('.show');
  return { open: show.open, heading: show.querySelector('.title').textContent, alert: window.hacked || '',
    count: show.querySelector('.count').textContent, said: show.querySelector('[role=status]').textContent,
    notes: !show.querySelector('.speaker').hidden, black: !show.querySelector('.black').hidden,
    wide: show.querySelector('.stage').scrollWidth > show.querySelector('.stage').clientWidth }; }"""


def test_the_file_opens_without_a_network_and_responds_to_keys(blank, tmp_path):
    text, sent = hostile_file()
    (tmp_path / "slides.html").write_text(text, encoding="utf-8")
    with another(blank) as page:
        problems: list[str] = []
        page.on("pageerror", lambda error: problems.append(str(error)))
        page.on(
            "console", lambda message: message.type == "error" and problems.append(message.text)
        )
        page.on("dialog", lambda dialog: problems.append("dialog"))
        page.context.set_offline(True)
        page.goto(f"file://{tmp_path / 'slides.html'}")

        def press(key: str) -> dict:
            page.keyboard.press(key)
            return page.evaluate(READ)

        count = sum(slide["on"] for slide in sent["slides"])
        scrolls = "getComputedStyle(document.documentElement).overflow"
        assert page.evaluate(scrolls) == "hidden"  # no scroll bar for the page behind the slides
        state = page.evaluate(READ)
        assert state["open"] and state["count"] == f"1 of {count}" and not state["notes"]
        second = press("ArrowRight")
        expected = "".join(run[0] for run in sent["slides"][1]["heading"])
        assert second["heading"] == expected and second["said"].startswith(f"Slide 2 of {count}.")
        for width in (1280, 390):
            page.set_viewport_size({"width": width, "height": 844})
            assert not page.evaluate(READ)["wide"]
        assert press("Space")["count"].startswith("3 ")
        assert press("ArrowLeft")["count"].startswith("2 ")
        assert press("End")["count"] == f"{count} of {count}"
        assert press("ArrowRight")["count"] == f"{count} of {count}"
        assert press("Home")["count"].startswith("1 ")
        assert press("n")["notes"] and not press("n")["notes"]
        press("n")
        assert n_pages(page.pdf(prefer_css_page_size=True)) == count  # no blank page
        press("n")
        assert press("?")["open"] and press("b")["black"]
        assert not press("b")["black"]
        assert not press("Escape")["open"]
        assert page.evaluate(scrolls) == "visible"
        assert page.locator(".page :is(input, textarea, .act, .add)").count() == 0
        page.context.set_offline(False)
        assert problems == [] and page.outside == []


# The smallest font size of all texts on a slide, in pixels.
LEAST = """() => { const stage = document.querySelector('#host').shadowRoot.querySelector('.stage'), sizes = [];
  const texts = document.createTreeWalker(stage, NodeFilter.SHOW_TEXT);
  while (texts.nextNode()) { const element = texts.currentNode.parentElement;
    if (texts.currentNode.textContent.trim() && !element.closest('.hidden, .answer'))
      sizes.push(parseFloat(getComputedStyle(element).fontSize)); }
  return Math.min(...sizes); }"""


@pytest.mark.parametrize(
    ("width", "height"), tiers([(1280, 800), (1280, 720), (1920, 1080)], [(1280, 720)])
)
def test_text_on_a_slide_has_at_least_20_pixels_and_the_hint_of_keys_fades(
    blank, width: int, height: int
):
    sent = hostile_file()[1] | {"whole": False, "start": "Begin", "detail": "", "heading": "Slides"}
    blank.set_viewport_size({"width": width, "height": height})
    mount(blank, "slides", sent)
    blank.locator("button.start").click()
    for _ in range(sum(slide["on"] for slide in sent["slides"])):
        assert blank.evaluate(LEAST) >= 20
        blank.keyboard.press("ArrowRight")
    blank.locator(".still .keys").wait_for(state="attached", timeout=6000)
    blank.mouse.move(300, 300)
    assert blank.locator(".still").count() == 0


# The drawn slides that are higher than their frame or screen.
CUT = """() => [...document.querySelector('#host').shadowRoot.querySelectorAll('.slide')]
  .filter((one) => one.parentElement.clientHeight && one.offsetHeight > one.parentElement.clientHeight + 1)
  .map((one) => one.className)"""


def test_the_line_of_guessing_runs_through_no_value(blank):
    sent = hostile_file()[1] | {"whole": False, "start": "Begin", "detail": "", "heading": "Slides"}
    (slide,) = (one for one in sent["slides"] if one["id"] == "better")
    bar = slide["bars"][0] | {"text": "55.4 %", "start": 0, "low": None, "high": None}
    bars = [bar | {"end": end} for end in (0.3, 0.6, 0.65, 0.7)]
    sent["slides"] = [slide | {"bars": bars, "limit": 0.67}]
    mount(blank, "slides", sent)
    blank.locator("button.start").click()
    line = blank.locator(".stage .limit").first.bounding_box()
    assert line
    for value in blank.locator(".stage .value").all():
        box = value.bounding_box()
        assert box and not box["x"] <= line["x"] <= box["x"] + box["width"]


def test_four_numbers_are_in_one_row_and_on_a_narrow_screen_in_two(blank):
    sent = hostile_file()[1] | {"whole": False, "start": "Begin", "detail": "", "heading": "Slides"}
    figure = {"figure": "41.6 %", "label": "a mixed picture (90 % stays)", "detail": "3 of 7"}
    sent["slides"] = [sent["slides"][-1] | {"figures": [figure] * 4, "pictures": []}]
    mount(blank, "slides", sent)
    blank.locator("button.start").click()
    for width, rows in ((1280, 1), (1024, 1), (390, 2)):
        blank.set_viewport_size({"width": width, "height": 800})
        # The slide is drawn again after the window has its size
        blank.wait_for_function(
            """rows => {
                const numbers = document.querySelector("#host").shadowRoot.querySelectorAll(".stage .figures b");
                return new Set([...numbers].map((one) => Math.round(one.getBoundingClientRect().y))).size === rows;
            }""",
            arg=rows,
        )


def wordy_reveal() -> dict:
    """Return slides with two votes: the answers have names of models, and captions of three lines."""
    sent = hostile_file()[1] | {"whole": False, "start": "Begin", "detail": "", "heading": "Slides"}
    mark = {"path": "M0 0h9v9z", "color": "#123456", "state": "held", "word": "not fooled"}
    marks = [mark | {"name": f"CLIP_TROHN-Text {number}"} for number in range(3)]
    caption = [["A woman riding a pink bike down a wet street next to a man who walks.", ""]]
    options = [{"caption": caption, "style": style, "marks": marks} for style in ("lie", "true")]
    slide = sent["slides"][0] | {
        "heading": [["One of six models believes the lie, one right in one order only.", ""]],
        "detail": "CLIP_COCO, CLIP_TROHN-Img and CLIP_TROHN-Text noticed.",
        "layout": "beside",
        "pictures": [{"key": "p0", "alt": "A street", "label": "", "style": "", "name": "a.png"}],
        "on": True,
    }
    sent["pictures"] = {"p0": PIXEL}
    plain = [one | {"style": "", "marks": []} for one in options]
    vote = slide | {"id": "vote", "options": plain}
    sent["slides"] = [vote, slide | {"id": "reveal", "options": options}]
    return sent


@pytest.mark.parametrize(
    "width, height", tiers([(1280, 800), (1280, 720), (1024, 768)], [(1280, 720)])
)
def test_a_slide_fits_its_screen_its_preview_and_its_thumbnail_at_every_font_size(
    blank, width: int, height: int
):
    blank.set_viewport_size({"width": width, "height": height})
    mount(blank, "slides", wordy_reveal())
    blank.locator("button.small").nth(1).click()
    blank.wait_for_function(f"() => ({CUT})().length === 0")
    blank.locator("button.start").click()
    for key in "112":
        blank.keyboard.press(key)
    blank.keyboard.press("ArrowRight")
    assert blank.get_by_text("2 of 3 votes").count()
    named = blank.locator(".show .chip .named").first
    for _ in range(6):
        assert blank.evaluate(CUT) == []
        assert width < 1280 or blank.evaluate(LEAST) >= 20
        if "hidden" in named.get_attribute("class"):
            assert blank.locator(".show .tally").first.inner_text() == "3 of 6 models"
        blank.keyboard.press("+")
    assert blank.locator(".show .tally").first.is_visible()
    blank.keyboard.press("n")
    blank.locator(".speaker").wait_for()
    blank.wait_for_function(f"() => ({CUT})().length === 0")


def test_the_editor_shows_the_last_slide_and_a_new_start_clears_the_votes(blank):
    mount(blank, "slides", wordy_reveal())
    start = blank.locator("button.start")
    start.click()
    for key in ("1", "0", "2"):
        blank.keyboard.press(key)
    blank.locator(".show .options > li").first.click()
    blank.keyboard.press("ArrowRight")
    blank.locator(".show .options > li").first.click()  # voting has ended
    votes = blank.locator(".show .votes")
    assert votes.all_inner_texts() == ["1 of 2 votes", "1 of 2 votes"]
    blank.keyboard.press("Escape")
    blank.locator(".small[aria-pressed=true]", has_text="One of six models").wait_for()
    blank.wait_for_function(ACTIVE, arg="button.start")
    blank.locator("button.large").click()
    assert votes.count() == 2  # the talk continues
    blank.keyboard.press("Escape")
    blank.wait_for_function(ACTIVE, arg="button.large")
    start.click()
    blank.keyboard.press("ArrowRight")
    assert votes.count() == 0
    blank.keyboard.press("Escape")


def test_slides_can_be_moved_checked_renamed_and_annotated_and_each_change_is_sent(blank):
    page = {"whole": False, "start": "Begin", "detail": "", "heading": "Slides", "editable": True}
    sent = hostile_file()[1] | page
    sent["suggestions"] = [{"id": "case:b", "source": "", "alt": "Two dogs", "label": "Number"}]
    mount(blank, "slides", sent)
    ids = [slide["id"] for slide in sent["slides"]]
    keys = [slide["key"] for slide in sent["slides"]]

    def last() -> dict:
        name, value = blank.evaluate("() => window.sent.at(-1)")
        assert name == "deck"
        return value

    blank.locator("button.small").nth(1).click()
    blank.keyboard.press("Alt+ArrowUp")
    assert last()["order"] == [ids[1], ids[0], *ids[2:]]
    blank.locator(".tick").nth(0).press("Space")
    assert last()["included"][ids[1]] is False
    blank.get_by_label("Title of this slide").fill("Ours")
    blank.keyboard.press("Tab")
    assert last()["titles"] == {keys[1]: "Ours"}
    blank.get_by_role("textbox", name="Speaker notes").fill("Say hello")
    blank.keyboard.press("Tab")
    assert last()["notes"] == {keys[1]: "Say hello"}
    blank.get_by_role("button", name="Add this case: Two dogs").click()
    assert last()["order"][1] == "case:b"
    blank.get_by_role("button", name="Add a slide with text after this one").click()
    first, case, added = last()["order"][:3]
    assert (first, case) == (ids[1], "case:b") and added.startswith("text:")
    assert added in last()["known"]
    blank.wait_for_timeout(2)  # so that the next id differs
    blank.get_by_role("button", name="Add a slide with text after this one").click()
    assert last()["order"][:3] == [ids[1], "case:b", added]  # no answer yet, no change lost
    assert last()["order"][3].startswith("text:") and last()["order"][4:] == [ids[0], *ids[2:]]
    empty = blank.locator(".strip li.off", has_text="Empty: not shown")
    assert empty.count() == 2 and not empty.locator(".tick").first.is_checked()
    assert blank.get_by_text("Empty: not shown until you type a title.").is_visible()
    text = sent["slides"][0] | {
        "id": added,
        "key": added,
        "titled": "Hello",
        "detail": "",
        "on": True,
    }
    blank.evaluate("(data) => window.draw(data)", sent | {"slides": [text, *sent["slides"]]})
    blank.get_by_label("Title, and text below it").fill("Hello\nA talk")
    blank.keyboard.press("Tab")
    assert last()["titles"][added] == "Hello\nA talk"
    blank.locator(".large .detail", has_text="A talk").wait_for(state="attached")
    blank.get_by_role("button", name="Remove").click()
    assert last()["order"] == ids
    blank.locator("button.small").nth(1).click()
    blank.keyboard.press("Alt+ArrowUp")
    blank.locator(".strip > li").first.scroll_into_view_if_needed()
    first, third = (blank.locator(".strip > li").nth(place).bounding_box() for place in (0, 2))
    assert first and third
    blank.mouse.move(first["x"] + 60, first["y"] + 20)
    blank.mouse.down()
    blank.mouse.move(third["x"] + 60, third["y"] + 10, steps=4)
    blank.mouse.up()
    assert last()["order"] == [ids[0], ids[2], ids[1], *ids[3:]]
    mount(blank, "slides", sent)  # a case is not added between a question and its answer
    assert ids[:2] == ["vote", "reveal"]
    blank.get_by_role("button", name="Add this case: Two dogs").click()
    assert last()["order"][:3] == [*ids[:2], "case:b"]
    mount(blank, "slides", sent)  # and no text
    blank.get_by_role("button", name="Add a slide with text after this one").click()
    assert last()["order"][:2] == ids[:2]
    sent["slides"][1]["options"][0]["caption"] = [["A ", ""], ["dog", "true"], [" runs.", ""]]
    sent["slides"][1]["options"][1]["caption"] = [["A ", ""], ["cat", "lie"], [" runs.", ""]]
    mount(blank, "slides", sent)
    assert blank.locator(".called").nth(1).inner_text() == "2 One of two models believes the lie."


SECOND = """() => { const frame = document.createElement('iframe');
  document.querySelector('#host').shadowRoot.querySelector('dialog').append(frame);
  window.open = () => frame.contentWindow; }"""


def test_a_new_slide_with_text_is_typed_at_once_and_its_preview_follows(blank):
    page = {"whole": False, "start": "Begin", "detail": "", "heading": "Slides", "editable": True}
    sent = hostile_file()[1] | page
    mount(blank, "slides", sent)
    blank.get_by_role("button", name="Add a slide with text after this one").click()
    empty = blank.get_by_text("Empty: not shown until you type a title.")
    assert empty.is_visible() and blank.locator("button.large").is_disabled()
    blank.keyboard.type("What models see")
    assert not empty.is_visible() and blank.locator("button.large").is_enabled()
    for preview in (".large .title", ".small[aria-pressed=true] .title"):
        assert blank.locator(preview).text_content() == "What models see"
    blank.keyboard.press("Tab")
    (title,) = blank.evaluate("() => window.sent.at(-1)")[1]["titles"].values()
    assert title == "What models see"
    blank.get_by_role("button", name="Add a title slide before all others").click()
    assert blank.locator(".large .cover .title").inner_text() == "Title"  # not as an empty text
    assert blank.evaluate("() => window.sent.at(-1)")[1]["order"][0].startswith("text:")
    blank.keyboard.type("A talk")
    assert blank.locator(".small .title").first.text_content() == "A talk"
    numbers = [name.split()[0] for name in blank.locator(".small .called").all_text_contents()]
    assert numbers[:3] == ["1", "2", "3"]  # of the other slides, too, before the field is left


def test_another_deck_opens_with_its_first_slide_in_its_own_order(blank):
    page = {"whole": False, "start": "Begin", "detail": "", "heading": "", "editable": True}
    sent = hostile_file()[1] | page | {"deck": "one"}
    mount(blank, "slides", sent)
    blank.locator("button.small").nth(1).click()
    blank.keyboard.press("Alt+ArrowDown")
    other = sent | {"deck": "two", "slides": sent["slides"][::-1]}
    blank.evaluate("(data) => window.draw(data)", other)
    titles = ["".join(text for text, _ in slide["heading"]) for slide in other["slides"]]
    assert blank.locator(".large .title").text_content() == titles[0]
    assert blank.locator(".strip .title").all_text_contents() == titles
    assert blank.locator(".small").first.get_attribute("aria-pressed") == "true"
    empty = other["slides"][0] | {"id": "text:title", "titled": None}  # is not shown
    blank.evaluate(
        "(data) => window.draw(data)",
        other | {"deck": "three", "slides": [empty, *other["slides"]]},
    )
    assert blank.locator(".small").nth(1).get_attribute("aria-pressed") == "true"


def test_the_filmstrip_shows_the_open_slide_and_the_page_does_not_scroll(blank):
    page = {"whole": False, "start": "Begin", "detail": "", "heading": "Slides", "editable": True}
    sent = hostile_file()[1] | page | {"deck": "one"}
    slide = sent["slides"][0] | {"on": True}
    sent["slides"] = [
        slide | {"id": str(place), "key": str(place), "heading": [[f"Title {place}", ""]]}
        for place in range(12)
    ]
    blank.set_viewport_size({"width": 1280, "height": 500})
    blank.evaluate("() => scrollTo(0, 0)")
    mount(blank, "slides", sent | {"opened": "9"})  # as a link to a case
    place = """(strip) => { const [all, one] = [strip, strip.querySelector("[aria-pressed=true]")].map((each) =>
        each.getBoundingClientRect()); return [all.top <= one.top && one.bottom <= all.bottom, scrollY]; }"""
    strip, open_slide = blank.locator(".strip"), blank.locator(".small[aria-pressed=true]")
    assert open_slide.inner_text().strip().endswith("Title 9")
    assert strip.evaluate(place) == [True, 0]
    blank.get_by_role("button", name="Add a slide with text after this one").click()
    blank.keyboard.type("More")
    blank.keyboard.press("Tab")
    assert strip.evaluate(place)[0]
    blank.evaluate("() => scrollTo(0, 0)")
    blank.locator("button.start").click()
    blank.keyboard.press("End")
    blank.keyboard.press("Escape")
    open_slide.filter(has_text="Title 11").wait_for(timeout=9000)
    assert strip.evaluate(place) == [True, 0]


def test_a_visitors_browser_stores_the_deck_and_sends_it_after_a_reload(page, url: str):
    sent = hostile_file()[1] | {"whole": False, "start": "Begin", "detail": "", "heading": "Slides"}
    deck = json.dumps({"order": ["reveal", "vote"], "titles": {"vote": "Ours"}})
    for name, text, expected in (("a", "", 0), ("a", deck, 0), ("a", "", 1), ("b", "", 0)):
        page.goto(f"{url}/_stcore/health")  # a page of the server that shows only the component
        mount(page, "slides", sent | {"kept": {"name": name, "text": text}})
        events = page.evaluate("() => window.sent")
        assert events == [["kept", json.loads(deck)]] * expected
    mounted = {"name": "b", "text": deck}
    for text, expected in ((deck, []), ("", [["kept", json.loads(deck)]])):  # another session
        page.evaluate("(data) => window.draw(data)", sent | {"kept": mounted | {"text": text}})
        assert page.evaluate("() => window.sent") == expected
    page.evaluate("() => localStorage.clear()")


def test_f5_in_the_title_field_starts_the_slides_and_sends_the_typed_title(blank):
    page = {"whole": False, "start": "Begin", "detail": "", "heading": "Slides", "editable": True}
    sent = hostile_file()[1] | page
    mount(blank, "slides", sent)
    blank.get_by_label("Title of this slide").fill("Ours")
    blank.keyboard.press("F5")
    blank.locator("dialog[open]").wait_for()
    name, value = blank.evaluate("() => window.sent.at(-1)")
    assert name == "deck" and value["titles"] == {sent["slides"][0]["key"]: "Ours"}
    blank.keyboard.press("Escape")
    blank.locator("dialog[open]").wait_for(state="detached")


def test_keys_in_the_window_of_notes_turn_the_slides_and_empty_slides_are_skipped(blank):
    sent = hostile_file()[1] | {"whole": False, "start": "Begin", "detail": "", "heading": "Slides"}
    slides = [slide | {"on": True} for slide in sent["slides"][:2]]
    empty = slides[0] | {"id": "text:1", "titled": None}
    text = empty | {"id": "text:2", "titled": "Mine", "detail": "- One\n- Two", "notes": ["Wave"]}
    text["spoken"] = "Mine. - One\n- Two."
    spaces = empty | {"id": "text:3", "titled": " \n "}
    sent["slides"] = [slides[0], empty, spaces, text]
    mount(blank, "slides", sent)
    blank.locator("button.start").click()
    assert blank.locator(".foot .count").inner_text() == "1 of 2"
    blank.evaluate(SECOND)  # replaces the window, which a browser may block
    blank.keyboard.press("+")  # the remark that it shows is not the heading of the notes
    blank.keyboard.press("w")
    notes = blank.frame_locator("dialog iframe").locator("body")
    assert "Slide 1 of 2" in notes.inner_text() and "Next: " in notes.inner_text()
    assert re.search(r"\d:\d\d", notes.locator("span").first.inner_text())
    notes.locator("span").first.evaluate("(clock) => (clock.textContent = '')")
    blank.evaluate("(data) => window.draw(data)", sent)  # a rerun with equal data
    notes.get_by_text(re.compile(r"^\d+:\d\d")).wait_for(timeout=5000)  # the clock still runs
    notes.press("ArrowRight")
    assert blank.locator(".foot .count").inner_text() == "2 of 2"
    assert "Slide 2 of 2" in notes.inner_text()
    assert "Mine.\n- One\n- Two" in notes.inner_text()
    assert "Wave" in notes.inner_text() and "The last slide" in notes.inner_text()
    assert blank.locator(".stage .detail").first.inner_text() == "• One\n• Two"
    notes.press("Home")
    notes.press("w")  # the same window
    notes.press("b")
    assert blank.locator("dialog .black").is_visible()
    notes.press("b")
    assert blank.locator("dialog .black").is_hidden()
    notes.press("End")
    blank.locator("dialog iframe").evaluate("(frame) => frame.remove()")
    blank.locator(".stage").press("ArrowLeft")
    assert blank.locator(".foot .count").inner_text() == "1 of 2"
    blank.keyboard.press("Escape")


def n_pages(content: bytes) -> int:
    return len(re.findall(rb"/Type\s*/Page\b", content))


def test_the_page_prints_one_slide_per_sheet_and_the_button_prints_each_time(blank):
    sent = hostile_file()[1] | {"whole": False, "start": "Begin", "detail": "", "heading": "Slides"}
    sent["slides"] = [slide | {"on": number != 1} for number, slide in enumerate(sent["slides"])]
    mount(blank, "slides", sent)
    count = len(sent["slides"]) - 1
    for _ in range(2):
        assert n_pages(blank.pdf(prefer_css_page_size=True)) == count
        assert n_pages(blank.pdf(format="A4")) == count
    assert blank.locator(".vp-sheets").count() == 0
    blank.evaluate("() => { window.printed = 0; window.print = () => window.printed++; }")
    for _ in range(3):
        blank.get_by_role("button", name="Print / PDF").click()
    assert blank.evaluate("window.printed") == 3


def test_thumbnails_show_full_names_of_models(blank):
    sent = hostile_file()[1] | {"whole": False, "start": "Begin", "detail": "", "heading": "Slides"}
    bar = {"path": "", "color": "red", "start": 0, "end": 0.2, "low": None, "high": None}
    bar |= {"name": "CLIP ViT-B/32", "text": "6.6 %", "style": "", "sided": False}
    empty = {"heading": [["Shares", ""]], "options": [], "pictures": [], "detail": ""}
    sent["slides"] = [sent["slides"][0] | empty | {"layout": "stacked", "bars": [bar]}]
    mount(blank, "slides", sent)
    name = blank.locator(".small .name > .called")
    assert name.evaluate("(name) => name.scrollWidth <= name.clientWidth")


def test_a_tap_on_the_left_or_right_half_turns_the_slide(blank):
    sent = hostile_file()[1] | {"whole": False, "start": "Begin", "detail": "", "heading": "Slides"}
    blank.set_viewport_size({"width": 390, "height": 844})
    mount(blank, "slides", sent)
    blank.locator("button.start").click()
    number = blank.locator(".foot .count")
    first = number.inner_text()
    for x, is_first in ((380, False), (100, True), (250, False), (8, True)):
        blank.mouse.click(x, 60)
        assert (number.inner_text() == first) is is_first


def test_a_case_and_its_question_are_one_slide_of_the_list_and_two_of_the_show(blank):
    sent = wordy_reveal()
    vote, reveal = sent["slides"]
    sent["slides"] = [reveal | {"question": vote | {"id": "reveal", "key": "vote"}}]
    mount(blank, "slides", sent | {"editable": True, "suggestions": []})
    names = blank.locator(".small > .called")
    assert names.all_inner_texts() == [
        "1–2 One of six models believes the lie, one right in one order only."
    ]
    twins = [*sent["slides"], reveal | {"id": "more", "key": "more"}]
    blank.evaluate("(data) => window.draw(data)", sent | {"slides": twins})
    assert names.nth(1).inner_text().startswith("3 A woman riding a pink bike")
    blank.evaluate("(data) => window.draw(data)", sent | {"editable": True, "suggestions": []})
    assert blank.locator(".small .frame").count() == 2
    assert blank.get_by_text("The show asks the question first.").is_visible()
    blank.get_by_label("Title of the question").fill("What is true?")
    assert blank.locator(".small .title").first.text_content() == "What is true?"
    blank.get_by_label("Speaker notes for the question").fill("Wait.")
    blank.keyboard.press("Tab")
    deck = blank.evaluate("() => window.sent.at(-1)")[1]
    assert deck["titles"] == {"vote": "What is true?"} and deck["notes"] == {"vote": "Wait."}
    blank.locator("button.start").click()
    assert blank.locator(".foot .count").inner_text() == "1 of 2"
    assert "press 1 or 2" not in blank.locator(".stage").inner_text().lower()
    assert "press 1 or 2" in blank.locator(".speaker").text_content()
    blank.keyboard.press("1")
    assert blank.locator(".stage .votes").count() == 2
    blank.keyboard.press("ArrowRight")
    assert blank.locator(".stage .as-lie .votes").inner_text() == "1 of 1 vote"


def test_people_vote_for_pictures_as_for_captions(blank):
    sent = wordy_reveal()
    vote, reveal = sent["slides"]
    numbered = [vote["pictures"][0] | {"label": label, "style": "vote"} for label in "12"]
    named = [vote["pictures"][0] | {"label": label} for label in ("Right", "Wrong", "Mixed in")]
    plain = [reveal["options"][0] | {"style": "plain", "marks": []}]
    sent["slides"] = [
        vote | {"options": [], "pictures": numbered},
        reveal | {"options": plain, "pictures": named},
    ]
    mount(blank, "slides", sent)
    blank.locator("button.start").click()
    blank.keyboard.press("2")
    blank.locator(".stage .as-vote").nth(1).click()
    assert blank.locator(".stage .votes").all_inner_texts() == ["0 of 2 votes", "2 of 2 votes"]
    blank.keyboard.press("ArrowRight")
    blank.keyboard.press("1")  # only a question counts
    captions = ["Right0 of 2 votes", "Wrong2 of 2 votes", "Mixed in"]
    assert blank.locator(".stage figcaption").all_text_contents() == captions
    assert blank.locator(".stage .votes").count() == 2


def test_votes_for_captions_stay_at_the_captions_of_a_pair(blank):
    sent = wordy_reveal()
    vote, reveal = sent["slides"]
    plain = [option | {"style": "plain", "marks": []} for option in reveal["options"]]
    named = [vote["pictures"][0] | {"label": label} for label in ("Left", "Right")]
    sent["slides"] = [vote, reveal | {"options": plain, "pictures": named}]
    mount(blank, "slides", sent)
    blank.locator("button.start").click()
    blank.keyboard.press("2")
    blank.keyboard.press("ArrowRight")
    votes = blank.locator(".stage .choice .votes").all_inner_texts()
    assert votes == ["0 of 1 vote", "1 of 1 vote"]
    assert blank.locator(".stage .votes").count() == 2


def test_typed_text_is_sent_after_a_pause_before_the_field_is_left(blank):
    page = {"whole": False, "start": "Begin", "detail": "", "heading": "Slides", "editable": True}
    sent = hostile_file()[1] | page | {"saved": "Saved"}
    mount(blank, "slides", sent)
    key = sent["slides"][0]["key"]
    title = blank.get_by_label("Title of this slide")
    title.fill("Our")
    assert blank.evaluate("window.sent.filter(([name]) => name === 'deck').length") == 0
    blank.wait_for_timeout(700)
    name, deck = blank.evaluate("window.sent.at(-1)")
    assert name == "deck" and deck["titles"] == {key: "Our"}
    title.press("End")
    blank.keyboard.type("s")
    answer = [{**sent["slides"][0], "heading": [["Our", ""]], "titled": "Our"}, *sent["slides"][1:]]
    blank.evaluate("(data) => window.draw(data)", sent | {"slides": answer})
    assert title.input_value() == "Ours" and blank.evaluate(ACTIVE, ".field input")
    blank.wait_for_timeout(700)
    assert blank.evaluate("window.sent.at(-1)[1].titles") == {key: "Ours"}


def test_new_data_while_typing_loses_no_click_focus_or_letter(blank):
    page = {"whole": False, "start": "Begin", "detail": "", "heading": "Slides", "editable": True}
    sent = hostile_file()[1] | page
    blank.set_viewport_size({"width": 1280, "height": 900})
    mount(blank, "slides", sent)
    title, notes = (blank.get_by_role("textbox").nth(place) for place in (1, 0))
    title.fill("Ours")
    box = blank.locator("button.small").nth(2).bounding_box()
    assert box is not None
    blank.mouse.move(box["x"] + 20, box["y"] + 20)
    blank.mouse.down()  # the title is sent, and the answer arrives before the button is released
    changed = [{**sent["slides"][0], "heading": [["Ours", ""]]}, *sent["slides"][1:]]
    blank.evaluate("(data) => window.draw(data)", sent | {"slides": changed})
    blank.mouse.up()
    assert blank.locator("button.small").nth(2).get_attribute("aria-pressed") == "true"
    blank.locator("button.small").nth(0).click()
    blank.wait_for_timeout(100)
    assert title.input_value() == "Ours"
    notes.fill("Say hello")
    blank.keyboard.press("Tab")
    blank.wait_for_timeout(100)
    assert blank.evaluate(ACTIVE, "button.add, button.act, .field input")
    notes.focus()
    blank.keyboard.type("More")
    blank.evaluate("(data) => window.draw(data)", sent | {"detail": "New"})
    assert notes.input_value().endswith("More") and blank.evaluate(ACTIVE, "textarea")
    blank.keyboard.press("Tab")  # into the slides that arrived meanwhile
    name, deck = blank.evaluate("() => window.sent.at(-1)")
    assert name == "deck" and deck["notes"][sent["slides"][0]["key"]].endswith("More")
    assert deck["known"] == [slide["id"] for slide in sent["slides"]]
    saved = blank.locator(".actions [role=status]")
    assert not saved.inner_text()  # no answer has arrived yet
    blank.evaluate("(data) => window.draw(data)", sent | {"detail": "Newer", "saved": "Saved"})
    assert saved.inner_text() == "Saved"


def test_plus_and_minus_change_the_font_size_and_not_the_layout(blank):
    sent = hostile_file()[1] | {"whole": False, "start": "Begin", "detail": "", "heading": "Slides"}
    blank.set_viewport_size({"width": 1280, "height": 800})
    mount(blank, "slides", sent)
    blank.locator("button.start").click()
    blank.keyboard.press("End")  # a slide with room for larger text
    sizes = [blank.evaluate(LEAST)]
    width = blank.locator(".stage .slide").evaluate("one => getComputedStyle(one).paddingLeft")
    for key in ("+", "-", "-"):
        blank.keyboard.press(key)
        sizes.append(blank.evaluate(LEAST))
    assert sizes[1] > sizes[0] == sizes[2] and sizes[3] >= 20
    assert width == blank.locator(".stage .slide").evaluate(
        "one => getComputedStyle(one).paddingLeft"
    )
    blank.get_by_role("button", name="Larger type").click()
    assert blank.evaluate(LEAST) == sizes[0]


@pytest.mark.parametrize("opener", ["button.start", "button.large"])
def test_new_data_keep_the_focus_and_the_place_to_which_it_returns(blank, opener: str):
    page = {"whole": False, "start": "Begin", "detail": "", "heading": "Slides"}
    sent = hostile_file()[1] | page
    mount(blank, "slides", sent)
    blank.locator(opener).focus()
    assert blank.evaluate(ACTIVE, opener)
    blank.evaluate("(data) => window.draw(data)", sent)
    assert blank.evaluate(ACTIVE, opener)
    blank.keyboard.press("Enter")
    blank.locator("dialog[open]").wait_for()
    blank.evaluate("(data) => window.draw(data)", sent | {"slides": sent["slides"][:3]})
    blank.keyboard.press("Escape")
    blank.locator("dialog[open]").wait_for(state="detached")
    blank.wait_for_function(ACTIVE, arg=opener)


def test_a_slide_without_its_large_picture_requests_it(blank):
    page = {"whole": False, "start": "Begin", "detail": "", "heading": "Slides", "editable": True}
    sent = hostile_file()[1] | page
    ids = [slide["id"] for slide in sent["slides"]]
    mount(blank, "slides", sent | {"near": ids[:2]})
    blank.locator("button.small").nth(1).click()
    assert blank.evaluate("() => window.sent") == []
    blank.locator("button.small").nth(2).click()
    assert blank.evaluate("() => window.sent") == [["near", ids[2]]]


def test_models_below_a_caption_have_names_and_the_text_of_bars_fits_on_the_slide(blank):
    sent = hostile_file()[1] | {"whole": False, "start": "Begin", "detail": "", "heading": "Slides"}
    mark = {"path": "M0 0h9v9z", "color": "#123456", "name": "GPT-4V"}
    mark |= {"state": "tied", "word": "cannot tell"}
    option = {"caption": [["A red dog.", ""]], "style": "lie", "marks": [mark]}
    bar = mark | {"start": 0, "end": 1, "low": None, "high": None, "style": "tie", "sided": True}
    bar |= {"text": "right in one order only", "remark": "best guess by a grammar"}
    bar |= {"name": "No picture"}
    sent["slides"] = [sent["slides"][0] | {"options": [option], "bars": [bar], "on": True}]
    mount(blank, "slides", sent)
    blank.locator("button.start").click()
    assert blank.locator(".stage .chip").inner_text() == "GPT-4V: cannot tell"
    for name in (".value", ".name .called"):
        element = blank.locator(f".stage {name}")
        assert element.evaluate("one => one.scrollWidth <= one.clientWidth"), name
        box = element.bounding_box()
        assert box is not None and box["x"] + box["width"] <= 1280
    pressed = "() => { window.passed = 0; document.onkeydown = () => (window.passed += 1); }"
    blank.evaluate(pressed)
    blank.keyboard.press("?")
    assert blank.evaluate("window.passed") == 0  # the page's search does not open
