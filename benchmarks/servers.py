"""A fresh server of the dashboard for a benchmark, started as on a machine where it has run before.

Python keeps the modules that it has compiled, as it does for a user. With PYTHONDONTWRITEBYTECODE,
which some sandboxes set, each server would compile all of vlprobe again: a second in the time of
its first pages.
"""

import compileall
import contextlib
import functools
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import psutil

ROOT = Path(__file__).resolve().parents[1]
PATIENCE = 60  # seconds until a server must answer
LOOK = 0.02  # seconds between two looks at whether it does


def environment(**variables: str) -> dict[str, str]:
    """This process's variables and these, for a process that runs this checkout's code."""
    kept = {name: text for name, text in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    return kept | {"PYTHONPATH": str(ROOT)} | variables


@functools.cache
def compile_modules() -> None:
    """What the first command on a machine does: four seconds where nothing is compiled yet."""
    compileall.compile_dir(ROOT / "vlprobe", quiet=1)


def free_port() -> int:
    """A port that nothing listens at."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def listens(port: int) -> bool:
    """Whether something listens there."""
    with socket.socket() as visitor:
        return visitor.connect_ex(("127.0.0.1", port)) == 0


@contextlib.contextmanager
def serving(cache: Path, port: int, *words: str) -> Iterator[psutil.Process]:
    """A server that answers, over this cache with the shipped results below it; ended afterwards.

    Args:
        cache: Where results are.
        port: Of 127.0.0.1; what answers there already is not taken for the server.
        words: More of the command line of `vlprobe dashboard`.
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
