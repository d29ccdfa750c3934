"""Two scenes of the demo world that differ in one thing, and one caption for each: EqBen's minimal
pairs.

Both scenes are owned by one split, so that a held-out pair holds nothing that a model was trained
on. They share seed and room: every pixel that does not show what was changed is the same in both
pictures.

Both captions say what their scene shows in one way, so that they differ in the words for what differs
and in no other. The grammar follows EqBen's figures 14 and 15 in our own words. Numbers are always words ("one",
never "a"), so that no article has to bend; a verb and a noun still agree with their number.
"""

import random
from collections.abc import Iterator
from dataclasses import dataclass, replace

from vlprobe.datasets.world import captions
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

# Slots: {a} and {b} are the groups with their numbers, {the_a} and {the_b} the same with "the".
ALONE = (
    "There {are} {a} {place}.",
    "{a} {are} {place}.",
    "A photo of {a} {place}.",
    "A picture of {a} {place}.",
)
PAIRED = (
    "There {are} {a} {relation} {b}.",
    "{a} {are} {relation} {b}.",
    "A photo of {a} {relation} {b}.",
    "A picture of {a} {relation} {b}.",
)
DEFINITE = (
    "{the_a} {are} {relation} {the_b}.",
    "{the_a} {are} located {relation} {the_b}.",
    "{the_a} {are} placed {relation} {the_b}.",
)
AGAIN = {  # forms with another order of words, for what was said in one of the forms above
    ALONE: ("{place} there {are} {a}.", "{place}, {a} can be seen.", "{place}, we can see {a}."),
    PAIRED: (
        "{relation} {b} there {are} {a}.",
        "{relation} {b}, {a} can be seen.",
        "{relation} {b}, we can see {a}.",
    ),
    DEFINITE: ("{relation} {the_b} {are} {the_a}.", "{relation} {the_b}, we can see {the_a}."),
}
# Phrases at one place in the lists are opposites that differ in one word or are one word.
PHRASES = captions.RELATIONS | {"below": ("below", "under", "lower than")}
LEADING = 2  # how many of a relation's phrases can begin a sentence
# The same, and no narrower
SYNONYMS = {"car": "automobile", "bicycle": "bike", "truck": "lorry", "person": "human"}
WEARS = ("in", "wearing", "dressed in")


@dataclass(frozen=True, slots=True)
class Wording:
    """Everything about a caption but the scene."""

    forms: tuple[str, ...]  # ALONE, PAIRED or DEFINITE: what `form` is, or says again
    form: str
    phrase: int = 0  # of the relation
    place_index: int = 0  # of the background
    wears: str = WEARS[0]
    color_last: bool = False  # "two dogs that are red"
    synonyms: bool = False

    def caption_of(self, scene: Scene) -> str:
        """The caption of a scene, with a capital and a full stop."""
        target, landmark = scene.groups[0], scene.groups[-1]
        relation = PHRASES[scene.relation][self.phrase] if scene.relation else ""
        text = self.form.format(
            a=self._phrase(target, definite=False),
            b=self._phrase(landmark, definite=False),
            the_a=self._phrase(target, definite=True),
            the_b=self._phrase(landmark, definite=True),
            are=captions.be(target.count),
            relation=relation,
            place=captions.PLACES[scene.background][self.place_index],
        )
        return text[0].upper() + text[1:]

    def _phrase(self, group: Group, definite: bool) -> str:
        number = captions.NUMBERS[group.count]
        if definite:
            number = "the" if group.count == 1 else f"the {number}"
        name = SYNONYMS.get(group.object, group.object) if self.synonyms else group.object
        noun = captions.plural(name) if group.count > 1 else name
        if group.object == "person":
            return f"{number} {noun} {self.wears} {group.color}"
        if self.color_last:
            return f"{number} {noun} that {captions.be(group.count)} {group.color}"
        return f"{number} {group.color} {noun}"


def wording(scene: Scene, rng: random.Random, counted: bool) -> Wording:
    """A way of saying what the scene shows.

    Args:
        scene: Of one group or two.
        rng: Settles the choice.
        counted: Whether every number must be said: "the dog" does not say one.
    """
    forms = ALONE if not scene.relation else PAIRED if counted or rng.random() < 0.5 else DEFINITE
    phrases = range(len(PHRASES[scene.relation])) if scene.relation else (0,)
    place_indices = range(len(captions.PLACES[scene.background]))
    return Wording(
        forms,
        pick(rng, forms),
        pick(rng, phrases),
        pick(rng, place_indices),
        pick(rng, WEARS),
    )


def reworded(wording: Wording, scene: Scene, rng: random.Random) -> str:
    """The same in another order and, where there are such words, in other words: no number, colour
    or place changes.
    """
    form = pick(rng, AGAIN[wording.forms])
    wears = pick(rng, [way for way in WEARS if way != wording.wears])
    color_last = not scene.relation and rng.random() < 0.5
    phrase = wording.phrase % LEADING
    return replace(
        wording,
        form=form,
        phrase=phrase,
        wears=wears,
        color_last=color_last,
        synonyms=True,
    ).caption_of(scene)


def converse(wording: Wording, scene: Scene, rng: random.Random) -> str:
    """The same place, said of the other group: "a dog left of a cat" is "a cat right of a dog"."""
    other_side = replace(scene, groups=scene.groups[::-1], relation=OPPOSITE[scene.relation])
    form = pick(rng, [form for form in wording.forms if form != wording.form])
    return replace(
        wording,
        form=form,
        phrase=pick(rng, range(len(PHRASES[scene.relation]))),
    ).caption_of(other_side)


KINDS = ("object", "color", "number", "location", "swap")
# Of the one group that such a contrast changes
_FIELDS = {"object": "object", "color": "color", "number": "count"}


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
