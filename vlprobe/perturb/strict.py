"""Flips that stay grammatical and become false. This is the careful rule set, called `strict`.

A word is exchanged only if it is certainly a color, a count or a thing. The article before the word is adapted; for
"one", so are the noun and verb after it. Counts only go up, because "one dog" is still true of two dogs. Words after a
negation stay unchanged, because a street without cars is a street without boats, too.
"""

from collections import Counter
from collections.abc import Sequence

from vlprobe.perturb import lexicon
from vlprobe.perturb.draws import draw, shuffled
from vlprobe.perturb.flips import MIN_LENGTH, VOCABULARY, Flip
from vlprobe.perturb.idioms import bad_color, bad_number, bad_object, fits, same_class_only
from vlprobe.perturb.lexicon import ADJECTIVE, PLURALS, PRESENT, SINGULAR, TAGS, VERBS
from vlprobe.perturb.rewriting import NEGATIVE
from vlprobe.perturb.tokens import Reading, like, takes_an, word_list, words
from vlprobe.perturb.truths import Truths

PLURAL_OF = {
    "person": "people",
    **{word: lexicon.plural_of(word) for word in VOCABULARY["object"] if word != "person"},
}
_CLASSES = (
    words("dog cat horse bird"),
    words("car bus train boat bicycle truck"),
    {"person"},
)


def _flippable() -> dict[str, tuple[str, str, bool]]:
    table = {word: (kind, word, False) for kind, words in VOCABULARY.items() for word in words}
    table |= {plural: ("object", word, True) for word, plural in PLURAL_OF.items()}
    return table | {
        "grey": ("color", "gray", False),
        "bike": ("object", "bicycle", False),
        "bikes": ("object", "bicycle", True),
        "busses": ("object", "bus", True),
        "persons": ("object", "person", True),
    }


# Word in lowercase -> flip type, vocabulary entry, whether it is a plural.
FLIPPABLE = _flippable()
_NEGATIONS = (NEGATIVE - words("empty hardly barely")) | words("lack lacks lacking")
_NEGATIONS_WITH_OF = words("empty emptied free clear devoid void bare instead")
_AFTER_NEGATION = words("but . ;")
_OFFERS = {
    kind: [word for word in words if kind != "number" or word != "one"]
    for kind, words in VOCABULARY.items()
}


def flips(
    reading: Reading,
    image_truths: Truths,
    item_id: str,
    index: int,
    seed: int,
    dropped: Counter[str],
) -> list[Flip]:
    """Make at most one flip per type: replace the leftmost word that can be flipped with the first randomly drawn word
    that is not true of the image.

    Args:
        reading: The caption.
        image_truths: Facts from all captions of the image, from `truths.truths`.
        item_id: Id of the image. With the index and the seed, it determines the random draws.
        index: Index of the caption.
        seed: Seed of the run.
        dropped: Counter, by reason, for words that are left unchanged and for drawn words that are rejected because
            they are true.
    """
    flip_by_kind: dict[str, Flip] = {}
    for i, word in enumerate(reading.lower):
        if word not in FLIPPABLE:
            continue
        kind, source, plural = FLIPPABLE[word]
        if kind in flip_by_kind:
            continue
        reason = _why_not(reading, i, kind, source, plural)
        if reason:
            dropped[f"flip:{kind}, {reason}"] += 1
            continue
        flip = _flip(reading, i, image_truths, draw(seed, item_id, index, f"flip:{kind}"), dropped)
        if flip:
            flip_by_kind[kind] = flip
    return [flip_by_kind[kind] for kind in VOCABULARY if kind in flip_by_kind]


def _why_not(reading: Reading, i: int, kind: str, source: str, plural: bool) -> str:
    if reading.words[i][:1].isupper() and i and not reading.text.isupper():
        return "part of a name"
    if _is_negated(reading.lower, i):
        return "under a negation"
    if kind == "color":
        return bad_color(reading.lower, i, source)
    if kind == "number":
        return bad_number(reading.lower, i)
    return bad_object(reading.lower, i, source, plural)


def _is_negated(lower: Sequence[str], i: int) -> bool:
    """Return whether a word is in the scope of a negation, which ends at words such as "but".

    >>> _is_negated("a street empty of people".split(), 4)
    True
    >>> _is_negated("no people but a dog".split(), 4)
    False
    """
    for place in range(i - 1, -1, -1):
        if lower[place] in _AFTER_NEGATION:
            return False
        if lower[place] in _NEGATIONS or lower[place].endswith(("n't", "n’t")):
            return True
        if lower[place] in _NEGATIONS_WITH_OF and lower[place + 1] == "of":
            return True
    return False


def _flip(
    reading: Reading,
    i: int,
    image_truths: Truths,
    number: int,
    dropped: Counter[str],
) -> Flip | None:
    kind, source, _ = FLIPPABLE[reading.lower[i]]
    offers = _OFFERS[kind]
    if kind == "object" and same_class_only(reading.lower, i):
        offers = next([word for word in offers if word in of] for of in _CLASSES if source in of)
    if kind == "number":
        offers = [
            word for word in offers if VOCABULARY[kind].index(word) > VOCABULARY[kind].index(source)
        ]
    for word in shuffled(offers, number):
        if word == source or not fits(reading.lower, i, word):
            continue
        if not image_truths.allow(kind, source, word):
            dropped[f"flip:{kind}, still true of the image"] += 1
            continue
        done = exchanged(reading, i, word)
        if done is None:
            dropped[f"flip:{kind}, agreement not certain"] += 1
            return None
        return Flip(kind, done[0], reading.words[i], done[1], reading.spans[i][0], word)
    dropped[f"flip:{kind}, no word left"] += 1
    return None


def exchanged(reading: Reading, i: int, word: str) -> tuple[str, str] | None:
    """Exchange a token for a vocabulary word. Return the new text and the word as written in it, or None if the
    exchange is not safe.

    The new word takes the number and case of the old one. An article directly before it, and the noun
    and verb that a former "one" governs, are adapted.
    """
    _, source, plural = FLIPPABLE[reading.lower[i]]
    new = like(reading.words[i], PLURAL_OF[word] if plural else word)
    changes = {i: new}
    if source == "one":
        agreement = _pluralised(reading, i)
        if agreement is None:
            return None
        changes |= agreement
    if i and reading.lower[i - 1] in ("a", "an"):
        changes[i - 1] = _article(reading, i - 1, new)
    text = reading.text
    for token, put in sorted(changes.items(), reverse=True):
        start, end = reading.spans[token]
        text = text[:start] + put + text[end:]
    return (text, new) if len(text) >= MIN_LENGTH else None


def _article(reading: Reading, i: int, previous: str) -> str:
    """Return "a" or "an", whichever precedes the new word, in the letter case of the old article."""
    if reading.text.isupper():
        return "AN" if takes_an(previous.lower()) else "A"
    article = "an" if takes_an(previous) else "a"
    return article.capitalize() if reading.words[i][0].isupper() else article


_VERB_AFTER_ONE = {"is": "are", "was": "were", "has": "have", "does": "do"}
_SINGULAR_LATER = word_list("strict.singular-later")


def _pluralised(reading: Reading, i: int) -> dict[int, str] | None:
    """Return the changes that follow if "one" becomes a larger number: the noun's, and those of a verb after it."""
    lower = reading.lower
    noun = i + 1
    while (
        noun + 1 < len(lower)
        and TAGS.get(lower[noun], 0) & ADJECTIVE
        and TAGS.get(lower[noun + 1], 0) & (SINGULAR | ADJECTIVE)
    ):
        noun += 1
    if (
        noun >= len(lower)
        or lower[noun] not in PLURALS
        or _SINGULAR_LATER.intersection(lower[noun:])
    ):
        return None
    changes = {noun: like(reading.words[noun], PLURALS[lower[noun]])}
    following = lower[noun + 1] if noun + 1 < len(lower) else "."
    bits = TAGS.get(following, 0)
    if following in _VERB_AFTER_ONE:
        changes[noun + 1] = like(reading.words[noun + 1], _VERB_AFTER_ONE[following])
    elif bits & PRESENT:
        changes[noun + 1] = like(reading.words[noun + 1], VERBS[following].base)
    elif not (
        bits & (lexicon.PREPOSITION | lexicon.ING | lexicon.CONJUNCTION) or not following.isalnum()
    ):
        return None
    return changes
