"""Few heaps for the many threads of a server: Streamlit runs every page in a thread of its own.

The C library's allocator gives threads that allocate at once up to eight heaps a processor core. Each
keeps what was freed in it for the threads that come back to it, in pieces that cannot be returned to the
system: with a hundred visitors that was twice what is in use, and rose for as long as they came
(`benchmarks/RESULTS.md`). Threads of Python wait for its interpreter anyway, so that few heaps are no
queue.
"""

import contextlib
import ctypes
import sys

ARENAS = 2
M_ARENA_MAX = -8  # glibc's malloc.h


def limit() -> None:
    """At most ARENAS heaps from now on, where the C library is glibc; to be called early. Jobs, which
    are processes of their own, keep theirs.
    """
    if sys.platform != "linux":
        return
    with contextlib.suppress(OSError, AttributeError):  # musl, say, has no mallopt, nor such heaps
        ctypes.CDLL(None).mallopt(M_ARENA_MAX, ARENAS)
