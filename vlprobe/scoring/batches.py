"""Batches of the sizes that suit a model: filled up to a multiple, and, of pictures, without those
that have an embedding.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple, Protocol, TypeVar

import numpy as np

from vlprobe.types import Picture

BATCH_MULTIPLES = {
    "texts": 8,
    "images": 16,
}  # batch sizes are multiples of these; found by trial, held by a test
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
        """Pictures of the next batch; changes with the size of the pictures."""
        ...

    def stores_image(self, key: bytes) -> bool:
        """Return whether the picture with this content key has an embedding."""
        ...


def fill_up(rows: list[Row], multiple: int, batch_size: int) -> list[Row]:
    """Return the rows of a batch, the last one repeated up to a multiple of `multiple` or of a smaller
    `batch_size`.
    """
    return rows + rows[-1:] * (-len(rows) % min(multiple, batch_size))


def stacked(pixels: Sequence[np.ndarray]) -> np.ndarray:
    """Preprocessed pictures as one array: shape (n, ...), or n arrays of several shapes.

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
    """Groups opened pictures into batches of pixels, each content once and none that has an
    embedding.

    Args:
        encoder: Whose batches these are.
        images: Distinct pictures.
        opened: The same pictures opened, in their order.

    `keys` holds the content key of each picture that was passed so far.
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
        """Yield the keys of a batch and how many pictures are passed by then; their pixels, filled up."""
        while len(self.keys) < self._n_images:
            keys, pixels = self._gather()
            if pixels is not None:
                yield (keys, len(self.keys)), pixels
            else:
                self._encoder.progress("images", len(self.keys), self._n_images)

    def _gather(self) -> tuple[list[bytes], np.ndarray | None]:
        """Return the keys and the stacked pixels of the next batch of pictures; None if all are stored."""
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
