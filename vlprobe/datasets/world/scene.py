"""Scenes in the demo world. A scene is a short specification that determines the picture and its captions.

A split owns specifications, not pictures. The hash of the specification's text decides whether a scene may be used
for training, so that no held-out scene (or pair of scenes made from one) can be in the training split, however many
scenes are drawn.

The things in a scene are placed in square boxes that never touch, except for a thing in front of another.
"""

import hashlib
import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

from vlprobe.perturb.flips import VOCABULARY

# Words that LGIP exchanges, so that a drawn scene can show every changed caption
OBJECTS, COLORS = VOCABULARY["object"], VOCABULARY["color"]
COUNTS = (1, 2, 3, 4, 5)
RELATIONS = ("left", "right", "above", "below", "front", "behind")
BACKGROUNDS = ("street", "room", "meadow", "beach", "sea", "sky")
OPPOSITE = {
    "left": "right",
    "right": "left",
    "above": "below",
    "below": "above",
    "front": "behind",
    "behind": "front",
}
# Percent of all specifications
SPLITS = {"train": range(0, 80), "val": range(80, 90), "test": range(90, 100)}

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

    @property
    def specification(self) -> str:
        """Canonical text for the content of the scene; "b right of a" is written as "a left of b"."""
        names = [f"{group.count} {group.color} {group.object}" for group in self.groups]
        relation = self.relation
        if relation in ("right", "below", "behind"):
            names, relation = names[::-1], OPPOSITE[relation]
        return f"{self.background}: {f' {relation} '.join(names)}"


def stream(*key: object) -> random.Random:
    """Return a random stream that depends only on the key. Use `.random()`, which is stable across Python versions."""
    return random.Random("/".join(map(str, key)))


def pick(rng: random.Random, options: Sequence[T]) -> T:
    """Return one of the options, all equally likely."""
    return options[int(rng.random() * len(options))]


def split_of(scene: Scene) -> str:
    """Return the split that a scene belongs to: train, val or test. It depends only on the scene's specification."""
    digest = hashlib.blake2b(scene.specification.encode(), digest_size=4).digest()
    percent = int.from_bytes(digest, "big") % 100
    return next(name for name, owned in SPLITS.items() if percent in owned)


def draw(split: str, index: int) -> Scene:
    """Return the scene at an index in a split. Scenes at two indices may share a specification, but not a seed."""
    for attempt in range(1000):
        scene = _draw(stream("demo", split, index, attempt))
        if split_of(scene) == split:
            return scene
    # Unreachable: a tenth of all specifications fits.
    raise AssertionError(f"no valid scene for {split}/{index}")


def distinct(split: str, n: int) -> list[Scene]:
    """Return the first n scenes in a split that all have different specifications."""
    by_specification: dict[str, Scene] = {}
    index = 0
    while len(by_specification) < n:
        scene = draw(split, index)
        by_specification.setdefault(scene.specification, scene)
        index += 1
    return list(by_specification.values())


def _draw(rng: random.Random) -> Scene:
    background = pick(rng, BACKGROUNDS)
    relation = pick(rng, RELATIONS) if rng.random() < 0.62 else ""
    alone = relation in ("front", "behind")
    groups = [_group(rng, alone)]
    while relation and len(groups) < 2:
        second = _group(rng, alone)
        if (second.object, second.color) != (groups[0].object, groups[0].color):
            groups.append(second)
    return Scene(background, tuple(groups), relation, int(rng.random() * 2**32))


def _group(rng: random.Random, alone: bool) -> Group:
    name, color = pick(rng, OBJECTS), pick(rng, COLORS)
    count = 1 if alone or rng.random() < 0.2 else pick(rng, COUNTS)
    # Otherwise the size would reveal the count.
    spare = 0 if alone or rng.random() < 0.6 else pick(rng, COUNTS)
    return Group(name, color, count, max(count, spare))


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
    """Return the region of the picture that a group occupies: its kind, left, top, right and bottom."""
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
