"""Every scene of this folder in one process that forks: `python -m tests.faults.scenes FOLDER` prints its findings."""

import gc
import json
import sys
from pathlib import Path

from tests.faults import crowding, filling, forks, killing

POINTS = 200


def main(folder: Path) -> None:
    """All scenes, each in a folder of its own."""
    places = {name: folder / name for name in ("killing", "filling", "limit", "crowding")}
    for place in places.values():
        place.mkdir()
    forks.quick("eqben")
    asked = forks.request(folder, "eqben")
    forks.run(asked, folder / "first")  # reads what is read once in a process
    gc.freeze()  # what is there now is not looked at in the children, and so not copied
    found = {
        "killing": killing.kill(places["killing"], asked, POINTS, killing.SEED),
        "filling": filling.fill(places["filling"], asked),
        "limit": filling.limit(places["limit"], asked),
        "crowding": crowding.crowd(places["crowding"], "eqben"),
    }
    sys.stdout.write(json.dumps(found) + "\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
