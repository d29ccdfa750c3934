"""Explore in a real browser: the wall by keyboard, focus, first screens, hostile captions, accessibility."""

import re

import pytest

from tests.browser.conftest import HOSTILE_CAPTIONS, IDLE, idle, visit
from tests.browser.test_walk import EXPLORE

pytestmark = pytest.mark.browser

FOCUSED = """() => { let e = document.activeElement;
  while (e && e.shadowRoot && e.shadowRoot.activeElement) e = e.shadowRoot.activeElement;
  return e ? e.getAttribute('aria-label') || '' : ''; }"""


def names(page) -> list[str]:
    """Return the accessible name of each card on the wall."""
    return [card.get_attribute("aria-label") for card in page.locator("button.card").all()]


@pytest.mark.full  # 7 s; test_keyboard.py goes to the drawer and back
def test_the_wall_and_its_drawer_work_with_the_keyboard_only(page, url: str):
    visit(page, url + EXPLORE)
    cards = names(page)
    assert page.locator("button.card[tabindex='0']").count() == 1
    page.locator("button.card").first.focus()
    page.keyboard.press("ArrowRight")
    assert page.evaluate(FOCUSED) == cards[1]
    page.keyboard.press("ArrowDown")
    assert cards.index(page.evaluate(FOCUSED)) == 1 + 5
    page.keyboard.press("End")
    assert page.evaluate(FOCUSED) == cards[-1]
    page.keyboard.press("Home")
    width = page.locator("button.card").first.bounding_box()["width"]
    page.keyboard.press("+")
    assert page.locator("button.card").first.bounding_box()["width"] > width
    page.keyboard.press("-")
    page.keyboard.press("Enter")
    dialog = page.get_by_role("dialog")
    dialog.get_by_text("Picture 1 of 282").wait_for()
    idle(page)
    page.keyboard.press("ArrowRight")
    dialog.get_by_text("Picture 2 of 282").wait_for()
    assert "case=" in page.url
    page.locator("li:nth-child(2) > button.card.open").wait_for()
    assert page.locator("button.card.open").count() == 1
    idle(page)
    page.keyboard.press("t")
    dialog.locator(".st-key-case_saved").get_by_text("My tags").wait_for()
    page.wait_for_function("() => document.activeElement.matches('.st-key-case_tags input')")
    page.keyboard.type("tl")  # in a text field, letters are not keys of the drawer
    assert dialog.get_by_text("Link copied").count() == 0
    for _ in range(3):  # the first one closes the list of tags
        page.keyboard.press("Escape")
        idle(page)
        if not dialog.count():
            break
    dialog.wait_for(state="detached")
    page.wait_for_function("() => !location.search.includes('case=')")
    page.wait_for_function(f"(name) => ({FOCUSED})() === name", arg=cards[1], polling=50)


@pytest.mark.full
def test_a_row_of_a_facet_switches_on_and_off(page, url: str):
    page.set_viewport_size({"width": 1280, "height": 900})
    visit(page, url + EXPLORE)
    chip = page.locator(".st-key-facet_pair button").first
    match = re.search(r"([\d.]+)\s% of ([\d,]+)", chip.inner_text())
    assert match
    n_believed = round(float(match[1]) / 100 * int(match[2].replace(",", "")))
    chip.click()
    page.wait_for_url("**pair=*")
    idle(page)
    assert page.get_by_role("heading", name=f"{n_believed} wrong captions preferred").is_visible()
    assert chip.get_attribute("aria-pressed") == "true"
    at_rest = chip.evaluate(f"""async (chip) => {{ chip.click();
      await new Promise((turn) => setTimeout(turn, 5)); return ({IDLE})(); }}""")
    assert not at_rest  # although the server has not yet reported the run
    idle(page)
    assert "pair=" not in page.url


@pytest.mark.full
def test_no_caption_becomes_markup_on_the_wall_or_in_the_drawer(page, url: str, hostile_key: str):
    page.set_viewport_size({"width": 1280, "height": 900})
    visit(page, f"{url}/explore?set={hostile_key}&outcome=all&cards=every")
    cards = names(page)
    assert len(HOSTILE_CAPTIONS[3]) > 4900 and max(map(len, cards)) < 1000
    for caption in HOSTILE_CAPTIONS:
        name = next(name for name in cards if caption[:100] in name)
        page.locator("button.card").nth(cards.index(name)).click()
        dialog = page.get_by_role("dialog")
        dialog.locator(".vp-bars").wait_for()
        idle(page)
        assert caption[:100] in dialog.locator(".vp-captions").first.inner_text().replace("\n", "")
        assert page.evaluate("document.documentElement.scrollWidth") <= 1280
        page.keyboard.press("Escape")
        dialog.wait_for(state="detached")
        idle(page)
    assert page.evaluate("() => window.ran") is None
    assert page.locator("main img[src=x]").count() == 0


@pytest.mark.full
def test_another_page_of_the_wall_begins_at_its_top_without_a_layout_shift(page, url: str):
    page.set_viewport_size({"width": 1280, "height": 900})
    visit(page, url + EXPLORE)
    first = names(page)[0]
    slot = page.locator(".st-key-chips")
    height = slot.bounding_box()["height"]
    slot.evaluate("""slot => { window.tallest = 0;
      new ResizeObserver(() => { window.tallest = Math.max(window.tallest, slot.offsetHeight); }).observe(slot); }""")
    page.locator(".st-key-page").get_by_role("button", name="Page 2").click()
    page.wait_for_url("**page=2*")
    idle(page)
    assert slot.is_visible() and page.evaluate("window.tallest") == height
    card = page.locator("ul.wall button.card").first
    assert card.get_attribute("aria-label") != first
    assert 0 < card.bounding_box()["y"] < 450
    assert page.locator("main h1").first.bounding_box()["y"] > 50  # below the row of pages


@pytest.mark.full
@pytest.mark.parametrize("width", [1280, 1024])
def test_a_press_on_a_low_facet_leaves_the_new_cards_in_view(page, url: str, width: int):
    page.set_viewport_size({"width": width, "height": 700})
    visit(page, url + EXPLORE)
    page.mouse.move(width - 200, 400)
    page.mouse.wheel(0, 2000)
    heading = page.locator("main h1").first
    page.wait_for_function(
        "() => document.querySelector('.st-key-explore_wall').getBoundingClientRect().top < -500"
    )
    row = page.locator(".st-key-facet_caption_length button").last
    row.scroll_into_view_if_needed()
    place = row.bounding_box()
    at = place["x"] + 60, place["y"] + 12
    for address in ("**&caption=*", "**&not=caption*"):  # the row stays below the pointer
        page.mouse.click(*at)
        page.wait_for_url(address)
        idle(page)
        assert abs(row.bounding_box()["y"] - place["y"]) < 8
    assert 60 < heading.bounding_box()["y"] < 200


@pytest.mark.full  # embeds 500 scenes
def test_a_click_on_a_mark_of_the_map_opens_its_case_and_the_pointer_shows_its_picture(page, url):
    page.set_viewport_size({"width": 1280, "height": 900})
    visit(page, f"{url}{EXPLORE}&view=map")
    page.locator(".js-plotly-plot .gl-canvas").first.wait_for()
    x, y = page.locator(".js-plotly-plot").evaluate("""plot => {
      const { xaxis, yaxis } = plot._fullLayout, { x, y } = plot._fullData[0], box = plot.getBoundingClientRect();
      return [box.left + xaxis._offset + xaxis.d2p(x[0]), box.top + yaxis._offset + yaxis.d2p(y[0])]; }""")
    page.mouse.move(x - 3, y - 3)
    page.mouse.move(x, y, steps=4)
    preview = page.locator(".st-key-map_preview img")
    preview.wait_for()
    page.mouse.click(x, y)
    page.wait_for_url("**case=*")
    page.get_by_role("dialog").locator("img").first.wait_for()
    assert preview.count() == 0 and "region=" not in page.url


@pytest.mark.full  # embeds 500 scenes
def test_a_lasso_on_the_map_selects_the_pictures_inside_it(page, url: str):
    page.set_viewport_size({"width": 1280, "height": 900})
    labels = []
    for x, y in ((0.3, 0.4), (0.6, 0.6)):
        visit(page, f"{url}{EXPLORE}&view=map")
        box = page.locator(".js-plotly-plot").bounding_box()
        left, top = box["x"] + x * box["width"], box["y"] + y * box["height"]
        page.evaluate("""() => document.querySelector(".js-plotly-plot").on("plotly_selected",
          (event) => { if (event) window.inside = event.points.map((point) => point.customdata[0]); })""")
        page.mouse.move(left, top)
        page.mouse.down()
        for right, down in ((50, 0), (50, 60), (0, 60), (0, 5)):
            page.mouse.move(left + right, top + down, steps=4)
        page.mouse.up()
        page.wait_for_url("**region=*")
        idle(page)
        n_inside = len(set(page.evaluate("window.inside")))
        label = page.locator(".st-key-chip_0").inner_text().splitlines()[0]
        assert n_inside > 1 and label == f"{n_inside:,} pictures on the map"
        labels.append(page.url.partition("region=")[2])
    assert labels[0] != labels[1]
