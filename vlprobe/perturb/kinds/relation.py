"""Relation: the place or direction of something becomes the opposite.

The new relation contradicts the old one between the same two things: "above" and "below", "on" a thing
that something can be under, "near" and "far from", "up" and "down" a slope, "sitting" and "standing" for
one living being. "In front of" and "behind" contradict each other when seen from one side. Left unchanged are
relations that do not exclude each other ("in" and "near", "on" and "with"), idioms ("on the phone", "behind
bars"), places that nothing is under or behind (a day, a game), and pronouns that would refer to something else.

Source of the idea: ARO (arXiv 2210.01936), which exchanges the two things; here the relation
itself is exchanged, as in VL-CheckList's and SugarCrepe's relation foils.
"""

from vlprobe.perturb.clauses import subject_phrases
from vlprobe.perturb.concepts import named
from vlprobe.perturb.grammar import Sentence, is_verb_ing, noun_phrase
from vlprobe.perturb.lexicon import NOUN, PREPOSITION, SINGULARS
from vlprobe.perturb.rewriting import NEGATIVE, Change, changes, exchanged, is_plain
from vlprobe.perturb.tokens import like, word_list, words

_SUPPORTS = word_list("relation.supports")
_CONTAINERS = word_list("relation.containers")
_SLOPES = word_list("relation.slopes")
_NO_PLACE = word_list("relation.no-place")
_BEFORE_PLACE = word_list("relation.before-place")
_POSTURES = {
    "sitting": "standing",
    "sits": "stands",
    "seated": "standing",
    "standing": "sitting",
    "stands": "sits",
}
# A picture of a train at a station shows "into" as well as "out of".
_ARRIVING = words("pulling pulls coming comes arriving moving going rolling driving")
_FACED = word_list("relation.faced")
_LYING = word_list("relation.lying")
_PREPOSITIONS: dict[tuple[str, ...], str] = {
    ("in", "front", "of"): "behind",
    ("behind",): "in front of",
    ("on", "top", "of"): "underneath",
    ("underneath",): "on top of",
    ("beneath",): "above",
    ("below",): "above",
    ("above",): "below",
    ("under",): "above",
    ("next", "to"): "far away from",
    ("beside",): "far away from",
    ("near",): "far away from",
    ("inside",): "outside",
    ("outside",): "inside",
    ("into",): "out of",
    ("toward",): "away from",
    ("towards",): "away from",
}
# For these, sitting and standing look the same or mean something else.
_NO_POSTURE = words("hot stuffed toy teddy statue mouse mice")
_SIDES = {"left": "right", "right": "left"}
_LONGEST = 3


def relations(sentence: Sentence) -> list[Change]:
    """Return the caption with its relation replaced by the opposite, once for each exchange that the rules allow."""
    if not is_plain(sentence) or NEGATIVE.intersection(sentence.lower):
        return []
    out = []
    for i in range(1, sentence.size - 1):
        out += _place(sentence, i) or _on_or_in(sentence, i) or _side(sentence, i)
    return out + _posture(sentence)


def _exchange(sentence: Sentence, i: int, end: int, new: str) -> list[Change]:
    rule = f"relation:{'-'.join(sentence.lower[i:end])}"
    return changes(exchanged(sentence, rule, i, end, new))


def _place(sentence: Sentence, i: int) -> list[Change]:
    for size in range(_LONGEST, 0, -1):
        new = _PREPOSITIONS.get(tuple(sentence.lower[i : i + size]))
        arrives = sentence.lower[i] == "into" and sentence.lower[i - 1] in _ARRIVING
        if not new or arrives or not _is_between_things(sentence, i, i + size):
            continue
        if new not in ("behind", "in front of") or not _faces(sentence, i + size):
            return _exchange(sentence, i, i + size, new)
    return []


def _faces(sentence: Sentence, end: int) -> bool:
    """Return whether the next thing is one that people face while they are behind it, such as a desk or a screen."""
    phrase = noun_phrase(sentence, end)
    return phrase is not None and bool(_FACED.intersection(sentence.lower[end : phrase.end]))


def _is_between_things(sentence: Sentence, i: int, end: int) -> bool:
    """Return whether a relation links two things: a noun phrase follows, and no other preposition precedes."""
    previous = sentence.lower[i - 1]
    if previous in _BEFORE_PLACE or sentence.bits[i - 1] & PREPOSITION:
        return False
    phrase = noun_phrase(sentence, end)
    if phrase is None or phrase.bare:
        return False
    return not _NO_PLACE.intersection(sentence.lower[phrase.start : phrase.end])


def _on_or_in(sentence: Sentence, i: int) -> list[Change]:
    lower = sentence.lower
    sets = {"on": (_SUPPORTS, "under"), "in": (_CONTAINERS, "next to"), "up": (_SLOPES, "down")}
    if lower[i] == "down":
        sets = {"down": (_SLOPES, "up")}
    if lower[i] not in sets or not _is_between_things(sentence, i, i + 1):
        return []
    if lower[i] == "in" and not (sentence.bits[i - 1] & NOUN or lower[i - 1] in _LYING):
        return []
    things, new = sets[lower[i]]
    phrase = noun_phrase(sentence, i + 1, of=False)
    if phrase is None or SINGULARS.get(phrase.head, phrase.head) not in things:
        return []
    return _exchange(sentence, i, i + 1, new)


def _side(sentence: Sentence, i: int) -> list[Change]:
    """Exchange "left" and "right" in phrases such as "on the left" and "to the right of"."""
    lower = sentence.lower
    is_side = lower[i] in _SIDES and lower[i - 1] in ("the", "its", "his", "her")
    if (
        not is_side
        or lower[i - 2] not in ("on", "to")
        or lower[i + 1] not in ("of", "side", "", "and")
    ):
        return []
    if lower.count("left") + lower.count("right") != 1:
        return []
    return _exchange(sentence, i, i + 1, like(sentence.reading.words[i], _SIDES[lower[i]]))


def _posture(sentence: Sentence) -> list[Change]:
    """Exchange "sitting" and "standing" for a person or an animal, which can only do one of them at a time."""
    phrases = subject_phrases(sentence)
    if phrases is None or not phrases[1].animate:
        return []
    subject, lower = phrases[1], sentence.lower
    is_bird = any("birds" in concept.groups for concept in named(subject.head))
    if is_bird or _NO_POSTURE.intersection(lower[: subject.end]):
        return []
    i = subject.end + (lower[subject.end] in ("is", "are"))
    new = _POSTURES.get(lower[i])
    if new is None or sum(lower.count(word) for word in _POSTURES) > 1:
        return []
    if lower[i + 1] == "up":
        return []
    if not sentence.bits[i + 1] & PREPOSITION and lower[i + 1] not in ("next", "together"):
        return []
    if sentence.bits[i] & NOUN or (lower[i].endswith("ing") and not is_verb_ing(sentence, i)):
        return []
    return _exchange(sentence, i, i + 1, new)
