"""The index of a tar kept between processes: which members it has, and where the bytes of each are.

    cache/tar-indexes/DIGEST.json    of one tar: its stamp, and names, places and sizes of its members

It holds while the tar has its path and its stamp (`storage.memo`, which says whom that keeps out): size, time of
change, inode, time of the last change of status. All indexes together have at most MOST_BYTES; those
written first go first.
"""

import contextlib
import hashlib
import operator
import os
from collections.abc import Iterable, Mapping
from pathlib import Path

from vlprobe.storage import memo

FOLDER = "tar-indexes"
FEWEST = 1_000  # members: fewer are found again in less time than the index is read
MOST = 500_000  # members of a tar whose index is kept
MOST_BYTES = 1 << 28  # of all indexes
FIELDS = ("stamp", "names", "starts", "sizes")


def kept(file: Path, cache: Path) -> Iterable[tuple[str, tuple[int, int]]] | None:
    """Name, place and size of each member, in the order of the tar; None where nothing is kept of it as it is now.

    Raises:
        OSError: the tar cannot be looked at.
    """
    if not memo.believed():
        return None
    row, stamp = memo.read(_path(file, cache)), memo.stamp(file)
    names, starts, sizes = columns = [row.get(field) or [] for field in FIELDS[1:]]
    if row.get("stamp") != stamp or not all(isinstance(column, list) for column in columns):
        return None
    are_texts = set(map(type, names)) <= {str}
    if not are_texts or not len(names) == len(starts) == len(sizes):
        return None
    if not _are_within(starts, sizes, stamp[0]):
        return None
    return zip(names, zip(starts, sizes, strict=True), strict=True)


def _are_within(starts: list[int], sizes: list[int], n_bytes: int) -> bool:
    """Whether these are places in a file of that many bytes."""
    if not set(map(type, (*starts, *sizes))) <= {int} or min((*starts, *sizes), default=0) < 0:
        return False
    return max(map(operator.add, starts, sizes), default=0) <= n_bytes


def keep(file: Path, cache: Path, members: Mapping[str, tuple[int, int]], began: int) -> None:
    """Keeps an index, where the folder can be written and the tar is not of this very moment.

    Args:
        file: The tar.
        cache: The folder that holds the indexes.
        members: Place and size by name.
        began: When the tar was opened, in ns since 1970.

    Raises:
        OSError: the tar cannot be looked at.
    """
    stamp = memo.stamp(file)
    if not FEWEST <= len(members) <= MOST or not memo.is_settled(stamp, began):
        return
    starts, sizes = ([place[side] for place in members.values()] for side in (0, 1))
    columns = zip(FIELDS, (stamp, list(members), starts, sizes), strict=True)
    memo.write(_path(file, cache), dict(columns), len(FIELDS))
    with contextlib.suppress(OSError):
        _bound(cache / FOLDER)


def _path(file: Path, cache: Path) -> Path:
    name = os.path.abspath(file).encode("utf-8", "surrogateescape")
    return cache / FOLDER / f"{hashlib.blake2b(name, digest_size=16).hexdigest()}.json"


def _bound(folder: Path) -> None:
    """Deletes the indexes that were written first, until all have MOST_BYTES. Raises OSError."""
    files = [(status.st_mtime_ns, status.st_size, path) for path, status in _statuses(folder)]
    n_bytes = 0
    for _, size, path in sorted(files, reverse=True):
        n_bytes += size
        if n_bytes > MOST_BYTES:
            path.unlink(missing_ok=True)


def _statuses(folder: Path) -> list[tuple[Path, os.stat_result]]:
    return [(path, path.stat()) for path in folder.glob("*.json")]
