"""Home in a browser: another failure without a reload, its case, and hostile captions."""

import re

import pytest

from tests.browser.conftest import HOSTILE_CAPTIONS, PIXEL, idle, mount, visit
from tests.browser.test_walk import SETS

pytestmark = pytest.mark.browser

HOME = "{}/?set=" + SETS["lgip"]


def test_the_button_another_one_stays_in_place_for_captions_of_any_length(blank):
    box = {"style": "lie", "label": "The lie"}
    picture = {"source": PIXEL, "name": "a.png", "alt": "", "label": "", "credit": None}
    cases = [
        {"id": str(place), "place": place, "heading": ["One."] * n_lines, "pictures": [picture]}
        | {"boxes": [box | {"line": [["A red dog. " * n_words, ""]]}] * 2, "marks": [], "more": 0}
        | {"verdict": "", "right": None, "href": "#", "why": False, "present": ""}
        for place, (n_lines, n_words) in enumerate([(2, 1), (2, 7), (3, 1)])
    ]
    blank.set_viewport_size({"width": 1280, "height": 900})
    mount(blank, "home", {"kicker": "Which?", "only": False, "cases": cases})
    another = blank.get_by_role("button", name="Another one")
    tops = []
    for _ in cases:
        tops.append(another.bounding_box()["y"])
        another.click()
    assert len(set(tops)) == 1


def test_guess_first_hides_the_answer_until_a_caption_is_chosen(blank):
    boxes = [
        {"style": style, "label": label, "line": [["A ", ""], [word, style], [" dog.", ""]]}
        for style, label, word in (("true", "True", "red"), ("lie", "The lie", "blue"))
    ]
    picture = {"source": PIXEL, "name": "a.png", "alt": "A red dog.", "label": "", "credit": None}
    marks = [{"name": "Tiny CLIP", "path": "M0 0H9", "color": "red"}]
    cases = [
        {"id": case, "place": place, "heading": ["Seen.", "Believed."], "pictures": [picture]}
        | {"boxes": boxes, "marks": marks, "more": 0, "verdict": "Tiny CLIP chose this one"}
        | {"right": None, "href": "#", "why": False, "present": ""}
        for place, case in enumerate(("b", "a"))  # the second one shows the lie first
    ]
    mount(blank, "home", {"kicker": "Which?", "only": False, "cases": cases})
    hero = blank.locator(".hero")
    assert "The lie" in hero.inner_text()
    blank.get_by_role("button", name="Guess first").click()
    for lines in (["A red dog.", "A blue dog."], ["A blue dog.", "A red dog."]):
        assert hero.locator(".line").all_inner_texts() == lines
        hidden = hero.inner_html()
        assert not any(
            word in hidden for word in ("Tiny CLIP", "Believed", "is-true", 'class="lie')
        )
        assert blank.get_by_role("img").get_attribute("alt") == "The picture of this question"
        blank.keyboard.press("1")
        is_right = lines[0] == "A red dog."
        assert ("You are right." if is_right else "You chose the lie.") in hero.inner_text()
        assert "Tiny CLIP chose this one" in hero.inner_text()
        assert hero.locator(".line").all_inner_texts() == lines
        blank.keyboard.press("Enter")  # the focus is on *Another one*
    blank.set_viewport_size({"width": 390, "height": 844})
    assert blank.get_by_role("button", name="Guess first").is_visible()
    blank.set_viewport_size({"width": 1280, "height": 900})


@pytest.mark.full  # 4 s; test_keyboard.py does the same by keys
def test_another_failure_is_shown_without_a_reload_and_its_case_opens(page, url: str):
    visit(page, HOME.format(url))
    loaded = page.evaluate("performance.timeOrigin")
    captions = page.locator(".hero .line")
    before = captions.all_inner_texts()
    page.get_by_role("button", name="Another one").click()
    assert captions.all_inner_texts() != before  # at once, because it was loaded in advance
    assert page.evaluate("performance.timeOrigin") == loaded
    idle(page)
    truth = captions.first.inner_text()
    assert page.locator(".hero img.picture").get_attribute("alt") == truth
    page.get_by_role("link", name=re.compile("Open this case")).click()
    page.wait_for_url("**/explore**case=*")
    page.get_by_role("dialog").locator(".vp-captions").first.wait_for()
    assert truth in page.get_by_role("dialog").inner_text()


@pytest.mark.full
def test_a_number_opens_as_many_lies_as_it_counts(page, url: str):
    visit(page, HOME.format(url))
    number = page.locator(".number").last
    believed = number.locator(".exact").inner_text().split()[0]
    number.click()
    page.wait_for_url("**/explore**type=*")
    idle(page)
    assert page.get_by_role("heading", level=1).inner_text().startswith(f"{believed} ")


@pytest.mark.full
def test_a_hostile_caption_is_text_on_home(page, url: str, hostile_key: str):
    visit(page, f"{url}/?set={hostile_key}")
    seen = set()
    for _ in HOSTILE_CAPTIONS:
        seen.add(page.locator(".hero .line").first.inner_text()[:20])
        if page.get_by_role("button", name="Another one").count():
            page.get_by_role("button", name="Another one").click()
            idle(page)
    assert seen & {caption[:20] for caption in HOSTILE_CAPTIONS}
    assert page.evaluate("() => window.ran") is None
    assert page.locator(".hero .line img, .hero .line script").count() == 0
    assert page.outside == []


def test_a_failure_of_another_dataset_scrolls_into_view(blank):
    picture = {"source": PIXEL, "name": "a.png", "alt": "", "label": "", "credit": None}
    box = {"style": "lie", "label": "The lie", "line": [["A red dog.", ""]]}
    sets = [
        {"kicker": "Which?", "only": True}
        | {"cases": [{"id": case, "place": 0, "heading": [case], "pictures": [picture]} | rest]}
        for rest in [
            {"boxes": [box] * 2, "marks": [], "more": 0, "verdict": "", "right": None}
            | {"href": "#", "why": False, "present": ""}
        ]
        for case in ("One.", "Two.")
    ]
    mount(blank, "home", sets[0])
    blank.evaluate("document.body.style.height = '3000px'")
    for shown, stays in ((sets[0], True), (sets[1], False)):
        blank.evaluate("scrollTo(0, 900)")
        blank.evaluate("values => window.draw(values)", shown)
        assert (blank.evaluate("scrollY") == 900) == stays
