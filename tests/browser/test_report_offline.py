"""A report and a case's page in a real browser without a network: all is shown, nothing is fetched, nothing runs."""

import csv
import io
from pathlib import Path

import pytest

from tests.browser.test_dashboard import chromium
from tests.conftest import make_tiny
from vlprobe import report, report_case, views
from vlprobe.runner import Request, execute
from vlprobe.store import Store

pytestmark = pytest.mark.browser
NASTY = "A dog <script>document.title='ran'</script> <img src=http://127.0.0.1:9/x onerror=alert(1)> is on a bench."


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("offline")
    make_tiny(folder / "tiny")
    path = folder / "tiny" / "captions.csv"
    rows = list(csv.DictReader(io.StringIO(path.read_text(encoding="utf-8"))))
    with path.open("w", newline="", encoding="utf-8") as handle:
        writer = csv.DictWriter(handle, ["image", "caption", "thing"])
        writer.writeheader()
        writer.writerows({**row, "caption": NASTY} for row in rows[:3])
    execute(Request(("control:constant", "control:random"), f"csv:{path}", "lgip"), there := Store(folder / "cache"))
    key = views.question_sets(there)["case_key"].iloc[0]
    made = {"report": report.report(there, key), "case": report_case.case_page(there, key, "control:random", 0)}
    # What a mistake of ours would let through, the page itself forbids.
    made["spoilt"] = made["case"].replace("</main>", f"{NASTY}</main>")
    for name, text in made.items():
        (folder / f"{name}.html").write_text(text, encoding="utf-8")
    return {name: folder / f"{name}.html" for name in made}


def test_pages_that_stand_alone_show_all_and_do_nothing(pages: dict[str, Path]):
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium(), args=["--no-sandbox"])
        for name, path in pages.items():
            page = browser.new_page()
            sent, asked = [], []
            page.on("requestfinished", lambda request, sent=sent: sent.append(request.url))
            page.on("dialog", lambda dialog, asked=asked: (asked.append(dialog.message), dialog.dismiss()))
            page.goto(path.as_uri(), wait_until="load")
            assert [url for url in sent if not url.startswith("data:")] == [path.as_uri()], name
            assert asked == []
            assert page.title() != "ran"
            pictures = page.locator("img[src^='data:']")
            assert pictures.count() > 0
            assert pictures.evaluate_all("all => all.every(one => one.complete && one.naturalWidth > 0)")
            assert "<script>document.title='ran'</script>" in page.locator("main").inner_text()
            if name == "report":
                assert page.locator("svg.vp-figure").count() >= 3
            for width in (390, 1280):
                page.set_viewport_size({"width": width, "height": 900})
                assert page.evaluate("document.documentElement.scrollWidth") <= width
            page.close()
        browser.close()
