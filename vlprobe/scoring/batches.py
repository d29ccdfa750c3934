"""Batches that are padded to a multiple and prepared in advance, so device and CPU do not wait for each other."""

import itertools
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import NamedTuple, TypeVar

import numpy as np

# Batch sizes are multiples of these numbers, which were found by trial and are checked by a test
BATCH_MULTIPLES = {"texts": 8, "images": 16}
Row = TypeVar("Row")


class OpenedPicture(NamedTuple):
    """The content key of a picture that was read, and its preprocessed pixels if it has no embedding yet."""

    key: bytes
    pixels: np.ndarray | None


def fill_up(rows: list[Row], multiple: int, batch_size: int) -> list[Row]:
    """Pad a batch by repeating its last row until the number of rows is a multiple of `multiple`, or of
    `batch_size` if that is smaller.
    """
    return rows + rows[-1:] * (-len(rows) % min(multiple, batch_size))


def stacked(pixels: Sequence[np.ndarray]) -> np.ndarray:
    """Stack preprocessed pictures into one array with shape (n, ...), or an object array if their shapes differ.

    >>> stacked([np.ones(2), np.ones(2)]).shape, stacked([np.ones(2), np.ones(3)]).dtype
    ((2, 2), dtype('O'))
    """
    if len({picture.shape for picture in pixels}) == 1:
        return np.stack(pixels)
    batch = np.empty(len(pixels), dtype=object)
    for row, picture in enumerate(pixels):
        batch[row] = picture
    return batch


Label = TypeVar("Label")
Source = TypeVar("Source")
Output = TypeVar("Output")


def pipelined(
    process: Callable[[Source], Output], batches: Iterator[tuple[Label, Source]], overlap: bool
) -> Generator[tuple[Label, Output], None, None]:
    """Process labeled batches in order while the caller makes the next one and stores the previous one.

    Args:
        process: A function that is called with one batch at a time, in one worker thread.
        batches: Pairs of a label and a batch. At most two are made before the first is processed, and
            no reference to a processed batch is kept.
        overlap: Whether to use the worker thread; without it, and for a single batch, the caller's
            thread does all the work.

    Yields:
        The label and the output of each batch. Errors from `process` are raised here.
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


def prefetched(
    process: Callable[[Source], Output],
    sources: Iterable[Source],
    workers: int,
    depth: Callable[[Output | None], int],
) -> Generator[Output, None, None]:
    """Yield the outputs of a function in order, computed ahead by threads. Closing the generator cancels the rest.

    Args:
        process: A function that computes one output.
        sources: The inputs for the function.
        workers: The number of threads.
        depth: A function that returns how many outputs may be computed ahead. It is called with the
            latest output, or with None at first.
    """
    pool, remaining = ThreadPoolExecutor(workers), iter(sources)
    waiting: deque[Future[Output]] = deque()

    def submit(latest: Output | None) -> None:
        for source in itertools.islice(remaining, max(0, depth(latest) - len(waiting))):
            waiting.append(pool.submit(process, source))

    try:
        submit(None)
        while waiting:
            latest = waiting.popleft().result()
            submit(latest)
            yield latest
    finally:
        pool.shutdown(cancel_futures=True)
