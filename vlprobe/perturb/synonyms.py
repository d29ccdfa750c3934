"""Paraphrases that replace one word by a synonym from synonyms.txt, but never a word that a flip exchanges."""

from collections.abc import Callable
from typing import NamedTuple

from vlprobe.perturb.grammar import Sentence
from vlprobe.perturb.lexicon import (
    ADJECTIVE,
    ANIMAL,
    DETERMINER,
    HUMAN,
    MASS,
    NOUN,
    NUMBER,
    PLURAL,
    PREPOSITION,
    SINGULAR,
    VERB,
)
from vlprobe.perturb.rewriting import Paraphrase
from vlprobe.perturb.tokens import like, read_resource, takes_an, word_list, words

_SPORTS = word_list("synonyms.sports")
_PLAYING = words("playing play plays watching enjoying")
_EVENTS = word_list("synonyms.events")
_NOT_SIZED = word_list("synonyms.not-sized")
_SNOWED_ON = word_list("synonyms.snowed-on")
_INTENSIFIERS = word_list("synonyms.intensifiers")
_BEFORE_PLANE = words("air sea bi jet float")
_SEATS = words("on in at next beside near around behind under inside outside between atop among")


class Synonym(NamedTuple):
    """A rule that replaces some words by others if a condition holds."""

    words: tuple[str, ...]
    new: str
    condition: str


def _np(sentence: Sentence, start: int, end: int) -> bool:
    return (
        bool(sentence.bits[end] & (DETERMINER | NUMBER | NOUN | ADJECTIVE))
        and not sentence.bits[end] & PREPOSITION
    )


def _noun(sentence: Sentence, start: int, end: int) -> bool:
    return bool(sentence.bits[end] & (NOUN | ADJECTIVE))


def _next_noun(sentence: Sentence, end: int) -> int:
    """Return the parts of speech of the last noun in the phrase that starts at a token."""
    head = 0
    for index in range(end, min(end + 5, sentence.size)):
        bits = sentence.bits[index]
        if not bits & (NOUN | ADJECTIVE) or (head & NOUN and bits & VERB and not bits & SINGULAR):
            break
        head = bits
    return head


def _thing(sentence: Sentence, start: int, end: int) -> bool:
    head = _next_noun(sentence, end)
    return bool(head & NOUN) and not head & (HUMAN | ANIMAL)


def _plural(sentence: Sentence, start: int, end: int) -> bool:
    head = _next_noun(sentence, end)
    return bool(head & PLURAL) and not head & (SINGULAR | MASS)


def _last_noun(sentence: Sentence, start: int) -> int:
    for index in range(start - 1, -1, -1):
        if sentence.bits[index] & NOUN:
            return sentence.bits[index]
    return 0


def _human(sentence: Sentence, start: int, end: int) -> bool:
    return bool(_last_noun(sentence, start) & HUMAN)


def _animate(sentence: Sentence, start: int, end: int) -> bool:
    return bool(_last_noun(sentence, start) & (HUMAN | ANIMAL))


def _noun_end(sentence: Sentence, start: int, end: int) -> bool:
    bits = sentence.bits[end]
    following = sentence.lower[end]
    if sentence.bits[start] & PLURAL and sentence.lower[start - 1] in ("a", "an"):
        return False
    if following in ("'s", "’s") or sentence.lower[start - 1] in _BEFORE_PLANE:
        return False
    return not bits & (NOUN | ADJECTIVE) or bool(bits & VERB)


def _size(sentence: Sentence, start: int, end: int) -> bool:
    following, previous = sentence.lower[end : end + 2], sentence.lower[start - 1]
    if (
        not _thing(sentence, start, end)
        or following[0] == "little"
        or _NOT_SIZED.intersection(following)
    ):
        return False
    return not sentence.bits[start - 1] & ADJECTIVE or previous in ("several", "many")


CONDITIONS: dict[str, Callable[[Sentence, int, int], bool]] = {
    "": lambda sentence, start, end: True,
    "np": _np,
    "noun": _noun,
    "unqualified": lambda sentence, start, end: (
        _noun(sentence, start, end) and sentence.lower[start - 1] not in _INTENSIFIERS
    ),
    "thing": _thing,
    "plural": _plural,
    "human": _human,
    "animate": _animate,
    "noun-end": _noun_end,
    "size": _size,
    "many": lambda sentence, start, end: (
        _plural(sentence, start, end)
        and sentence.lower[start - 1] not in ("how", "so", "too", "as", "very", "not")
        and not sentence.bits[start - 1] & DETERMINER
    ),
    "seat": lambda sentence, start, end: (
        _human(sentence, start, end) and sentence.lower[end] in _SEATS
    ),
    "rest": lambda sentence, start, end: (
        _animate(sentence, start, end) and sentence.lower[end] in _SEATS
    ),
    "game": lambda sentence, start, end: (
        sentence.lower[end] in _SPORTS and sentence.lower[start - 1] in _PLAYING
    ),
    "center": lambda sentence, start, end: (
        _np(sentence, start, end) and not _EVENTS & set(sentence.lower[end : end + 3])
    ),
    "filled": lambda sentence, start, end: (
        _np(sentence, start, end) and sentence.lower[start - 1] not in ("being", "get")
    ),
    "side": lambda sentence, start, end: (
        _np(sentence, start, end) and sentence.lower[start - 1] != "the"
    ),
    "snowy": lambda sentence, start, end: sentence.lower[end] in _SNOWED_ON,
    "bath": lambda sentence, start, end: (
        sentence.lower[start - 1] not in ("bath", "hot") and _noun_end(sentence, start, end)
    ),
}


def _read() -> dict[str, list[Synonym]]:
    table: dict[str, list[Synonym]] = {}
    for line in read_resource("synonyms.txt").splitlines():
        if line.startswith("#") or not line:
            continue
        words, _, line_end = line.partition(" = ")
        new, _, condition = line_end.partition("[")
        entry = Synonym(tuple(words.split()), new.strip(), condition.rstrip("]"))
        table.setdefault(entry.words[0], []).append(entry)
    for entries in table.values():
        entries.sort(key=lambda entry: -len(entry.words))
    return table


SYNONYMS = _read()


def synonyms(sentence: Sentence) -> list[Paraphrase]:
    """Return paraphrases that exchange one word or phrase for a synonym, one for each occurrence where that is safe."""
    out = []
    lower = sentence.lower
    for start, word in enumerate(lower):
        for entry in SYNONYMS.get(word, ()):
            end = start + len(entry.words)
            if tuple(lower[start:end]) == entry.words:
                if CONDITIONS[entry.condition](sentence, start, end):
                    out.append(_exchanged(sentence, start, end, entry.new))
                break
    return [paraphrase for paraphrase in out if paraphrase]


def _exchanged(sentence: Sentence, start: int, end: int, new: str) -> Paraphrase | None:
    text, spans, words = sentence.reading.text, sentence.reading.spans, sentence.reading.words
    if not new:  # the words are left out, and the blank after them
        start_char, end_char = spans[start][0], spans[end][0]
        return Paraphrase(
            text[:start_char] + text[end_char:],
            "synonym",
            "advanced",
            text[start_char:end_char].strip(),
            "",
            ((0, start_char), (end_char, len(text))),
        )
    if any(
        word[:1].isupper() and word not in ("TV", "TVs")
        for word in words[max(start, 1) : end + (start == 0)]
    ):
        return None  # perhaps a name: "Big Ben"
    new_words = new.split()
    if new_words[0] == sentence.lower[start - 1] or new_words[-1] == sentence.lower[end]:
        # "very tiny" to "very very small", "various different" to "different different"
        return None
    start_char, end_char = spans[start][0], spans[end - 1][1]
    put = new[:1].upper() + new[1:] if start == 0 and words[0][:1].isupper() else new
    previous = start_char
    article = ""
    if start and sentence.lower[start - 1] in ("a", "an"):
        right = "an" if takes_an(put) else "a"
        if right != sentence.lower[start - 1]:
            previous = spans[start - 1][0]
            article = like(words[start - 1] + "x", right) + text[spans[start - 1][1] : start_char]
    put = article + put
    return Paraphrase(
        text[:previous] + put + text[end_char:],
        "synonym",
        "advanced",
        text[previous:end_char],
        put,
        ((0, previous), put, (end_char, len(text))),
    )
