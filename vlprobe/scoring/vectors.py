"""Storage for embeddings. A bounded number is kept in memory, and the rest in immutable files.

The name of a file is the digest of its bytes. Small files are merged when an encoder is closed. The
merged file is written before the small ones are deleted, and a process that has them open can
continue to read. If the folder mirrors an object store, every file is uploaded when it is written,
all files are fetched when the folder is opened, and none are merged.
"""

import contextlib
import functools
import hashlib
import io
import re
import tempfile
import time
import weakref
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import BinaryIO, NamedTuple

import numpy as np

from vlprobe.errors import InvalidInput, StoredDamage
from vlprobe.storage import access, files
from vlprobe.storage.mirror import Mirror, mirror_of

# Embeddings are written once this many bytes wait in memory; a smaller file counts as small
FILE_BYTES = 32 << 20
FLUSH_SECONDS = 20.0  # at most this much work is lost when a process is killed
SMALL_FILES = 16  # small files are merged if there are more of them
FETCH_THREADS = 8


def is_intact(file: Path) -> bool:
    """Return whether the bytes in an embedding file match the digest in its name."""
    return files.blake2b(file) == file.stem


def _refuse_damaged(file: Path) -> None:
    if not is_intact(file):
        raise StoredDamage(
            f"Embedding file '{file}' is damaged: its checksum differs.",
            "Run `vlprobe verify --repair`, then repeat this command.",
        )


class _Rows(NamedTuple):
    """Rows of embeddings on disk, starting at an offset in an open file."""

    handle: BinaryIO
    offset: int


class VectorStore:
    """A store that maps 16-byte keys to embeddings, in a folder or in an unnamed temporary file.

    At most FILE_BYTES of embeddings are in memory, along with all keys and their row numbers.
    """

    def __init__(self, dim: int, folder: Path | None) -> None:
        self.dim, self.folder = dim, folder
        self._row = np.dtype([("key", "V16"), ("vector", "<f4", (dim,))])
        self._number: dict[bytes, int] = {}
        self._offsets: list[int] = []  # the number of the first row in each source
        self._sources: list[np.ndarray | _Rows] = []
        self._written, self._next = 0, 0  # how many sources are on disk; the number of the next row
        self._flushed = time.monotonic()
        self._handles = contextlib.ExitStack()
        weakref.finalize(self, self._handles.close)
        self._mirror = mirror_of(folder) if folder else None
        if self._mirror and folder:
            _exchange(self._mirror, folder)
        for file in sorted(folder.glob(f"{'?' * 32}.npy")) if folder and folder.is_dir() else []:
            # Another process may have merged the file since the folder was listed
            with contextlib.suppress(FileNotFoundError):
                self._open(file)

    def _open(self, file: Path) -> None:
        _refuse_damaged(file)
        source, count = self._opened(file)
        for start in range(0, count, 4096):
            keys = np.fromfile(source.handle, self._row, min(4096, count - start))["key"].tolist()
            for number, key in enumerate(keys, self._next + start):
                self._number.setdefault(key, number)
        self._add(source, count)
        self._written = len(self._sources)

    def _opened(self, file: Path) -> tuple[_Rows, int]:
        handle = self._handles.enter_context(file.open("rb"))
        np.lib.format.read_magic(handle)
        (count,), _, dtype = np.lib.format.read_array_header_1_0(handle)
        if dtype != self._row:
            raise InvalidInput(
                f"Embedding file '{file}' does not have dimension {self.dim}. Delete the file."
            )
        return _Rows(handle, handle.tell()), count

    def _add(self, source: np.ndarray | _Rows, count: int) -> None:
        self._offsets.append(self._next)
        self._sources.append(source)
        self._next += count

    def __contains__(self, key: bytes) -> bool:
        return key in self._number

    def get(self, keys: Sequence[bytes]) -> np.ndarray:
        """Return the embeddings for a list of keys, float32 with shape (len(keys), dim)."""
        out = np.empty((len(keys), self.dim), dtype=np.float32)
        numbers = np.fromiter(map(self._number.__getitem__, keys), np.int64, len(keys))
        order = np.argsort(numbers, kind="stable")
        numbers = numbers[order]
        ends = np.searchsorted(numbers, [*self._offsets, self._next])[1:]
        start = 0
        for offset, source, end in zip(self._offsets, self._sources, ends, strict=True):
            rows = numbers[start:end] - offset
            if isinstance(source, np.ndarray):
                out[order[start:end]] = source["vector"][rows]
            else:
                for block, vectors in self._read(source, rows):
                    out[order[start + block.start : start + block.stop]] = vectors
            start = end
        return out

    def _read(self, source: _Rows, rows: np.ndarray) -> Iterator[tuple[slice, np.ndarray]]:
        """Read rows from a file, in ascending order. Adjacent rows are read at once if memory allows."""
        size = max(1, FILE_BYTES // self._row.itemsize)
        breaks = np.flatnonzero(np.diff(rows) > 1) + 1
        for run_start, run_stop in zip([0, *breaks], [*breaks, len(rows)], strict=True):
            for start in range(run_start, run_stop, size):
                block = slice(start, min(start + size, run_stop))
                lowest, highest = int(rows[block.start]), int(rows[block.stop - 1])
                source.handle.seek(source.offset + lowest * self._row.itemsize)
                content = np.fromfile(source.handle, self._row, highest - lowest + 1)
                yield block, content["vector"][rows[block] - lowest]

    def put(self, keys: Sequence[bytes], vectors: np.ndarray) -> None:
        """Add embeddings. They are written to disk after FLUSH_SECONDS, once they reach FILE_BYTES, or by `flush`."""
        if not keys:
            return
        block = np.empty(len(keys), dtype=self._row)
        block["key"], block["vector"] = np.array(keys, dtype="V16"), vectors
        self._number |= zip(keys, range(self._next, self._next + len(keys)), strict=True)
        self._add(block, len(block))
        waiting = (self._next - self._offsets[self._written]) * self._row.itemsize
        if waiting >= FILE_BYTES or time.monotonic() - self._flushed >= FLUSH_SECONDS:
            self.flush()

    def flush(self) -> None:
        """Write all new embeddings to disk, atomically."""
        blocks = [
            source for source in self._sources[self._written :] if isinstance(source, np.ndarray)
        ]
        if blocks:
            source = self._write(np.concatenate(blocks))
            self._sources[self._written :] = [source]
            del self._offsets[self._written + 1 :]
            self._written += 1
        self._flushed = time.monotonic()

    def _write(self, block: np.ndarray) -> _Rows:
        if self.folder is None:
            handle = self._unnamed
            offset = handle.seek(0, io.SEEK_END)
            handle.write(block.tobytes())
            handle.flush()
            return _Rows(handle, offset)
        file = self.folder / _save(self.folder, block)
        if self._mirror:
            self._mirror.put(self._mirror.name(file), file)
        return self._opened(file)[0]

    @functools.cached_property  # the file is created by the first flush
    def _unnamed(self) -> BinaryIO:
        return self._handles.enter_context(tempfile.TemporaryFile())

    def close(self) -> None:
        """Write all new embeddings to disk, close the files, and merge small files if there are many."""
        self.flush()
        self._handles.close()
        if self.folder and self.folder.is_dir() and not self._mirror:
            with contextlib.suppress(FileNotFoundError):  # another process merges at the same time
                _merge(self.folder)


def _exchange(mirror: Mirror, folder: Path) -> None:
    """Fetch files that the folder lacks, and upload files that the mirror lacks, such as after a failed upload."""
    object_names = mirror.names(mirror.name(folder))
    uploaded = {
        Path(name).name: name
        for name in object_names
        if re.fullmatch(r"[0-9a-f]{32}\.npy", Path(name).name)
    }
    local = {file.name: file for file in folder.glob(f"{'?' * 32}.npy")}

    def fetch(name: str) -> None:
        mirror.fetch(uploaded[name], folder / name)

    def send(name: str) -> None:
        _refuse_damaged(local[name])
        mirror.put(mirror.name(local[name]), local[name])

    with ThreadPoolExecutor(FETCH_THREADS) as pool:  # the threads wait for the network in parallel
        list(pool.map(fetch, sorted(set(uploaded) - set(local))))
        if not access.read_only():
            list(pool.map(send, sorted(set(local) - set(uploaded))))


def _save(folder: Path, block: np.ndarray) -> str:
    buffer = io.BytesIO()
    np.save(buffer, block, allow_pickle=False)
    digest = hashlib.blake2b(buffer.getbuffer(), digest_size=16).hexdigest()
    files.write_bytes(folder / f"{digest}.npy", buffer.getbuffer())
    return f"{digest}.npy"


def _merge(folder: Path) -> None:
    small = [
        file
        for file in sorted(folder.glob(f"{'?' * 32}.npy"))
        if file.stat().st_size < FILE_BYTES and is_intact(file)
    ]
    if len(small) <= SMALL_FILES:
        return
    group: list[Path] = []
    for number, file in enumerate(small, 1):
        group.append(file)
        if number == len(small) or sum(member.stat().st_size for member in group) >= FILE_BYTES:
            merged = _save(
                folder, np.concatenate([np.load(member, allow_pickle=False) for member in group])
            )
            for member in group:
                if member.name != merged:
                    # On Windows, the file may be open in another process
                    with contextlib.suppress(PermissionError):
                        member.unlink()
            group = []
