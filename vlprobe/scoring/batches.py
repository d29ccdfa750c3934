"""Batches sized for a model: padded to a multiple, without pictures that already have an embedding.

The next batch is prepared in advance, so that the device and the CPU do not wait for each other.
"""

import itertools
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Generic, NamedTuple, Protocol, TypeVar

import numpy as np

from vlprobe.types import Picture

# Batch sizes are multiples of these; found by trial, held by a test
BATCH_MULTIPLES = {"texts": 8, "images": 16}
Row = TypeVar("Row")


class OpenedPicture(NamedTuple):
    """A picture that was read: its content key and, if it has no embedding yet, its preprocessed pixels."""

    key: bytes
    pixels: np.ndarray | None


class PixelEncoder(Protocol):
    """Interface of a picture encoder that `PixelBatches` needs."""

    batch_size: int
    progress: Callable[[str, int, int], None]  # called with stage, done and total

    @property
    def image_batch_size(self) -> int:
        """Number of pictures in the next batch; depends on the size of the pictures."""
        ...

    def stores_image(self, key: bytes) -> bool:
        """Return whether the picture with this content key has an embedding."""
        ...


def fill_up(rows: list[Row], multiple: int, batch_size: int) -> list[Row]:
    """Return the rows of a batch, with the last one repeated until their number is a multiple of
    `multiple`, or of `batch_size` if that is smaller.
    """
    return rows + rows[-1:] * (-len(rows) % min(multiple, batch_size))


def stacked(pixels: Sequence[np.ndarray]) -> np.ndarray:
    """Stack preprocessed pictures: one array of shape (n, ...), or n arrays of different shapes.

    >>> stacked([np.ones(2), np.ones(2)]).shape, stacked([np.ones(2), np.ones(3)]).dtype
    ((2, 2), dtype('O'))
    """
    if len({picture.shape for picture in pixels}) == 1:
        return np.stack(pixels)
    batch = np.empty(len(pixels), dtype=object)
    for row, picture in enumerate(pixels):
        batch[row] = picture
    return batch


class PixelBatches:
    """Batches of pixels from opened pictures, without duplicates and without pictures that already have
    an embedding.

    Args:
        encoder: The encoder that the batches are for.
        images: Distinct pictures.
        opened: The opened pictures, in the same order.

    `keys` contains the content key of each picture processed so far.
    """

    def __init__(
        self,
        encoder: PixelEncoder,
        images: Sequence[Picture],
        opened: Iterable[OpenedPicture],
    ) -> None:
        self.keys: dict[Picture, bytes] = {}
        self._encoder, self._n_images = encoder, len(images)
        self._opened = zip(images, opened, strict=True)
        self._batched: set[bytes] = set()

    def __iter__(self) -> Iterator[tuple[tuple[list[bytes], int], np.ndarray]]:
        """Yield the keys of each batch and the number of pictures processed by then, with the padded pixels."""
        while len(self.keys) < self._n_images:
            keys, pixels = self._gather()
            if pixels is not None:
                yield (keys, len(self.keys)), pixels
            else:
                self._encoder.progress("images", len(self.keys), self._n_images)

    def _gather(self) -> tuple[list[bytes], np.ndarray | None]:
        """Return the keys and the stacked pixels of the next batch; no pixels (None) if all are stored."""
        batch: dict[bytes, np.ndarray] = {}
        for count, (picture, opened) in enumerate(self._opened, start=1):
            self.keys[picture] = opened.key
            is_new = opened.key not in self._batched and not self._encoder.stores_image(opened.key)
            if is_new and opened.pixels is not None:
                self._batched.add(opened.key)
                batch[opened.key] = opened.pixels
            if count >= self._encoder.image_batch_size:
                break
        pixels = fill_up(list(batch.values()), BATCH_MULTIPLES["images"], self._encoder.batch_size)
        return list(batch), stacked(pixels) if batch else None


Label = TypeVar("Label")
Source = TypeVar("Source")
Output = TypeVar("Output")


def pipelined(
    process: Callable[[Source], Output], batches: Iterator[tuple[Label, Source]], overlap: bool
) -> Generator[tuple[Label, Output], None, None]:
    """Process labeled batches in order while the caller makes the next one and stores the previous one.

    Args:
        process: Function that is called with one batch at a time, in one worker thread.
        batches: Labels and batches; at most two are made before the first is processed. No
            reference to a processed batch is kept.
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


class Prefetcher(Generic[Source, Output]):
    """Iterator over the outputs of a function, in order, computed ahead by threads; must be closed.

    Args:
        process: Function that computes an output.
        sources: The sequence to map over.
        workers: Number of threads.
        depth: Function that returns how many outputs may be computed ahead; called with the latest
            output, or None at first.
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
        """Cancel tasks that have not started and wait for the others."""
        self._pool.shutdown(cancel_futures=True)
