"""`python -m vlprobe` is the command `vlprobe`."""

import atexit
import gc

from vlprobe.cli.main import main
from vlprobe.dashboard.process import leave

ALLOCATIONS = 100_000  # of objects between two looks for garbage; importing torch and OpenCLIP makes a million


def run() -> None:
    """The command in a process of its own.

    It does not look through all that was imported again and again, and when all is closed and written it
    ends at once: taking a million objects apart takes a second, and DuckDB tells on stderr what of it is left.
    """
    status: object = 1  # of an error that nobody expected
    gc.set_threshold(ALLOCATIONS, *gc.get_threshold()[1:])
    # First registered, last called: after threads and all else that ends.
    atexit.register(lambda: leave(status))
    try:
        main()
    except SystemExit as ended:
        status = ended.code


if __name__ == "__main__":
    run()
