"""A site opened from the disk with the network off: its pages, its drawer, hostile captions."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.browser.conftest import HOSTILE_CAPTIONS, another
from vlprobe import views
from vlprobe.render.site import bundle
from vlprobe.render.site.subject import Limits
from vlprobe.storage.store import Store

pytestmark = pytest.mark.browser
READY = "main[data-ready]"


@pytest.fixture(scope="module")
def hostile_site(folder, hostile_key, tmp_path_factory) -> Path:
    """Questions about hostile captions as a site."""
    store = Store(folder / "cache")
    output = tmp_path_factory.mktemp("sites") / "hostile site"
    question_sets = [views.runs.question_set(store, hostile_key)]
    bundle.write(bundle.site(store, question_sets, Limits(may_publish=True)), output)
    return output


@pytest.fixture
def offline(blank) -> Iterator:
    """A page that says what went wrong on it."""
    with another(blank) as page:
        page.problems = []
        page.on("pageerror", lambda error: page.problems.append(str(error)))
        page.on("console", lambda said: said.type == "error" and page.problems.append(said.text))
        page.on("dialog", lambda dialog: page.problems.append("dialog"))
        page.context.set_offline(True)
        yield page
        page.context.set_offline(False)
        assert page.problems == [] and page.outside == []


def opened(page, site: Path, address: str) -> None:
    """Opens a page of a site from the disk and waits until it is drawn."""
    page.goto("about:blank")
    page.goto(f"{site.as_uri()}/{address}")
    page.wait_for_selector(READY)
    assert page.evaluate("window.ran") is None
    width = "[document.documentElement.scrollWidth, document.documentElement.clientWidth]"
    scroll, client = page.evaluate(width)
    assert scroll <= client


def test_hostile_captions_are_text_on_every_page_of_a_site(offline, hostile_site):
    for width in (1280, 390):
        offline.set_viewport_size({"width": width, "height": 844})
        for address in ("index.html", "explore.html#outcome=all"):
            opened(offline, hostile_site, address)
    cards = offline.locator("button.card")
    assert cards.count() == len(HOSTILE_CAPTIONS) // 2  # two captions a picture
    for caption in HOSTILE_CAPTIONS:
        offline.get_by_role("searchbox").fill(caption[:100])
        offline.wait_for_function(
            "document.querySelector('.wall-place').shadowRoot.querySelectorAll('button.card').length === 1"
        )
        cards.first.click()
        told = offline.locator("dialog .told").all_inner_texts()
        assert any(caption.strip()[-40:] in text for text in told)
        assert offline.locator("dialog .picture").evaluate("image => image.naturalWidth") == 64
        assert offline.evaluate("window.ran") is None
        offline.keyboard.press("Escape")
        offline.locator("dialog").wait_for(state="detached")


def test_the_wall_of_a_site_is_filtered_and_its_drawer_led_by_keys(offline, hostile_site):
    opened(offline, hostile_site, "explore.html")
    heading = offline.locator("h1").inner_text()
    assert "scored exactly as high" not in heading
    offline.get_by_role("button", name="Tied").click()
    offline.wait_for_function(
        "document.querySelector('.wall-place').shadowRoot.querySelector('h1').textContent.includes('exactly as high')"
    )
    offline.locator("button.card").first.click()
    where = offline.locator("dialog .steps span")
    assert where.inner_text().startswith("1 of ")
    offline.keyboard.press("ArrowRight")
    offline.wait_for_function(
        "document.querySelector('dialog .steps span').textContent.startsWith('2 of ')"
    )
    address = offline.url
    offline.keyboard.press("Escape")
    opened(offline, hostile_site, address.rpartition("/")[2])
    assert where.inner_text().startswith("2 of ")
