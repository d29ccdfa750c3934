"""Child processes that run a module from this copy of vlprobe and import nothing from the current folder."""

import os
import subprocess
import sys
from pathlib import Path
from typing import IO

# As in Popen: subprocess.PIPE, an open file, or None to inherit from this process
Stream = int | IO[bytes] | None


def start(
    module: str, *arguments: str, stdin: Stream = None, stdout: Stream = None, stderr: Stream = None
) -> subprocess.Popen[bytes]:
    """Start `python -m MODULE ARGUMENTS...` in a new session. Raises OSError if the process cannot be started."""
    return subprocess.Popen(
        [sys.executable, "-P", "-m", module, *arguments],
        env=environment(),
        stdin=stdin,
        stdout=stdout,
        stderr=stderr,
        start_new_session=True,
    )


def environment() -> dict[str, str]:
    """Return this process's environment variables, extended so that `python -m` finds this copy of
    vlprobe from any folder.
    """
    variables = dict(os.environ)
    root = Path(__file__).resolve().parents[2]
    # A checkout must be found even if another copy is installed
    if root.name not in ("site-packages", "dist-packages"):
        search_path = variables.get("PYTHONPATH")
        variables["PYTHONPATH"] = f"{root}{os.pathsep}{search_path}" if search_path else str(root)
    return variables
