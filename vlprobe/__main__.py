"""`python -m vlprobe` is the command `vlprobe`."""

import atexit
import contextlib
import gc
import os
import sys
from typing import NoReturn

from vlprobe.cli.main import main

ALLOCATIONS = 100_000  # of objects between two garbage collections; importing torch and OpenCLIP makes a million


def run() -> None:
    """Run the command line as a process.

    Garbage collection is rare, because imports make a million objects. When everything is closed and written, the
    process ends at once: deleting the objects takes a second, and DuckDB prints 41 lines of leaks on stderr.
    """
    status: object = 1  # of an unexpected error
    gc.set_threshold(ALLOCATIONS, *gc.get_threshold()[1:])
    # Registered first, so called last, after threads and other exit handlers
    atexit.register(lambda: _end(status))
    try:
        main()
    except SystemExit as ended:
        status = ended.code


def _end(status: object) -> NoReturn:
    """End the process with the status or message of a SystemExit, without deleting the imported objects."""
    if isinstance(status, str):
        sys.stderr.write(f"{status}\n")
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError):  # the reader of a pipe is gone
            stream.flush()
    os._exit(status if isinstance(status, int) else int(status is not None))


if __name__ == "__main__":
    run()
