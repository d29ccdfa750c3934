"""The dashboard in a real browser: one server and one browser for all tests, on a cache that begins empty.

Without Debian's chromium the tests skip and say so; where the environment says CI, that is a failure.
With VLPROBE_SCREENSHOTS=FOLDER each page is also written there as a picture.
"""

import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.probes.test_common import make
from vlprobe import jobs
from vlprobe.runner import Request, execute
from vlprobe.store import Store

pytestmark = pytest.mark.browser

ROOT = Path(__file__).resolve().parent.parent.parent
PAGES = {"overview": "/", "run": "/run", "failures": "/failures", "breakdown": "/breakdown"}
PROBES = {"retrieval": "rococo", "pairs": "eqben", "triplets": "visla", "rankings": "prsm"}
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
IDLE = """() => { const app = document.querySelector('[data-testid=stApp]');
  return app && app.getAttribute('data-test-connection-state') === 'CONNECTED'
    && app.getAttribute('data-test-script-state') === 'notRunning'
    && !document.querySelector('[data-testid=stSkeleton]') && !document.querySelector('[data-stale=true]'); }"""


def chromium() -> str:
    """The browser's path; a test run without one skips, or fails where it must not be without."""
    found = shutil.which("chromium") or shutil.which("chromium-browser")
    if found:
        return found
    reason = "no chromium here: apt-get install chromium"
    if os.environ.get("CI"):
        pytest.fail(reason)
    pytest.skip(reason)


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the server has its cache and its log."""
    return tmp_path_factory.mktemp("dashboard")


@pytest.fixture(scope="session")
def url(folder: Path) -> Iterator[str]:
    """A server of its own on an empty cache; only the processes started here are stopped."""
    chromium()
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "streamlit", "run", "app.py", "--server.port", str(port)]
    with (folder / "server.log").open("wb") as log:
        server = subprocess.Popen(
            [*command, "--server.headless", "true"],
            cwd=ROOT,
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            env={
                **os.environ,
                "VLPROBE_CACHE": str(folder / "cache"),
                "OMP_NUM_THREADS": "1",
            },  # the browser has a core
        )
    address = f"http://127.0.0.1:{port}"
    try:
        deadline = time.monotonic() + 60
        while not _healthy(address):
            if server.poll() is not None or time.monotonic() > deadline:
                pytest.fail("The server did not start: " + (folder / "server.log").read_text()[-2000:])
            time.sleep(0.2)
        yield address
    finally:
        store = Store(folder / "cache")
        for job in jobs.jobs(store):
            if not job.ended:
                jobs.cancel(store, job.id)
        os.killpg(server.pid, signal.SIGTERM)
        server.wait(20)


def _healthy(address: str) -> bool:
    try:
        with urllib.request.urlopen(address + "/_stcore/health", timeout=1) as answer:
            return answer.read() == b"ok"
    except OSError:
        return False


@pytest.fixture(scope="session")
def page(url: str):
    """A browser page that can reach this server and nothing else; the addresses that it asked for are kept."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright, tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        context = playwright.chromium.launch_persistent_context(
            profile, executable_path=chromium(), args=FLAGS, viewport={"width": 1280, "height": 900}
        )
        page = context.pages[0]
        page.set_default_timeout(30_000)
        page.outside = []

        def gate(route) -> None:
            if route.request.url.startswith(url):
                route.continue_()
            else:
                page.outside.append(route.request.url)
                route.abort()

        context.route("**/*", gate)
        page.first_links = visit(page, url + "/failures?model=x").locator("[data-testid=stSidebarNavLink]")
        page.first_links = [text.split()[-1] for text in page.first_links.all_inner_texts()]
        page.first_title = page.title()
        yield page
        context.close()


def idle(page) -> None:
    page.wait_for_function(IDLE)
    page.wait_for_timeout(250)
    page.wait_for_function(IDLE)


def visit(page, address: str):
    page.goto(address)
    page.wait_for_selector("[data-testid=stApp]")
    idle(page)
    assert page.locator("[data-testid=stException]").count() == 0
    return page


@pytest.fixture(scope="session")
def results(page, url: str) -> float:
    """Presses the one button of an empty dashboard; the seconds until its results are on the page."""
    visit(page, url)
    started = time.monotonic()
    page.get_by_role("button", name="Run the demo").click()
    page.locator("[data-testid=stProgress]").wait_for()
    page.get_by_role("button", name="Cancel").wait_for()
    page.get_by_role("button", name="Cancel").wait_for(state="detached", timeout=600_000)
    idle(page)
    seconds = time.monotonic() - started
    assert page.get_by_role("heading", name="The numbers").is_visible(), page.locator(".st-key-job").inner_text()
    return seconds


def captions(page) -> list[str]:
    return page.locator(".vp-card .vp-caption").all_inner_texts()


def test_a_deep_link_on_a_fresh_server_gets_the_whole_frame(page):
    assert page.first_links[:4] == ["Overview", "Run", "Failures", "Breakdown"]
    assert {name.capitalize() for name in PROBES} < set(page.first_links)
    assert page.first_title == "Failures · vlprobe"


def test_one_button_takes_an_empty_cache_to_results(page, results: float):
    rows = page.locator(".vp-table").first.locator("thead th").all_inner_texts()
    assert [text.split()[-1] for text in rows[1:]] == ["demo:sigmoid", "demo:softmax", "demo:weak"]
    assert page.locator(".js-plotly-plot .scatterlayer .points path").count() >= 3


def test_a_filtered_page_reopens_from_its_link(page, url: str, results: float):
    visit(page, url + "/failures")
    page.locator(".st-key-outcome").get_by_text(re.compile("^All")).click()
    idle(page)
    page.get_by_role("button", name="Page 2", exact=True).click()
    idle(page)
    first = captions(page)
    page.get_by_role("button", name="Link").click()
    link = page.locator("[data-testid=stCode]").first.inner_text().strip()
    assert link == page.url
    assert "outcome=all" in link
    assert "page=2" in link
    visit(page, url)
    visit(page, link)
    assert captions(page) == first


def test_details_open_by_keyboard_and_close_by_escape(page, url: str, results: float):
    visit(page, url + "/failures")
    page.get_by_role("button", name="Details").first.focus()
    page.keyboard.press("Enter")
    dialog = page.get_by_role("dialog")
    dialog.get_by_text("1 of 12").wait_for()
    page.keyboard.press("ArrowRight")
    dialog.get_by_text("2 of 12").wait_for()
    assert "case=" in page.url
    page.keyboard.press("Escape")
    dialog.wait_for(state="detached")
    idle(page)
    assert "case=" not in page.url


def test_a_run_is_started_cancelled_and_survives_a_reload(page, url: str, results: float):
    visit(page, url + "/run")
    for field, name in (("run_models", "control:random"), ("run_own", "demo:val")):
        page.locator(f".st-key-{field} input").fill(name)
        page.keyboard.press("Enter")
        idle(page)
        page.keyboard.press("Escape")
    page.get_by_role("button", name="Start").click()
    page.locator(".st-key-job").get_by_text("Running").wait_for()
    page.wait_for_url("**job=*")
    page.reload()
    page.locator(".st-key-job").get_by_role("button", name="Cancel").click()
    page.locator(".st-key-job").get_by_text("Cancelled", exact=False).first.wait_for(timeout=120_000)
    page.reload()
    page.locator(".st-key-job").get_by_role("button", name="Resume").wait_for()


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("name", PAGES)
def test_a_page_is_accessible_and_fits_a_telephone(page, url: str, results: float, name: str, scheme: str):
    from axe_playwright_python.sync_playwright import Axe

    page.emulate_media(color_scheme=scheme)
    page.set_viewport_size({"width": 1280, "height": 900})
    visit(page, url + PAGES[name])
    page.wait_for_timeout(300)
    violations = Axe().run(page).response["violations"]
    bad = [(v["id"], v["nodes"][0]["html"][:160]) for v in violations if v["impact"] in ("serious", "critical")]
    screenshot(page, f"{name}-{scheme}")
    page.set_viewport_size({"width": 390, "height": 844})
    page.wait_for_timeout(400)
    wide = page.evaluate("""() => { const main = document.querySelector('[data-testid=stMain]');
      return [document.documentElement.scrollWidth, main.scrollWidth - main.clientWidth]; }""")
    screenshot(page, f"{name}-{scheme}-390")
    page.set_viewport_size({"width": 1280, "height": 900})
    page.emulate_media(color_scheme="light")
    assert bad == []
    assert wide == [390, 0]


def screenshot(page, name: str) -> None:
    if folder := os.environ.get("VLPROBE_SCREENSHOTS"):
        height = page.evaluate("() => document.querySelector('[data-testid=stMain]').scrollHeight")
        width = page.viewport_size["width"]
        page.set_viewport_size({"width": width, "height": min(height, 3000)})
        page.wait_for_timeout(400)
        page.screenshot(path=str(Path(folder) / f"{name}.png"))


@pytest.mark.parametrize("name", PROBES)
def test_a_probe_s_page_and_its_cards_open_from_a_link(page, url: str, folder: Path, results: float, name: str):
    from axe_playwright_python.sync_playwright import Axe

    dataset = make(PROBES[name], folder / name, 14)
    key = execute(Request(("control:random",), dataset, PROBES[name]), Store(folder / "cache"))[0]["case_key"]
    visit(page, f"{url}/{name}?set={key}")
    assert page.get_by_role("heading", name=name.capitalize(), exact=True).is_visible()
    assert "control:random" in page.locator(".vp-paper").inner_text()
    assert page.locator(".vp-paper tr.printed").count() >= 3
    violations = Axe().run(page).response["violations"]
    screenshot(page, name)
    page.set_viewport_size({"width": 1280, "height": 900})
    visit(page, f"{url}/failures?set={key}&outcome=all")
    page.get_by_role("button", name="Details").first.click()
    page.get_by_role("dialog").locator(".vp-card").wait_for()
    violations += Axe().run(page).response["violations"]
    assert [(v["id"], v["nodes"][0]["html"][:160]) for v in violations if v["impact"] in ("serious", "critical")] == []


def test_nothing_outside_this_machine_was_asked_for(page, results: float):
    assert page.outside == []
