"""Processes that run a module of this vlprobe, wherever it stands, and nothing that lies in the current folder."""

import os
import subprocess
import sys
from pathlib import Path


def start(module: str, *given: str, **how: object) -> subprocess.Popen:
    """Starts `python -m MODULE GIVEN...`; `how` is for Popen. Raises OSError where none can be started."""
    environment = dict(os.environ)
    root = Path(__file__).resolve().parents[2]
    if root.name not in ("site-packages", "dist-packages"):  # a checkout: found though another one is installed
        known = environment.get("PYTHONPATH")
        environment["PYTHONPATH"] = f"{root}{os.pathsep}{known}" if known else str(root)
    return subprocess.Popen([sys.executable, "-P", "-m", module, *given], env=environment, **how)
