"""Every scene of this folder in one process that forks: `python -m tests.faults.scenes FOLDER` prints its findings.

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
    """All scenes, each in a folder of its own: so many kills, and a disk that is full at every so-manieth write."""
    places = {name: folder / name for name in ("killing", "filling", "limit", "crowding")}
    for place in places.values():
        place.mkdir()
    forks.quick("eqben")
    asked = forks.request(folder, "eqben")
    forks.run(asked, folder / "first")  # reads what is read once in a process
    gc.freeze()  # what is there now is not looked at in the children, and so not copied
    found = {
        "killing": killing.kill(places["killing"], asked, points, killing.SEED),
        "filling": filling.fill(places["filling"], asked, stride),
        "limit": filling.limit(places["limit"], asked),
        "crowding": crowding.crowd(places["crowding"], "eqben"),
    }
    sys.stdout.write(json.dumps(found) + "\n")


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("--points", type=int, default=POINTS)
    parser.add_argument("--stride", type=int, default=STRIDE)
    arguments = parser.parse_args()
    main(arguments.folder, arguments.points, arguments.stride)
