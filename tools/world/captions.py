"""Write captions for scenes in the demo world. They are true, grammatical, and varied in syntax.

Every caption has one of the forms below. A form is a function that takes a `Voice` (the scene and a random stream) and
returns a sentence or a phrase without a capital and a period. The words cover the word lists of the probes, so that a
model trained on these captions has seen every word that an edit can insert.
"""

import random
import re
from collections.abc import Callable

from tools.world.scenes import OPPOSITE, specification
from vlprobe.datasets.world.scene import Group, Scene, facing, pick, stream

NUMBERS = {1: "one", 2: "two", 3: "three", 4: "four", 5: "five"}
SYNONYMS = {
    "dog": ("puppy",),
    "cat": ("kitten",),
    "horse": ("pony",),
    "car": ("automobile",),
    "bus": ("coach",),
    "train": ("locomotive",),
    "person": ("human",),
    "bird": (),
    "boat": ("ship", "sailboat"),
    "bicycle": ("bike",),
    "truck": ("lorry",),
}
PLACES = {
    "street": ("on a city street", "on the road", "along the road", "on the street", "in the city"),
    "room": ("in a room", "inside a house", "in the living room", "on a wooden floor", "indoors"),
    "meadow": ("in a meadow", "on the grass", "in a field", "on a lawn", "in a grassy field"),
    "beach": (
        "on the beach",
        "on the sand",
        "on a sandy shore",
        "at the seaside",
        "on a sandy beach",
    ),
    "sea": ("in the sea", "on the water", "out on the ocean", "at sea", "on the open sea"),
    "sky": (
        "in the sky",
        "among the clouds",
        "high in the sky",
        "up in the air",
        "in a cloudy sky",
    ),
}
SETTINGS = {
    "street": ("a city street", "a road", "a street in the city"),
    "room": ("a room", "a living room", "the inside of a house"),
    "meadow": ("a meadow", "a grassy field", "a lawn"),
    "beach": ("a beach", "a sandy beach", "a sandy shore"),
    "sea": ("the sea", "the ocean", "the open sea"),
    "sky": ("the sky", "a cloudy sky"),
}
RELATIONS = {
    "left": ("to the left of", "on the left side of", "on the left of", "left of"),
    "right": ("to the right of", "on the right side of", "on the right of", "right of"),
    "above": ("above", "over", "higher than"),
    "below": ("below", "under", "underneath", "beneath", "lower than"),
    "front": ("in front of",),
    "behind": ("behind",),
}
WITH = {  # "a dog with two cats ...": where the second is, as seen from the first
    "left": ("to {its} left", "on {its} left"),
    "right": ("to {its} right", "on {its} right"),
    "above": ("above {it}", "over {it}"),
    "below": ("below {it}", "underneath {it}"),
    "front": ("in front of {it}",),
    "behind": ("behind {it}",),
}
_PLURALS = {
    "person": "people",
    "puppy": "puppies",
    "pony": "ponies",
    "lorry": "lorries",
    "bus": "buses",
    "coach": "coaches",
}
_AIR = ("float", "hover")
_FOUR_WHEELS = ("car", "bus", "truck")


def doings(background: str, name: str, in_the_air: bool) -> tuple[tuple[str, str], ...]:
    """Return the verbs for what an object can do in a scene, as (plural, participle) such as (stand, standing)."""
    if in_the_air:
        verbs = _AIR
    elif background == "sky":
        verbs = (*_AIR, "fly")
    elif background == "sea":
        verbs = ("float", "drift")
    elif name == "cat":
        return (("sit", "sitting"), ("sit", "seated"), ("wait", "waiting"))
    else:
        verbs = ("rest" if name == "boat" else "stand", "wait")
    return tuple((verb, f"{verb}ing") for verb in verbs)


def parked(background: str, name: str) -> bool:
    """Return whether an object on this background can be described as "parked"."""
    return background not in ("sea", "sky") and name in (*_FOUR_WHEELS, "bicycle")


def plural(noun: str) -> str:
    """Return the plural of a noun."""
    return _PLURALS.get(noun, f"{noun}s")


def be(count: int) -> str:
    """Return "is" if the count is 1, otherwise "are"."""
    return "is" if count == 1 else "are"


def agree(verb: str, count: int) -> str:
    """Inflect a verb for a count: "stands" for one, "stand" for more."""
    if count > 1:
        return verb
    return "flies" if verb == "fly" else f"{verb}s"


def article(text: str) -> str:
    """Replace "a" with "an" before a vowel letter. This rule suffices for the words in the demo world."""
    return re.sub(r"\ba (?=[aeiou])", "an ", text)


class Voice:
    """Makes the random word choices for one caption about one scene."""

    def __init__(self, scene: Scene, rng: random.Random) -> None:
        self.scene = scene
        self.rng = rng
        self.target = scene.groups[0]
        self.landmark = scene.groups[-1]

    def pick(self, *options: str) -> str:
        """Return one of the options at random."""
        return pick(self.rng, options)

    def chance(self, share: float) -> bool:
        """Return True with the given probability."""
        return self.rng.random() < share

    def noun(self, group: Group) -> str:
        """Return a noun for a group: the object's name or, one time in six, a synonym."""
        name = group.object
        if SYNONYMS[name] and self.chance(1 / 6):
            name = self.pick(*SYNONYMS[name])
        return plural(name) if group.count > 1 else name

    def number(self, group: Group) -> str:
        """Return the count of a group as a word. For one thing, this is usually an article."""
        if group.count > 1:
            return NUMBERS[group.count]
        roll = self.rng.random()
        return "one" if roll < 0.22 else "a single" if roll < 0.3 else "a"

    def phrase(self, group: Group, definite: bool = False) -> str:
        """Return a noun phrase for a group: "a red dog", "a person in red" or, with `definite`, "the two red dogs"."""
        number = self.number(group)
        if definite:
            number = f"the {number}" if group.count > 1 else "the"
        noun, color = self.noun(group), group.color
        if group.object == "person":
            return article(
                f"{number} {noun} {self.pick('in', 'in', 'wearing', 'dressed in')} {color}",
            )
        if not self.scene.relation and self.chance(0.1):
            return article(f"{number} {noun} that {be(group.count)} {color}")
        return article(f"{number} {color} {noun}")

    def where(self) -> str:
        """Return the place of the scene, such as "on the beach"."""
        return self.pick(*PLACES[self.scene.background])

    def setting(self) -> str:
        """Return a noun for the background, such as "a beach"."""
        return self.pick(*SETTINGS[self.scene.background])

    def verb(self, group: Group) -> str:
        """Return a verb that agrees with the number of things in a group, such as "stand" or "floats"."""
        return agree(self._doing(group)[0], group.count)

    def doing(self, group: Group) -> str:
        """Return a participle for what a group does, such as "standing" or "parked"."""
        is_parked = parked(self.scene.background, group.object) and not self._in_the_air(group)
        return "parked" if is_parked and self.chance(0.3) else self._doing(group)[1]

    def _doing(self, group: Group) -> tuple[str, str]:
        return pick(
            self.rng,
            doings(self.scene.background, group.object, self._in_the_air(group)),
        )

    def _in_the_air(self, group: Group) -> bool:
        return self.scene.relation == ("above" if group is self.target else "below")

    def relation(self, name: str, leading: bool = False) -> str:
        """Return a phrase for a relation, such as "to the left of"; with `leading`, one that can begin a sentence."""
        return self.pick(*RELATIONS[name][: 2 if leading else None])

    def pair(self) -> tuple[Group, str, Group]:
        """Return the subject, relation and object of the caption. Half of the time, their order is reversed."""
        if self.chance(0.5):
            return self.target, self.scene.relation, self.landmark
        return self.landmark, OPPOSITE[self.scene.relation], self.target


def captions(scene: Scene, n: int = 5, purpose: str = "captions") -> tuple[str, ...]:
    """Write n captions for a scene, each with a capital and a period. No form repeats until all have been used."""
    rng = stream(scene.seed, specification(scene), purpose)
    forms = [form for form in (_PAIRED if scene.relation else _ALONE) if _fits(form, scene)]
    texts: list[str] = []
    while len(texts) < n:
        for form in sorted(forms, key=lambda _: rng.random()):
            text = form(Voice(scene, rng))
            text = f"{text[0].upper()}{text[1:]}."
            if text not in texts:
                texts.append(text)
    return tuple(texts[:n])


def _alone_active(v: Voice) -> str:
    verb = f"{be(v.target.count)} {v.doing(v.target)}" if v.chance(0.75) else v.verb(v.target)
    return f"{v.phrase(v.target)} {verb} {v.where()}"


def _alone_phrase(v: Voice) -> str:
    middle = f" {v.doing(v.target)}" if v.chance(0.4) else ""
    return f"{v.phrase(v.target)}{middle} {v.where()}"


def _alone_there(v: Voice) -> str:
    existential = f"there {be(v.target.count)} {v.phrase(v.target)}"
    if v.chance(0.3):
        return f"{v.where()} {existential}"
    middle = f" {v.doing(v.target)}" if v.chance(0.3) else ""
    return f"{existential}{middle} {v.where()}"


def _alone_fronted(v: Voice) -> str:
    return f"{v.where()}, {v.phrase(v.target)} {be(v.target.count)} {v.doing(v.target)}"


def _alone_inverted(v: Voice) -> str:
    verb = v.verb(v.target) if v.chance(0.6) else be(v.target.count)
    return f"{v.where()} {verb} {v.phrase(v.target)}"


def _alone_passive(v: Voice) -> str:
    is_seen = v.pick(
        "can be seen",
        *(f"{be(v.target.count)} {done}" for done in ("shown", "seen", "pictured")),
    )
    return f"{v.phrase(v.target)} {is_seen} {v.where()}"


def _alone_picture(v: Voice) -> str:
    return f"{v.pick('a photo of', 'a picture of', 'an image of')} {v.phrase(v.target)} {v.where()}"


def _alone_setting(v: Voice) -> str:
    if v.chance(0.5):
        return f"{v.setting()} with {v.phrase(v.target)}"
    return f"{v.setting()} where {v.phrase(v.target)} {be(v.target.count)} {v.doing(v.target)}"


def _alone_seen(v: Voice) -> str:
    return f"{v.pick('we see', 'we can see', 'you can see')} {v.phrase(v.target)} {v.where()}"


def _alone_color(v: Voice) -> str:
    number = f"the {NUMBERS[v.target.count]}" if v.target.count > 1 else "the"
    color = f"dressed in {v.target.color}" if v.target.object == "person" else v.target.color
    return f"{number} {v.noun(v.target)} {v.where()} {be(v.target.count)} {color}"


def _tail(v: Voice, share: float = 0.4) -> str:
    return f" {v.where()}" if v.chance(share) else ""


def _pair_active(v: Voice) -> str:
    subject, relation, landmark = v.pair()
    verb = be(subject.count)
    if v.chance(0.5):
        verb += f" {v.pick(v.doing(subject), 'placed', 'located')}"
    return f"{v.phrase(subject)} {verb} {v.relation(relation)} {v.phrase(landmark)}{_tail(v)}"


def _pair_definite(v: Voice) -> str:
    subject, relation, landmark = v.pair()
    verb = be(subject.count) + v.pick("", "", " located", " placed")
    this, that = v.phrase(subject, definite=True), v.phrase(landmark, definite=True)
    return f"{this} {verb} {v.relation(relation)} {that}{_tail(v, 0.25)}"


def _pair_phrase(v: Voice) -> str:
    subject, relation, landmark = v.pair()
    middle = f" {v.doing(subject)}" if v.chance(0.3) else ""
    return f"{v.phrase(subject)}{middle} {v.relation(relation)} {v.phrase(landmark)}{_tail(v)}"


def _pair_there(v: Voice) -> str:
    subject, relation, landmark = v.pair()
    existential = f"there {be(subject.count)} {v.phrase(subject)}"
    if v.chance(0.35):
        return f"{v.relation(relation, leading=True)} {v.phrase(landmark)} {existential}"
    return f"{existential} {v.relation(relation)} {v.phrase(landmark)}{_tail(v)}"


def _pair_inverted(v: Voice) -> str:
    subject, relation, landmark = v.pair()
    verb = v.verb(subject) if v.chance(0.4) else be(subject.count)
    return f"{v.relation(relation, leading=True)} {v.phrase(landmark)} {verb} {v.phrase(subject)}"


def _pair_fronted(v: Voice) -> str:
    subject, relation, landmark = v.pair()
    return f"{v.where()}, {v.phrase(subject)} {be(subject.count)} {v.relation(relation)} {v.phrase(landmark)}"


def _pair_seen(v: Voice) -> str:
    subject, relation, landmark = v.pair()
    if v.chance(0.5):
        return (
            f"{v.phrase(subject)} can be seen {v.relation(relation)} {v.phrase(landmark)}{_tail(v)}"
        )
    return f"{v.pick('we see', 'we can see')} {v.phrase(subject)} {v.relation(relation)} {v.phrase(landmark)}{_tail(v)}"


def _pair_picture(v: Voice) -> str:
    subject, relation, landmark = v.pair()
    start = v.pick("a photo of", "a picture of", "an image of")
    return (
        f"{start} {v.phrase(subject)} {v.relation(relation)} {v.phrase(landmark)}{_tail(v, 0.25)}"
    )


def _pair_setting(v: Voice) -> str:
    subject, relation, landmark = v.pair()
    return f"{v.setting()} with {v.phrase(subject)} {v.relation(relation)} {v.phrase(landmark)}"


def _pair_together(v: Voice) -> str:
    subject, _, landmark = v.pair()
    return f"{v.phrase(subject)} and {v.phrase(landmark)} {v.where()}"


def _pair_passive(v: Voice) -> str:
    subject, relation, landmark = v.pair()
    if relation == "behind":
        done = v.pick("partly hidden by", "partly covered by")
    elif relation == "front":
        subject, landmark = landmark, subject
        done = "partly hidden by"
    else:
        done = f"flanked on the {OPPOSITE[relation]} by"
    return f"{v.phrase(subject)} {be(subject.count)} {done} {v.phrase(landmark)}{_tail(v)}"


def _pair_follow(v: Voice) -> str:
    # All face one way: the group on that side comes first.
    ahead, behind = (
        (v.target, v.landmark) if facing(v.scene) == v.scene.relation else (v.landmark, v.target)
    )
    if v.chance(0.6):
        return f"{v.phrase(ahead)} {be(ahead.count)} followed by {v.phrase(behind)}{_tail(v)}"
    return f"{v.phrase(behind)} {be(behind.count)} following {v.phrase(ahead)}{_tail(v)}"


def _pair_beside(v: Voice) -> str:
    subject, _, landmark = v.pair()
    return f"{v.phrase(subject)} {v.pick('next to', 'beside')} {v.phrase(landmark)}{_tail(v)}"


def _pair_with(v: Voice) -> str:
    subject, relation, landmark = v.pair()
    is_singular = subject.count == 1 and subject.object != "person"
    location = v.pick(*WITH[OPPOSITE[relation]]).format(
        its="its" if is_singular else "their",
        it="it" if is_singular else "them",
    )
    return f"{v.phrase(subject)} with {v.phrase(landmark)} {location}"


_ALONE: tuple[Callable[[Voice], str], ...] = (
    _alone_active,
    _alone_phrase,
    _alone_there,
    _alone_fronted,
    _alone_inverted,
    _alone_passive,
    _alone_picture,
    _alone_setting,
    _alone_seen,
    _alone_color,
)
_PAIRED: tuple[Callable[[Voice], str], ...] = (
    _pair_active,
    _pair_definite,
    _pair_phrase,
    _pair_there,
    _pair_inverted,
    _pair_fronted,
    _pair_seen,
    _pair_picture,
    _pair_setting,
    _pair_together,
    _pair_passive,
    _pair_follow,
    _pair_beside,
    _pair_with,
)

_FRONTAL = ("person", "cat")  # drawn from the front: they do not face left or right


def _fits(form: Callable[[Voice], str], scene: Scene) -> bool:
    """Return whether a form can make a true caption for the scene."""
    sideways = scene.relation in ("left", "right")
    if form is _pair_passive:
        return scene.relation not in ("above", "below")
    if form is _pair_beside:
        return sideways
    if form is _pair_follow:
        return (
            sideways
            and facing(scene) != "mixed"
            and not any(group.object in _FRONTAL for group in scene.groups)
        )
    return True
