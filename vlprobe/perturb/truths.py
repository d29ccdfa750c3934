"""Facts stated by the captions of an image, used to reject flips that are still true of the image.

A word states itself and everything that it implies: "puppy" implies dog, "man" person, "golden" yellow. A word that
covers several others ("vehicle") states all of them, unless the flipped word is one of them and so explains the word.
"""

from collections.abc import Iterable
from typing import NamedTuple

from vlprobe.perturb.flips import VOCABULARY
from vlprobe.perturb.lexicon import HUMAN, NUMBERS, TAGS, plural_of
from vlprobe.perturb.tokens import word_list, word_table

_IMPLIED = word_table("truths.implied")
_COVERING = word_table("truths.covering")
_MANY_COLORED = "colorful colourful multicolored multi-colored multicolor multi-color rainbow"
_AT_LEAST = {
    "couple": 2,
    "pair": 2,
    "both": 2,
    "duo": 2,
    "trio": 3,
    "dozen": 12,
    "dozens": 99,
    "hundreds": 99,
}
_NEAR_PAIRS = [pair.split("-") for pair in word_list("truths.near")]
NEAR = {  # names that people give to one color, by color
    color: {name for pair in _NEAR_PAIRS if color in pair for name in pair} - {color}
    for color in VOCABULARY["color"]
}


def _both_numbers(word: str) -> tuple[str, str]:
    return word, plural_of(word)


def _table() -> dict[str, frozenset[str]]:
    says: dict[str, set[str]] = {}
    for word in VOCABULARY["color"] + VOCABULARY["object"]:
        for form in (word, *_IMPLIED[word]):
            for written in _both_numbers(form):
                says.setdefault(written, set()).add(word)
    for word, bits in TAGS.items():
        if bits & HUMAN:
            says.setdefault(word, set()).add("person")
    for written in _MANY_COLORED.split():
        says.setdefault(written, set()).update(VOCABULARY["color"])
    return {word: frozenset(means) for word, means in says.items()}


_SAYS = _table()
_COVERS = {form: covered for word, covered in _COVERING.items() for form in _both_numbers(word)}
_COUNTS = {
    **_AT_LEAST,
    **{word: value for value, word in enumerate(NUMBERS, 1)},
    **{str(value): value for value in range(1, 100)},
}
_WATCHED = frozenset(_SAYS) | frozenset(_COVERS) | frozenset(_COUNTS)


class Truths(NamedTuple):
    """Facts that the captions of an image state."""

    mentioned: frozenset[str]  # vocabulary words that are named or implied
    covers: tuple[frozenset[str], ...]  # the vocabulary words under each covering word
    count: int  # the highest number named

    def allow(self, kind: str, source: str, target: str) -> bool:
        """Return whether replacing the source word with the target makes the caption false, judging by the image's
        captions.
        """
        if kind == "number":
            return VOCABULARY["number"].index(target) >= self.count
        if target in self.mentioned or (kind == "color" and target in NEAR[source]):
            return False
        return not any(target in covered and source not in covered for covered in self.covers)


def truths(captions: Iterable[Iterable[str]]) -> Truths:
    """Collect the facts about one image from the lowercase words in all of its captions."""
    words = _WATCHED.intersection(set().union(*captions))
    mentioned: set[str] = set()
    for word in words:
        mentioned |= _SAYS.get(word, frozenset())
    return Truths(
        frozenset(mentioned),
        tuple(_COVERS[word] for word in words if word in _COVERS),
        max((_COUNTS[word] for word in words if word in _COUNTS), default=0),
    )
