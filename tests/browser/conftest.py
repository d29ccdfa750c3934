"""One server and one browser for all tests of the dashboard, on a cache that begins empty.

Without Debian's chromium the tests skip and say so; where the environment says CI, that is a failure.
"""

import os
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

from vlprobe.runs import jobs
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
NOWHERE = "--proxy-server=http://127.0.0.1:9"  # a route would keep others out, too, but turns the browser's cache off
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
            profile,
            executable_path=chromium(),
            args=[*FLAGS, NOWHERE, f"--proxy-bypass-list=<-loopback>;{url.removeprefix('http://')}"],
            viewport={"width": 1280, "height": 900},
        )
        page = context.pages[0]
        page.set_default_timeout(30_000)
        page.outside = []

        def note(request) -> None:
            if not request.url.startswith((url, "file:", "data:", "blob:")) and request.failure != "csp":
                page.outside.append(request.url)

        context.on("requestfinished", note)
        context.on("requestfailed", note)
        page.first_links = visit(page, url + "/failures?model=x").locator("[data-testid=stSidebarNavLink]")
        page.first_links = [text.split()[-1] for text in page.first_links.all_inner_texts()]
        page.first_title = page.title()
        yield page
        context.close()


def idle(page) -> None:
    page.wait_for_function(IDLE, timeout=90_000)  # the first page that asks a model imports torch
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
