"""Thumbnails of pictures, stored so that a grid of them appears at once.

    thumbnails/<2 digits>/<digest>.webp     of the picture file whose bytes have this digest
    thumbnails/<2 digits>/<key>m.webp       of a mixed picture, by its two files and the settings of the mixture

Thumbnails save time and are not results: a missing one is created again (`scoring.thumbnails`). The size of the folder
is limited; the least recently shown thumbnails are deleted first. A read-only server does not write thumbnails.
"""

import contextlib
import os
import re
import threading
import time
from collections import Counter
from collections.abc import Iterator, Set
from dataclasses import dataclass
from pathlib import Path

from vlprobe.errors import InvalidInput
from vlprobe.storage import files, shipped

FOLDER = "thumbnails"
SIDE = 240  # pixels of the longer side
MAX_BYTES = 12_000  # of one: sixty of them, as data addresses, stay below 1 MB
MAX_ENTRIES = 40_000
MAX_TOTAL = 320 << 20  # bytes
TRIM_TO = 0.9  # of both bounds, once one is passed
WRITES_BETWEEN_TRIMS = 2048
SHOWN_AGAIN = 86_400  # seconds after which a use is recorded again
MIXED = "m"  # ends the key of a mixed picture
_KEY = re.compile(f"[0-9a-f]{{32}}{MIXED}?")
_writes: Counter[Path] = Counter()
_writes_lock = threading.Lock()


@dataclass(frozen=True, slots=True)
class Usage:
    """Size of the thumbnails of a store."""

    n_entries: int
    n_bytes: int
    n_unused: int  # of files that no stored result names


def path_of(root: Path, key: str) -> Path:
    """Return the path of the thumbnail of a picture. Raises ValueError if the key is not valid."""
    if not _KEY.fullmatch(key):
        raise ValueError(f"'{key}' is not a valid thumbnail key.")
    return root / FOLDER / key[:2] / f"{key}.webp"


def is_whole(content: bytes) -> bool:
    """Return whether the bytes are a WebP file of the size in its header, within the allowed size."""
    n_bytes = len(content)
    return (
        12 < n_bytes <= MAX_BYTES
        and content[:4] == b"RIFF"
        and content[8:12] == b"WEBP"
        and int.from_bytes(content[4:8], "little") + 8 == n_bytes
    )


def read(root: Path, key: str) -> bytes | None:
    """Return the thumbnail of a picture and record its use; None if it is missing or damaged."""
    path = path_of(root, key)
    try:
        content = files.read(path)
        if time.time() - path.stat().st_mtime > SHOWN_AGAIN:
            with contextlib.suppress(OSError):  # of a folder that cannot be written
                os.utime(path)
    except OSError:
        return None
    return content if is_whole(content) else None


def holds(root: Path, key: str) -> bool:
    """Return whether a file of this name exists; it may be damaged."""
    return path_of(root, key).exists()


def write(root: Path, key: str, content: bytes) -> None:
    """Store a thumbnail; do nothing if the store is read-only, like the bundled results."""
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
    """Yield the files of all thumbnails."""
    return (root / FOLDER).glob("??/*.webp")


def trim(root: Path, max_entries: int = MAX_ENTRIES, max_total: int = MAX_TOTAL) -> int:
    """Remove the least recently used thumbnails if a limit is exceeded; return the number removed."""
    entries = sorted(_entries(root), reverse=True)  # used last first
    total = sum(n_bytes for _, n_bytes, _ in entries)
    if len(entries) <= max_entries and total <= max_total:
        return 0
    n_kept, n_bytes_kept = 0, 0
    for _, n_bytes, _ in entries:
        n_bytes_kept += n_bytes
        if n_kept + 1 > TRIM_TO * max_entries or n_bytes_kept > TRIM_TO * max_total:
            break
        n_kept += 1
    return _remove(Path(name) for _, _, name in entries[n_kept:])


def remove_unused(root: Path, used: Set[str]) -> int:
    """Remove all thumbnails, mixed ones too, except those of picture files with these digests; return the number
    removed.
    """
    return _remove(path for path in paths(root) if path.stem not in used)


def usage(root: Path, used: Set[str]) -> Usage:
    """Compute the size of the thumbnails, and the number of those for picture files with none of these digests."""
    entries = _entries(root)
    keys = [Path(name).stem for _, _, name in entries]
    n_unused = sum(key not in used and not key.endswith(MIXED) for key in keys)
    return Usage(len(entries), sum(n_bytes for _, n_bytes, _ in entries), n_unused)


def _entries(root: Path) -> list[tuple[float, int, str]]:
    """List the last use, the size and the path of each thumbnail."""
    entries = []
    for folder in _listed(root / FOLDER):
        for file in _listed(folder):
            if file.name.endswith(".webp"):
                with contextlib.suppress(OSError):  # removed meanwhile
                    status = file.stat()
                    entries.append((status.st_mtime, status.st_size, file.path))
    return entries


def _listed(folder: Path | os.DirEntry[str]) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as listing:
            return list(listing)
    except OSError:  # it is missing, or not a folder
        return []


def _remove(doomed: Iterator[Path]) -> int:
    n_removed = 0
    for path in doomed:
        with contextlib.suppress(OSError):
            path.unlink()
            n_removed += 1
    return n_removed
