"""Home in a browser: another failure without a reload, the case behind it, and captions that are nothing but text."""

import re

import pytest

from tests.browser.conftest import idle, visit
from tests.conftest import make_tiny
from vlprobe import views
from vlprobe.runs.request import Request
from vlprobe.runs.run import execute
from vlprobe.storage.store import Store

pytestmark = pytest.mark.browser

NASTY = (
    "A dog </script><script>document.title='ran'</script> "
    "<img src=http://127.0.0.1:9/x onerror=alert(1)> on a red bench."
)


def test_another_failure_is_shown_without_a_reload_and_its_case_opens(page, url: str, results):
    visit(page, url)
    loaded = page.evaluate("performance.timeOrigin")
    captions = page.locator(".hero .line")
    before = captions.all_inner_texts()
    page.get_by_role("button", name="Another one").click()
    assert captions.all_inner_texts() != before  # at once: it was there already
    assert page.evaluate("performance.timeOrigin") == loaded
    idle(page)
    truth = captions.first.inner_text()
    assert page.locator(".hero img.picture").get_attribute("alt") == truth
    page.get_by_role("link", name=re.compile("Open this case")).click()
    page.wait_for_url("**/explore**case=*")
    page.get_by_role("dialog").wait_for()
    assert truth in page.get_by_role("dialog").inner_text()


def test_a_number_opens_as_many_lies_as_it_says(page, url: str, results):
    visit(page, url)
    number = page.locator(".number").last
    believed = number.locator(".exact").inner_text().split()[0]
    number.click()
    page.wait_for_url("**/explore**type=*")
    idle(page)
    assert page.get_by_role("heading", level=1).inner_text().startswith(f"{believed} ")


def test_a_hostile_caption_is_text_on_home(page, url: str, folder, results, tmp_path):
    dataset = make_tiny(tmp_path / "tiny")
    file = tmp_path / "tiny" / "captions.csv"
    lines = file.read_text(encoding="utf-8").splitlines()
    nasty = NASTY.replace('"', '""')
    file.write_text(
        "\n".join(
            [lines[0], *(re.sub(",.*?,", f',"{nasty}",', line, count=1) for line in lines[1:])]
        ),
        encoding="utf-8",
    )
    store = Store(folder / "cache")
    (manifest,) = execute(Request(("control:random",), dataset, "lgip", examine=False), store)
    assert views.runs.question_set(store, manifest["case_key"]).models
    visit(page, f"{url}/?set={manifest['case_key']}")
    assert "onerror=alert(1)" in page.locator(".hero .line").first.inner_text()
    assert page.title() != "ran"
    assert page.locator(".hero .line img, .hero .line script").count() == 0
    assert page.outside == []
