"""Where things stand in a scene: square boxes that never touch, except where one thing is in front of another."""

import random
from dataclasses import dataclass

from vlprobe.datasets.world.scene import Scene, pick, stream

SIZE = 224  # pixels a side
HORIZON = {"street": 116, "room": 116, "meadow": 100, "beach": 98, "sea": 66, "sky": SIZE}
_GAP = 5  # pixels between boxes, at least
_TOP = {"sky": 8}  # highest pixel where a thing may begin when nothing has to be above another
_ROWS = {
    "all": {1: [(1,)], 2: [(2,)], 3: [(3,), (1, 2), (2, 1)], 4: [(2, 2)], 5: [(3, 2), (2, 3)]},
    "side": {1: [(1,)], 2: [(1, 1)], 3: [(2, 1), (1, 2), (1, 1, 1)], 4: [(2, 2)], 5: [(2, 1, 2), (2, 2, 1), (1, 2, 2)]},
    "band": {1: [(1,)], 2: [(2,)], 3: [(3,)], 4: [(4,), (2, 2)], 5: [(3, 2), (2, 3)]},
}
_LARGEST = 108


@dataclass(frozen=True, slots=True)
class Place:
    """The square of one thing, in pixels, and which way it faces; `slot` is its number among the group's places."""

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
    """Which way all things face: left, right, or mixed."""
    return pick(stream(scene.seed, "facing"), ("left", "right", "mixed"))


def places(scene: Scene) -> list[Place]:
    """The place of every thing, farthest first: the order to draw in."""
    if scene.relation in ("front", "behind"):
        return _one_before_another(scene)
    found = [place for index in range(len(scene.groups)) for place in _group_places(scene, index)]
    return sorted(found, key=lambda place: (place.y + place.size, place.x))


def _faces_left(scene: Scene, rng: random.Random) -> bool:
    own = rng.random() < 0.5
    return own if facing(scene) == "mixed" else facing(scene) == "left"


def _region(scene: Scene, index: int) -> tuple[str, int, int, int, int]:
    """Kind, left, top, right, bottom of the part of the picture that a group has for itself."""
    low, high, middle = 6, SIZE - 6, SIZE // 2
    top = _TOP.get(scene.background, 62)
    first = (scene.relation in ("left", "above")) == (index == 0)
    match scene.relation:
        case "left" | "right":
            return ("side", low, top, middle - _GAP, high) if first else ("side", middle + _GAP, top, high, high)
        case "above" | "below":
            return ("band", low, low, high, middle - _GAP) if first else ("band", low, middle + _GAP, high, high)
    return "all", low, top, high, high


def _group_places(scene: Scene, index: int) -> list[Place]:
    kind, left, top, right, bottom = _region(scene, index)
    group = scene.groups[index]
    rng = stream(scene.seed, "rows", left, top, group.places)
    rows = pick(rng, _ROWS[kind][group.places])
    height = (bottom - top - _GAP * (len(rows) - 1)) // len(rows)
    cells = []
    for row, columns in enumerate(rows):
        width = (right - left - _GAP * (columns - 1)) // columns
        y = top + row * (height + _GAP)
        cells += [(left + column * (width + _GAP), y, width, height) for column in range(columns)]
    largest = min(_LARGEST, *(min(width, height) for _, _, width, height in cells))
    order = sorted(range(len(cells)), key=lambda _: rng.random())
    found = []
    for slot in order[: group.count]:
        x, y, width, height = cells[slot]
        jitter = stream(scene.seed, "slot", left, top, group.places, slot)
        size = int(largest * pick(jitter, (0.9, 0.95, 1.0)))
        x += int(jitter.random() * (width - size + 1))
        y += int(jitter.random() * (height - size + 1))
        found.append(Place(index, slot, x, y, size, _faces_left(scene, jitter)))
    return found


def _one_before_another(scene: Scene) -> list[Place]:
    rng = stream(scene.seed, "depth")
    size = 102
    aside = int(26 + 10 * rng.random()) * (1 if rng.random() < 0.5 else -1)
    nearer = int(22 + 6 * rng.random())
    top = _TOP.get(scene.background, 62)
    x = int(max(6, 6 - aside) + rng.random() * (SIZE - 12 - size - abs(aside)))
    y = int(top + rng.random() * (SIZE - 6 - top - size - nearer))
    front = 0 if scene.relation == "front" else 1
    return [
        Place(1 - front, 0, x, y, size, _faces_left(scene, stream(scene.seed, "back"))),
        Place(front, 0, x + aside, y + nearer, size, _faces_left(scene, stream(scene.seed, "front"))),
    ]
