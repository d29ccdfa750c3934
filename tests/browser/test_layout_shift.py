"""The cumulative layout shift on a hard load of each page, as Chromium measures it."""

import itertools
import re
import urllib.request
from pathlib import Path

import pytest
import streamlit

from tests.browser.conftest import idle, visit
from tests.browser.test_walk import EXPLORE, HEIGHTS, SCREENS
from tests.conftest import tiers
from vlprobe.render.html.style import STYLE

pytestmark = pytest.mark.browser

GOOD = 0.1  # https://web.dev/articles/cls
STATIC = Path(streamlit.__file__).parent / "static"
PAGES = [name for name in SCREENS if name not in ("slides", "drawer")]  # parts of pages
MEASURE = """window.shift = 0; new PerformanceObserver((list) => {
  for (const entry of list.getEntries()) if (!entry.hadRecentInput) window.shift += entry.value;
}).observe({ type: 'layout-shift', buffered: true });"""


@pytest.fixture(scope="module")
def measured(page):
    """Return a browser page that adds up its layout shifts from the first frame."""
    other = page.context.new_page()
    other.set_default_timeout(90_000)
    other.add_init_script(MEASURE)
    yield other
    other.close()


def shift_of(page, address: str, width: int) -> float:
    """Load an address and return its layout shift, once no element has moved for a second."""
    page.set_viewport_size({"width": width, "height": HEIGHTS[width]})
    page.goto("about:blank")
    visit(page, address)
    before = -1.0
    while (shift := page.evaluate("window.shift")) != before:
        before = shift
        page.wait_for_timeout(1000)
        idle(page)
    return shift


@pytest.mark.parametrize(
    ("width", "name"), tiers(itertools.product((1280, 1024, 390), PAGES), [(1280, "explore")])
)
def test_a_hard_load_has_no_layout_shift(measured, url: str, width: int, name: str):
    assert shift_of(measured, url + SCREENS[name], width) < GOOD


@pytest.mark.full
@pytest.mark.parametrize("width", [1280, 1024, 390])
def test_a_hard_load_of_a_case_has_no_layout_shift(measured, url: str, width: int):
    visit(measured, url + EXPLORE)
    measured.locator("button.card").first.click()
    measured.wait_for_url("**case=*")
    assert shift_of(measured, measured.url, width) < GOOD


def test_the_logo_and_gray_areas_are_drawn_before_any_script_runs(page, url: str):
    plain = page.context.new_page()
    plain.route(re.compile(r"/static/js/"), lambda route: route.abort())
    plain.goto(url + "/compare?tab=differences")
    shown = plain.evaluate("""() => ['::before', '::after'].map((part) => {
      const style = getComputedStyle(document.body, part);
      return [style.content, style.position, parseInt(style.left), style.backgroundImage.slice(0, 6)];
    })""")
    plain.close()
    assert shown == [['"vlprobe"', "fixed", 40, 'url("d'], ['""', "fixed", 40, "linear"]]


def _answer(address: str, **headers: str):
    with urllib.request.urlopen(urllib.request.Request(address, headers=headers)) as answer:
        return answer.read(), answer.headers


def test_a_document_ends_with_the_style_even_if_the_browser_has_cached_the_page(url: str):
    page = (STATIC / "index.html").read_bytes()
    plain, headers = _answer(url + "/explore")
    assert plain == page
    conditions = {"If-None-Match": headers["etag"], "If-Modified-Since": headers["last-modified"]}
    accepted = {"Accept": "text/html,*/*", "Accept-Encoding": "gzip", "Range": "bytes=0-9"}
    document, headers = _answer(url + "/explore", **conditions, **accepted)
    before, after = page.split(b"</body>")
    assert document.startswith(before + STYLE.encode()) and document.endswith(
        b"</script></body>" + after
    )
    assert "etag" not in headers and headers["content-length"] == str(len(document))


def test_a_script_is_not_changed(url: str):
    file = next(STATIC.glob("static/js/*.js"))
    script, _ = _answer(f"{url}/{file.relative_to(STATIC).as_posix()}", Accept="text/html,*/*")
    assert script == file.read_bytes()
