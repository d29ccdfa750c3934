"""Entry point for `python -m vlprobe`, which is the same as the `vlprobe` command."""

import atexit
import gc
import os
import sys

from vlprobe.cli.main import main

# Objects between garbage collections; importing torch and OpenCLIP makes a million
ALLOCATIONS = 100_000


def run() -> None:
    """Run the command line and exit the process.

    Garbage collection is made rare, because the imports create a million objects. At the exit, they are exempt from the
    last collection, which would take a second. What stdout cannot take any more (the disk is full, the reader of the
    pipe is gone) is dropped: Python would report it a second time and exit with 120.
    """
    gc.set_threshold(ALLOCATIONS, *gc.get_threshold()[1:])
    atexit.register(gc.freeze)
    try:
        main()
    finally:
        try:
            sys.stdout.flush()
        except OSError:
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


if __name__ == "__main__":
    run()
