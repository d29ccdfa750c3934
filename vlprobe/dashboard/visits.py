"""Whether a visitor's page is being drawn right now: what is made ahead of time waits for it."""

import contextlib
import threading
import time
from collections.abc import Iterator

from streamlit.runtime.scriptrunner import get_script_run_ctx

AHEAD = "ahead of time"  # the session of pages that nobody looks at
PATIENCE = 2.0  # seconds that a step waits at most: a visitor may be waiting for what it has begun
REST = 1.0  # seconds after a visitor's page: its browser, which may be on this machine, draws it
_changed = threading.Condition()
_drawing = 0
_n_drawn = 0
_rests_until = 0.0  # on the monotonic clock


@contextlib.contextmanager
def drawing() -> Iterator[None]:
    """While a page is drawn."""
    global _drawing, _n_drawn, _rests_until
    counted = not is_ahead()
    with _changed:
        _drawing += counted
    try:
        yield
    finally:
        with _changed:
            _drawing -= counted
            _n_drawn += counted
            if counted:
                _rests_until = time.monotonic() + REST
            _changed.notify_all()


def is_ahead() -> bool:
    """Whether the page that is being drawn is one that nobody looks at."""
    context = get_script_run_ctx(suppress_warning=True)
    return context is not None and context.session_id == AHEAD


def let_pass() -> None:
    """Called before each piece of work: of a page that nobody looks at it waits until no visitor's
    is drawn, nor was a moment ago.
    """
    if not is_ahead():
        return
    until = time.monotonic() + PATIENCE
    with _changed:
        while (now := time.monotonic()) < until and (_drawing or now < _rests_until):
            _changed.wait(until - now if _drawing else min(until, _rests_until) - now)


def await_first(seconds: float) -> None:
    """Waits until a visitor's page was drawn, at most so many seconds."""
    with _changed:
        _changed.wait_for(lambda: _n_drawn and not _drawing, seconds)
