"""As much grammar as caption rewriting needs: noun phrases, prepositional phrases, and whether a finite verb follows.

Every function answers None or False unless it understands all words involved; the rules then leave the caption alone.
"""

import re
from typing import NamedTuple

from vlprobe.perturb.lexicon import (
    ADJECTIVE,
    ADVERB,
    ANIMAL,
    AUXILIARY,
    BASE,
    DETERMINER,
    HUMAN,
    ING,
    MASS,
    NAME,
    NOUN,
    NUMBER,
    PARTICIPLE,
    PAST,
    PLURAL,
    PREPOSITION,
    PRESENT,
    PRONOUN,
    SINGULAR,
    SUBORDINATOR,
    TAGS,
    VERB,
)
from vlprobe.perturb.tokens import Reading, words

PLAIN = re.compile(r"[A-Za-z0-9 ,'’-]*[. ]*\Z")  # what can stand in a caption that is parsed at all


ARTICLES = words("a an")
_DEFINITE = words("the this that these those his her their its my your our")
POSSESSIVE = words("his her their its my your our")
_SEVERAL = words("several many multiple various few some both all numerous assorted different")
_META = words(
    "picture pictures photo photos photograph photographs image images view views shot close-up closeup scene "
    "side selfie snapshot portrait drawing sketch display bit type kind sort series variety lot couple there "
    "someone"
)
_COLLECTIVE = words(
    "group bunch pair herd flock set row line stack pile crowd team family collection assortment array number "
    "crew cluster"
)
_RELATIVE = words("that which who whose as while where when because if whom so")
_FINITE = words(
    "is are was were has have had does do did can will would could should may might must isn't aren't it's that's "
    "there's doesn't don't can't he's she's they're cannot"
)
# Participles that describe a state, not an event of the past.
RESULT = words(
    "parked covered filled topped seated stacked lined surrounded decorated placed displayed dressed made "
    "attached mounted arranged loaded painted served tied stuffed piled located gathered wrapped perched docked "
    "tethered draped crowded packed set hung scattered shown seen taken cut sliced cooked prepared held worn "
    "carved named pulled ridden driven left used built connected reflected stored posed moored anchored strapped "
    "nestled spread sprawled huddled curled herded chopped grilled fried baked peeled eaten lit written flown "
    "carried thrown kept laid bent crossed closed opened"
)
LOCATIVE = words(
    "on in at near behind under beside between inside outside above below against among atop beneath underneath "
    "alongside"
)


class Phrase(NamedTuple):
    """A noun phrase: tokens start to end (exclusive)."""

    start: int
    end: int
    plural: bool  # takes "are"
    definite: bool
    bare: bool  # a singular count noun without an article, as in "Man riding a wave"
    head: str  # the last noun before any "of", in lower case
    animate: int  # HUMAN, ANIMAL or 0; of "a group of men" that of the men
    members: bool  # has several members: plural, or "a group of men"


class Sentence:
    """A reading with what its words can be, cut before the final full stop.

    Both lists end in blanks, so that looking a few words ahead, or one back from the first, needs no check.
    """

    def __init__(self, reading: Reading) -> None:
        self.reading = reading
        size = len(reading.lower)
        while size and reading.lower[size - 1] == ".":
            size -= 1
        self.size = size
        self.lower = [*reading.lower[:size], "", "", "", ""]
        self.bits = [TAGS.get(word, 0) for word in self.lower]


def noun_phrase(sentence: Sentence, at: int, of: bool = True) -> Phrase | None:
    """The noun phrase that starts here, with its "of" phrase; None unless every word of it is understood."""
    start, lower, tags = at, sentence.lower, sentence.bits
    first = lower[at]
    article = many = definite = False
    if first in ARTICLES:
        article, at = True, at + 1
        if lower[at] in ("few", "couple", "lot"):
            article, many = False, True
            at += 2 if lower[at + 1] == "of" else 1
            if lower[at - 1] == "lot":
                return None
    elif first == "lots" and lower[at + 1] == "of":
        many, at = True, at + 2
    elif first in _SEVERAL:
        many, at = True, at + 1
        if lower[at] in _DEFINITE or lower[at] == "of":
            return None
    elif first in _DEFINITE:
        definite, at = True, at + 1
    if tags[at] & NUMBER or lower[at].isdigit():
        if lower[at] == "one":
            article = True
        else:
            many = True
        at += 1
    head = _nouns(sentence, at)
    if head is None:
        return None
    noun, end = lower[head], head + 1
    bits = tags[head]
    if noun in _META and noun not in ("couple", "side"):
        return None
    if (article and not bits & SINGULAR) or (many and not bits & (PLURAL | MASS | ANIMAL)):
        return None
    plural = (many and not (first == "some" and not bits & PLURAL)) or bool(
        bits & PLURAL and not bits & (SINGULAR | MASS)
    )
    plural = plural or (bool(bits & PLURAL) and not article and not bits & MASS and not definite)
    animate = bits & (HUMAN | ANIMAL)
    bare = not (article or many or definite or plural) and bool(bits & SINGULAR) and not bits & MASS
    members = plural
    if lower[end] == "'s" or lower[end] == "’s":
        owned = noun_phrase(sentence, end + 1)
        if owned is None or (not owned.bare and owned.definite):
            return None
        return owned._replace(start=start, definite=definite, bare=bare)
    if lower[end] == "of":
        inner = noun_phrase(sentence, end + 1) if of else None
        if inner is None or (inner.bare and noun not in ("slice", "piece")):
            return None
        end = inner.end
        if noun in _COLLECTIVE or noun == "couple":
            animate, members = inner.animate, inner.plural
            plural = plural or noun == "couple"
            if not inner.plural:
                return None
    elif noun in _COLLECTIVE and noun not in ("crowd", "team", "family", "crew"):
        return None
    return Phrase(start, end, plural, definite, bare, noun, animate, members)


def _nouns(sentence: Sentence, at: int) -> int | None:
    """Where the head of the adjectives and nouns that start here stands; None if they do not end in a noun."""
    head, last, begun = None, 0, at
    while at < sentence.size and at - begun < 7:
        bits = sentence.bits[at]
        if head is not None and head == at - 1 and _ends_at(bits, last, sentence.bits[at + 1]):
            break
        if bits & NOUN:
            head = at
        elif not _is_modifier(sentence, at, last, head is None):
            break
        last = bits
        at += 1
    return head if head == at - 1 else None


def _ends_at(bits: int, last: int, following: int) -> bool:
    """Whether a noun phrase ends before this word: after a noun, what can be a verb is one."""
    if last & PLURAL and not last & SINGULAR:
        return True
    if bits & ING:
        return not bits & NOUN or bool(following & DETERMINER and not following & SUBORDINATOR)
    if bits & PRESENT or (bits & BASE and not bits & NOUN):
        return True
    if bits & (PAST | PARTICIPLE):
        return bool(bits & PAST) or not (bits & ADJECTIVE and following & NOUN)
    return bool(bits & (PREPOSITION | ADVERB | ADJECTIVE)) and not bits & NOUN


def _is_modifier(sentence: Sentence, at: int, last: int, first: bool) -> bool:
    """Whether this word can stand before the noun of a phrase; `first`: no noun has been met yet."""
    bits, following = sentence.bits[at], sentence.bits[at + 1]
    if bits & ADJECTIVE:
        return True
    if first and bits & (ING | PARTICIPLE) and following & NOUN:
        return True
    if first and bits & ADVERB and following & (ADJECTIVE | PARTICIPLE) and not bits & PREPOSITION:
        return True
    joins = sentence.lower[at] in ("and", ",") and last & ADJECTIVE and not last & NOUN
    return bool(joins) and _is_adjective(following)


def _is_adjective(bits: int) -> bool:
    return bool(bits & ADJECTIVE) and not bits & NOUN


def prepositional_phrase(sentence: Sentence, at: int) -> tuple[int, Phrase] | None:
    """The end of the preposition(s) that start here and the noun phrase after them."""
    lower = sentence.lower
    if lower[at] == "next" and lower[at + 1] == "to":
        end = at + 2
    elif lower[at] in ("in", "on") and lower[at + 1] in ("front", "top") and lower[at + 2] == "of":
        end = at + 3
    elif lower[at] in LOCATIVE:
        end = at + 1
    else:
        return None
    phrase = noun_phrase(sentence, end)
    return (end, phrase) if phrase else None


def no_finite_verb(sentence: Sentence, at: int) -> bool:
    """Whether the caption has no main verb of its own from here on; a subordinate clause may have one."""
    clauses = 0
    before = sentence.bits[at - 1]
    for place in range(at, sentence.size):
        word, bits = sentence.lower[place], sentence.bits[place]
        if word in _RELATIVE:
            clauses += 1
        elif not bits and not word[0].isalnum() and word not in (",", "'s", "’s"):
            return False
        elif _is_finite(sentence, place, before):
            clauses -= 1
            if clauses < 0:
                return False
        before = bits
    return True


def _is_finite(sentence: Sentence, at: int, before: int) -> bool:
    """Whether this word is, or may be, a main verb; `before`: what the word before it can be."""
    word, bits, previous = sentence.lower[at], sentence.bits[at], sentence.lower[at - 1]
    if word in _FINITE:
        return True
    if bits & PRESENT:
        return bool(before & (NOUN | PRONOUN | ADVERB)) or not bits & PLURAL or previous == "and"
    if bits & BASE and previous != "to":
        after_plural = before & PLURAL and not before & SINGULAR
        return bool(after_plural or before & PRONOUN or not bits & (NOUN | ADJECTIVE | PREPOSITION | PAST | PARTICIPLE))
    if bits & PAST and not bits & (PARTICIPLE | NOUN | ADJECTIVE):
        return True
    if bits & (PAST | PARTICIPLE):
        return bool(before & NOUN) and not bits & NOUN and word not in RESULT
    return not bits and bool(before & NOUN) and word.endswith(("s", "ed"))


def can_lower(sentence: Sentence) -> bool:
    """Whether the caption's first word may lose its capital inside a sentence."""
    return bool(sentence.bits[0]) and not sentence.bits[0] & NAME


def is_verb_ing(sentence: Sentence, at: int) -> bool:
    """Whether this token is a participle that tells what the noun before it is doing."""
    bits = sentence.bits[at]
    if not bits & ING or sentence.lower[at] in ("including", "being") or bits & PREPOSITION:
        return False
    following = sentence.bits[at + 1]
    return not (bits & (ADJECTIVE | NOUN) and following & SINGULAR and not following & (DETERMINER | VERB | MASS))


def has_verb(sentence: Sentence, at: int) -> bool:
    """Whether any word from here on is a verb form: of something that happens, not of a thing that is."""
    return any(
        bits & AUXILIARY or (bits & (ING | VERB) and not bits & NOUN and not bits & ADVERB) or word in RESULT
        for word, bits in zip(sentence.lower[at:], sentence.bits[at:], strict=True)
    )
