"""Explore in a real browser: the wall by keyboard, focus, first screens, hostile captions, accessibility."""

import csv
import io
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.browser.conftest import browsing, idle, serving, visit
from tests.conftest import make_tiny
from vlprobe.runs.request import Request
from vlprobe.runs.run import execute
from vlprobe.storage.store import Store

pytestmark = pytest.mark.browser

TINY = "/explore?model=demo:softmax&kind=flip"  # of the shipped results
HOSTILE = (
    "</script><script>document.title='ran'</script> a red dog",
    "<img src=x onerror=\"document.title='ran'\"> a red dog",
    "\u202eقطة حمراء على المقعد a red dog\u202c",
    "a red dog " + "and a very long story " * 227,
)
FOCUSED = """() => { let e = document.activeElement;
  while (e && e.shadowRoot && e.shadowRoot.activeElement) e = e.shadowRoot.activeElement;
  return e ? e.getAttribute('aria-label') || '' : ''; }"""


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """A folder whose cache has hostile captions beside the shipped results, and the key of their questions."""
    folder = tmp_path_factory.mktemp("explored")
    make_tiny(folder / "hostile")
    path = folder / "hostile" / "captions.csv"
    images = [row["image"] for row in csv.DictReader(io.StringIO(path.read_text("utf-8")))]
    with path.open("w", newline="", encoding="utf-8") as handle:
        writer = csv.writer(handle)
        writer.writerow(["image", "caption"])
        writer.writerows(zip(images, HOSTILE, strict=False))
    request = Request(("control:constant",), f"csv:{path}", "lgip", examine=False)
    (run,) = execute(request, Store(folder / "cache"))
    return folder, run["case_key"]


@pytest.fixture(scope="module")
def site(hostile: tuple[Path, str]) -> Iterator[str]:
    """A server that shows the shipped results too, as a fresh clone does."""
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("VLPROBE_SHIPPED", raising=False)
        with serving(hostile[0]) as address:
            yield address


@pytest.fixture(scope="module")
def tab(site: str, driver) -> Iterator:
    with browsing(site, driver) as page:
        yield page


def names(tab) -> list[str]:
    """What a screen reader says of each card on the wall."""
    return [card.get_attribute("aria-label") for card in tab.locator("button.card").all()]


def test_the_wall_and_its_drawer_are_used_by_keyboard_alone(tab, site: str):
    visit(tab, site + TINY)
    cards = names(tab)
    assert tab.locator("button.card[tabindex='0']").count() == 1
    tab.locator("button.card").first.focus()
    tab.keyboard.press("ArrowRight")
    assert tab.evaluate(FOCUSED) == cards[1]
    tab.keyboard.press("ArrowDown")
    assert cards.index(tab.evaluate(FOCUSED)) == 1 + 7
    tab.keyboard.press("End")
    assert tab.evaluate(FOCUSED) == cards[-1]
    tab.keyboard.press("Home")
    width = tab.locator("button.card").first.bounding_box()["width"]
    tab.keyboard.press("+")
    assert tab.locator("button.card").first.bounding_box()["width"] > width
    tab.keyboard.press("-")
    tab.keyboard.press("Enter")
    dialog = tab.get_by_role("dialog")
    dialog.get_by_text("Picture 1 of 282").wait_for()
    idle(tab)
    tab.keyboard.press("ArrowRight")
    dialog.get_by_text("Picture 2 of 282").wait_for()
    assert "case=" in tab.url
    idle(tab)
    tab.keyboard.press("t")
    dialog.get_by_text("Your tags").wait_for()
    tab.wait_for_function("() => document.activeElement.matches('.st-key-case_details input')")
    tab.keyboard.type("tl")  # letters are only letters while one types
    assert dialog.get_by_text("Link copied").count() == 0
    for _ in range(3):  # the list of tags takes the first one
        tab.keyboard.press("Escape")
        tab.wait_for_timeout(200)
        if not dialog.count():
            break
    idle(tab)
    assert "case=" not in tab.url
    assert tab.evaluate(FOCUSED) == cards[0]


@pytest.mark.parametrize(
    ("width", "height", "least"), [(1280, 900, 14), (1024, 768, 6), (390, 844, 2)]
)
def test_the_first_screen_is_pictures(tab, site: str, width: int, height: int, least: int):
    tab.set_viewport_size({"width": width, "height": height})
    visit(tab, site + TINY)
    boxes = [frame.bounding_box() for frame in tab.locator("button.card .frames").all()]
    whole = [box for box in boxes if box["y"] + box["height"] <= height]
    assert len(whole) >= least
    assert all(box["width"] >= 149 for box in whole)
    assert tab.evaluate("document.documentElement.scrollWidth") <= width


def test_patterns_switch_on_and_off(tab, site: str):
    tab.set_viewport_size({"width": 1280, "height": 900})
    visit(tab, site + TINY)
    chip = tab.get_by_role("button", name=re.compile("four.*five"))
    chip.click()
    tab.wait_for_url("**pair=four*")
    idle(tab)
    assert tab.get_by_role("heading", name="175 lies believed").is_visible()
    assert chip.get_attribute("aria-pressed") == "true"
    chip.click()
    idle(tab)
    assert "pair=" not in tab.url


def test_no_caption_becomes_markup_on_the_wall_or_in_the_drawer(
    tab, site: str, hostile: tuple[Path, str]
):
    tab.set_viewport_size({"width": 1280, "height": 900})
    visit(tab, f"{site}/explore?set={hostile[1]}&outcome=all&cards=every")
    cards = names(tab)
    assert len(HOSTILE[3]) > 4900 and max(map(len, cards)) < 1000
    for caption in HOSTILE:
        name = next(name for name in cards if caption[:100] in name)
        tab.locator("button.card").nth(cards.index(name)).click()
        dialog = tab.get_by_role("dialog")
        dialog.locator(".vp-bars").wait_for()
        idle(tab)
        assert caption[:100] in dialog.locator(".vp-captions").inner_text().replace("\n", "")
        assert tab.evaluate("document.documentElement.scrollWidth") <= 1280
        tab.keyboard.press("Escape")
        dialog.wait_for(state="detached")
        idle(tab)
    assert tab.title() != "ran"
    assert tab.locator("main img[src=x]").count() == 0


@pytest.mark.parametrize(("width", "scheme"), [(1280, "light"), (390, "dark")])
def test_the_wall_and_the_drawer_meet_the_rules_of_accessibility(
    tab, site: str, width: int, scheme: str
):
    from axe_playwright_python.sync_playwright import Axe

    tab.set_viewport_size({"width": width, "height": 900})
    tab.emulate_media(color_scheme=scheme)
    visit(tab, site + TINY)
    violations = Axe().run(tab).response["violations"]
    tab.locator("button.card").first.click()
    tab.get_by_role("dialog").locator(".vp-bars").wait_for()
    idle(tab)
    violations += Axe().run(tab).response["violations"]
    tab.emulate_media(color_scheme="light")
    assert [
        (v["id"], v["nodes"][0]["html"][:200])
        for v in violations
        if v["impact"] in ("serious", "critical")
    ] == []
