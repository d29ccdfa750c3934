"""`python -m vlprobe` is the command `vlprobe`."""

import atexit
import contextlib
import gc
import os
import sys
from typing import NoReturn

from vlprobe.cli.main import main

ALLOCATIONS = 100_000  # of objects between two looks for garbage; importing torch and OpenCLIP makes a million


def run() -> None:
    """The command in a process of its own.

    It does not look through all that was imported again and again. When all is closed and written, it
    ends at once: deleting a million objects takes a second, and DuckDB prints 41 lines of leaks on stderr.
    """
    status: object = 1  # of an error that nobody expected
    gc.set_threshold(ALLOCATIONS, *gc.get_threshold()[1:])
    # First registered, last called: after threads and all else that ends.
    atexit.register(lambda: _end(status))
    try:
        main()
    except SystemExit as ended:
        status = ended.code


def _end(status: object) -> NoReturn:
    """End the process with what a SystemExit says, without deleting what is imported."""
    if isinstance(status, str):
        sys.stderr.write(f"{status}\n")
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError):  # the reader of a pipe is gone
            stream.flush()
    os._exit(status if isinstance(status, int) else int(status is not None))


if __name__ == "__main__":
    run()
