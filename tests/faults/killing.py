"""Kills runs where they hurt and resumes them: 200 real SIGKILLs in seconds.

Each victim is a fork that runs the same request on a fresh cache. Every second one is killed right before or in the
middle of a random one of its opens, writes, flushes, renames and removals, every other one at a random moment. What it
leaves on the disk is what a resumed run gets; two victims that left the same bytes are resumed once, since nothing else
tells them apart.

By hand, every process starting anew, all metrics and parts of the real size (about ten minutes):

    python -m tests.faults.killing FOLDER --processes --probe lgip --points 200 --seed 20261121
"""

import argparse
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

from tests.faults import forks
from vlprobe.runs.request import Request

SEED = 20261121


def die() -> None:
    """SIGKILL, which nothing can catch."""
    os.kill(os.getpid(), signal.SIGKILL)


def kill(
    folder: Path, request: Request, points: int, seed: int, processes: bool = False
) -> dict[str, object]:
    """Kills so many runs and resumes them; says how many were killed and which ended with other results."""
    forks.run(request, folder / "first")  # reads what is read once in a process
    began = time.monotonic()
    forks.run(request, folder / "whole")
    seconds = time.monotonic() - began
    whole = forks.results(folder / "whole")
    with forks.Operations(-1, die) as counted:
        forks.run(request, folder / "counted")
    rng = random.Random(seed)
    killed, different, resumed = 0, [], {}
    while killed < points:
        cache = folder / "killed"
        cache.mkdir()
        at = -1 if processes or killed % 2 else rng.randrange(counted.count)
        moment = rng.uniform(0, seconds + 4 * processes)
        code = (
            _process(request, cache, moment)
            if processes
            else forks.ended(_victim(request, cache, at, moment))
        )
        killed += code == -signal.SIGKILL  # a moment after the end kills nobody
        left = forks.state(cache)
        if left not in resumed:
            resumed[left] = f"at operation {at}" if at >= 0 else f"after {moment:.3f} s"
            if (
                forks.ended(forks.forked(lambda cache=cache: forks.run(request, cache)))
                or forks.results(cache) != whole
            ):
                different.append(resumed[left])
        shutil.rmtree(cache)
    return {
        "killed": killed,
        "operations": counted.count,
        "states": len(resumed),
        "different": different,
    }


def _victim(request: Request, cache: Path, operation: int, moment: float) -> int:
    def suffer() -> None:
        with forks.Operations(operation, die):
            forks.run(request, cache)

    pid = forks.forked(suffer)
    if operation < 0:
        time.sleep(moment)
        os.kill(pid, signal.SIGKILL)
    return pid


def _process(request: Request, cache: Path, moment: float) -> int:
    words = [
        "run",
        "--model",
        request.models[0],
        "--dataset",
        request.dataset,
        "--probe",
        request.probe,
        "--no-doctor",
    ]
    child = subprocess.Popen(
        [sys.executable, "-m", "vlprobe", "--cache", str(cache), *words], stdout=subprocess.DEVNULL
    )
    time.sleep(moment)
    child.kill()
    return child.wait()


def main() -> None:
    """The slow variant, by hand."""
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("--points", type=int, default=200)
    parser.add_argument("--seed", type=int, default=SEED)
    parser.add_argument("--probe", default="eqben")
    parser.add_argument("--processes", action="store_true")
    given = parser.parse_args()
    if not given.processes:
        forks.quick(given.probe)
    asked = forks.request(given.folder, given.probe)
    said = kill(given.folder, asked, given.points, given.seed, given.processes)
    sys.stdout.write(json.dumps(said) + "\n")


if __name__ == "__main__":
    main()
