"""Work done before its result is needed, so that neither the device nor the processor waits for
the other.
"""

import itertools
from collections import deque
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Generic, TypeVar

Label = TypeVar("Label")
Source = TypeVar("Source")
Output = TypeVar("Output")


def pipelined(
    process: Callable[[Source], Output], batches: Iterator[tuple[Label, Source]], overlap: bool
) -> Generator[tuple[Label, Output], None, None]:
    """Processes labelled batches in their order while the caller makes the next one and stores the
    previous one.

    Args:
        process: Called with one batch at a time, in one worker thread.
        batches: Labels and batches; at most two are made before the first is processed. No
            reference to a processed batch is held.
        overlap: Whether to use the worker thread; without it, and for a single batch, the caller's
            thread does it all.

    Yields:
        The label and the output of each batch. Errors of `process` are raised here.
    """
    if not overlap:
        yield from ((label, process(batch)) for label, batch in batches)
        return
    head = deque(itertools.islice(batches, 2))
    if len(head) < 2:
        yield from ((label, process(batch)) for label, batch in head)
        return
    pool = ThreadPoolExecutor(1)
    waiting: deque[tuple[Label, Future[Output]]] = deque()
    try:
        for label, batch in itertools.chain((head.popleft() for _ in range(2)), batches):
            waiting.append((label, pool.submit(process, batch)))
            del batch
            if len(waiting) > 1:
                label, future = waiting.popleft()
                yield label, future.result()
        label, future = waiting.popleft()
        yield label, future.result()
    finally:
        pool.shutdown(cancel_futures=True)


class Prefetcher(Generic[Source, Output]):
    """An iterator over the outputs of a function, in order, some of them computed ahead by threads;
    to be closed.

    Args:
        process: Makes an output.
        sources: The sequence to map over.
        workers: Threads.
        depth: Called with the latest output, or None at first: how many outputs may be computed
            ahead.
    """

    def __init__(
        self,
        process: Callable[[Source], Output],
        sources: Sequence[Source],
        workers: int,
        depth: Callable[[Output | None], int],
    ) -> None:
        self._process, self._depth = process, depth
        self._pool = ThreadPoolExecutor(workers)
        self._remaining = iter(sources)
        self._waiting: deque[Future[Output]] = deque()
        self._submit(None)

    def _submit(self, latest: Output | None) -> None:
        for source in itertools.islice(
            self._remaining, max(0, self._depth(latest) - len(self._waiting))
        ):
            self._waiting.append(self._pool.submit(self._process, source))

    def __iter__(self) -> Iterator[Output]:
        return self

    def __next__(self) -> Output:
        if not self._waiting:
            raise StopIteration
        latest = self._waiting.popleft().result()
        self._submit(latest)
        return latest

    def close(self) -> None:
        """Cancel tasks that have not begun, and wait for the others."""
        self._pool.shutdown(cancel_futures=True)
