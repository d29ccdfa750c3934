"""The frame of every page in a real browser: header, menu, sentence of pickers, and unknown addresses."""

import pytest

from tests.browser.conftest import DRAWN, idle, visit
from tests.browser.test_walk import SETS
from tests.conftest import tiers

pytestmark = pytest.mark.browser

# Returns each cut text in a row of pickers, with the number of missing pixels.
CUT = """() => [...document.querySelectorAll('.st-key-sentence :is(input, [data-tag])')]
  .filter((e) => e.value !== '' && e.scrollWidth > e.clientWidth + 1)
  .map((e) => [e.value || e.innerText, e.scrollWidth - e.clientWidth])"""
LEFT = "(selector) => document.querySelector(selector).getBoundingClientRect().left"


@pytest.fixture
def sized(page):
    """Return the browser page, and restore its size after the test."""
    yield page
    page.set_viewport_size({"width": 1280, "height": 900})


@pytest.mark.parametrize(
    "address",
    [
        f"/explore?set={SETS['visla']}&model=demo:weak&kind=i2t",
        pytest.param(
            f"/compare?set={SETS['lgip']}&model=demo:weak&with=demo:plain|demo:softmax|demo:mixed&kind=combined",
            marks=pytest.mark.full,
        ),
    ],
)
def test_no_choice_in_the_sentence_of_pickers_is_cut(sized, url: str, address: str):
    visit(sized, url + address)
    for width in (1024, 1280):
        sized.set_viewport_size({"width": width, "height": 768})
        sized.evaluate(DRAWN)
        assert sized.locator(".st-key-sentence input").count() >= 4
        assert sized.evaluate(CUT) == []


@pytest.mark.full
@pytest.mark.parametrize(("path", "first"), [("/", ".st-key-home"), ("/explore", ".st-key-model")])
def test_the_header_is_aligned_with_the_page_on_a_wide_screen(
    sized, url: str, path: str, first: str
):
    sized.set_viewport_size({"width": 1920, "height": 1080})
    visit(sized, url + path)
    logo = sized.evaluate(LEFT, "[data-testid=stHeaderLogo]")
    assert abs(logo - sized.evaluate(LEFT, first)) < 2


def test_on_a_phone_the_menu_has_a_label_and_explore_names_its_dataset(sized, url: str):
    sized.set_viewport_size({"width": 390, "height": 844})
    visit(sized, url + f"/explore?set={SETS['lgip']}&model=demo:softmax&kind=flip")
    label = "(e) => getComputedStyle(e, '::after').content"
    button = sized.get_by_role("button", name="Menu", exact=True)
    assert button.evaluate(label) == '"Menu"'
    button.click()
    sized.get_by_role("button", name="Collapse sidebar").click()
    button.wait_for()
    place = sized.locator(".st-key-wall .place")
    assert place.is_visible() and place.inner_text().startswith("Drawn scenes")


@pytest.mark.full
def test_a_page_below_lab_highlights_lab_and_its_back_link_does_not_reload(page, url: str):
    visit(page, f"{url}/pairs?set={SETS['eqben']}")
    color = "(e) => getComputedStyle(e).backgroundColor"
    links = page.get_by_test_id("stTopNavLink")
    lit = {link.inner_text(): link.evaluate(color) for link in links.all()}
    assert lit["Lab"] != lit["Run"] == lit["Home"]
    page.evaluate("() => { window.same = true; }")
    page.locator(".st-key-way_back").get_by_text("Lab").click()
    page.wait_for_url("**/lab")
    idle(page)
    assert page.evaluate("window.same") and page.title() == "Lab · vlprobe"


@pytest.mark.parametrize("name", tiers(["explor", "a%20%3Cb%3E"], ["a%20%3Cb%3E"]))
def test_an_unknown_address_shows_an_error_page(page, url: str, name: str):
    visit(page, f"{url}/{name}")
    assert page.get_by_role("heading", name="This page does not exist.").is_visible()
    assert page.get_by_role("dialog").count() == 0
    assert page.title() == "Page not found · vlprobe"
    page.get_by_test_id("stMain").get_by_role("link", name="Home").click()
    page.locator(".hero").wait_for()
    assert page.title() == "Home · vlprobe"


@pytest.mark.full
def test_the_address_home_opens_home(page, url: str):
    visit(page, f"{url}/home")
    page.locator(".hero").wait_for()
    assert page.get_by_role("dialog").count() == 0 and page.title() == "Home · vlprobe"


@pytest.mark.full
def test_an_open_picker_of_home_is_not_covered_by_a_tooltip(page, url: str):
    visit(page, url)
    change = page.get_by_role("button", name="Change")
    change.hover()
    change.click()
    page.get_by_test_id("stPopoverBody").wait_for()
    idle(page)
    assert page.get_by_role("tooltip").count() == 0
    page.keyboard.press("Escape")


def test_a_card_of_run_is_chosen_by_its_box_its_title_and_its_text(page, url: str):
    visit(page, url + "/run")
    card = page.locator("[class*=st-key-card_run_model]").filter(has_text="Half-trained")
    box = card.get_by_role("checkbox", name="Half-trained", exact=True)
    assert not box.is_checked()
    for number, part in enumerate(("label", ".vp-card-title", ".vp-quiet"), 1):
        middle = card.locator(part).first.bounding_box()
        page.mouse.click(middle["x"] + middle["width"] / 2, middle["y"] + middle["height"] / 2)
        idle(page)
        assert box.is_checked() == bool(number % 2)


@pytest.mark.full
def test_a_list_of_kinds_is_wide_enough_for_the_names_of_other_datasets(page, url: str):
    visit(page, url + f"/explore?set={SETS['lgip']}&model=demo:softmax&kind=flip")
    page.locator(".st-key-kind button").click()
    options = page.get_by_role("listbox", name="Kind of question").get_by_role("option")
    options.filter(has_text=" in Drawn ").first.wait_for()
    cut = "every => every.filter((e) => e.scrollWidth > e.clientWidth + 1).map((e) => e.innerText)"
    assert options.locator("*").evaluate_all(cut) == []
    assert options.filter(has_text=" in Drawn ").count() >= 3
    page.keyboard.press("Escape")


def test_on_a_phone_the_caption_and_the_first_answer_of_try_it_are_on_the_first_screen(
    sized, url: str
):
    sized.set_viewport_size({"width": 390, "height": 844})
    visit(sized, url + "/try")
    row = sized.locator("[data-testid=stBidiComponentIsolated] tbody tr").first
    assert row.evaluate("(row) => row.getBoundingClientRect().bottom") <= 844
    top = sized.locator(".st-key-play_own").locator("button").first.bounding_box()
    assert top and top["y"] < 600
    sized.set_viewport_size({"width": 1280, "height": 800})
    beat = sized.get_by_role("textbox", name="Your wrong caption")
    beat.fill("Four purple dogs above four green boats.")
    verdict = sized.locator(".whom .says").last
    assert verdict.evaluate("(text) => text.getBoundingClientRect().bottom") <= 800
    edits = sized.get_by_role("heading", name="Every edit of your caption")
    assert not edits.is_visible()
    sized.get_by_role("button", name="See all").click()
    edits.wait_for()


def test_a_theme_chosen_on_one_page_applies_to_all_pages(page, url: str):
    def background() -> list[str]:
        app = "getComputedStyle(document.querySelector('[data-testid=stApp]')).backgroundColor"
        html = "getComputedStyle(document.documentElement).backgroundColor"
        return page.evaluate(f"[{app}, {html}]")

    def choose_theme(icon: str) -> None:
        page.get_by_test_id("stMainMenuButton").click()
        page.get_by_text(icon, exact=True).click()
        page.keyboard.press("Escape")
        idle(page)

    visit(page, url + "/try")
    light = background()
    choose_theme("dark_mode")
    dark = background()
    assert dark != light and len({*dark}) == len({*light}) == 1
    visit(page, url + "/present")
    assert background() == dark
    page.get_by_role("link", name="Compare").click()
    idle(page)
    choose_theme("light_mode")
    visit(page, url + "/try")
    assert background() == light
    page.evaluate("localStorage.clear()")
