"""Entry point for `python -m vlprobe`, which is the same as the `vlprobe` command."""

import atexit
import contextlib
import gc
import os
import sys
from typing import NoReturn

from vlprobe.cli.main import main

# Objects between garbage collections; importing torch and OpenCLIP makes a million
ALLOCATIONS = 100_000


def run() -> None:
    """Run the command line and exit the process.

    Garbage collection is made rare, because the imports create a million objects. Once all files are closed and
    written, the process exits at once: deleting the objects would take a second, and DuckDB would print 41 lines about
    leaks to stderr.
    """
    status: object = 1  # used for an unexpected error
    gc.set_threshold(ALLOCATIONS, *gc.get_threshold()[1:])
    # Registered first, so called last, after threads and other exit handlers
    atexit.register(lambda: _end(status))
    try:
        main()
    except SystemExit as ended:
        status = ended.code


def _end(status: object) -> NoReturn:
    """End the process with the status or message from a SystemExit, without deleting the imported objects."""
    if isinstance(status, str):
        sys.stderr.write(f"{status}\n")
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError):  # the reader of a pipe is gone
            stream.flush()
    os._exit(status if isinstance(status, int) else int(status is not None))


if __name__ == "__main__":
    run()
