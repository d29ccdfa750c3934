"""Whether a visitor's page is being drawn right now: what is made ahead of time waits for it."""

import contextlib
import threading
from collections.abc import Iterator

from streamlit.runtime.scriptrunner import get_script_run_ctx

AHEAD = "ahead of time"  # the session of pages that nobody looks at
PATIENCE = 2.0  # seconds that a step waits at most: a visitor may be waiting for what it has begun
_changed = threading.Condition()
_drawing = 0
_n_drawn = 0


@contextlib.contextmanager
def drawing() -> Iterator[None]:
    """While a page is drawn."""
    global _drawing, _n_drawn
    counted = not is_ahead()
    with _changed:
        _drawing += counted
    try:
        yield
    finally:
        with _changed:
            _drawing -= counted
            _n_drawn += counted
            _changed.notify_all()


def is_ahead() -> bool:
    """Whether the page that is being drawn is one that nobody looks at."""
    context = get_script_run_ctx(suppress_warning=True)
    return context is not None and context.session_id == AHEAD


def let_pass() -> None:
    """Called before each piece of work: of a page that nobody looks at it waits until no visitor's
    is drawn.
    """
    if _drawing and is_ahead():
        with _changed:
            _changed.wait_for(lambda: not _drawing, PATIENCE)


def await_first(seconds: float) -> None:
    """Waits until a visitor's page was drawn, at most so many seconds."""
    with _changed:
        _changed.wait_for(lambda: _n_drawn and not _drawing, seconds)
