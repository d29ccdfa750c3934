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
    TAGS,
    VERB,
)
from vlprobe.perturb.tokens import Reading

PLAIN = re.compile(r"[A-Za-z0-9 ,'’-]*[. ]*\Z")  # what can stand in a caption that is parsed at all


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


ARTICLES = _words("a an")
_DEFINITE = _words("the this that these those his her their its my your our")
POSSESSIVE = _words("his her their its my your our")
_SEVERAL = _words("several many multiple various few some both all numerous assorted different")
_META = _words(
    "picture pictures photo photos photograph photographs image images view views shot close-up closeup scene side "
    "selfie snapshot portrait drawing sketch display bit type kind sort series variety lot couple there someone"
)
_COLLECTIVE = _words("group bunch pair herd flock set row line stack pile crowd team family collection assortment array "
                     "number crew cluster")  # fmt: skip
_RELATIVE = _words("that which who whose as while where when because if whom so")
_FINITE = _words("is are was were has have had does do did can will would could should may might must isn't aren't it's "
                 "that's there's doesn't don't can't he's she's they're cannot")  # fmt: skip
RESULT = _words(  # participles that describe a state, not an event of the past
    "parked covered filled topped seated stacked lined surrounded decorated placed displayed dressed made attached mounted "
    "arranged loaded painted served tied stuffed piled located gathered wrapped perched docked tethered draped crowded "
    "packed set hung scattered shown seen taken cut sliced cooked prepared held worn carved named pulled ridden driven "
    "left used built connected reflected stored posed moored anchored strapped nestled spread sprawled huddled curled "
    "herded chopped grilled fried baked peeled eaten lit written flown carried thrown kept laid bent crossed closed opened"
)
LOCATIVE = _words("on in at near behind under beside between inside outside above below against among atop beneath "
                  "underneath alongside")  # fmt: skip


class Phrase(NamedTuple):
    """A noun phrase: tokens start to end (exclusive)."""

    start: int
    end: int
    plural: bool  # takes "are"
    definite: bool
    bare: bool  # a singular count noun without an article, as in "Man riding a wave"
    head: str  # the last noun before any "of", in lower case
    animate: int  # HUMAN, ANIMAL or 0; of "a group of men" that of the men
    members: bool  # several members: plural, or "a group of men"


class Sentence:
    """A reading with the tags of its words, cut before the final full stop."""

    def __init__(self, reading: Reading) -> None:
        self.reading = reading
        self.lower = reading.lower
        self.size = len(self.lower)
        while self.size and self.lower[self.size - 1] == ".":
            self.size -= 1
        self.bits = [TAGS.get(word, 0) for word in self.lower[: self.size]]

    def word(self, at: int) -> str:
        """The token in lower case; empty at the end."""
        return self.lower[at] if at < self.size else ""

    def tags(self, at: int) -> int:
        """What the token can be; 0 at the end."""
        return self.bits[at] if at < self.size else 0


def noun_phrase(sentence: Sentence, at: int, of: bool = True) -> Phrase | None:
    """The noun phrase that starts here, with its "of" phrase; None unless every word of it is understood."""
    start, word, tags = at, sentence.word, sentence.tags
    first = word(at)
    article = many = definite = False
    if first in ARTICLES:
        article, at = True, at + 1
        if word(at) in ("few", "couple", "lot"):
            article, many = False, True
            at += 2 if word(at + 1) == "of" else 1
            if word(at - 1) == "lot":
                return None
    elif first == "lots" and word(at + 1) == "of":
        many, at = True, at + 2
    elif first in _SEVERAL:
        many, at = True, at + 1
        if word(at) in _DEFINITE or word(at) == "of":
            return None
    elif first in _DEFINITE:
        definite, at = True, at + 1
    if tags(at) & NUMBER or word(at).isdigit():
        if word(at) == "one":
            article = True
        else:
            many = True
        at += 1
    head = _nouns(sentence, at)
    if head is None:
        return None
    noun, end = word(head), head + 1
    bits = tags(head)
    if noun in _META and noun not in ("couple", "side"):
        return None
    if article and not bits & SINGULAR or (many and not bits & (PLURAL | MASS | ANIMAL)):
        return None
    plural = many and not (first == "some" and not bits & PLURAL) or bool(bits & PLURAL and not bits & (SINGULAR | MASS))
    plural = plural or (bool(bits & PLURAL) and not article and not bits & MASS and not definite)
    animate = bits & (HUMAN | ANIMAL)
    bare = not (article or many or definite or plural) and bool(bits & SINGULAR) and not bits & MASS
    members = plural
    if word(end) == "'s" or word(end) == "’s":
        owned = noun_phrase(sentence, end + 1)
        if owned is None or not owned.bare and owned.definite:
            return None
        return owned._replace(start=start, definite=definite, bare=bare)
    if word(end) == "of":
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
    """Where the head of adjectives and nouns that start here stands; None if there is no noun."""
    word, tags = sentence.word, sentence.tags
    head, last, begun = None, 0, at
    while at < sentence.size and at - begun < 7:
        bits = tags(at)
        if last & NOUN and head == at - 1:  # after a noun, what can be a verb is one
            if bits & ING and not (bits & NOUN and not tags(at + 1) & DETERMINER):
                break
            if bits & PRESENT or (bits & BASE and (last & PLURAL and not last & SINGULAR or not bits & NOUN)):
                break
            if bits & (PAST | PARTICIPLE) and not (bits & ADJECTIVE and tags(at + 1) & NOUN and not bits & PAST):
                break
            if bits & (PREPOSITION | ADVERB) and not bits & NOUN:
                break
        if bits & NOUN:
            head = at
        elif bits & ADJECTIVE or (bits & (ING | PARTICIPLE) and tags(at + 1) & NOUN and head is None):
            pass
        elif bits & ADVERB and tags(at + 1) & (ADJECTIVE | PARTICIPLE) and head is None and not bits & PREPOSITION:
            pass
        elif word(at) in ("and", ",") and last & ADJECTIVE and not last & NOUN and _is_adjective(tags(at + 1)):
            pass
        else:
            break
        last = bits
        at += 1
    return head if head is not None and head == at - 1 else None


def _is_adjective(bits: int) -> bool:
    return bool(bits & ADJECTIVE) and not bits & NOUN


def prepositional_phrase(sentence: Sentence, at: int) -> tuple[int, Phrase] | None:
    """The end of the preposition(s) that start here and the noun phrase after them."""
    word = sentence.word
    if word(at) == "next" and word(at + 1) == "to":
        end = at + 2
    elif word(at) in ("in", "on") and word(at + 1) in ("front", "top") and word(at + 2) == "of":
        end = at + 3
    elif word(at) in LOCATIVE:
        end = at + 1
    else:
        return None
    phrase = noun_phrase(sentence, end)
    return (end, phrase) if phrase else None


def no_finite_verb(sentence: Sentence, at: int) -> bool:
    """Whether the rest of the caption has no main verb of its own, so that it can hang on what a rule puts before it."""
    clauses = 0  # subordinate clauses that may still take a finite verb
    before = sentence.tags(at - 1) if at else 0
    for place in range(at, sentence.size):
        word, bits = sentence.lower[place], sentence.bits[place]
        finite = False
        if word in _RELATIVE:
            clauses += 1
        elif word in _FINITE:
            finite = True
        elif bits & PRESENT:
            finite = bool(before & (NOUN | PRONOUN | ADVERB)) or not bits & PLURAL or sentence.word(place - 1) == "and"
        elif bits & BASE and sentence.word(place - 1) != "to":
            finite = bool(before & PLURAL and not before & SINGULAR) or bool(before & PRONOUN) or not bits & (NOUN | ADJECTIVE | PREPOSITION | PAST | PARTICIPLE)
        elif bits & PAST and not bits & (PARTICIPLE | NOUN | ADJECTIVE):
            finite = True
        elif bits & (PAST | PARTICIPLE) and before & NOUN and not bits & NOUN:
            finite = word not in RESULT
        elif not bits:
            if not word[0].isalnum() and word not in (",", "'s", "’s"):
                return False
            finite = before & NOUN > 0 and word.endswith(("s", "ed"))
        if finite:
            clauses -= 1
            if clauses < 0:
                return False
        before = bits
    return True


def can_lower(sentence: Sentence) -> bool:
    """Whether the caption's first word may lose its capital inside a sentence."""
    return bool(sentence.bits) and bool(sentence.bits[0]) and not sentence.bits[0] & NAME


def is_verb_ing(sentence: Sentence, at: int) -> bool:
    """Whether this token is a participle that tells what the noun before it is doing."""
    bits = sentence.tags(at)
    if not bits & ING or sentence.word(at) in ("including", "being") or bits & PREPOSITION:
        return False
    following = sentence.tags(at + 1)
    return not (bits & (ADJECTIVE | NOUN) and following & SINGULAR and not following & (DETERMINER | VERB | MASS))


def has_verb(sentence: Sentence, at: int) -> bool:
    """Whether any word from here on can only be a verb form."""
    return any(bits & (VERB | AUXILIARY) and not bits & (NOUN | ADJECTIVE) for bits in sentence.bits[at:])
