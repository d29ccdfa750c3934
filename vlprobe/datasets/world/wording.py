"""Ways of saying what a scene shows: in one way, two scenes differ in the words for what differs
and in no other.

The grammar follows EqBen's figures 14 and 15 in our own words. Numbers are always words ("one",
never "a"), so that no article has to bend; a verb and a noun still agree with their number.
"""

import random
from dataclasses import dataclass, replace

from vlprobe.datasets.world import words
from vlprobe.datasets.world.scene import OPPOSITE, Group, Scene, pick

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
PHRASES = words.RELATIONS | {"below": ("below", "under", "lower than")}
LEADING = 2  # how many of a relation's phrases can begin a sentence
SYNONYMS = {
    "car": "automobile",
    "bicycle": "bike",
    "truck": "lorry",
    "person": "human",
}  # the same, and no narrower
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
            are=words.be(target.count),
            relation=relation,
            place=words.PLACES[scene.background][self.place_index],
        )
        return text[0].upper() + text[1:]

    def _phrase(self, group: Group, definite: bool) -> str:
        number = words.NUMBERS[group.count]
        if definite:
            number = "the" if group.count == 1 else f"the {number}"
        name = SYNONYMS.get(group.object, group.object) if self.synonyms else group.object
        noun = words.plural(name) if group.count > 1 else name
        if group.object == "person":
            return f"{number} {noun} {self.wears} {group.color}"
        if self.color_last:
            return f"{number} {noun} that {words.be(group.count)} {group.color}"
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
    place_indices = range(len(words.PLACES[scene.background]))
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
