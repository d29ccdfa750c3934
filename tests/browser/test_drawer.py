"""The drawer of one case in a real browser: tags and notes, its fixed head and footer, and the Back button."""

from collections.abc import Iterator

import pytest

from tests.browser.conftest import idle, visit
from tests.browser.test_walk import EXPLORE, TURN
from vlprobe.storage import annotations
from vlprobe.storage.annotations import Annotation
from vlprobe.storage.bookmarks import DECKS
from vlprobe.storage.store import Store

pytestmark = pytest.mark.browser

TAG_FIELD = ".st-key-case_tags input"
ENTRY = "navigation.currentEntry.key"  # the history entry; replacing its address keeps the key
NOTE_FIELD = ".st-key-case_tags textarea"


@pytest.fixture
def drawer(page, url: str):
    """Open the first case of the wall with a click, on a page that is loaded once."""
    page.set_viewport_size({"width": 1280, "height": 900})
    if not page.url.startswith(f"{url}/explore"):
        visit(page, url + EXPLORE)
    page.evaluate(TURN, EXPLORE)
    idle(page)
    return open_card(page, 0)


def open_card(page, number: int):
    page.locator("ul.wall button.card").nth(number).click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_text(f"Picture {number + 1} of").wait_for()
    idle(page)
    return dialog


def case_of(page) -> str:
    return page.evaluate("new URLSearchParams(location.search).get('case')")


@pytest.fixture
def removes_annotations(page, server_store: Store) -> Iterator[list[Annotation]]:
    """Remove the annotations that a test has written."""
    yield []
    for run in server_store.runs():
        for annotation in annotations.read(server_store, run["case_key"]).current:
            annotations.write(
                server_store, run["case_key"], Annotation(annotation.case, annotation.id)
            )


def all_written(store: Store) -> list[Annotation]:
    keys = {run["case_key"] for run in store.runs()}
    return [one for key in keys for one in annotations.read(store, key).current]


def type_tag(page, text: str) -> None:
    page.keyboard.press("t")
    page.wait_for_function(f"() => document.activeElement.matches({TAG_FIELD!r})")
    page.keyboard.type(text)
    page.keyboard.press("Enter")


@pytest.mark.usefixtures("removes_annotations")
def test_a_tag_is_stored_on_enter_and_shown_after_a_reload(page, drawer, server_store: Store):
    case = case_of(page)
    type_tag(page, "wrong label")
    drawer.get_by_text("Saved").wait_for()
    page.keyboard.press("Enter")  # in the empty field, where Streamlit highlights another tag
    for _ in range(3):  # the first one closes the list of tags
        page.keyboard.press("Escape")
        idle(page)
        if not drawer.count():
            break
    drawer.wait_for(state="detached")
    idle(page)
    assert page.locator("ul.wall button.card").first.get_by_text("wrong label").is_visible()
    page.reload()
    idle(page)
    drawer = open_card(page, 0)
    page.keyboard.press("t")
    drawer.locator(".st-key-case_tags").get_by_text("wrong label").wait_for()
    assert [(one.id, one.tags) for one in all_written(server_store)] == [(case, ("wrong label",))]


@pytest.mark.full
@pytest.mark.usefixtures("removes_annotations")
def test_a_tag_typed_right_after_its_key_is_complete_and_a_second_one_can_be_undone(
    page, drawer, server_store: Store
):
    for key in ("t", *"plz", "Enter"):  # L, P and Z are keys of the drawer
        page.keyboard.press(key)
        page.wait_for_timeout(60)  # as fast as people type
    drawer.get_by_text("Saved").wait_for()
    assert all_written(server_store)[0].tags == ("plz",)
    assert not drawer.locator("img[style*=scale]").count()
    page.wait_for_function(f"() => document.activeElement.matches({TAG_FIELD!r})")
    page.keyboard.type("second")
    page.keyboard.press("Enter")
    idle(page)
    assert all_written(server_store)[0].tags == ("plz", "second")
    page.keyboard.press("Escape")
    drawer.get_by_role("button", name="Undo").click()
    idle(page)
    assert all_written(server_store)[0].tags == ("plz",)
    assert not drawer.get_by_text("Saved").count()


def test_a_link_of_explore_to_itself_changes_the_address(page, drawer):
    drawer.get_by_role("button", name="fools Tiny CLIP in").click()
    drawer.wait_for(state="detached")
    page.wait_for_url("**type=*")
    idle(page)
    assert "case=" not in page.url


@pytest.mark.usefixtures("removes_annotations")
def test_a_note_is_stored_when_its_field_loses_focus_and_escape_leaves_the_field_before_the_drawer(
    page, drawer, server_store: Store
):
    page.keyboard.press("t")
    drawer.locator(NOTE_FIELD).fill("left with Tab")
    page.keyboard.press("Tab")
    drawer.get_by_text("Saved").wait_for()
    assert all_written(server_store)[0].note == "left with Tab"
    idle(page)
    drawer.locator(NOTE_FIELD).fill("left with Escape")
    page.keyboard.press("Escape")
    idle(page)
    assert all_written(server_store)[0].note == "left with Escape"
    assert drawer.is_visible()
    page.keyboard.press("t")
    drawer.locator(NOTE_FIELD).fill("left with an arrow")
    drawer.get_by_role("button", name="Next").click()
    drawer.get_by_text("Picture 2 of").wait_for()
    idle(page)
    assert all_written(server_store)[0].note == "left with an arrow"
    assert drawer.locator(NOTE_FIELD).input_value() == ""


@pytest.fixture
def removes_decks(server_store: Store) -> Iterator[None]:
    yield
    for name in list(DECKS.read(server_store)):
        DECKS.remove(server_store, name)


@pytest.mark.full
@pytest.mark.usefixtures("removes_decks")
def test_the_footer_of_the_drawer_zooms_and_d_adds_the_case_to_the_slides(
    page, drawer, server_store: Store
):
    foot = drawer.locator(".st-key-case_foot")
    scale = "e => new DOMMatrix(getComputedStyle(e).transform).a"
    picture = drawer.locator(".st-key-case_pictures img").first
    foot.get_by_role("button", name="zoom").click()
    assert picture.evaluate(scale) == 3
    foot.get_by_role("button", name="zoom").click()
    assert picture.evaluate(scale) == 1
    drawer.get_by_role("button", name="Full window").click()
    page.wait_for_function("() => document.fullscreenElement !== null")
    drawer.get_by_role("button", name="Full window").click()
    page.wait_for_function("() => document.fullscreenElement === null")
    case = case_of(page)
    page.keyboard.press("d")
    toast = page.get_by_test_id("stToast")
    toast.get_by_text("Added to the slides").wait_for()
    # It once covered the tools at the top and the answers, and stayed while the pointer was over it
    place = toast.bounding_box()
    assert place["x"] + place["width"] <= drawer.bounding_box()["x"]
    assert toast.evaluate("e => getComputedStyle(e).pointerEvents") == "none"
    assert case_of(page) == case and drawer.is_visible()
    (text,) = DECKS.read(server_store).values()
    assert case in text
    with page.context.expect_page() as opened:
        toast.get_by_role("link", name="Open the slides").click()
    opened.value.wait_for_url("**/present?*")
    opened.value.close()


@pytest.mark.full
def test_words_and_parts_scroll_into_view_above_the_row_of_keys(page, drawer):
    page.set_viewport_size({"width": 1280, "height": 800})
    drawer.get_by_role("tab", name="Why").click()
    button = drawer.locator(".st-key-case_why button")
    button.wait_for()
    foot = drawer.locator("[data-testid=stLayoutWrapper]:has(> .st-key-case_foot)").bounding_box()
    assert foot["y"] + foot["height"] == 800 and foot["height"] < 60
    button.click()
    drawer.get_by_role("button", name="Hide words and parts").wait_for()
    page.wait_for_function(
        "() => document.querySelector('.st-key-case_why').getBoundingClientRect().top < 80"
    )
    picture = drawer.locator(".st-key-case_why_open img")
    picture.wait_for()
    assert picture.bounding_box()["y"] < 600
    assert picture.bounding_box()["height"] <= 400  # leaves room for captions and legend


@pytest.mark.full
@pytest.mark.parametrize("width", [390, 1280])
def test_the_head_of_the_drawer_stays_in_view_while_it_scrolls(page, url: str, width: int):
    page.set_viewport_size({"width": width, "height": 800})
    visit(page, url + EXPLORE)
    drawer = open_card(page, 0)
    drawer.locator(".st-key-case_details summary").click()
    idle(page)
    drawer.locator(
        ".st-key-case_details [data-testid=stDownloadButton]"
    ).scroll_into_view_if_needed()
    close = drawer.get_by_role("button", name="Close").bounding_box()
    place = drawer.get_by_text("Picture 1 of").bounding_box()
    drawer.get_by_text("Picture 1 of").evaluate("e => e.textContent = 'Picture 1 of 12,138'")
    previous = drawer.get_by_role("button", name="Previous").bounding_box()
    arrow = drawer.get_by_role("button", name="Next").bounding_box()
    assert arrow["y"] == previous["y"]
    for box in (close, place, arrow):
        assert 0 <= box["y"] < 64 and box["x"] + box["width"] <= width
    assert arrow["x"] + arrow["width"] <= close["x"]
    # No part of the page covers the head at the clicked places.
    drawer.get_by_role("button", name="Next").click()
    drawer.get_by_text("Picture 2 of").wait_for()
    drawer.get_by_role("button", name="Close").click()
    drawer.wait_for(state="detached")


@pytest.mark.full  # 11 s
def test_the_drawer_is_one_history_entry_after_any_number_of_cases_or_openings(page, drawer):
    entry = page.evaluate(ENTRY)
    for place in (2, 3, 4):
        page.keyboard.press("ArrowRight")
        drawer.get_by_text(f"Picture {place} of").wait_for()
        idle(page)
    assert page.evaluate(ENTRY) == entry
    page.go_back()
    drawer.wait_for(state="detached")
    idle(page)
    assert "case=" not in page.url and "/explore" in page.url
    drawer = open_card(page, 0)
    entry = page.evaluate(ENTRY)
    for number in (1, 2):
        page.keyboard.press("Escape")
        drawer.wait_for(state="detached")
        idle(page)
        drawer = open_card(page, number)
    assert page.evaluate(ENTRY) == entry
    page.go_back()
    drawer.wait_for(state="detached")
    idle(page)
    assert "case=" not in page.url


@pytest.mark.full
def test_back_from_a_second_case_leads_to_the_wall_if_a_link_on_home_opened_the_first(
    page, url: str
):
    visit(page, url + "/")
    page.locator("a.button.primary").first.click()
    drawer = page.get_by_role("dialog")
    drawer.wait_for()
    idle(page)
    page.keyboard.press("Escape")
    drawer.wait_for(state="detached")
    idle(page)
    drawer = open_card(page, 1)
    page.go_back()
    drawer.wait_for(state="detached")
    idle(page)
    assert "/explore" in page.url and "case=" not in page.url


@pytest.mark.full
def test_back_from_the_playground_returns_to_the_open_case(page, drawer):
    page.keyboard.press("ArrowRight")
    drawer.get_by_text("Picture 2 of").wait_for()
    idle(page)
    address = page.url
    drawer.get_by_role("link", name="Try your own words").click()
    page.wait_for_url("**/try?*")
    idle(page)
    page.go_back()
    drawer.get_by_text("Picture 2 of").wait_for()
    idle(page)
    assert page.url == address


@pytest.mark.full  # embeds 500 scenes
def test_back_from_the_most_similar_pictures_returns_to_the_open_case(page, drawer):
    address = page.url
    drawer.get_by_role("tab", name="More like this").click()
    drawer.get_by_role("button", name="most similar pictures").click()
    page.wait_for_url("**region=*")
    drawer.wait_for(state="detached")
    idle(page)
    page.go_back()
    drawer.get_by_text("Picture 1 of").wait_for()
    idle(page)
    assert page.url == address


@pytest.mark.full
def test_another_page_is_one_history_entry(page, url: str):
    visit(page, url + "/")
    address = page.url
    page.locator("[data-testid=stTopNavLink]").filter(has_text="Explore").click()
    page.wait_for_url("**/explore?*kind=*")
    idle(page)
    page.go_back()
    idle(page)
    assert page.url == address


@pytest.mark.full
def test_a_local_link_has_a_note_and_copying_it_shows_a_visible_confirmation(page, url: str):
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page.set_viewport_size({"width": 1280, "height": 900})
    visit(page, url + EXPLORE)
    page.locator(".st-key-explore_share button").first.click()
    idle(page)
    assert page.get_by_text("This link works only on this computer.").is_visible()
    copy = page.get_by_role("button", name="Copy to clipboard")
    # Before the pointer is over it.
    assert copy.evaluate(
        "e => e.checkVisibility({ opacityProperty: true, visibilityProperty: true })"
    )
    copy.click()
    copied = page.evaluate("navigator.clipboard.readText()")
    assert copied.startswith(url) and "kind=flip" in copied
    page.keyboard.press("Escape")
    drawer = open_card(page, 0)
    page.keyboard.press("l")
    notice = drawer.get_by_text("Link copied")
    notice.wait_for()
    box = notice.bounding_box()
    assert box["x"] + box["width"] <= drawer.bounding_box()["x"]
    assert box["y"] >= 0 and box["y"] + box["height"] <= 900
    assert page.evaluate("navigator.clipboard.readText()") == page.url
