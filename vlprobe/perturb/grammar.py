"""Grammar for rewriting captions: find noun phrases, prepositional phrases and main verbs.

Every function returns None or False unless it understands all words involved. The rules then leave the caption
unchanged.
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
from vlprobe.perturb.tokens import Reading, word_list, words

PLAIN = re.compile(r"[A-Za-z0-9 ,'’-]*[. ]*\Z")  # words of a caption that can be parsed


POSSESSIVE = words("his her their its my your our")
INDEFINITE, SEVERAL, DEFINITE, UNCOUNTED = 1, 2, 4, 8  # kinds of determiners, as bits
_KINDS = {
    "a an": INDEFINITE,
    "several many multiple various few both all numerous assorted different": SEVERAL,
    "some": SEVERAL | UNCOUNTED,  # also before a singular noun: "some food"
    "the this that these those his her their its my your our": DEFINITE,
}
_DETERMINERS = {word: kinds for listed, kinds in _KINDS.items() for word in listed.split()}
_OPENING = {*_DETERMINERS, "lots"}  # words that open a noun phrase; numbers do too
# Parts of speech of words in a noun phrase, besides "and" and "," between two adjectives.
_PHRASE_TAGS = NOUN | ADJECTIVE | ADVERB | ING | PARTICIPLE
_QUANTIFIERS = words("few couple lot")  # after an article, with or without "of"
_META = word_list("grammar.meta")
_COLLECTIVE_OF = word_list("grammar.collective-of")
# The others need an "of" phrase.
_COLLECTIVE = _COLLECTIVE_OF | words("crowd team family crew couple")
_RELATIVE = words("that which who whose as while where when because if whom so")
_FINITE = word_list("grammar.finite")
# Participles that describe a state, not an event of the past.
RESULT = word_list("grammar.result")
LOCATIVE = word_list("grammar.locative")


class Phrase(NamedTuple):
    """A noun phrase: the tokens from `start` up to, but not including, `end`."""

    start: int
    end: int
    plural: bool  # takes "are"
    definite: bool
    bare: bool  # a singular count noun without an article, as in "Man riding a wave"
    head: str  # the last noun before any "of", in lowercase
    animate: int  # HUMAN, ANIMAL or 0; for "a group of men", the value for the men
    members: bool  # has several members: plural, or "a group of men"


class Sentence:
    """A caption and the parts of speech of its words, without the final full stop.

    `lower` and `bits` end in blanks, so that rules can look a few words ahead, or one word back from the first, without
    a check.
    """

    def __init__(self, reading: Reading) -> None:
        self.reading = reading
        size = len(reading.lower)
        while size and reading.lower[size - 1] == ".":
            size -= 1
        self.size = size
        self.lower = [*reading.lower[:size], "", "", "", ""]
        self.bits = [TAGS.get(word, 0) for word in self.lower]


def noun_phrase(sentence: Sentence, i: int, of: bool = True) -> Phrase | None:
    """Parse the noun phrase that starts at a token, including any "of" phrase. Return None unless every word of it is
    understood.

    Args:
        sentence: The caption.
        i: The index of the first token.
        of: Whether an "of" phrase is allowed. If not, the result is None if "of" follows the noun.
    """
    kinds, nominal, lower = 0, i, sentence.lower
    if lower[i] in _OPENING or sentence.bits[i] & NUMBER or lower[i].isdigit():
        determiner = _determiner(sentence, i)
        if determiner is None:
            return None
        kinds, nominal = determiner
    if not sentence.bits[nominal] & _PHRASE_TAGS:
        return None
    head = _nouns(sentence, nominal)
    phrase = None if head is None else _up_to_head(sentence, i, head, kinds)
    if phrase is None or head is None:
        return None
    following = lower[head + 1]
    if following == "of":
        return _with_of_phrase(sentence, phrase) if of else None
    if following == "'s" or following == "’s":
        return _possessed(sentence, phrase)
    return None if lower[head] in _COLLECTIVE_OF else phrase


def _determiner(sentence: Sentence, i: int) -> tuple[int, int] | None:
    """Parse the article, quantifier and number that start at a token. Return their kinds (bits), and the index of the
    token after them.

    Return None if they do not open a noun phrase that is understood: "a lot" without "of", "all the", "both of".
    """
    lower = sentence.lower
    kinds, following = _DETERMINERS.get(lower[i], 0), lower[i + 1]
    if kinds == DEFINITE:
        i += 1
    elif kinds == INDEFINITE and following in _QUANTIFIERS:
        if lower[i + 2] == "of":
            i += 1
        elif following == "lot":
            return None
        kinds, i = SEVERAL, i + 2
    elif lower[i] == "lots":
        if following == "of":
            kinds, i = SEVERAL, i + 2
    elif kinds:
        if kinds & SEVERAL and (following == "of" or _DETERMINERS.get(following) == DEFINITE):
            return None
        i += 1
    if sentence.bits[i] & NUMBER or lower[i].isdigit():
        kinds |= INDEFINITE if lower[i] == "one" else SEVERAL
        i += 1
    return kinds, i


def _up_to_head(sentence: Sentence, start: int, head: int, kinds: int) -> Phrase | None:
    """Build the phrase from its determiner, whose kinds are given, to its head; None if they do not agree."""
    noun, bits = sentence.lower[head], sentence.bits[head]
    if noun in _META or (kinds & INDEFINITE and not bits & SINGULAR):
        return None
    if kinds & SEVERAL and not bits & (PLURAL | MASS | ANIMAL):
        return None
    plural = kinds & (SEVERAL | UNCOUNTED) == SEVERAL
    if bits & PLURAL and not plural:
        is_only_plural = not bits & (SINGULAR | MASS)
        plural = is_only_plural or kinds & SEVERAL != 0 or not (kinds or bits & MASS)
    definite, animate = kinds & DEFINITE != 0, bits & (HUMAN | ANIMAL)
    bare = not (kinds or plural) and bits & (SINGULAR | MASS) == SINGULAR
    return Phrase(start, head + 1, plural, definite, bare, noun, animate, plural)


def _possessed(sentence: Sentence, possessor: Phrase) -> Phrase | None:
    """Return the phrase that includes a possessive, such as "a man's hat". It takes the determiner of the possessor."""
    phrase = noun_phrase(sentence, possessor.end + 1)
    if phrase is None or (not phrase.bare and phrase.definite):
        return None
    return phrase._replace(start=possessor.start, definite=possessor.definite, bare=possessor.bare)


def _with_of_phrase(sentence: Sentence, phrase: Phrase) -> Phrase | None:
    """Extend a phrase to include its "of" phrase; None if that is not understood. "A group of men" counts as men."""
    complement = noun_phrase(sentence, phrase.end + 1)
    if complement is None or (complement.bare and phrase.head not in ("slice", "piece")):
        return None
    phrase = phrase._replace(end=complement.end)
    if phrase.head not in _COLLECTIVE:
        return phrase
    if not complement.plural:
        return None
    plural = phrase.plural or phrase.head == "couple"
    return phrase._replace(plural=plural, animate=complement.animate, members=True)


def _nouns(sentence: Sentence, i: int) -> int | None:
    """Return the index of the head among the adjectives and nouns that start at a token; None if there is no noun."""
    head, previous, tags = None, 0, sentence.bits
    stop = i + 7
    while i < stop:  # the blanks after the caption end the phrase
        bits = tags[i]
        if not bits & _PHRASE_TAGS and not previous & ADJECTIVE:
            break
        if head is not None and head == i - 1 and _ends_at(bits, previous, tags[i + 1]):
            break
        if bits & NOUN:
            head = i
        elif not bits & ADJECTIVE and not _is_modifier(sentence, i, previous, head is None):
            break
        previous = bits
        i += 1
    return head if head == i - 1 else None


def _ends_at(bits: int, previous: int, following: int) -> bool:
    """Return whether a noun phrase ends before the next word, given the parts of speech of the surrounding words."""
    if previous & PLURAL and not previous & SINGULAR:
        return True
    if bits & ING:
        return not bits & NOUN or bool(following & DETERMINER and not following & SUBORDINATOR)
    if bits & PRESENT or (bits & BASE and not bits & NOUN):
        return True
    if bits & (PAST | PARTICIPLE):
        return bool(bits & PAST) or not (bits & ADJECTIVE and following & NOUN)
    return bool(bits & (PREPOSITION | ADVERB | ADJECTIVE)) and not bits & NOUN


def _is_modifier(sentence: Sentence, i: int, previous: int, headless: bool) -> bool:
    """Return whether a word that is not an adjective can modify a noun. `headless` means that the phrase has no noun
    before the word.
    """
    bits, following = sentence.bits[i], sentence.bits[i + 1]
    if headless and bits & (ING | PARTICIPLE) and following & NOUN:
        return True
    if (
        headless
        and bits & ADVERB
        and following & (ADJECTIVE | PARTICIPLE)
        and not bits & PREPOSITION
    ):
        return True
    joins = sentence.lower[i] in ("and", ",") and previous & ADJECTIVE and not previous & NOUN
    return bool(joins and following & ADJECTIVE and not following & NOUN)


def prepositional_phrase(sentence: Sentence, i: int) -> tuple[int, Phrase] | None:
    """Parse the prepositional phrase that starts at a token; None if there is none.

    Returns:
        The index of the token after the preposition, and the noun phrase.
    """
    lower = sentence.lower
    if lower[i] == "next" and lower[i + 1] == "to":
        end = i + 2
    elif lower[i] in ("in", "on") and lower[i + 1] in ("front", "top") and lower[i + 2] == "of":
        end = i + 3
    elif lower[i] in LOCATIVE:
        end = i + 1
    else:
        return None
    phrase = noun_phrase(sentence, end)
    return (end, phrase) if phrase else None


def no_finite_verb(sentence: Sentence, i: int) -> bool:
    """Return whether a caption has no main verb from a token on. Verbs in subordinate clauses do not count."""
    clauses = 0
    previous = sentence.bits[i - 1]
    for index in range(i, sentence.size):
        word, bits = sentence.lower[index], sentence.bits[index]
        if word in _RELATIVE:
            clauses += 1
        elif not bits and not word[0].isalnum() and word not in (",", "'s", "’s"):
            return False
        elif _is_finite(sentence, index, previous):
            clauses -= 1
            if clauses < 0:
                return False
        previous = bits
    return True


def _is_finite(sentence: Sentence, i: int, left: int) -> bool:
    """Return whether a word is or may be a main verb, given the parts of speech (`left`) of the previous word."""
    word, bits, previous = sentence.lower[i], sentence.bits[i], sentence.lower[i - 1]
    if word in _FINITE:
        return True
    if bits & PRESENT:
        return bool(left & (NOUN | PRONOUN | ADVERB)) or not bits & PLURAL or previous == "and"
    if bits & BASE and previous != "to":
        after_plural = left & PLURAL and not left & SINGULAR
        return bool(
            after_plural
            or left & PRONOUN
            or not bits & (NOUN | ADJECTIVE | PREPOSITION | PAST | PARTICIPLE)
        )
    if bits & PAST and not bits & (PARTICIPLE | NOUN | ADJECTIVE):
        return True
    if bits & (PAST | PARTICIPLE):
        return bool(left & NOUN) and not bits & NOUN and word not in RESULT
    return not bits and bool(left & NOUN) and word.endswith(("s", "ed"))


def can_lower(sentence: Sentence) -> bool:
    """Return whether the first word of a caption can be written in lowercase, because it is not a name."""
    return bool(sentence.bits[0]) and not sentence.bits[0] & NAME


def is_verb_ing(sentence: Sentence, i: int) -> bool:
    """Return whether a token is an -ing form that says what the noun before it does, as in "a man riding a horse"."""
    bits = sentence.bits[i]
    if not bits & ING or sentence.lower[i] in ("including", "being") or bits & PREPOSITION:
        return False
    following = sentence.bits[i + 1]
    return not (
        bits & (ADJECTIVE | NOUN)
        and following & SINGULAR
        and not following & (DETERMINER | VERB | MASS)
    )


def has_verb(sentence: Sentence, i: int) -> bool:
    """Return whether any word from a token on is a verb form that cannot also be a noun."""
    return any(
        bits & AUXILIARY
        or (bits & (ING | VERB) and not bits & NOUN and not bits & ADVERB)
        or word in RESULT
        for word, bits in zip(sentence.lower[i:], sentence.bits[i:], strict=True)
    )
