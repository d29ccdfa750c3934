"""Stored picture thumbnails, so that a grid of pictures appears at once.

    thumbnails/<2 digits>/<digest>.webp     for the picture file whose bytes have this digest
    thumbnails/<2 digits>/<key>m.webp       for a mixed picture; the key covers its two files and the mixing settings

Thumbnails save time and are not results: a missing one is created again (`scoring.thumbnails`). The folder has a size
limit, and the least recently shown thumbnails are deleted first. A read-only server does not write thumbnails.
"""

import bisect
import contextlib
import itertools
import os
import re
import threading
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from vlprobe.errors import InvalidInput
from vlprobe.storage import files, shipped

FOLDER = "thumbnails"
SIDE = 240  # pixels of the longer side
MAX_BYTES = 12_000  # per thumbnail, so that sixty of them as data URLs stay below 1 MB
MAX_ENTRIES = 40_000
MAX_TOTAL = 320 << 20  # bytes
TRIM_TO = 0.9  # share of both limits that is kept once one is exceeded
WRITES_BETWEEN_TRIMS = 2048
SHOWN_AGAIN = 86_400  # seconds after which a use is recorded again
MIXED = "m"  # ends the key of a mixed picture
_KEY = re.compile(f"[0-9a-f]{{32}}{MIXED}?")
_writes: Counter[Path] = Counter()
_writes_lock = threading.Lock()


def path_of(root: Path, key: str) -> Path:
    """Return the path to the thumbnail with the given key. Raises ValueError if the key is not valid."""
    if not _KEY.fullmatch(key):
        raise ValueError(f"'{key}' is not a valid thumbnail key.")
    return root / FOLDER / key[:2] / f"{key}.webp"


def is_whole(content: bytes) -> bool:
    """Return whether the bytes are a complete WebP file of at most MAX_BYTES, judging by the size in its header."""
    n_bytes = len(content)
    return (
        12 < n_bytes <= MAX_BYTES
        and content[:4] == b"RIFF"
        and content[8:12] == b"WEBP"
        and int.from_bytes(content[4:8], "little") + 8 == n_bytes
    )


def read(root: Path, key: str) -> bytes | None:
    """Return the thumbnail with the given key and record its use, or None if it is missing or damaged."""
    path = path_of(root, key)
    try:
        content = files.read(path)
        if time.time() - path.stat().st_mtime > SHOWN_AGAIN:
            with contextlib.suppress(OSError):  # the folder may not be writable
                os.utime(path)
    except OSError:
        return None
    return content if is_whole(content) else None


def holds(root: Path, key: str) -> bool:
    """Return whether the thumbnail file for a key exists. The file may be damaged."""
    return path_of(root, key).exists()


def write(root: Path, key: str, content: bytes) -> None:
    """Store a thumbnail. Nothing is written if the store is read-only, like the bundled results."""
    if root in (shipped.FOLDER, shipped.PUBLISHED_FOLDER):
        return
    with contextlib.suppress(InvalidInput):
        files.write_bytes(path_of(root, key), content, durable=False)
        with _writes_lock:
            _writes[root] += 1
            is_due = _writes[root] % WRITES_BETWEEN_TRIMS == 0
        if is_due:
            trim(root)


def paths(root: Path) -> Iterator[Path]:
    """Yield the paths to all stored thumbnails."""
    return (root / FOLDER).glob("??/*.webp")


def trim(root: Path, max_entries: int = MAX_ENTRIES, max_total: int = MAX_TOTAL) -> int:
    """Delete the least recently used thumbnails if a limit is exceeded, and return the number deleted."""
    entries = []
    for path in paths(root):
        with contextlib.suppress(OSError):  # removed meanwhile
            status = path.stat()
            entries.append((status.st_mtime, status.st_size, path))
    entries.sort(reverse=True)  # most recently used first
    totals = list(itertools.accumulate(n_bytes for _, n_bytes, _ in entries))
    if len(entries) <= max_entries and (not totals or totals[-1] <= max_total):
        return 0
    n_kept = min(int(TRIM_TO * max_entries), bisect.bisect_right(totals, TRIM_TO * max_total))
    for _, _, path in entries[n_kept:]:
        with contextlib.suppress(OSError):
            path.unlink()
    return len(entries) - n_kept
