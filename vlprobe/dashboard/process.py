"""The process of a server, in which Streamlit runs every page in a thread of its own: it has few heaps,
one thread a matrix product, and waits for no thread at its end.

The C library's allocator gives threads that allocate at once up to eight heaps a processor core. Each
keeps what was freed in it for the threads that come back to it, in pieces that cannot be returned to the
system: with a hundred visitors that was more than what is in use, and rose over half an hour
(`benchmarks/RESULTS.md`). Threads of Python wait for its interpreter anyway, so that few heaps are no
queue.
"""

import contextlib
import ctypes
import gc
import os
import sys
from typing import NoReturn

from threadpoolctl import threadpool_limits

HEAPS = 2
M_ARENA_MAX = -8  # glibc's malloc.h


def limit_heaps() -> None:
    """At most HEAPS heaps from now on, where the C library is glibc; to be called early. Jobs, which
    are processes of their own, keep theirs.
    """
    if sys.platform != "linux":
        return
    with contextlib.suppress(OSError, AttributeError):  # musl, say, has no mallopt, nor such heaps
        ctypes.CDLL(None).mallopt(M_ARENA_MAX, HEAPS)


def limit_threads() -> None:
    """One thread a matrix product from now on: several wait for each other at full load, and visitors
    with them.
    """
    import numpy  # noqa: F401 - what is not loaded yet would not be limited

    threadpool_limits(1, "blas")


def keep_what_is_loaded() -> None:
    """What was imported until now stays to the end of the process: later collections of garbage do not
    look at it again, for which every page that is being drawn would wait.
    """
    gc.collect()
    gc.freeze()


def leave(code: object) -> NoReturn:
    """Ends the process with what a SystemExit says, and waits for no thread.

    Python's own end stops the threads of pages that are being drawn wherever they are: where that is
    inside of Arrow, the library waits for ever for a worker that is gone, and the server does not end.
    Nothing is lost: what is stored is written by jobs, which are processes of their own, or renamed
    when it is whole.
    """
    if isinstance(code, str):
        sys.stderr.write(f"{code}\n")
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError):  # whoever read it is gone
            stream.flush()
    os._exit(code if isinstance(code, int) else int(code is not None))
