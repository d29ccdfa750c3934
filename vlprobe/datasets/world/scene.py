"""Scenes in the demo world. A scene is a short specification that determines its picture.

The things in a scene are placed in square boxes that never touch, except for a thing in front of another.
`tools/world` makes the scenes and their captions; `items.parquet` holds those of all demo datasets.
"""

import itertools
import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Group:
    """Equal things in a scene, such as three red dogs. `room` is the minimum number of slots for them."""

    object: str
    color: str
    count: int = 1
    room: int = 0

    @property
    def slots(self) -> int:
        """Number of slots. If two scenes differ only in the count and have the same room, the things in both scenes are
        in the same places.
        """
        return max(self.count, self.room)


@dataclass(frozen=True, slots=True)
class Scene:
    """One or two groups in front of a background. `relation` is the position of the first group relative to the second.

    The seed determines everything that captions do not mention: exact places, sizes, directions and clouds. These
    depend on places and never on objects or colors, so that all other pixels stay the same when one thing in a scene
    changes.
    """

    background: str
    groups: tuple[Group, ...]
    relation: str = ""
    seed: int = 0


def stream(*key: object) -> random.Random:
    """Return a random stream that depends only on the key. Use `.random()`, which is stable across Python versions."""
    return random.Random("/".join(map(str, key)))


def pick(rng: random.Random, options: Sequence[T]) -> T:
    """Return one of the options, all equally likely."""
    return options[int(rng.random() * len(options))]


SIZE = 224  # pixels a side
HORIZON = {"street": 116, "room": 116, "meadow": 100, "beach": 98, "sea": 66, "sky": SIZE}
_GAP = 5  # pixels between boxes, at least
_TOP = {"sky": 8}  # highest pixel of a thing if nothing must be above another
_ROWS = {
    "all": {1: [(1,)], 2: [(2,)], 3: [(3,), (1, 2), (2, 1)], 4: [(2, 2)], 5: [(3, 2), (2, 3)]},
    "side": {
        1: [(1,)],
        2: [(1, 1)],
        3: [(2, 1), (1, 2), (1, 1, 1)],
        4: [(2, 2)],
        5: [(2, 1, 2), (2, 2, 1), (1, 2, 2)],
    },
    "band": {1: [(1,)], 2: [(2,)], 3: [(3,)], 4: [(4,), (2, 2)], 5: [(3, 2), (2, 3)]},
}
_LARGEST = 108


@dataclass(frozen=True, slots=True)
class Placement:
    """Position, size and direction of a thing in a picture, in pixels. `slot` is its number within the group."""

    group: int
    slot: int
    x: int
    y: int
    size: int
    faces_left: bool

    @property
    def box(self) -> tuple[int, int, int, int]:
        """Left, top, right and bottom edges in pixels."""
        return self.x, self.y, self.x + self.size, self.y + self.size


def facing(scene: Scene) -> str:
    """Return the direction that the things in a scene face: left, right, or mixed."""
    return pick(stream(scene.seed, "facing"), ("left", "right", "mixed"))


def placements(scene: Scene) -> list[Placement]:
    """Return the placement of everything in a scene in drawing order, farthest first."""
    if scene.relation in ("front", "behind"):
        return _overlapping_placements(scene)
    groups = (_group_placements(scene, index) for index in range(len(scene.groups)))
    placements = itertools.chain.from_iterable(groups)
    return sorted(placements, key=lambda placement: (placement.y + placement.size, placement.x))


def _faces_left(scene: Scene, rng: random.Random) -> bool:
    is_left = rng.random() < 0.5
    return is_left if facing(scene) == "mixed" else facing(scene) == "left"


def _region(scene: Scene, index: int) -> tuple[str, int, int, int, int]:
    """Return the region of the picture that a group occupies: its kind, left, top, right and bottom."""
    low, high, middle = 6, SIZE - 6, SIZE // 2
    top = _TOP.get(scene.background, 62)
    is_left_or_top = (scene.relation in ("left", "above")) == (index == 0)
    start, end = (low, middle - _GAP) if is_left_or_top else (middle + _GAP, high)
    match scene.relation:
        case "left" | "right":
            return "side", start, top, end, high
        case "above" | "below":
            return "band", low, start, high, end
    return "all", low, top, high, high


def _group_placements(scene: Scene, index: int) -> list[Placement]:
    kind, left, top, right, bottom = _region(scene, index)
    group = scene.groups[index]
    rng = stream(scene.seed, "rows", left, top, group.slots)
    rows = pick(rng, _ROWS[kind][group.slots])
    height = (bottom - top - _GAP * (len(rows) - 1)) // len(rows)
    cells = []
    for row, columns in enumerate(rows):
        width = (right - left - _GAP * (columns - 1)) // columns
        y = top + row * (height + _GAP)
        cells += [(left + column * (width + _GAP), y, width, height) for column in range(columns)]
    largest = min(_LARGEST, *(min(width, height) for _, _, width, height in cells))
    order = sorted(range(len(cells)), key=lambda _: rng.random())
    placements = []
    for slot in order[: group.count]:
        x, y, width, height = cells[slot]
        jitter = stream(scene.seed, "slot", left, top, group.slots, slot)
        size = int(largest * pick(jitter, (0.9, 0.95, 1.0)))
        x += int(jitter.random() * (width - size + 1))
        y += int(jitter.random() * (height - size + 1))
        placements.append(Placement(index, slot, x, y, size, _faces_left(scene, jitter)))
    return placements


def _overlapping_placements(scene: Scene) -> list[Placement]:
    rng = stream(scene.seed, "depth")
    size = 102
    aside = int(26 + 10 * rng.random()) * (1 if rng.random() < 0.5 else -1)
    nearer = int(22 + 6 * rng.random())
    top = _TOP.get(scene.background, 62)
    x = int(max(6, 6 - aside) + rng.random() * (SIZE - 12 - size - abs(aside)))
    y = int(top + rng.random() * (SIZE - 6 - top - size - nearer))
    front = 0 if scene.relation == "front" else 1
    return [
        Placement(1 - front, 0, x, y, size, _faces_left(scene, stream(scene.seed, "back"))),
        Placement(
            front, 0, x + aside, y + nearer, size, _faces_left(scene, stream(scene.seed, "front"))
        ),
    ]
