"""The words that caption edits understand, with their parts of speech, plurals and verb forms, from lexicon.txt.

A word can have several parts of speech ("walk" is a noun and a verb), so they are stored as a set of bits.
"""

from typing import NamedTuple

from vlprobe.perturb.tokens import ordered_words, read_resource, word_list

SINGULAR, PLURAL, MASS, ADJECTIVE, ADVERB, PREPOSITION = 1, 2, 4, 8, 16, 32
DETERMINER, PRONOUN, AUXILIARY, SUBORDINATOR, CONJUNCTION, NUMBER = 64, 128, 256, 512, 1024, 2048
BASE, PRESENT, ING, PAST, PARTICIPLE = 4096, 8192, 16384, 32768, 65536
HUMAN, ANIMAL, NAME = 131072, 262144, 524288
NOUN = SINGULAR | PLURAL | MASS
VERB = BASE | PRESENT | ING | PAST | PARTICIPLE

NUMBERS = ordered_words("lexicon.numbers")


class Verb(NamedTuple):
    """A verb in its five forms."""

    base: str
    present: str
    ing: str
    past: str
    participle: str


def plural_of(noun: str) -> str:
    """Form the regular plural of an English noun, judging only by its spelling."""
    if noun.endswith(("s", "x", "z", "ch", "sh")):
        return noun + "es"
    if noun.endswith("y") and noun[-2:-1] not in "aeiou":
        return noun[:-1] + "ies"
    return noun + "s"


def regular(base: str) -> Verb:
    """Form all forms of a regular verb, judging only by its spelling. The last consonant is never doubled."""
    stem = base[:-1] if base.endswith("e") else base
    past = base[:-1] + "ied" if base.endswith("y") and base[-2] not in "aeiou" else stem + "ed"
    ing = base + "ing" if base.endswith(("ee", "ye", "oe")) else stem + "ing"
    return Verb(base, plural_of(base), ing, past, past)


_CLASSES = {
    "mass": MASS,
    "plural": PLURAL,
    "adj": ADJECTIVE,
    "adv": ADVERB,
    "prep": PREPOSITION,
    "det": DETERMINER,
    "pronoun": PRONOUN,
    "aux": AUXILIARY,
    "sub": SUBORDINATOR,
    "conj": CONJUNCTION,
    "name": NAME,  # keeps its capital inside a sentence
}
_COUNTED = {"noun": 0, "human": HUMAN, "animal": ANIMAL}
_DOUBLED = word_list("lexicon.doubled")

TAGS: dict[str, int] = {}  # word in lowercase -> its parts of speech
PLURALS: dict[str, str] = {}  # singular -> plural, of nouns that can be counted
SINGULARS: dict[str, str] = {}
VERBS: dict[str, Verb] = {}  # any form -> all forms


def _add(word: str, bits: int) -> None:
    TAGS[word] = TAGS.get(word, 0) | bits


def _add_verb(entry: str) -> None:
    base, *irregular = entry.split("/")
    usual = regular(base + base[-1]) if base in _DOUBLED else regular(base)
    usual = usual._replace(base=base, present=plural_of(base))
    forms = Verb(
        base,
        *(
            form or regular_form
            for form, regular_form in zip((irregular + [""] * 4)[:4], usual[1:], strict=True)
        ),
    )
    for form, bit in zip(forms, (BASE, PRESENT, ING, PAST, PARTICIPLE), strict=True):
        _add(form, bit)
        VERBS.setdefault(form, forms)


def _read() -> None:
    for line in read_resource("lexicon.txt").splitlines():
        kind, _, words = line.partition(": ")
        if kind.startswith("#"):
            continue
        for entry in words.split():
            if kind == "verb":
                _add_verb(entry)
            elif kind in _COUNTED:
                singular, _, plural = entry.partition("/")
                plural = plural or plural_of(singular)
                _add(singular, SINGULAR | _COUNTED[kind])
                _add(plural, PLURAL | _COUNTED[kind])
                PLURALS.setdefault(singular, plural)
                SINGULARS.setdefault(plural, singular)
            else:
                _add(entry, _CLASSES[kind])
    for number in NUMBERS:
        _add(number, NUMBER)


_read()
