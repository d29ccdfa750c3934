"""Every screen of the dashboard at every size, light and dark: no cut text, no errors, and pictures first.

One server shows the bundled results. From screen to screen the address changes as the browser's buttons
Back and Forward change it, without a reload. With VLPROBE_SCREENSHOTS=FOLDER each screen is also written there.
"""

import os
from pathlib import Path

import pytest

from tests.browser.conftest import DRAWN, idle, severe_violations, visit
from vlprobe.dashboard import navigation

pytestmark = pytest.mark.browser

HEIGHTS = {390: 844, 1024: 768, 1280: 900, 1920: 1080}
LOOKS = [(width, scheme) for scheme in ("light", "dark") for width in HEIGHTS]
WIDE_LOOK, PHONE = (1280, "light"), (390, "dark")
ON_PHONES = ("home", "explore", "slides")  # in the default tier; test_play.py votes on a phone
RARE = (  # in the full tier: they repeat parts of other screens, or take 4 to 18 s
    *("slides", "map", "mixed", "near twins", "playground"),
    *("repair", "breakdown", "retrieval", "pairs", "triplets", "rankings", "series", "published"),
)
SETS = {
    "lgip": "caca69741f742f8b",
    "rococo": "994512b8534b18e3",
    "eqben": "f48bdd995cda2f2a",
    "visla": "eb366819f3e89ca3",
    "prsm": "5d36e1450f412d03",
    "series": "be5650073439d882",
}
LGIP = f"set={SETS['lgip']}"
EXPLORE = f"/explore?{LGIP}&model=demo:softmax&kind=flip"
SCREENS = {
    "home": f"/?{LGIP}",
    "explore": EXPLORE,
    "map": f"{EXPLORE}&view=map",
    "drawer": f"{EXPLORE}&case=",
    "mixed": f"/explore?set={SETS['rococo']}&model=demo:softmax&kind=t2i&lost=own&sort=models&type=mix:0.9"
    "&case=demo-00000/0/mix:0.9:seed100",
    "near twins": f"/explore?set={SETS['eqben']}&model=demo:softmax",
    "compare": f"/compare?{LGIP}&model=demo:softmax&with=demo:weak",
    "tradeoff": f"/tradeoff?{LGIP}",
    "quiz": f"/present?{LGIP}&round=3&quiz=fair",
    "playground": "/try",
    "present": f"/present?{LGIP}",
    "slides": f"/present?{LGIP}",
    "run": "/run",
    "lab": "/lab",
    "models": "/models",
    "repair": "/repair",
    "breakdown": f"/breakdown?{LGIP}",
    "retrieval": f"/retrieval?set={SETS['rococo']}",
    "pairs": f"/pairs?set={SETS['eqben']}",
    "triplets": f"/triplets?set={SETS['visla']}",
    "rankings": f"/rankings?set={SETS['prsm']}",
    "series": "/series",
    "published": f"/published?{LGIP}",
    "suspects": "/suspects",
    "docs": "/docs?page=numbers/visla",
}
# The elements that must be fully on the first screen, and how many at each width.
FIRST = {
    "home": (".hero img.picture", {390: 1, 1024: 1, 1280: 1, 1920: 1}),
    "explore": ("button.card .frames", {390: 2, 1024: 6, 1280: 10, 1920: 33}),
    "drawer": ("[role=dialog] img", {1024: 1, 1280: 1, 1920: 1}),
    "mixed": (".sum .square", {1024: 3, 1280: 3, 1920: 3}),
    "near twins": ("button.card .frames", {1024: 2, 1280: 2, 1920: 4}),
    "compare": (".st-key-forest .ytick", {1280: 1, 1920: 2}),
    "tradeoff": (".st-key-tradeoff .js-plotly-plot", {1280: 1, 1920: 1}),
    "quiz": (".photo", {390: 1, 1024: 1, 1280: 1, 1920: 1}),
    "present": (".page img", {1024: 1, 1280: 1, 1920: 1}),
    "slides": ("dialog .title", {1024: 1, 1280: 1, 1920: 1}),
}
ROWS = {  # the controls above the content, which are one row; on a phone not those of WRAPPED
    "explore": ".st-key-sentence",
    "tradeoff": ".st-key-sentence",
    "quiz": ".st-key-play_bar",
    "present": ".st-key-talk",
}
WRAPPED = ("tradeoff", "present")
MIDDLES = """every => every.map((e) => e.getBoundingClientRect()).filter((b) => b.width > 8 && b.height > 8)
      .map((b) => (b.top + b.bottom) / 2)"""
WIDE = """() => { const main = document.querySelector('[data-testid=stMain]');
  return [document.documentElement.scrollWidth, main.scrollWidth - main.clientWidth]; }"""

# Changes the address as the browser's buttons do; resolves when a run begins or the previous page's run ends.
TURN = """(address) => new Promise((done) => {
  const app = document.querySelector('[data-testid=stApp]');
  const observer = new MutationObserver(() => { observer.disconnect(); done(); });
  observer.observe(app, { attributes: true, attributeFilter: ['data-test-script-state'] });
  setTimeout(done, location.pathname + location.search === address ? 50 : 5000);
  history.pushState({}, '', address);
  dispatchEvent(new PopStateEvent('popstate'));
}).then(() => null)"""


@pytest.fixture(scope="module")
def walk(page, url: str):
    """Return the browser page, which records the errors during the walk."""
    page.problems = []
    page.look = None
    page.on("pageerror", lambda error: page.problems.append(str(error)))
    visit(page, url + EXPLORE)
    page.locator("button.card").first.click()
    page.wait_for_url("**case=*")
    page.case = page.url.partition("case=")[2].partition("&")[0]
    yield page
    page.emulate_media(color_scheme="light")
    page.set_viewport_size({"width": 1280, "height": 900})


def go(page, url: str, screen: str, look: tuple[int, str]) -> None:
    """Go to a screen, at a size and in a color scheme, and scroll to its top."""
    width, scheme = look
    if page.look != look:
        page.look = look
        page.emulate_media(color_scheme=scheme)
        page.set_viewport_size({"width": width, "height": HEIGHTS[width]})
        visit(page, url + "/lab")
    address = SCREENS[screen] + (page.case if screen == "drawer" else "")
    page.mouse.move(0, 0)  # an element of this screen may be at its previous place
    page.evaluate(TURN, address)
    idle(page)
    if screen == "slides":
        page.locator("button.start").click()
        page.locator("dialog[open] .title").wait_for()
        page.evaluate(DRAWN)
    page.evaluate("() => document.querySelector('[data-testid=stMain]').scrollTo(0, 0)")


POLLS = 600  # a tenth of a second each, for the first pictures


def count_in_view(page, selector: str) -> int:
    """Return the number of these elements that are fully on the first screen."""
    return page.locator(selector).evaluate_all(
        """every => every.map((e) => e.getBoundingClientRect()).filter((b) => b.width > 20 && b.height > 10
      && b.top >= 0 && b.bottom <= innerHeight && b.left >= 0 && b.right <= innerWidth).length"""
    )


def screenshot(page, name: str) -> None:
    """Write the first screen to the folder of screenshots, if one is set."""
    if folder := os.environ.get("VLPROBE_SCREENSHOTS"):
        page.screenshot(path=str(Path(folder) / f"{name}.png"))


def test_the_walk_visits_every_page():
    addresses = {address.partition("?")[0].strip("/") for address in SCREENS.values()}
    assert addresses == {navigation.address(name) for name in (*navigation.ROW, *navigation.BELOW)}


@pytest.mark.parametrize(
    ("look", "screen"),
    [
        pytest.param(
            look,
            screen,
            id=f"{screen}-{look[0]}-{look[1]}",
            marks=[]
            if (look == WIDE_LOOK and screen not in RARE) or (look == PHONE and screen in ON_PHONES)
            else pytest.mark.full,
        )
        for look in LOOKS
        for screen in SCREENS
    ],
)
def test_a_screen_fits_is_accessible_and_begins_with_pictures(
    walk, url: str, look: tuple[int, str], screen: str
):
    walk.problems.clear()
    go(walk, url, screen, look)
    screenshot(walk, f"{screen.replace(' ', '-')}-{look[0]}-{look[1]}")
    shown = walk.locator("[data-testid=stException]").count()
    selector, least = FIRST.get(screen, ("", {}))
    n_whole = count_in_view(walk, selector) if look[0] in least else 0
    for _ in range(POLLS):  # a busy machine draws pictures later than the page
        if n_whole >= least.get(look[0], 0):
            break
        walk.wait_for_timeout(100)
        n_whole = count_in_view(walk, selector)
    wide = walk.evaluate(WIDE)
    # All cards have the colors of one card. The next screen may have the same wall.
    others = walk.locator(".wall li:nth-child(n + 9)")
    others.evaluate_all("all => all.forEach((e) => { e.style.display = 'none'; })")
    bad = severe_violations(walk)
    others.evaluate_all("all => all.forEach((e) => { e.style.display = ''; })")
    if screen == "slides":
        walk.keyboard.press("Escape")
    assert (bad, wide, shown, walk.problems, walk.outside) == ([], [look[0], 0], 0, [], [])
    assert n_whole >= least.get(look[0], 0)
    if screen in ROWS and not (screen in WRAPPED and look[0] == 390):
        middles = walk.locator(f"{ROWS[screen]} :is(button, input)").evaluate_all(MIDDLES)
        assert len(middles) > 2 and max(middles) - min(middles) < 16
