"""Scenes of the demo world: a scene is a short specification that determines the picture and its captions.

A split owns specifications, not pictures: the hash of the canonical text decides whether a scene
may be trained on, so that no held-out scene (or pair of scenes made from one) can be in the
training split, however many scenes are drawn.
"""

import hashlib
import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

OBJECTS = (
    "dog",
    "cat",
    "horse",
    "car",
    "bus",
    "train",
    "person",
    "bird",
    "boat",
    "bicycle",
    "truck",
)
COLORS = (
    "red",
    "blue",
    "green",
    "yellow",
    "black",
    "white",
    "brown",
    "gray",
    "orange",
    "pink",
    "purple",
)
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
SPLITS = {
    "train": range(0, 80),
    "val": range(80, 90),
    "test": range(90, 100),
}  # percent of all specifications

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Group:
    """Things of one kind and colour. `room` is the number of slots laid out, at least `count`."""

    object: str
    color: str
    count: int = 1
    room: int = 0

    @property
    def slots(self) -> int:
        """Two scenes that differ only in the count, and have equal room, show their common things
        in one place.
        """
        return max(self.count, self.room)


@dataclass(frozen=True, slots=True)
class Scene:
    """One or two groups before a background. `relation` says where the first group is, as seen from
    the second.

    The seed settles what captions do not speak of: exact places, sizes, facing, clouds. It is tied
    to places and never to objects or colours, so that a scene with one thing changed keeps every
    other pixel.
    """

    background: str
    groups: tuple[Group, ...]
    relation: str = ""
    seed: int = 0

    @property
    def specification(self) -> str:
        """Canonical text of the content; "a left of b" equals "b right of a"."""
        names = [f"{group.count} {group.color} {group.object}" for group in self.groups]
        relation = self.relation
        if relation in ("right", "below", "behind"):
            names, relation = names[::-1], OPPOSITE[relation]
        return f"{self.background}: {f' {relation} '.join(names)}"


def stream(*key: object) -> random.Random:
    """Return a random stream that depends only on the key; use `.random()`, which Python keeps stable."""
    return random.Random("/".join(map(str, key)))


def pick(rng: random.Random, options: Sequence[T]) -> T:
    """One of the options, all equally likely."""
    return options[int(rng.random() * len(options))]


def split_of(scene: Scene) -> str:
    """The split that owns the scene's specification: train, val or test."""
    digest = hashlib.blake2b(scene.specification.encode(), digest_size=4).digest()
    percent = int.from_bytes(digest, "big") % 100
    return next(name for name, owned in SPLITS.items() if percent in owned)


def draw(split: str, index: int) -> Scene:
    """The split's scene of that index; two indices may share a specification, not a seed."""
    for attempt in range(1000):
        scene = _draw(stream("demo", split, index, attempt))
        if split_of(scene) == split:
            return scene
    # Unreachable: a tenth of all specifications fits.
    raise AssertionError(f"no scene for {split}/{index}")


def distinct(split: str, n: int) -> list[Scene]:
    """The first n scenes of a split that have different specifications."""
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
    # Else the size would give the count away.
    spare = 0 if alone or rng.random() < 0.6 else pick(rng, COUNTS)
    return Group(name, color, count, max(count, spare))
