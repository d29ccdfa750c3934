"""The dashboard in a real browser, as people use it: one server and one browser, on the bundled results."""

import csv
import re
from pathlib import Path

import pytest

from tests.browser.conftest import choose, idle, severe_violations, visit
from tests.browser.test_walk import SETS
from tests.conftest import make_tiny, question_set_of
from vlprobe import views
from vlprobe.dashboard import navigation
from vlprobe.runs.request import Request
from vlprobe.runs.run import execute
from vlprobe.storage.store import Store
from vlprobe.surfaces.report import report

pytestmark = pytest.mark.browser

NAMES = {"Tiny CLIP", "Tiny SigLIP", "Half-trained", "Longer-trained", "Pair-tuned", "Mix-tuned"}
TRADEOFF = f"/tradeoff?set={SETS['lgip']}"
NASTY = "A dog <script>document.title='ran'</script> <img src=http://127.0.0.1:9/x onerror=alert(1)> is on a bench."


def cards(page) -> list[str]:
    """Return the accessible name of each card on the wall."""
    return [card.get_attribute("aria-label") for card in page.locator("button.card").all()]


def test_a_former_address_opens_the_whole_frame_on_a_fresh_server(page):
    assert page.first_links == list(navigation.ROW.values())
    assert page.first_title == "Explore · vlprobe"
    # The browser reports each refused request, such as one for the server's health below the page's path
    assert not [
        text for text in page.first_told if "does not seem to exist" in text or "404" in text
    ]


@pytest.mark.full  # tests/dashboard shows the same without a browser
def test_the_trade_off_and_a_table_of_lab_have_every_model(page, url: str):
    visit(page, url + TRADEOFF)
    models = page.locator(".st-key-pinned button").all_inner_texts()
    assert {text.rpartition(" ")[0].rpartition(" ")[0] for text in models} == NAMES
    bars = page.locator(".st-key-tradeoff .scatterlayer .trace:has(.errorbar)")
    assert bars.count() == len(NAMES)
    visit(page, f"{url}/breakdown?set={SETS['lgip']}")
    titles = " ".join(page.locator(".vp-table thead th").all_text_contents())
    assert all(name in titles for name in NAMES)


@pytest.mark.full  # tests/dashboard/test_pages.py reopens a view from its link
def test_a_filtered_page_reopens_from_its_link(page, url: str):
    visit(page, url + f"/explore?set={SETS['lgip']}&model=demo:weak&kind=flip&cards=every")
    page.get_by_role("button", name="More filters").click()
    page.locator(".st-key-outcome").get_by_text(re.compile("^All")).click()
    idle(page)
    page.keyboard.press("Escape")
    page.get_by_role("button", name="Page 2", exact=True).click()
    idle(page)
    first = cards(page)
    page.get_by_role("button", name="Share").click()
    link = page.locator("[data-testid=stCode]").first.inner_text().strip()
    assert link == page.url
    assert "outcome=all" in link
    assert "page=2" in link
    visit(page, url)
    visit(page, link)
    assert cards(page) == first


@pytest.mark.full  # starts a process
def test_a_run_is_started_cancelled_and_survives_a_reload(page, url: str):
    visit(page, url + "/run")
    choose(page, "run_models", "control:random")
    page.locator(".st-key-run_own input").fill("demo")  # a text field
    page.keyboard.press("Enter")
    idle(page)
    page.get_by_role("button", name="Start").click()
    page.locator("[class*=st-key-job_]").get_by_text("Running").first.wait_for()
    page.wait_for_url("**job=*")
    page.reload()
    page.locator("[class*=st-key-job_]").get_by_role("button", name="Cancel").click()
    page.locator("[class*=st-key-job_]").get_by_text("Canceled", exact=False).first.wait_for(
        timeout=120_000
    )
    page.reload()
    page.locator("[class*=st-key-job_]").get_by_role("button", name="Resume").wait_for()


def drag(page, box: tuple[float, float, float, float]) -> None:
    """Draw a box over the scatter, in shares of its plot area: left, top, right, bottom."""
    plot = page.locator(".st-key-margins .js-plotly-plot")
    plot.scroll_into_view_if_needed()
    page.wait_for_timeout(300)
    x, y, width, height = (
        plot.evaluate("""g => { const r = g.getBoundingClientRect(), s = g._fullLayout._size;
      return [r.left + s.l, r.top + s.t, s.w, s.h]; }""")
    )
    page.mouse.move(x + box[0] * width, y + box[1] * height)
    page.mouse.down()
    page.mouse.move(x + box[2] * width, y + box[3] * height, steps=8)
    page.mouse.up()


@pytest.mark.full
def test_an_area_of_the_scatter_fills_the_gallery(page, url: str, server_store: Store):
    visit(page, url + f"/compare?set={SETS['lgip']}&model=demo:sigmoid&with=demo:softmax&open=map")
    drag(page, (0.05, 0.6, 0.6, 0.97))
    page.wait_for_url("**area=*")
    idle(page)
    inside = int(page.locator(".vp-marked strong").inner_text().replace(",", ""))
    (area,) = re.findall("area=([^&]*)", page.evaluate("decodeURIComponent(location.search)"))
    pairs = [pair.split(",") for pair in area.split(";")]
    corners = tuple((float(x), float(y)) for x, y in pairs)
    both = views.filter.Filter(
        "demo:sigmoid", "flip", outcome="all", other="demo:softmax", within=corners
    )
    assert (
        inside
        == views.cases.outcomes(views.runs.question_set(server_store, SETS["lgip"]), both)["all"]
    )
    assert (
        0
        < inside
        < views.cases.outcomes(
            views.runs.question_set(server_store, SETS["lgip"]),
            views.filter.Filter("demo:sigmoid", "flip"),
        )["all"]
    )
    assert page.locator(".st-key-map_cards button.card").count() > 0


def test_a_click_on_a_cell_of_the_scorecard_shows_where_two_models_disagree(page, url):
    visit(page, url + f"/compare?tab=scorecard&set={SETS['lgip']}&model=demo:softmax&score=right")
    page.locator(".vp-scorecard tr:not(.vp-pinned) td .vp-numbers a").nth(1).click()
    page.wait_for_url("**tab=differences*")
    idle(page)
    top = "document.querySelector('.st-key-facing').getBoundingClientRect().top"
    page.wait_for_function(f"{top} > 0 && {top} < innerHeight / 3")
    assert page.get_by_text("Differences counts the wrong captions that fool a model").count()


def test_a_click_anywhere_in_a_column_head_sorts_the_scorecard(page, url):
    visit(page, url + f"/compare?tab=scorecard&set={SETS['lgip']}&model=demo:softmax")
    head = page.locator(".vp-scorecard thead tr").last.locator("th").nth(3)
    box = head.bounding_box()
    page.mouse.click(box["x"] + 4, box["y"] + box["height"] - 4)  # a corner, away from the text
    page.locator(".vp-scorecard th:nth-child(4)[aria-sort]").wait_for()
    assert "order=" in page.url


@pytest.mark.full  # 12 s; test_keyboard.py does the same in the list below the figure
def test_a_mark_of_the_trade_off_shows_its_worst_mistake_and_links_to_its_failures(page, url: str):
    visit(page, url + TRADEOFF)
    marks = page.locator(".st-key-tradeoff .scatterlayer .trace:has(.errorbar)")
    page.evaluate("window.chart = document.querySelector('.st-key-tradeoff .js-plotly-plot')")
    marks.last.locator(".point").click(force=True)  # the one with the lowest positive rate
    page.wait_for_url("**/tradeoff?*model=demo*weak*")
    idle(page)
    assert page.evaluate("window.chart.isConnected")  # the zoom stays
    assert page.locator("h2.vp-model bdi").inner_text() == "Half-trained"
    assert page.locator(".shots img").get_attribute("alt")
    link = page.get_by_role("link", name=re.compile("wrong captions that fool this model"))
    words = link.inner_text()
    link.click()
    page.wait_for_url("**/explore?*model=demo*weak*")
    idle(page)
    heading = page.get_by_role("heading", name=re.compile("preferred, on")).inner_text()
    assert heading.split()[0] in words


@pytest.mark.full
def test_a_box_on_the_trade_off_selects_the_models_inside_and_the_toolbar_exports(page, url: str):
    visit(page, url + TRADEOFF)
    page.locator(".st-key-tradeoff [data-title='Box Select']").click()
    area = page.locator(".st-key-tradeoff .nsewdrag").bounding_box()
    left, top = area["x"] + 2, area["y"] + 2
    page.mouse.move(left, top)
    page.mouse.down()
    page.mouse.move(left + area["width"] / 2, top + area["height"] / 2, steps=4)
    page.mouse.move(left + 0.8 * area["width"], top + area["height"] - 4, steps=4)
    page.mouse.up()
    page.wait_for_url("**/tradeoff?*shown=*")
    idle(page)
    assert 1 < page.locator(".st-key-pinned button").count() < len(NAMES)
    with page.expect_download() as waiting:
        page.locator(".st-key-tradeoff [data-title*='Download plot']").click()
    assert waiting.value.suggested_filename == "vlprobe_tradeoff.svg"


def test_the_download_contains_the_shown_cases(page, url: str, server_store: Store):
    visit(page, url + f"/explore?set={SETS['lgip']}&type=number&model=demo:weak&kind=flip")
    page.get_by_role("button", name="Share").click()
    with page.expect_download() as waiting:
        page.get_by_role("button", name="CSV").click()
    with open(waiting.value.path(), newline="", encoding="utf-8-sig") as file:
        rows = list(csv.DictReader(file))
    chosen = views.filter.Filter("demo:weak", "flip", subtype="number")
    assert (
        len(rows)
        == views.cases.outcomes(views.runs.question_set(server_store, SETS["lgip"]), chosen)[
            "fooled"
        ]
        > 0
    )
    assert {row["subtype"] for row in rows} == {"number"}


@pytest.mark.full  # it loads models
def test_an_uploaded_picture_is_scored_and_not_stored(page, url: str, folder: Path):
    from PIL import Image

    mine = folder / "mine.png"
    Image.new("RGB", (90, 60), "red").save(mine)
    visit(page, url + "/playground")
    kept = sorted(folder.rglob("*"))
    page.locator(".st-key-play_file input[type=file]").set_input_files(mine)
    page.get_by_text("mine.png").first.wait_for()
    idle(page)
    page.locator(".st-key-text input").fill("A red bus on a street.")
    # In the table of all edits, which is folded
    page.locator("del", has_text=re.compile("^red$")).first.wait_for(state="attached")
    idle(page)
    assert sorted(folder.rglob("*")) == kept


@pytest.mark.full
@pytest.mark.parametrize(
    ("name", "probe"),
    [("rankings", "prsm"), ("retrieval", "rococo"), ("pairs", "eqben"), ("triplets", "visla")],
)
def test_a_probe_s_page_and_its_cards_open_from_a_link(page, url: str, name: str, probe: str):
    key = SETS[probe]
    visit(page, f"{url}/{name}?set={key}")
    assert page.locator("h1").first.is_visible()
    assert "Tiny CLIP" in page.locator(".vp-paper").first.text_content()
    assert page.locator(".vp-paper tr.printed").count() >= 3
    visit(page, f"{url}/explore?set={key}&outcome=all&cards=every")
    page.locator("button.card").first.click()
    page.get_by_role("dialog").locator(".vp-bars").wait_for()
    assert severe_violations(page) == []


@pytest.fixture(scope="module")
def saved_pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("offline")
    dataset = make_tiny(folder / "tiny", [{"caption": NASTY}] * 3)
    store = Store(folder / "cache")
    execute(Request(("control:constant", "control:random"), dataset, "lgip"), store)
    questions = question_set_of(store)
    pages = {
        "report": report.report(questions),
        "case": report.case_page(questions, "control:random", 0),
    }
    # The page's policy forbids what a mistake in our escaping would let through.
    pages["spoilt"] = pages["case"].replace("</main>", f"{NASTY}</main>")
    for name, text in pages.items():
        (folder / f"{name}.html").write_text(text, encoding="utf-8")
    return {name: folder / f"{name}.html" for name in pages}


def test_self_contained_pages_show_everything_and_load_nothing(page, saved_pages: dict[str, Path]):
    for name, path in saved_pages.items():
        shown = page.context.new_page()
        sent, asked = [], []
        shown.on("requestfinished", lambda request, sent=sent: sent.append(request.url))
        shown.on(
            "dialog", lambda dialog, asked=asked: (asked.append(dialog.message), dialog.dismiss())
        )
        shown.goto(path.as_uri(), wait_until="load")
        assert [address for address in sent if not address.startswith("data:")] == [
            path.as_uri()
        ], name
        assert asked == []
        assert shown.title() != "ran"
        if name == "report":  # this page needs no script
            shown.locator("main[data-ready]").wait_for()
            shown.get_by_role("link", name="Numbers").click()
            shown.locator(".numbers").wait_for()
        pictures = shown.locator("img[src^='data:']")
        assert pictures.count() > 0
        assert pictures.evaluate_all(
            "all => all.every(one => one.complete && one.naturalWidth > 0)"
        )
        words = shown.locator(".numbers" if name == "report" else "main").inner_text()
        assert "<script>document.title='ran'</script>" in words
        for width in (390, 1280):
            shown.set_viewport_size({"width": width, "height": 900})
            assert shown.evaluate("document.documentElement.scrollWidth") <= width
        shown.close()


def test_no_other_machine_was_requested(page):
    assert page.outside == []
    for address in ("http://192.0.2.1/x", "http://127.0.0.1:9/x"):  # recorded and unanswered
        with page.context.expect_event("requestfailed", lambda one, to=address: one.url == to):
            got = page.evaluate(
                "address => fetch(address, { mode: 'no-cors' }).catch(() => null)", address
            )
        assert got is None
        assert page.outside.pop() == address
