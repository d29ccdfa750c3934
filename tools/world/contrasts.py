"""Minimal pairs as in EqBen: two scenes in the demo world that differ in one thing, and a caption for each.

Both scenes belong to the same split, so that a held-out pair has nothing in common with training scenes. They have the
same seed and room, so all pixels outside of the change are the same in both pictures.

Both captions have the same form, so that they differ only in the words for the change. The grammar follows EqBen's
figures 14 and 15 in our own words. Numbers are always words ("one", never "a"), so that articles need not change;
verbs and nouns still agree with the number.
"""

import random
from collections.abc import Iterator
from dataclasses import dataclass, replace

from tools.world import captions
from tools.world.scenes import (
    BACKGROUNDS,
    COLORS,
    COUNTS,
    OBJECTS,
    OPPOSITE,
    RELATIONS,
    specification,
    split_of,
)
from vlprobe.datasets.world.scene import Group, Scene, pick, placements, stream

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
AGAIN = {  # forms with a different word order, for the content of one of the forms above
    ALONE: ("{place} there {are} {a}.", "{place}, {a} can be seen.", "{place}, we can see {a}."),
    PAIRED: (
        "{relation} {b} there {are} {a}.",
        "{relation} {b}, {a} can be seen.",
        "{relation} {b}, we can see {a}.",
    ),
    DEFINITE: ("{relation} {the_b} {are} {the_a}.", "{relation} {the_b}, we can see {the_a}."),
}
# Phrases at the same index of the lists are opposites that are one word or differ in one word.
PHRASES = captions.RELATIONS | {"below": ("below", "under", "lower than")}
LEADING = 2  # number of a relation's phrases that can begin a sentence
# Synonyms that are not narrower
SYNONYMS = {"car": "automobile", "bicycle": "bike", "truck": "lorry", "person": "human"}
WEARS = ("in", "wearing", "dressed in")
SMALL, LARGE = 4, 1  # slots of a group whose single thing is small or large
LEAST_LARGE = (
    80  # pixels; no other thing is 76 to 90 pixels large, so that small and large differ clearly
)


@dataclass(frozen=True, slots=True)
class Wording:
    """The choices that turn a scene into a caption, such as its sentence form."""

    forms: tuple[
        str, ...
    ]  # ALONE, PAIRED or DEFINITE: the list of `form`, or of the form that it rewords
    form: str
    phrase: int = 0  # of the relation
    place_index: int = 0  # of the background
    wears: str = WEARS[0]
    color_last: bool = False  # "two dogs that are red"
    synonyms: bool = False
    sized: bool = False  # "the small red dog"

    def caption_of(self, scene: Scene) -> str:
        """Write the caption for a scene."""
        relation = PHRASES[scene.relation][self.phrase] if scene.relation else ""
        text = self.form.format(
            a=self._phrase(scene, 0, definite=False),
            b=self._phrase(scene, -1, definite=False),
            the_a=self._phrase(scene, 0, definite=True),
            the_b=self._phrase(scene, -1, definite=True),
            are=captions.be(scene.groups[0].count),
            relation=relation,
            place=captions.PLACES[scene.background][self.place_index],
        )
        return text[0].upper() + text[1:]

    def _phrase(self, scene: Scene, position: int, definite: bool) -> str:
        group = scene.groups[position]
        number = captions.NUMBERS[group.count]
        if definite:
            number = "the" if group.count == 1 else f"the {number}"
        if self.sized:
            number = f"{number} {_size(scene, position % len(scene.groups))}"
        name = SYNONYMS.get(group.object, group.object) if self.synonyms else group.object
        noun = captions.plural(name) if group.count > 1 else name
        if group.object == "person":
            return f"{number} {noun} {self.wears} {group.color}"
        if self.color_last:
            return f"{number} {noun} that {captions.be(group.count)} {group.color}"
        return f"{number} {group.color} {noun}"


def _size(scene: Scene, position: int) -> str:
    """Return the size of the things in a group, as drawn: small or large."""
    sizes = [each.size for each in placements(scene) if each.group == position]
    return "large" if min(sizes) >= LEAST_LARGE else "small"


def wording(scene: Scene, rng: random.Random, counted: bool) -> Wording:
    """Choose a wording for a scene.

    Args:
        scene: Scene with one group or two.
        rng: Random stream for the choice.
        counted: Whether the caption must state every number; "the dog" does not state one.
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
    """Write another caption with the same meaning, in a different word order and, if possible, with other words.
    Numbers, colors and places stay the same.
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
    """Rewrite the caption from the other group's view: "a dog left of a cat" becomes "a cat right of a dog"."""
    other_side = replace(scene, groups=scene.groups[::-1], relation=OPPOSITE[scene.relation])
    form = pick(rng, [form for form in wording.forms if form != wording.form])
    return replace(
        wording,
        form=form,
        phrase=pick(rng, range(len(PHRASES[scene.relation]))),
    ).caption_of(other_side)


def in_print(contrast: "Contrast") -> "Contrast":
    """Write both captions with the templates in EqBen's figures 14 (location, counting and attribute) and 15 (object,
    scene and attribute change).
    """
    scene, counted = contrast.scene, contrast.kind == "number"
    phrase = 0
    if scene.relation in ("left", "right"):
        phrase = 1 + scene.seed % 2
    if counted:
        forms = PAIRED[:2] if scene.relation else ALONE[:2]
    elif scene.relation and contrast.kind != "scene":
        forms = DEFINITE
    else:
        forms = FIGURE_15[contrast.kind]
    form = forms[scene.seed % len(forms)]
    is_sized = bool(scene.relation) and contrast.kind in ("color", "size")
    return replace(contrast, wording=Wording(forms, form, phrase, sized=is_sized))


FIGURE_15 = {
    "object": ("A photo of {a} {place}.", "A painting of {a} {place}."),
    "color": ("A photo of {a}.", "A painting of {a}."),
    "scene": ("A photo of {a} {relation} {b} ({place}).",),
}
KINDS = ("object", "color", "number", "location", "swap")
KINDS_IN_PRINT = (*KINDS, "size", "scene")
# Properties of the single group that such a contrast changes
_FIELDS = {"object": "object", "color": "color", "number": "count"}


@dataclass(frozen=True, slots=True)
class Contrast:
    """A scene, a copy of it with one change, and the wording of both captions."""

    kind: str
    scene: Scene
    changed: Scene
    wording: Wording

    @property
    def captions(self) -> tuple[str, str]:
        """The captions for the two scenes. Each caption is wrong for the other scene."""
        return self.wording.caption_of(self.scene), self.wording.caption_of(self.changed)


def contrasts(kind: str, split: str, n: int) -> list[Contrast]:
    """Return the first n contrasts in a split. No two of them have the same two specifications.

    Args:
        kind: object, color and number change one group; location swaps the places of both
            groups; swap exchanges the colors of two groups of different objects; size changes one of two things;
            scene changes the background.
        split: Split that both scenes belong to.
        n: Number of contrasts. A larger n adds contrasts at the end of the list.
    """
    by_specifications: dict[frozenset[str], Contrast] = {}
    index = 0
    while len(by_specifications) < n:
        contrast = _contrast(kind, split, stream("contrast", kind, split, index))
        by_specifications.setdefault(
            frozenset((specification(contrast.scene), specification(contrast.changed))),
            contrast,
        )
        index += 1
    return list(by_specifications.values())


def _contrast(kind: str, split: str, rng: random.Random) -> Contrast:
    # Chosen before anything is rejected; otherwise structures with many possible changes would crowd
    # out the others.
    relation, room = _structure(kind, rng)
    while True:
        drawn = _scene(relation, room, rng)
        if kind == "size":
            single = tuple(replace(group, count=1) for group in drawn.groups)
            drawn = replace(drawn, groups=single)
        if not _is_clear(kind, drawn):
            continue
        # A split that owns a tenth of all scenes owns 1 in 100 pairs of scenes: try all backgrounds.
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
    """Choose the relation ("" for a single group) and the number of slots in every group.

    Fewer than half of the contrasts have one group, because a split owns only about 70 different pairs with one group
    for the kind `number`.
    """
    paired = kind in ("location", "swap", "size", "scene") or rng.random() < 0.5
    # Groups in front or behind have one thing each.
    relations = RELATIONS[:4] if kind in ("number", "size") else RELATIONS
    relation = pick(rng, relations) if paired else ""
    if relation in ("front", "behind"):
        return relation, 1
    if kind == "size":
        return relation, pick(rng, (SMALL, LARGE))
    return relation, pick(rng, COUNTS[1:] if kind == "number" else COUNTS)


def _scene(relation: str, room: int, rng: random.Random) -> Scene:
    """Draw a random scene without a background. Groups have the same number of slots, so that they can swap places."""
    groups = [
        Group(pick(rng, OBJECTS), pick(rng, COLORS), 1 + int(rng.random() * room), room)
        for _ in range(2 if relation else 1)
    ]
    return Scene("", tuple(groups), relation, int(rng.random() * 2**32))


def _is_clear(kind: str, scene: Scene) -> bool:
    """Return whether a caption can tell the two groups in a scene apart."""
    if len(scene.groups) == 1:
        return True
    target, landmark = scene.groups
    if kind == "swap":
        return target.object != landmark.object and target.color != landmark.color
    return (target.object, target.color) != (landmark.object, landmark.color)


def _changes(kind: str, scene: Scene) -> Iterator[Scene]:
    if kind == "location":
        yield replace(scene, relation=OPPOSITE[scene.relation])
    elif kind == "scene":
        # In the sky, things have other places
        if scene.background != "sky":
            for background in BACKGROUNDS:
                if background not in (scene.background, "sky"):
                    yield replace(scene, background=background)
    elif kind == "size":
        for position, group in enumerate(scene.groups):
            changed = replace(group, room=SMALL if group.room == LARGE else LARGE)
            yield _with_group(scene, position, changed)
    elif kind == "swap":
        target, landmark = scene.groups
        yield replace(
            scene,
            groups=(replace(target, color=landmark.color), replace(landmark, color=target.color)),
        )
    else:
        field = _FIELDS[kind]
        for position, group in enumerate(scene.groups):
            for value in _values(kind, group):
                yield _with_group(scene, position, replace(group, **{field: value}))


def _with_group(scene: Scene, position: int, group: Group) -> Scene:
    groups = (*scene.groups[:position], group, *scene.groups[position + 1 :])
    return replace(scene, groups=groups)


def _values(kind: str, group: Group) -> list:
    """Return the other values that a group's object, color or count can have."""
    if kind == "color":
        return [color for color in COLORS if color != group.color]
    if kind == "number":
        return [count for count in COUNTS[: group.room] if count != group.count]
    # "A person in red" has a different word order than "a red dog".
    return [
        name for name in OBJECTS if "person" not in (name, group.object) and name != group.object
    ]
