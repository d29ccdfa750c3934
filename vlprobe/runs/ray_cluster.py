"""The Ray cluster that runs may use: its address and the connection to it.

A cluster that this machine joins receives this machine's Ray token, so the cluster must be named in
VLPROBE_RAY. `vlprobe run --executor ray`, a Python call and `vlprobe dashboard --ray` set VLPROBE_RAY;
links, forms and job files cannot. Ray is imported when a cluster is joined.
"""

import contextlib
import gc
import logging
import os
import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from vlprobe.errors import InvalidInput, MissingDependency, first_line
from vlprobe.runs import processes
from vlprobe.storage.access import RAY

POLL = 0.5  # seconds between two reports of progress if no task finishes
CONNECTING = 25.0  # seconds in which a cluster accepts this machine
LOCAL = "local"  # a new cluster on this machine
# No other scheme: Ray would import the module named in an address such as "name://".
ADDRESS = re.compile(r"([A-Za-z0-9][A-Za-z0-9.-]{0,252}|\[[0-9A-Fa-f:.]{2,45}\]):[0-9]{1,5}")
QUIET = {
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",  # a worker that takes no GPU keeps its devices as they are
    "RAY_ENABLE_AUTO_CONNECT": "0",  # no thread joins any cluster after `ray.shutdown`
}
# Ray then gives a local cluster the address 127.0.0.1, as on Windows and macOS; on Linux it listens on all interfaces.
LOOPBACK = {"RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0"}


def allow(text: str, accepts_local: bool = True) -> None:
    """Allow this process and the processes that it starts to use a cluster. It replaces an earlier one.

    An empty text means RAY_ADDRESS, if set, or "local", a new cluster on this machine. Call this function only with
    text typed by the owner of this process, never with the content of a link, form or file. Raises InvalidInput
    unless the address is HOST:PORT or, where allowed, "local".
    """
    address = text.strip() or os.environ.get("RAY_ADDRESS", "").strip() or LOCAL
    os.environ[RAY] = _checked(address, accepts_local)


def allowed() -> str:
    """Return the cluster that the owner of this process allowed: HOST:PORT or "local".

    Raises InvalidInput if there is none, or VLPROBE_RAY was set to something else.
    """
    address = os.environ.get(RAY, "")
    if not address:
        raise InvalidInput(
            "Ray is not allowed here. The person who starts the dashboard can allow a cluster: "
            "vlprobe dashboard --ray HOST:PORT."
        )
    return _checked(address, place=f"{RAY}: ")


def _checked(address: str, accepts_local: bool = True, place: str = "") -> str:
    if ADDRESS.fullmatch(address) or (accepts_local and address == LOCAL):
        return address
    raise InvalidInput(
        f"{place}'{address}' is not the address of a Ray cluster. Expected HOST:PORT, such as "
        "10.0.0.7:6379."
    )


@contextlib.contextmanager
def joined(waiting: Callable[[], None] = lambda: None) -> Iterator[None]:
    """Connect to the allowed Ray cluster while the block runs. Ray's messages go to stderr.

    Args:
        waiting: Called twice per second while the cluster does not answer; may raise an error to stop.

    Raises:
        MissingDependency: Ray is not installed.
        InvalidInput: the owner of this process did not allow a cluster, or it does not answer within
            CONNECTING seconds.
    """
    address = allowed()
    for name, value in (QUIET | (LOOPBACK if address == LOCAL else {})).items():
        os.environ.setdefault(name, value)
    token = os.environ.get("RAY_AUTH_TOKEN_PATH") or Path.home() / ".ray" / "auth_token"
    if os.environ.get("RAY_AUTH_TOKEN") or Path(token).is_file():
        os.environ.setdefault("RAY_AUTH_MODE", "token")  # read when Ray is imported
    try:
        import ray
    except ImportError:
        raise MissingDependency("--executor ray", "ray", "'vlprobe[scale]'") from None
    if ray.is_initialized():
        yield
        return
    if address != LOCAL:
        _check_connection(address, waiting)
    with contextlib.redirect_stdout(sys.stderr):
        dashboard = False if address == LOCAL else None
        level = logging.ERROR
        try:
            ray.init(address, log_to_driver=False, logging_level=level, include_dashboard=dashboard)
        except (OSError, RuntimeError, ValueError) as error:
            raise _unreachable(address, first_line(error)) from None
        try:
            yield
        finally:
            # While Ray shuts down, it ends the process without a message if the garbage collector then frees a
            # reference to one of Ray's objects. Tracebacks form cycles that hold such references.
            gc.collect()
            ray.shutdown()


def _check_connection(address: str, waiting: Callable[[], None]) -> None:
    """Raise InvalidInput unless `ray health-check` reaches the cluster in time.

    `ray.init` cannot be interrupted: with an address that accepts connections but never answers, it
    ignored SIGTERM for more than 180 s.
    """
    command = ("ray.scripts.scripts", "health-check", "--address", address)
    silent = subprocess.DEVNULL
    with processes.start(*command, stdout=silent, stderr=silent) as check:
        try:
            deadline = time.monotonic() + CONNECTING
            while check.poll() is None and time.monotonic() < deadline:
                waiting()
                time.sleep(POLL)
        finally:
            check.kill()
    if check.returncode:
        was_killed = check.returncode < 0
        raise _unreachable(
            address, f"no answer in {CONNECTING:g} s" if was_killed else "`ray health-check` failed"
        )


def _unreachable(address: str, reason: str) -> InvalidInput:
    return InvalidInput(
        f"Cannot connect to a Ray cluster at '{address}' ({reason}). Start one with `ray "
        "start --head` and pass its address with --ray-address HOST:6379. If the cluster "
        "has a token, copy it to this machine."
    )
