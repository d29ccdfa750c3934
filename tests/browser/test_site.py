"""A site opened from the disk with the network off: its pages, its drawer, hostile captions."""

import itertools
import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import duckdb
import pytest
from playwright.sync_api import expect

from tests.browser.conftest import HOSTILE, HOSTILE_CAPTIONS, another, severe_violations
from tests.conftest import tiers
from vlprobe import views
from vlprobe.runs.request import Request
from vlprobe.runs.run import execute
from vlprobe.storage import display_names, shipped
from vlprobe.storage.shipped import StoreAboveShipped
from vlprobe.storage.store import Store
from vlprobe.surfaces.report import report
from vlprobe.surfaces.site import bundle
from vlprobe.surfaces.site.subject import Limits

pytestmark = pytest.mark.browser
READY = "main[data-ready]"


NAME = '<img src=x onerror="window.ran=1">'
PAGES = ("index.html", "explore.html#outcome=all", "compare.html", "tradeoff.html", "present.html")


@pytest.fixture(scope="module")
def hostile_site(folder, hostile_key, tmp_path_factory) -> Path:
    """Return a site with two models' results on hostile captions; one model has a hostile name."""
    here = tmp_path_factory.mktemp("sites")
    store = Store(shutil.copytree(folder / "cache", here / "cache"))
    dataset = store.runs()[0]["run"]["dataset"]
    execute(Request(("control:random",), dataset, "lgip", examine=False), store)
    display_names.rename(store, "control:random", NAME)
    output = here / "hostile site"
    question_sets = [views.runs.question_set(store, hostile_key)]
    bundle.write(bundle.site(question_sets, Limits(may_publish=True)), output)
    (here / "report.html").write_text(report.report(question_sets[0]), encoding="utf-8")
    models = question_sets[0].ordered_models[::-1]
    text = report.report(question_sets[0], start="compare", compared=models)
    (here / "reversed.html").write_text(text, encoding="utf-8")
    return output


@pytest.fixture
def offline(blank) -> Iterator:
    """Return a page, and fail the test if the page had an error."""
    with another(blank) as page:
        page.problems = []
        page.on("pageerror", lambda error: page.problems.append(str(error)))
        page.on(
            "console",
            lambda message: message.type == "error" and page.problems.append(message.text),
        )
        page.on("dialog", lambda dialog: page.problems.append("dialog"))
        page.context.set_offline(True)
        yield page
        page.context.set_offline(False)
        assert page.problems == [] and page.outside == []


def opened(page, site: Path, address: str) -> None:
    """Open a page of a site from the disk and wait until it is drawn."""
    page.mouse.move(0, 0)  # an element of this page may be at its previous place
    page.goto("about:blank")
    page.goto(f"{site.as_uri()}/{address}")
    page.wait_for_selector(READY, state="attached")  # hidden if a report shows its numbers
    assert page.evaluate("window.ran") is None
    width = "[document.documentElement.scrollWidth, document.documentElement.clientWidth]"
    scroll, client = page.evaluate(width)
    assert scroll <= client, address


def press_mark(page, nth: int) -> None:
    """Click a mark of the figure, which Plotly covers with a layer."""
    box = page.locator(".scatterlayer .points path").nth(nth).bounding_box()
    page.mouse.click(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)


@pytest.mark.full
def test_hostile_captions_are_text_on_every_page_of_a_site(offline, hostile_site):
    for width in (1280, 390):
        offline.set_viewport_size({"width": width, "height": 844})
        for address in PAGES:
            opened(offline, hostile_site, address)
            assert width == 390 or severe_violations(offline) == []
    opened(offline, hostile_site, "explore.html#outcome=all&model=m0")
    cards = offline.locator("button.card")
    assert cards.count() == len(HOSTILE_CAPTIONS) // 2  # two captions per picture
    offline.locator("summary", has_text="Filters").click()
    for caption in HOSTILE_CAPTIONS:
        whole_words, _, _ = caption[:100].rpartition(" ")
        offline.get_by_role("searchbox").fill(whole_words)
        expect(cards).to_have_count(1)
        cards.first.click()
        offline.locator("dialog .vp-told").first.wait_for()
        captions = offline.locator("dialog .vp-told").all_inner_texts()
        assert any(caption.strip()[-40:] in text for text in captions)
        # the file is read after the dialog is drawn
        expect(offline.locator("dialog img")).to_have_js_property("naturalWidth", 64)
        assert offline.evaluate("window.ran") is None
        offline.keyboard.press("Escape")
        offline.locator("dialog").wait_for(state="detached")


def test_the_wall_of_a_site_has_filters_and_its_drawer_responds_to_keys(offline, hostile_site):
    opened(offline, hostile_site, "explore.html")
    heading = offline.locator("h1").inner_text()
    assert "scored exactly as high" not in heading
    row = offline.locator(".sentence > *:visible")
    tops = row.evaluate_all("all => all.map((e) => e.getBoundingClientRect().bottom)")
    assert max(tops) - min(tops) < 20  # one row, as in the dashboard
    offline.locator("summary", has_text="Filters").click()
    outcome = offline.get_by_label("Outcome")
    outcome.focus()
    offline.keyboard.type("Tied")
    expect(offline.locator(".wall-place h1")).to_contain_text("exactly as high")
    assert offline.evaluate("document.activeElement.ariaLabel") == "Outcome"
    assert offline.locator("summary").inner_text().startswith("Filters (1)")
    orders = offline.get_by_label("Order").locator("option").all_inner_texts()
    assert orders[0] == "Clearest first" and len(orders) == 5
    offline.get_by_label("Order").select_option("dataset")
    offline.wait_for_function(
        "document.querySelector('.wall-place').shadowRoot.textContent.includes('in the dataset')"
    )
    ids = offline.locator("button.card").evaluate_all("all => all.map((e) => e.dataset.id)")
    numbers = [int(name.removeprefix("c")) for name in ids]
    assert len(numbers) > 1 and numbers == sorted(numbers) and "sort=dataset" in offline.url
    offline.locator("button.card").first.click()
    where = offline.locator("dialog .steps span")
    where.wait_for()
    assert where.inner_text().startswith("1 of ")
    offline.keyboard.press("ArrowRight")
    expect(where).to_have_text(re.compile("^2 of "))
    address = offline.url
    offline.keyboard.press("Escape")
    opened(offline, hostile_site, address.rpartition("/")[2])
    where.wait_for()
    assert where.inner_text().startswith("2 of ")


def test_a_caption_search_of_a_site_matches_that_of_the_dashboard(offline, hostile_site):
    opened(offline, hostile_site, "explore.html")
    captions = ["a red cube", "a sheared, colored dog", "一只红色的狗", "the blue-red dog; a cube"]
    searches = ["", ",", "red, cube", "red;cube", "red", '"red cube"', '"sheared, colored"', "红色"]
    searches += ["color*", "color", "re* cube", "*", "**", '"a re*"', "红*"]
    search = "search => patterns(search).map((pattern) => pattern.test(text))"
    for text, words in itertools.product(captions, searches):
        of_site = offline.evaluate(f"([text, words]) => ({search})(words)", [text, words])
        where = views.filter.Filter("", kind="", contains=words).where((), ())
        query = f"SELECT {where.condition} FROM (SELECT [?] AS texts) AS cases"
        assert (all(of_site),) == duckdb.execute(query, [*where.values, text]).fetchone()
        assert len(of_site) == len(where.values)


@pytest.mark.full
def test_patterns_of_a_site_are_toggles_with_escaped_words(offline, hostile_site):
    opened(offline, hostile_site, "explore.html")
    pattern = {
        "source": HOSTILE["image"],
        "target": HOSTILE["long"],
        "rate": 0.5,
        "counts": "1 of 2",
    }
    offline.evaluate(
        """([pattern, chosen]) => {
          window.sent = [];
          const made = switches([pattern, { ...pattern, target: "" }], chosen, (key) => window.sent.push(key));
          place("chips").hidden = false;
          fill(place("chips"), ...made);
        }""",
        [pattern | {"tip": HOSTILE["script"]}, [1]],
    )
    chips = offline.locator(".chip")
    assert chips.first.inner_text() == f"{HOSTILE['image']} → {HOSTILE['long'].strip()} 1 of 2"
    pressed = [chip.get_attribute("aria-pressed") for chip in chips.all()]
    assert pressed == ["false", "true"]
    chips.first.click()
    chips.last.click()
    assert offline.evaluate("[window.sent, window.ran ?? null]") == [["1,0", ""], None]
    width = "[document.documentElement.scrollWidth, document.documentElement.clientWidth]"
    scroll, client = offline.evaluate(width)
    assert scroll <= client and severe_violations(offline) == []


@pytest.mark.full
def test_compare_trade_off_and_slides_of_a_site_respond_to_clicks(offline, hostile_site):
    opened(offline, hostile_site, "compare.html")
    assert offline.locator("h1").inner_text().strip()
    before = offline.locator("h2").inner_text()
    press_mark(offline, -1)
    offline.wait_for_function(
        "before => document.querySelector('h2').textContent !== before", arg=before
    )
    assert "row=" in offline.url
    kind = offline.get_by_label("Type of edit", exact=True)
    kind.focus()
    kind.select_option(index=0)
    offline.wait_for_function(
        "before => document.querySelector('h2').textContent === before", arg=before
    )
    assert offline.evaluate("document.activeElement.ariaLabel") == "Type of edit"
    assert "8 wrong captions, 2 pictures" in offline.locator(".row").inner_text()
    if offline.locator(".facing button.card").count():
        offline.locator(".facing button.card").first.click()
        offline.locator("dialog .vp-told").nth(1).wait_for()
        offline.keyboard.press("Escape")
    opened(offline, hostile_site, "tradeoff.html")
    assert offline.locator("[role=img]").first.get_attribute("aria-label")
    links = offline.locator(".sides th a")
    links.last.click()
    offline.wait_for_function("location.hash.includes('model=')")
    name = offline.locator(".example h2 bdi")
    assert links.last.get_attribute("aria-current") == "true"
    assert name.inner_text() == links.last.inner_text()
    press_mark(offline, 0)
    offline.wait_for_function("document.querySelector('.sides th a').ariaCurrent === 'true'")
    offline.locator(".example .press").first.click()
    offline.wait_for_url("**/explore.html#set=*")
    offline.wait_for_selector("button.card")
    opened(offline, hostile_site, "present.html")
    offline.get_by_role("button", name="Start the slides").click()
    offline.keyboard.press("ArrowRight")
    assert offline.locator(".show .count").inner_text().startswith("2 of ")
    opened(offline, hostile_site, "index.html")
    offline.locator(".door").last.click()
    offline.wait_for_url("**/present.html#set=*")  # the previous page is also ready
    offline.wait_for_selector(READY)


@pytest.mark.parametrize(
    "page",
    tiers(
        ("index", "explore&outcome=all", "compare", "tradeoff", "present", "numbers"), ("numbers",)
    ),
)
def test_a_report_has_the_pages_of_a_site_and_its_numbers_in_one_file(offline, hostile_site, page):
    for width in (390, 1280):
        offline.set_viewport_size({"width": width, "height": 844})
        opened(offline, hostile_site.parent, f"report.html#page={page}")
        assert width == 390 or severe_violations(offline) == []


def test_cards_of_a_report_have_the_compared_models_in_the_order_of_the_one_legend(
    offline, hostile_site
):
    opened(offline, hostile_site.parent, "reversed.html")
    marks = "paths => paths.map((path) => path.getAttribute('d'))"
    card = offline.locator(".facing button.card").first
    legend = offline.locator(".legend:visible .entry path").evaluate_all(marks)
    assert len(set(legend)) == 2 and card.locator(".box svg path").evaluate_all(marks) == legend
    card.click()
    names = offline.locator("dialog .vp-model").all_inner_texts()
    assert names == offline.locator(".legend .entry").all_inner_texts()


@pytest.mark.full
def test_a_report_prints_its_numbers(offline, hostile_site):
    opened(offline, hostile_site.parent, "report.html#page=numbers")
    numbers = offline.locator(".numbers")
    assert numbers.is_visible()
    assert any(caption[:30] in numbers.inner_text() for caption in HOSTILE_CAPTIONS)
    offline.get_by_role("link", name="Explore").click()
    offline.locator("button.card").first.click()
    offline.locator("dialog .vp-told").first.wait_for()
    offline.wait_for_function("document.querySelector('dialog img').naturalWidth === 64")
    assert not numbers.is_visible()
    offline.keyboard.press("Escape")
    offline.emulate_media(media="print")
    assert numbers.is_visible() and not offline.locator("main").is_visible()
    offline.emulate_media(media="screen")


@pytest.mark.full
def test_a_report_shows_its_numbers_without_scripts(blank, hostile_site):
    context = blank.context.browser.new_context(java_script_enabled=False, offline=True)
    page = context.new_page()
    page.goto((hostile_site.parent / "report.html").as_uri())
    assert page.get_by_role("heading", name="The numbers").is_visible()
    assert page.locator(".numbers img").first.is_visible()
    context.close()


@pytest.mark.full
def test_every_page_of_every_bundled_question_set_opens_from_the_disk(offline, tmp_path):
    store = StoreAboveShipped(tmp_path / "cache", shipped.FOLDER)
    keys = views.runs.question_sets(store)["case_key"]
    sets = [views.runs.question_set(store, key) for key in keys]
    bundle.write(bundle.site(sets, Limits(n_cases=2)), tmp_path / "site")
    opened(offline, tmp_path / "site", "index.html")
    index = offline.evaluate("table('index')")
    pages = [
        f"{page}.html#set={one['key']}&kind={kind['key']}"
        for one in index["sets"]
        for kind in one["kinds"]
        for page in kind["pages"]
    ]
    assert len(index["sets"]) == 6 and len(pages) > 40
    for page in pages:
        opened(offline, tmp_path / "site", page)
        assert offline.locator("h1").first.inner_text().strip()
        if page.startswith(("explore", "compare")) and offline.locator("button.card").count():
            offline.locator("button.card").first.click()
            offline.locator("dialog .vp-bars li").nth(5).wait_for()
            width = "dialog => [dialog.scrollWidth, dialog.clientWidth]"
            scroll, client = offline.locator("dialog").evaluate(width)
            assert scroll <= client, page
            offline.keyboard.press("Escape")
