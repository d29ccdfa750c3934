"""Run every scene of this folder in one forking process: `python -m tests.faults.scenes FOLDER` prints the outcomes.

python -m tests.faults.scenes FOLDER --points 200 --stride 1    # as `pytest -m full` does
"""

import argparse
import gc
import json
import sys
from pathlib import Path

from tests.faults import crowding, filling, forks, killing

POINTS, STRIDE = 10, 12  # of the default suite
FULL_POINTS, FULL_STRIDE = 200, 1


def main(folder: Path, points: int, stride: int) -> None:
    """Run all scenes, each in a separate folder: `points` kills, and a disk that is full at every `stride`-th write."""
    places = {name: folder / name for name in ("killing", "filling", "limit", "crowding")}
    for place in places.values():
        place.mkdir()
    forks.quick("eqben")
    request = forks.request(folder, "eqben")
    forks.run(request, folder / "first")  # fills the caches of this process
    gc.freeze()  # the children's garbage collector skips these objects, so their memory is not copied
    outcomes = {
        "killing": killing.kill(places["killing"], request, points, killing.SEED),
        "filling": filling.fill(places["filling"], request, stride),
        "limit": filling.limit(places["limit"], request),
        "crowding": crowding.crowd(places["crowding"], "eqben"),
    }
    sys.stdout.write(json.dumps(outcomes) + "\n")


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("--points", type=int, default=POINTS)
    parser.add_argument("--stride", type=int, default=STRIDE)
    arguments = parser.parse_args()
    main(arguments.folder, arguments.points, arguments.stride)
