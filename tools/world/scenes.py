"""Draw random scenes of the demo world, and decide which of them may be used for training.

A split owns specifications, not pictures. The hash of the specification's text decides whether a scene may be used
for training, so that no held-out scene (or pair of scenes made from one) can be in the training split, however many
scenes are drawn.
"""

import hashlib
import random

from vlprobe.datasets.world.scene import Group, Scene, pick, stream
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


def specification(scene: Scene) -> str:
    """Return canonical text for the content of a scene; "b right of a" is written as "a left of b"."""
    names = [f"{group.count} {group.color} {group.object}" for group in scene.groups]
    relation = scene.relation
    if relation in ("right", "below", "behind"):
        names, relation = names[::-1], OPPOSITE[relation]
    return f"{scene.background}: {f' {relation} '.join(names)}"


def split_of(scene: Scene) -> str:
    """Return the split that a scene belongs to: train, val or test. It depends only on the scene's specification."""
    digest = hashlib.blake2b(specification(scene).encode(), digest_size=4).digest()
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
        by_specification.setdefault(specification(scene), scene)
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
