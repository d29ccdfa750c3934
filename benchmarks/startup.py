"""Startup time of commands and of the dashboard: `python benchmarks/startup.py`.

    help          `vlprobe --help`, from the start of the process to its end, and whether it imported torch
    list          `vlprobe list metrics`, timed in the same way
    first page    from the start of `vlprobe dashboard` over an empty cache to the text of the first page in Chromium,
                  which is already running; without Chromium, to the end of the page's first run in Streamlit's AppTest
    second page   a page of the running server in a new tab, from its address to its text

Each is timed five times in turn. The script prints the fastest and the median time in seconds. The first round, which
loads the files into memory, is not counted.

The other benchmarks start their servers with `serving`, as on a machine where vlprobe has run before: Python keeps
compiled modules even if PYTHONDONTWRITEBYTECODE is set. Some sandboxes set it, which costs each server a second.
"""

import argparse
import compileall
import contextlib
import functools
import os
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import psutil

ROOT = Path(__file__).resolve().parents[1]
PATIENCE = 60  # seconds in which a server must answer
LOOK = 0.02  # seconds between two requests to a starting server
GOALS = {"help": 0.3, "first page": 3.0}
PORT = 8598
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
VLPROBE = [sys.executable, "-m", "vlprobe"]


def environment(**variables: str) -> dict[str, str]:
    """Return this process's environment variables and the given ones, for a process that runs this checkout's code."""
    kept = {name: text for name, text in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    return kept | {"PYTHONPATH": str(ROOT)} | variables


@functools.cache
def compile_modules() -> None:
    """Compile all modules, as the first command on a machine does; takes four seconds if none is compiled yet."""
    compileall.compile_dir(ROOT / "vlprobe", quiet=1)


def free_port() -> int:
    """Return a port that nothing listens on."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def listens(port: int) -> bool:
    """Return whether something listens on a port."""
    with socket.socket() as visitor:
        return visitor.connect_ex(("127.0.0.1", port)) == 0


@contextlib.contextmanager
def serving(cache: Path, port: int, *words: str) -> Iterator[psutil.Process]:
    """Start a server over a cache, with the bundled results below it; stop the server at the end.

    Args:
        cache: The folder with the results.
        port: A port on 127.0.0.1. If something already answers there, the script exits.
        words: More arguments for `vlprobe dashboard`.
    """
    compile_modules()
    if listens(port):
        sys.exit(f"Something answers at port {port} already. End it first.")
    server = subprocess.Popen(
        [sys.executable, "-m", "vlprobe", "dashboard", "--port", str(port), *words],
        cwd=ROOT,
        env=environment(VLPROBE_CACHE=str(cache)),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        _await_answer(server, port)
        yield psutil.Process(server.pid)
    finally:
        os.killpg(server.pid, signal.SIGTERM)
        server.wait()
        while listens(port):
            time.sleep(LOOK)


def _await_answer(server: subprocess.Popen, port: int) -> None:
    until = time.monotonic() + PATIENCE
    while server.poll() is None and time.monotonic() < until:
        with contextlib.suppress(urllib.error.URLError, ConnectionError, TimeoutError):
            urllib.request.urlopen(f"http://127.0.0.1:{port}/_stcore/health", timeout=1)
            return
        time.sleep(LOOK)
    sys.exit(f"The dashboard did not start. Is the port {port} taken?")


def command(*given: str) -> float:
    """Return the seconds that a vlprobe command takes."""
    started = time.perf_counter()
    subprocess.run(
        [*VLPROBE, *given], cwd=ROOT, env=environment(), check=True, stdout=subprocess.DEVNULL
    )
    return time.perf_counter() - started


def imported(module: str, *given: str) -> bool:
    """Return whether a vlprobe command imports a module."""
    said = subprocess.run(
        [sys.executable, "-X", "importtime", *VLPROBE[1:], *given], cwd=ROOT, capture_output=True
    )
    return any(
        line.rpartition("|")[2].strip() == module for line in said.stderr.decode().splitlines()
    )


def in_browser(chromium: object, cache: str) -> tuple[float, float]:
    """Return the seconds from the start of a server to its first page, and to another page in a new tab."""
    started = time.perf_counter()
    with serving(Path(cache), PORT):
        tab = chromium.new_page()
        tab.goto(f"http://127.0.0.1:{PORT}/")
        tab.locator("h1").first.wait_for(timeout=60_000)
        first = time.perf_counter() - started
        tab.close()
        started = time.perf_counter()
        tab = chromium.new_page()
        tab.goto(f"http://127.0.0.1:{PORT}/run")
        tab.locator("h1").first.wait_for(timeout=60_000)
        second = time.perf_counter() - started
        tab.close()
    return first, second


def in_test(cache: str) -> float:
    """Return the seconds to the end of the first page's first run, in a separate process."""
    script = "from streamlit.testing.v1 import AppTest; AppTest.from_file('app.py', default_timeout=60).run()"
    started = time.perf_counter()
    subprocess.run(
        [sys.executable, "-c", script],
        cwd=ROOT,
        check=True,
        env=environment(VLPROBE_CACHE=cache),
        capture_output=True,
    )
    return time.perf_counter() - started


def main() -> None:
    """Print a line per measurement."""
    asked = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    asked.add_argument("--repeat", type=int, default=5)
    repeat = asked.parse_args().repeat
    spent: dict[str, list[float]] = {}
    with tempfile.TemporaryDirectory() as cache:
        for turn in range(repeat + 1):
            took = {"help": command("--help"), "list": command("list", "metrics")}
            if CHROMIUM:
                from playwright.sync_api import sync_playwright

                with sync_playwright() as playwright:
                    chromium = playwright.chromium.launch(
                        executable_path=CHROMIUM, args=["--no-sandbox"]
                    )
                    took["first page"], took["second page"] = in_browser(chromium, cache)
                    chromium.close()
            else:
                took["first page"] = in_test(cache)
            for name, seconds in took.items():
                spent.setdefault(name, []).extend([seconds] if turn else [])
    print(f"{'':14}{'fastest s':>10}{'median s':>10}{'goal':>6}")
    for name, seconds in spent.items():
        print(
            f"{name:14}{min(seconds):10.2f}{statistics.median(seconds):10.2f}{GOALS.get(name, ''):>6}"
        )
    print(f"help imports torch: {'yes' if imported('torch', '--help') else 'no'}")
    if not CHROMIUM:
        print("first page: without chromium, Streamlit's own test run in place of a browser")


if __name__ == "__main__":
    main()
