"""A limit on the time of every hostile input: what hangs fails."""

import signal
from collections.abc import Iterator

import pytest

SECONDS = 30


@pytest.fixture(autouse=True)
def no_hang() -> Iterator[None]:
    """Ends a test that waits for ever, wherever it waits."""

    def stop(*_: object) -> None:
        raise TimeoutError(f"still going after {SECONDS} s")

    before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(SECONDS)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)
