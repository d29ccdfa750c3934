"""Kill runs at vulnerable points and resume them: 200 real SIGKILLs in seconds.

Each victim is a fork that runs the same request on a new cache. Half of the victims are killed right before or in the
middle of a random open, write, flush, rename or removal, the other half at a random moment. The resumed run starts from
the files of the victim; two victims with the same bytes on the disk are resumed once, since their files are identical.

Manual variant with new processes instead of forks, all metrics and parts of the default size (about ten minutes):

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
    """End this process with SIGKILL, which cannot be caught."""
    os.kill(os.getpid(), signal.SIGKILL)


def kill(
    folder: Path, request: Request, points: int, seed: int, processes: bool = False
) -> dict[str, object]:
    """Kill `points` runs and resume them. Return how many were killed and which resumed to different results."""
    forks.run(request, folder / "first")  # fills the caches of this process
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
        killed += code == -signal.SIGKILL  # a run that ended earlier is not killed
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
    """Run the slow manual variant."""
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("--points", type=int, default=200)
    parser.add_argument("--seed", type=int, default=SEED)
    parser.add_argument("--probe", default="eqben")
    parser.add_argument("--processes", action="store_true")
    given = parser.parse_args()
    if not given.processes:
        forks.quick(given.probe)
    run_request = forks.request(given.folder, given.probe)
    outcome = kill(given.folder, run_request, given.points, given.seed, given.processes)
    sys.stdout.write(json.dumps(outcome) + "\n")


if __name__ == "__main__":
    main()
