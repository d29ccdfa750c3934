"""The items of all demo datasets: their scenes, captions and tags, read from items.parquet.

`python -m tools.world.items` writes the file.
"""

from dataclasses import dataclass
from pathlib import Path

import pyarrow.parquet as pq

from vlprobe.datasets.world.scene import Group, Scene

FILE = Path(__file__).with_name("items.parquet")


@dataclass(frozen=True, slots=True)
class DrawnItem:
    """An item of a demo dataset before its pictures are drawn."""

    id: str
    captions: tuple[str, ...]
    foils: tuple[str, ...]
    tags: dict[str, str]
    scenes: tuple[Scene, ...]
    n_before: int  # number of scenes before the boundary of a video; 0: no video


def read(dataset: str) -> list[DrawnItem]:
    """Read the items of a dataset: `demo-train:pairs` has all pairs, in the order of their kinds."""
    rows = pq.read_table(FILE, filters=[("dataset", "==", dataset)]).drop_columns("dataset")
    return [
        DrawnItem(
            row["id"],
            tuple(row["captions"]),
            tuple(row["foils"]),
            dict(row["tags"]),
            tuple(
                Scene(**scene | {"groups": tuple(Group(**group) for group in scene["groups"])})
                for scene in row["scenes"]
            ),
            row["n_before"],
        )
        for row in rows.to_pylist()
    ]
