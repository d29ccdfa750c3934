"""Runs on a disk that becomes full at each write in turn, and with a limit on the file size."""

import errno
import os
import resource
import shutil
from pathlib import Path

from tests.faults import forks
from vlprobe.errors import InvalidInput
from vlprobe.runs.request import Request


def full() -> None:
    """Raise the error of a full disk."""
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def fill(folder: Path, request: Request, stride: int = 1) -> dict[str, object]:
    """Run with a disk that is full from the n-th write on, for every n or every `stride`-th, and again with free space.

    Report each n at which the error was not one line, a temporary file remained, or the resumed results differ.
    """
    forks.run(request, folder / "whole")
    whole = forks.results(folder / "whole")
    growing = ("open", "fsync", "replace", "mkdir")  # removing needs no space
    faulty, resumed, at = [], set(), 0
    while True:
        cache = folder / f"full-{at}"
        cache.mkdir()
        with forks.Operations(at, full, lasting=True, names=growing) as operations:
            message = _error_text(request, cache)
        if message is None and operations.count <= at:
            return {"operations": operations.count, "states": len(resumed), "faulty": faulty}
        if (
            message is None
            or "No space left" not in message
            or "\n" in message
            or list(cache.rglob("*.tmp"))
        ):
            faulty.append(f"write {at}: {message}")
        left = forks.state(cache)
        if left not in resumed:
            resumed.add(left)
            forks.run(request, cache)
            if forks.results(cache) != whole:
                faulty.append(f"write {at}: other results after it")
        shutil.rmtree(cache)
        at += stride


def limit(folder: Path, request: Request) -> dict[str, object]:
    """Run in processes with a maximum file size (RLIMIT_FSIZE), from 0 bytes to the size of the largest file."""
    forks.run(request, folder / "whole")
    whole = forks.results(folder / "whole")
    sizes = sorted(
        {path.stat().st_size for path in (folder / "whole").rglob("*") if path.is_file()}
    )
    faulty = []
    for size in sizes[:-1]:
        cache = folder / f"limit-{size}"

        def bounded(cache: Path = cache, size: int = size) -> None:
            resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))  # Python ignores SIGXFSZ
            message = _error_text(request, cache)
            os._exit(3 if message and "too large" in message and "\n" not in message else 4)

        code = forks.ended(forks.forked(bounded))
        forks.run(request, cache)
        if code != 3 or list(cache.rglob("*.tmp")) or forks.results(cache) != whole:
            faulty.append(f"{size} bytes: exit code {code}")
        shutil.rmtree(cache)
    return {"sizes": len(sizes) - 1, "faulty": faulty}


def _error_text(request: Request, cache: Path) -> str | None:
    try:
        forks.run(request, cache)
    except InvalidInput as error:
        return str(error)
    return None
