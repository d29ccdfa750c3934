"""Placements in a scene: square boxes that never touch, except in front of one another."""

import random
from dataclasses import dataclass

from vlprobe.datasets.world.scene import Scene, pick, stream

SIZE = 224  # pixels a side
HORIZON = {"street": 116, "room": 116, "meadow": 100, "beach": 98, "sea": 66, "sky": SIZE}
_GAP = 5  # pixels between boxes, at least
_TOP = {"sky": 8}  # highest pixel where a thing may begin when nothing has to be above another
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
    """The square of one thing in pixels, and its direction; `slot` numbers it within its group."""

    group: int
    slot: int
    x: int
    y: int
    size: int
    faces_left: bool

    @property
    def box(self) -> tuple[int, int, int, int]:
        """Left, top, right, bottom."""
        return self.x, self.y, self.x + self.size, self.y + self.size


def facing(scene: Scene) -> str:
    """Return the direction that all things face: left, right, or mixed."""
    return pick(stream(scene.seed, "facing"), ("left", "right", "mixed"))


def placements(scene: Scene) -> list[Placement]:
    """The place of every thing, farthest first: the order to draw in."""
    if scene.relation in ("front", "behind"):
        return _overlapping_placements(scene)
    placements = [
        placement
        for index in range(len(scene.groups))
        for placement in _group_placements(scene, index)
    ]
    return sorted(placements, key=lambda placement: (placement.y + placement.size, placement.x))


def _faces_left(scene: Scene, rng: random.Random) -> bool:
    is_left = rng.random() < 0.5
    return is_left if facing(scene) == "mixed" else facing(scene) == "left"


def _region(scene: Scene, index: int) -> tuple[str, int, int, int, int]:
    """Kind, left, top, right, bottom of the part of the picture that a group has for itself."""
    low, high, middle = 6, SIZE - 6, SIZE // 2
    top = _TOP.get(scene.background, 62)
    is_left_or_top = (scene.relation in ("left", "above")) == (index == 0)
    match scene.relation:
        case "left" | "right":
            return (
                ("side", low, top, middle - _GAP, high)
                if is_left_or_top
                else ("side", middle + _GAP, top, high, high)
            )
        case "above" | "below":
            return (
                ("band", low, low, high, middle - _GAP)
                if is_left_or_top
                else ("band", low, middle + _GAP, high, high)
            )
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
            front,
            0,
            x + aside,
            y + nearer,
            size,
            _faces_left(scene, stream(scene.seed, "front")),
        ),
    ]
