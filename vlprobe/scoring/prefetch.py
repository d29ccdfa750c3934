"""Work done before it is asked for, so that neither a device nor a processor waits for the other."""

import itertools
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

Name = TypeVar("Name")
Given = TypeVar("Given")
Made = TypeVar("Made")


def pipelined(
    do: Callable[[Given], Made], batches: Iterator[tuple[Name, Given]], overlap: bool
) -> Iterator[tuple[Name, Made]]:
    """What is done with each batch, in their order; meanwhile the next is made ready and the last one put away.

    One thread does it all, two batches after who makes them; where there is one batch only, or it is not to be done
    `overlap`, that of the caller. A batch that is done is held no longer.
    """
    if not overlap:
        yield from ((name, do(batch)) for name, batch in batches)
        return
    first = deque(itertools.islice(batches, 2))
    if len(first) < 2:
        yield from ((name, do(batch)) for name, batch in first)
        return
    pool = ThreadPoolExecutor(1)
    waiting: deque[tuple[Name, Future[Made]]] = deque()
    try:
        for name, batch in itertools.chain((first.popleft() for _ in range(2)), batches):
            waiting.append((name, pool.submit(do, batch)))
            del batch
            if len(waiting) > 1:
                name, made = waiting.popleft()
                yield name, made.result()
        name, made = waiting.popleft()
        yield name, made.result()
    finally:
        pool.shutdown(cancel_futures=True)


class Prefetcher:
    """Things made by several threads in their order, some of them before they are asked for; to be closed.

    Args:
        do: Makes one.
        given: What of.
        workers: Threads.
        most: Asked with the last one that was made, or None, how many may wait.
    """

    def __init__(
        self, do: Callable[[Given], Made], given: Sequence[Given], workers: int, most: Callable[[Made | None], int]
    ) -> None:
        self.given, self._do, self._most = given, do, most
        self._pool = ThreadPoolExecutor(workers)
        self._left = iter(given)
        self._waiting: deque[Future[Made]] = deque()
        self._fill(None)

    def _fill(self, made: Made | None) -> None:
        for one in itertools.islice(self._left, max(0, self._most(made) - len(self._waiting))):
            self._waiting.append(self._pool.submit(self._do, one))

    def __iter__(self) -> Iterator[Made]:
        return self

    def __next__(self) -> Made:
        if not self._waiting:
            raise StopIteration
        made = self._waiting.popleft().result()
        self._fill(made)
        return made

    def close(self) -> None:
        """Begins nothing more, and waits for what has begun."""
        self._pool.shutdown(cancel_futures=True)
