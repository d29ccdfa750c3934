"""Rows of float32 on the disk: embeddings of a gallery, or similarities that memory does not hold."""

import os
import tempfile
import weakref

import numpy as np


class VectorFile:
    """Rows in a file without a name, which disappears with them; a slice of them is read from the
    disk, by any thread.
    """

    def __init__(self, width: int) -> None:
        self._file = tempfile.TemporaryFile()  # noqa: SIM115 - closed with these rows
        weakref.finalize(self, self._file.close)
        self.width, self._n = width, 0
        self.bytes_written = self.bytes_read = 0

    def __len__(self) -> int:
        return self._n

    def __getitem__(self, rows: slice) -> np.ndarray:
        start, stop, _ = rows.indices(self._n)
        content = np.empty((stop - start, self.width), dtype=np.float32)
        view, offset = content.reshape(-1).view(np.uint8).data, 4 * self.width * start
        while len(view):
            n_read = os.preadv(self._file.fileno(), [view], offset)
            if not n_read:
                raise OSError(f"A temporary file ended {len(view)} bytes before its last row.")
            view, offset = view[n_read:], offset + n_read
        self.bytes_read += content.nbytes
        return content

    def write(self, start: int, vectors: np.ndarray) -> None:
        """Writes vectors, float32 of shape (n, width), as the rows from `start` on."""
        self._write(4 * self.width * start, vectors)
        self._n = max(self._n, start + len(vectors))

    def write_columns(self, start: int, column: int, values: np.ndarray) -> None:
        """Writes a part of some rows: float32 of shape (n, columns), from this row and column on."""
        for row, row_values in enumerate(values, start):
            self._write(4 * (self.width * row + column), row_values)
        self._n = max(self._n, start + len(values))

    def _write(self, offset: int, values: np.ndarray) -> None:
        content = np.ascontiguousarray(values).reshape(-1).view(np.uint8).data
        self.bytes_written += len(content)
        while len(content):
            n_written = os.pwrite(self._file.fileno(), content, offset)
            content, offset = content[n_written:], offset + n_written
