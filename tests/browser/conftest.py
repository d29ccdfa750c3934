"""One server and one browser for all dashboard tests, with the bundled results.

Without Debian's chromium, the tests are skipped with a message; if CI is set, they fail.
"""

import base64
import contextlib
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conftest import free_port, make_tiny
from vlprobe.dashboard import components
from vlprobe.render.html.style import STYLE
from vlprobe.runs import jobs
from vlprobe.runs.request import Request
from vlprobe.runs.run import execute
from vlprobe.storage import shipped
from vlprobe.storage.shipped import StoreAboveShipped
from vlprobe.storage.store import Store

ROOT = Path(__file__).resolve().parent.parent.parent
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
HOSTILE = {
    "script": "</script><script>window.ran=1</script>",
    "image": '<img src=x onerror="window.ran=1">',
    "right to left": "\u202eقطة حمراء على المقعد\u202c",
    "long": "a red dog " + "and a very long story " * 227,
    "unbroken": "w" * 5000,
}  # hostile captions, names and paths
PIXEL = (
    "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAA"
    "AABJRU5ErkJggg=="
)
MOUNT = """async ([script, css, data]) => {
  const module = await import("data:text/javascript;base64," + script);
  if (window.leave) window.leave();
  document.body.innerHTML = "<div id='host'></div>";
  const root = document.querySelector("#host").attachShadow({ mode: "open" });
  const style = document.createElement("style");
  style.textContent = css;
  root.append(style);
  window.sent = [];
  const send = (name, value) => window.sent.push([name, value]);
  window.draw = (values) => {
    window.leave = module.default({ data: values, parentElement: root, setTriggerValue: send, setStateValue: send });
  };
  window.draw(data);
}"""
HOSTILE_CAPTIONS = [
    *(f"{HOSTILE[name]} a red dog" for name in ("script", "image")),
    "\u202eقطة\u202c a red dog",  # mostly English, because a whole Arabic sentence would not be edited
    HOSTILE["long"],
]  # hostile captions that rules can edit
NOWHERE = (
    "--proxy-server=http://127.0.0.1:9"  # a Playwright route would turn off the browser's cache
)

# `asks` is 1 from a page's request for a run until the server starts one, and 2 until that run has ended. Streamlit
# reports a running script only after the answer; before, a page that waits for a busy server looks idle.
# 0x5a, 0x22 and 0x30 are rerun_script, new_session and script_finished in Streamlit's messages.
ASKS = """(() => {
  const first = (bytes) => {
    let at = 0;
    while (bytes[at] === 0x0a || bytes[at] === 0x12) {  // hash and metadata, which come before what it is
      let length = 0, shift = 0;
      do { at += 1; length |= (bytes[at] & 127) << shift; shift += 7; } while (bytes[at] & 128);
      at += 1 + length;
    }
    return bytes[at];
  };
  window.asks = 0;
  window.WebSocket = class extends WebSocket {
    constructor(...given) {
      super(...given);
      this.addEventListener('message', ({ data }) => {
        const kind = data instanceof ArrayBuffer && window.asks ? first(new Uint8Array(data)) : 0;
        if (kind === 0x22 && window.asks === 1) window.asks = 2;
        if (kind === 0x30 && window.asks === 2) window.asks = 0;
      });
    }
    send(message) {
      if (message[0] === 0x5a) window.asks = 1;
      super.send(message);
    }
  };
})()"""

# Resolves once fonts are loaded and components have placed elements by size; observers are called in order.
DRAWN = """async () => { await document.fonts.ready;
  await new Promise((done) => new ResizeObserver(done).observe(document.body)); }"""
IDLE = """() => { const app = document.querySelector('[data-testid=stApp]');
  return app && app.getAttribute('data-test-connection-state') === 'CONNECTED'
    && app.getAttribute('data-test-script-state') === 'notRunning'
    && !window.asks && !document.querySelector('[data-testid=stSkeleton]')
    && !document.querySelector('[data-stale=true]'); }"""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """In CI, try a browser test that fails once more; the summary counts it as a rerun.

    On a busy machine a click or a frame may be late. Outside CI the test fails, so that the race can be fixed.
    """
    if os.environ.get("CI"):
        for item in items:
            if item.get_closest_marker("browser"):
                item.add_marker(pytest.mark.flaky(reruns=1))


def chromium() -> str:
    """Return the path to the browser. Without a browser, the test is skipped, or fails in CI."""
    found = shutil.which("chromium") or shutil.which("chromium-browser")
    if found:
        return found
    reason = "no chromium here: apt-get install chromium"
    if os.environ.get("CI"):
        pytest.fail(reason)
    pytest.skip(reason)


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder with the server's log and cache. The cache has results on hostile captions."""
    folder = tmp_path_factory.mktemp("dashboard")
    captions = [{"caption": caption} for caption in HOSTILE_CAPTIONS]
    dataset = make_tiny(folder / "hostile", captions)
    execute(Request(("control:constant",), dataset, "lgip", examine=False), Store(folder / "cache"))
    return folder


@pytest.fixture(scope="session")
def server_store(folder: Path) -> Store:
    """Return the store that the server shows: the bundled results, and those on hostile captions."""
    return StoreAboveShipped(folder / "cache", shipped.FOLDER)


@pytest.fixture(scope="session")
def hostile_key(folder: Path) -> str:
    """Return the key of the question set with hostile captions."""
    return Store(folder / "cache").read_runs()[0][0]["case_key"]


@pytest.fixture(scope="session")
def url(folder: Path) -> Iterator[str]:
    """Start a server, and return its address."""
    with serving(folder) as address:
        yield address


@contextlib.contextmanager
def serving(
    folder: Path, *, with_shipped: bool = True, with_published: bool = False
) -> Iterator[str]:
    """Serve the dashboard on the cache in a folder, and stop only the processes started here.

    Args:
        folder: The folder for `cache/` and `server.log`.
        with_shipped: Whether to show the bundled results of the demo models on drawn scenes.
        with_published: Whether to show all bundled results, as in a fresh installation.
    """
    chromium()
    port = free_port()
    command = [sys.executable, "-m", "vlprobe", "dashboard", "--port", str(port)]
    environment = {name: value for name, value in os.environ.items() if name != shipped.SETTING}
    environment |= {
        "VLPROBE_CACHE": str(folder / "cache"),
        "STREAMLIT_SERVER_HEADLESS": "true",
        "OMP_NUM_THREADS": "1",
    }  # the browser needs a core
    drawn = str(shipped.FOLDER) if with_shipped else ""
    with (folder / "server.log").open("wb") as log:
        server = subprocess.Popen(
            command,
            cwd=ROOT,
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            env=environment if with_published else environment | {shipped.SETTING: drawn},
        )
    address = f"http://127.0.0.1:{port}"
    try:
        deadline = time.monotonic() + 300  # long enough for a busy machine
        while not _healthy(address):
            if server.poll() is not None or time.monotonic() > deadline:
                pytest.fail(
                    "The server did not start: " + (folder / "server.log").read_text()[-2000:]
                )
            time.sleep(0.2)
        yield address
    finally:
        store = Store(folder / "cache")
        for job in jobs.jobs(store):
            if not job.ended:
                jobs.cancel(store, job.id)
        os.killpg(server.pid, signal.SIGTERM)
        server.wait(120)


def _healthy(address: str) -> bool:
    try:
        with urllib.request.urlopen(address + "/_stcore/health", timeout=5) as answer:
            return answer.read() == b"ok"
    except OSError:
        return False


@pytest.fixture(scope="session")
def driver() -> Iterator:
    """Return a Playwright instance; a thread can only have one."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        yield playwright


@pytest.fixture(scope="session")
def page(url: str, driver):
    """Return a browser page on the server that all tests share."""
    with browsing(url, driver) as page:
        page.first_told = []
        page.on("console", lambda message: page.first_told.append(message.text))
        page.first_links = visit(page, url + "/failures?model=x").locator(
            "[data-testid=stTopNavLink]"
        )
        page.first_links = [text.splitlines()[-1] for text in page.first_links.all_inner_texts()]
        page.first_title = page.title()
        yield page


@contextlib.contextmanager
def browsing(url: str, playwright) -> Iterator:
    """Open a browser page that can reach only the given server, and record all other addresses that it requests."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        context = playwright.chromium.launch_persistent_context(
            profile,
            executable_path=chromium(),
            args=[
                *FLAGS,
                NOWHERE,
                f"--proxy-bypass-list=<-loopback>;{url.removeprefix('http://')}",
            ],
            viewport={"width": 1280, "height": 900},
        )
        context.add_init_script(ASKS)
        page = context.pages[0]
        page.set_default_timeout(90_000)  # long enough for a busy machine
        page.outside = []

        def note(request) -> None:
            if (
                not request.url.startswith((url, "file:", "data:", "blob:"))
                and request.failure != "csp"
            ):
                page.outside.append(request.url)

        context.on("requestfinished", note)
        context.on("requestfailed", note)
        yield page
        context.close()


@pytest.fixture(scope="session")
def blank(driver) -> Iterator:
    """Return a page for components, without the dashboard."""
    with browsing("http://127.0.0.1:1", driver) as page:
        page.set_content(f"<html lang=en><head>{STYLE}</head><body></body></html>")
        yield page


@contextlib.contextmanager
def another(blank) -> Iterator:
    """Open another page in the browser of `blank`, for tests that need their own page."""
    page = blank.context.new_page()
    page.outside = blank.outside
    yield page
    page.close()


def mount(page, name: str, data: dict) -> None:
    """Draw only a component, with the given values; `window.sent` records the events that it sends to the server."""
    script, css = components.source(name)
    page.mouse.move(0, 0)  # the mouse may still be where the component is drawn
    page.evaluate(MOUNT, [base64.b64encode(script.encode()).decode(), css, data])


def idle(page) -> None:
    """Wait until the page has been idle twice, because a component may trigger another run.

    The page is checked every 50 ms. By default it is checked at every frame, and the browser draws a frame per check.
    """
    for _ in range(2):
        # running the first model imports torch
        page.wait_for_function(IDLE, timeout=90_000, polling=50)
        page.wait_for_timeout(100)


def severe_violations(page) -> list[tuple[str, str]]:
    """Return the serious and critical accessibility violations found by axe: the rule, and the element.

    The rule `region` is off, because it is only moderate.
    """
    from axe_playwright_python.sync_playwright import Axe

    options = {
        "resultTypes": ["violations"],
        "rules": {"region": {"enabled": False}},  # moderate
        "preload": False,  # preloads audio and style sheets for orientation, which are not used
    }
    return [
        (violation["id"], violation["nodes"][0]["html"][:160])
        for violation in Axe().run(page, options=options).response["violations"]
        if violation["impact"] in ("serious", "critical")
    ]


def visit(page, address: str):
    page.mouse.move(0, 0)  # the mouse may still be over an element
    page.goto(address)
    page.wait_for_selector("[data-testid=stApp]")
    idle(page)
    assert page.locator("[data-testid=stException]").count() == 0
    return page


def choose(page, field: str, text: str) -> None:
    """Choose an option of the select box with this key by its name."""
    box = page.locator(f".st-key-{field} input")
    box.scroll_into_view_if_needed()
    page.wait_for_timeout(200)  # a list closes when the page scrolls
    box.click()
    page.get_by_role("option", name=text, exact=True).click()
    idle(page)


def begin_demo(page, url: str) -> None:
    """Start a run of the three demo models on the Run page, and wait until the page shows its progress."""
    visit(page, url + "/run")
    for name in ("Tiny CLIP", "Tiny SigLIP", "Half-trained"):
        page.locator("[class*=st-key-card_run_model]").filter(has_text=name).first.locator(
            "label"
        ).click()
        idle(page)
    page.get_by_role("button", name="Start").click()
    page.locator("[data-testid=stProgress]").first.wait_for(timeout=120_000)  # a busy machine
    page.get_by_role("button", name="Cancel").wait_for(timeout=120_000)
