"""Every main path of the dashboard with the keyboard only: Tab, arrows, Enter and Escape."""

import re

import pytest

from tests.browser.conftest import ASKS, FLAGS, chromium, idle, severe_violations, visit
from tests.browser.test_walk import EXPLORE, SCREENS

pytestmark = [pytest.mark.browser, pytest.mark.full]

STOPS = 60  # the most Tab presses that a person would try
ACTIVE = """(selector) => { let e = document.activeElement;
  while (e && e.shadowRoot && e.shadowRoot.activeElement) e = e.shadowRoot.activeElement;
  return Boolean(e && e.matches(selector)); }"""
LABEL = """() => { let e = document.activeElement;
  while (e && e.shadowRoot && e.shadowRoot.activeElement) e = e.shadowRoot.activeElement;
  return e ? e.getAttribute('aria-label') || e.textContent : ''; }"""
RING = """() => { let e = document.activeElement;
  while (e && e.shadowRoot && e.shadowRoot.activeElement) e = e.shadowRoot.activeElement;
  const inside = [e, ...e.querySelectorAll('*'), e.parentElement, e.parentElement.parentElement];
  return inside.some((one) => { const style = getComputedStyle(one);
    return parseFloat(style.outlineWidth) > 0 && style.outlineStyle !== 'none' || style.boxShadow !== 'none'; }); }"""


def tab_to(page, selector: str) -> None:
    """Press Tab until this element has the focus; check that each stop shows a focus ring."""
    for _ in range(STOPS):
        page.keyboard.press("Tab")
        if page.evaluate(ACTIVE, selector):
            assert page.evaluate(RING), page.evaluate(LABEL)
            return
    raise AssertionError(f"no way by Tab to {selector}")


def test_the_wall_of_explore_opens_the_drawer_which_returns_the_focus(page, url: str):
    visit(page, url + EXPLORE)
    tab_to(page, ".st-key-facet_subtype button")
    tab_to(page, "button.card")
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowDown")
    chosen = page.evaluate(LABEL)
    page.keyboard.press("Enter")
    dialog = page.get_by_role("dialog")
    dialog.locator(".vp-bars").wait_for()
    idle(page)
    for _ in range(STOPS):  # focus stays in the drawer
        page.keyboard.press("Tab")
        assert page.evaluate("() => Boolean(document.activeElement.closest('[role=dialog]'))")
    place = dialog.get_by_text(re.compile(r"Picture \d+ of")).first.inner_text()
    page.keyboard.press("ArrowRight")
    dialog.get_by_text(f"Picture {int(place.split()[1]) + 1} of").wait_for()
    idle(page)
    seen = page.locator("button.card.open").get_attribute("aria-label")
    assert seen != chosen
    page.keyboard.press("Escape")
    dialog.wait_for(state="detached")
    idle(page)
    page.wait_for_function(f"(name) => ({LABEL})() === name", arg=seen, polling=50)


def test_home_shows_the_next_failure_and_opens_its_case(page, url: str):
    visit(page, url + SCREENS["home"])
    captions = page.locator(".hero .line")
    before = captions.all_inner_texts()
    tab_to(page, "button.another")
    page.keyboard.press("Enter")
    assert captions.all_inner_texts() != before
    idle(page)
    assert page.evaluate(ACTIVE, "button.another")
    page.keyboard.press("Shift+Tab")
    assert page.evaluate(ACTIVE, "a.primary")
    page.keyboard.press("Enter")
    page.wait_for_url("**/explore**case=*")
    page.get_by_role("dialog").locator(".vp-captions").first.wait_for()


def test_the_whole_row_of_compare_opens_with_the_pointer_and_the_keyboard(page, url: str):
    visit(page, url + SCREENS["compare"])
    top = "document.querySelector('.st-key-facing').getBoundingClientRect().top"
    shows_pictures = f"{top} > 0 && {top} < innerHeight / 3"
    figure = page.locator(".st-key-forest .js-plotly-plot")
    figure.scroll_into_view_if_needed()
    x, y, other = figure.evaluate("""graph => {
      const layout = graph._fullLayout, rows = graph._fullData[0], box = graph.getBoundingClientRect();
      const last = rows.y.length - 1, y = layout.yaxis._offset + layout.yaxis.d2p(rows.y[last]);
      return [box.left + layout.xaxis._offset + 5, box.top + y, rows.customdata[last][0]];
    }""")
    page.mouse.move(x + 5, y)
    page.mouse.move(x, y)
    page.mouse.click(x, y)
    page.wait_for_url(f"**type={other}*")
    idle(page)
    page.wait_for_function(shows_pictures)
    title = page.locator(".st-key-forest .ytick a").first
    title.focus()
    page.keyboard.press("Enter")
    page.wait_for_url("**type=&*")
    idle(page)
    page.wait_for_function(shows_pictures)
    page.keyboard.press("Shift")  # ends the scrolling
    number = page.locator(".st-key-forest .annotation text a").last
    number.evaluate("link => link.scrollIntoView({ block: 'center' })")  # not below the header
    box = number.bounding_box()
    assert box
    page.mouse.click(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    page.wait_for_url(f"**type={other}*")


def test_the_pickers_of_compare_choose_the_row_of_the_pictures(page, url: str):
    visit(page, url + SCREENS["compare"])
    picker = ".st-key-row_type input"
    tab_to(page, picker)
    before = page.locator(picker).input_value()
    for key in ("ArrowDown", "ArrowDown", "Enter"):
        page.keyboard.press(key)
    page.wait_for_url("**type=*")
    idle(page)
    assert page.locator(picker).input_value() != before
    tab_to(page, "button.card")


def test_the_list_of_the_trade_off_selects_a_model_and_links_to_its_failures(page, url: str):
    visit(page, url + SCREENS["tradeoff"])
    model = ".st-key-pinned button"
    tab_to(page, model)
    for key in ("ArrowRight", "Enter"):
        page.keyboard.press(key)
    page.wait_for_url("**/tradeoff?*model=*")
    idle(page)
    assert page.evaluate(ACTIVE, f"{model}[aria-checked=true], {model}[aria-pressed=true]")
    tab_to(page, ".st-key-failures a")
    assert not severe_violations(page)  # enough contrast on the color of focus
    page.keyboard.press("Enter")
    page.wait_for_url("**/explore?*model=*")


def test_slides_start_turn_and_close(page, url: str):
    visit(page, url + SCREENS["present"])
    tab_to(page, "button.start")
    page.keyboard.press("Enter")
    count = page.locator("dialog .count")
    count.get_by_text("1 of").wait_for()
    last = count.inner_text().split()[-1]
    for key, place in zip(
        ("ArrowRight", "Enter", "ArrowLeft", "End", "Home"), (2, 3, 2, last, 1), strict=True
    ):
        page.keyboard.press(key)
        assert count.inner_text() == f"{place} of {last}"
    page.keyboard.press("?")  # opens the search on other screens
    assert page.locator(".st-key-lookup button").get_attribute("aria-expanded") == "false"
    page.keyboard.press("Escape")
    page.locator("dialog[open]").wait_for(state="detached")
    # the dialog reports that it closed one task later
    page.wait_for_function(ACTIVE, arg="button.start")


def test_closing_slides_in_full_screen_returns_the_focus(driver, url: str):
    # In a separate browser, because the shared browser did not reproduce the loss of focus.
    with driver.chromium.launch(executable_path=chromium(), args=FLAGS) as browser:
        for _ in range(4):
            page = browser.new_page()
            page.add_init_script(ASKS)
            visit(page, url + SCREENS["present"])
            page.locator("button.start").click()
            page.locator("dialog[open]").wait_for()
            page.wait_for_function("() => document.fullscreenElement")
            idle(page)
            page.keyboard.press("Escape")
            page.locator("dialog[open]").wait_for(state="detached")
            page.wait_for_function("() => !document.fullscreenElement")
            idle(page)
            assert page.evaluate(ACTIVE, "button.start")
            page.close()


def test_the_quiz_takes_a_vote_and_opens_the_next_question(page, url: str):
    visit(page, url + SCREENS["quiz"])
    tab_to(page, ".option")
    page.keyboard.press("Enter")
    page.locator(".option.was-true").wait_for()
    idle(page)
    page.keyboard.press("ArrowRight")
    page.get_by_text("Question 2 of 10").wait_for()
    idle(page)
    page.keyboard.press("2")
    page.locator(".option.was-true").wait_for()


def test_a_key_opens_the_search_which_opens_the_page_of_a_symbol(page, url: str):
    visit(page, url + "/models")
    page.keyboard.press("/")
    field = ".st-key-lookup_field input"
    page.wait_for_function(ACTIVE, arg=field, polling=50)
    page.keyboard.type("picture rsms")
    page.get_by_role("option").first.wait_for()
    page.keyboard.press("Enter")
    page.wait_for_url("**/retrieval?*")
    idle(page)
    assert not page.locator(field).is_visible()
    page.get_by_role("button", name="Altered on top (RSMS)").focus()
    page.keyboard.press("Enter")
    page.get_by_role("link", name="Formula and example").wait_for()
    page.keyboard.press("Escape")
    page.keyboard.press("?")
    page.get_by_role("cell", name="this list").wait_for()
    assert severe_violations(page) == []
    button = page.locator(".st-key-lookup button")
    assert not page.evaluate(ACTIVE, field)  # the user reads the list
    button.click()
    page.locator(field).wait_for(state="hidden")
    button.click()  # a press needs no second one on the field
    page.wait_for_function(ACTIVE, arg=field, polling=50)
