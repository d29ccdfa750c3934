"""Two scenes of the demo world that differ in one thing, and one caption for each: EqBen's minimal
pairs.

Both scenes are owned by one split, so that a held-out pair holds nothing that a model was trained
on. They share seed and room: every pixel that does not show what was changed is the same in both
pictures.
"""

import random
from collections.abc import Iterator
from dataclasses import dataclass, replace

from vlprobe.datasets.world.scene import (
    BACKGROUNDS,
    COLORS,
    COUNTS,
    OBJECTS,
    OPPOSITE,
    RELATIONS,
    Group,
    Scene,
    pick,
    split_of,
    stream,
)
from vlprobe.datasets.world.wording import Wording, wording

KINDS = ("object", "color", "number", "location", "swap")
_FIELDS = {
    "object": "object",
    "color": "color",
    "number": "count",
}  # of the one group that such a contrast changes


@dataclass(frozen=True, slots=True)
class Contrast:
    """A scene, the same with one thing changed, and the way in which both are told."""

    kind: str
    scene: Scene
    changed: Scene
    wording: Wording

    @property
    def captions(self) -> tuple[str, str]:
        """Return the captions of the scene and of the changed scene; each is false of the other."""
        return self.wording.caption_of(self.scene), self.wording.caption_of(self.changed)


def contrasts(kind: str, split: str, n: int) -> list[Contrast]:
    """The first n of a split; no two hold the same two specifications.

    Args:
        kind: object, color and number change one group; location puts both groups in each other's
            place; swap exchanges the colours of two groups of different objects.
        split: The one that owns both scenes.
        n: How many; a longer list begins with the shorter one.
    """
    by_specifications: dict[frozenset[str], Contrast] = {}
    index = 0
    while len(by_specifications) < n:
        contrast = _contrast(kind, split, stream("contrast", kind, split, index))
        by_specifications.setdefault(
            frozenset((contrast.scene.specification, contrast.changed.specification)),
            contrast,
        )
        index += 1
    return list(by_specifications.values())


def _contrast(kind: str, split: str, rng: random.Random) -> Contrast:
    # Settled before anything is refused, or structures that can be changed in many ways would crowd
    # out the others.
    relation, room = _structure(kind, rng)
    while True:
        drawn = _scene(relation, room, rng)
        if not _is_clear(kind, drawn):
            continue
        # One pair of scenes in a hundred is owned by a split that owns a tenth: look before all
        # backgrounds.
        owned = [
            (scene, changed)
            for scene in (replace(drawn, background=background) for background in BACKGROUNDS)
            if split_of(scene) == split
            for changed in _changes(kind, scene)
            if split_of(changed) == split and _is_clear(kind, changed)
        ]
        if owned:
            scene, changed = pick(rng, owned)
            return Contrast(kind, scene, changed, wording(scene, rng, counted=kind == "number"))


def _structure(kind: str, rng: random.Random) -> tuple[str, int]:
    """The relation, none where there is one group, and the room of every group.

    Fewer than half of a list have one group: of number, a split owns only about 70 such pairs that
    differ.
    """
    paired = kind in ("location", "swap") or rng.random() < 0.5
    # In front or behind there is one thing each.
    relations = RELATIONS[:4] if kind == "number" else RELATIONS
    relation = pick(rng, relations) if paired else ""
    if relation in ("front", "behind"):
        return relation, 1
    return relation, pick(rng, COUNTS[1:] if kind == "number" else COUNTS)


def _scene(relation: str, room: int, rng: random.Random) -> Scene:
    """A scene without background. Groups have equal room, so that they can change places."""
    groups = [
        Group(pick(rng, OBJECTS), pick(rng, COLORS), 1 + int(rng.random() * room), room)
        for _ in range(2 if relation else 1)
    ]
    return Scene("", tuple(groups), relation, int(rng.random() * 2**32))


def _is_clear(kind: str, scene: Scene) -> bool:
    """Return whether a caption can distinguish the groups."""
    if len(scene.groups) == 1:
        return True
    target, landmark = scene.groups
    if kind == "swap":
        return target.object != landmark.object and target.color != landmark.color
    return (target.object, target.color) != (landmark.object, landmark.color)


def _changes(kind: str, scene: Scene) -> Iterator[Scene]:
    if kind == "location":
        yield replace(scene, relation=OPPOSITE[scene.relation])
    elif kind == "swap":
        target, landmark = scene.groups
        yield replace(
            scene,
            groups=(replace(target, color=landmark.color), replace(landmark, color=target.color)),
        )
    else:
        field = _FIELDS[kind]
        for at, group in enumerate(scene.groups):
            for value in _values(kind, group):
                changed = replace(group, **{field: value})
                yield replace(scene, groups=(*scene.groups[:at], changed, *scene.groups[at + 1 :]))


def _values(kind: str, group: Group) -> list:
    """Return the values that can replace the group's object, color or count."""
    if kind == "color":
        return [color for color in COLORS if color != group.color]
    if kind == "number":
        return [count for count in COUNTS[: group.room] if count != group.count]
    # "A person in red" has its words in another order than "a red dog".
    return [
        name for name in OBJECTS if "person" not in (name, group.object) and name != group.object
    ]
