"""Cache for values that are computed from files. A value is reused as long as its file is unchanged.

A file counts as unchanged if its size, modification time, inode and status-change time are the same
(`stamp`; links are resolved). Anyone who may write a file can reset its modification time,
but not the status-change time, which the kernel maintains. New bytes in the same file, a new file
under the same name and a link to a new target are therefore all read again.

The checks protect against other users on the machine. A memo maps files to digests, and so decides which numbers are
shown for which weights. It is trusted only if it is a regular file owned by the user who reads it and no one else may
write it. An attacker who can act as that user can write results anyway. The checks do not protect against an
administrator, who can set the clock, or a file system whose server invents times. `reading_all` ignores all memos.
"""

import contextlib
import contextvars
import functools
import json
import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from vlprobe.errors import InvalidInput
from vlprobe.storage import files

Stamp = list[int]  # size, modification time in ns, inode, status-change time in ns
# A file changed later than this before it was read is not remembered: it may change again within
# one tick of its file system's clock (2 s on FAT), with the same stamp.
SETTLED_NS = 2_000_000_000

_reads_all = contextvars.ContextVar("reads_all", default=False)


@contextlib.contextmanager
def reading_all() -> Iterator[None]:
    """Ignore cached values inside the block. Values computed in the block are cached again."""
    token = _reads_all.set(True)
    try:
        yield
    finally:
        _reads_all.reset(token)


def is_used() -> bool:
    """Return whether cached values may be used, which is not the case inside a `reading_all` block."""
    return not _reads_all.get()


def stamp(path: str | Path) -> Stamp:
    """Return a stamp that changes when a file or folder is modified or replaced. Raises OSError."""
    return stamp_of(os.stat(path))


def stamp_of(status: os.stat_result) -> Stamp:
    """Return the stamp for a file or folder with the given status."""
    return [status.st_size, status.st_mtime_ns, status.st_ino, status.st_ctime_ns]


def is_settled(file_stamp: Stamp, began: int) -> bool:
    """Return whether a file cannot have changed while it was read, judging by a stamp taken afterwards.

    Args:
        file_stamp: The file's stamp, from `stamp`.
        began: When reading began, in nanoseconds since 1970.
    """
    return file_stamp[3] + SETTLED_NS < began


def read(file: Path) -> dict[str, Any]:
    """Read a memo. Callers must not modify the result, which is empty if the file is missing or not trusted."""
    try:
        status = os.lstat(file)
        if not _is_private(status):
            return {}
        return _parsed(file, status.st_size, status.st_mtime_ns, status.st_ino)
    except OSError:
        return {}


def _is_private(status: os.stat_result) -> bool:
    """Return whether a file is regular, belongs to this user, and cannot be written by anyone else."""
    if not stat.S_ISREG(status.st_mode):
        return False
    return not hasattr(os, "getuid") or (
        status.st_uid == os.getuid() and not status.st_mode & (stat.S_IWGRP | stat.S_IWOTH)
    )


# Each page needs it: 30,000 digests of photographs take 33 ms to parse
@functools.lru_cache(maxsize=4)
def _parsed(file: Path, n_bytes: int, changed: int, inode: int) -> dict[str, Any]:
    try:
        content = json.loads(file.read_bytes())
    except (ValueError, RecursionError):
        return {}
    return content if isinstance(content, dict) else {}


def write(file: Path, rows: dict[str, Any], n_rows: int) -> None:
    """Write the last `n_rows` rows to a memo file, replacing it. Does nothing on a read-only server."""
    newest = dict(list(rows.items())[-n_rows:])
    with contextlib.suppress(InvalidInput), files.atomic_writer(file, durable=False) as handle:
        if hasattr(os, "fchmod"):
            os.fchmod(handle.fileno(), 0o600)
        handle.write(json.dumps(newest).encode())
