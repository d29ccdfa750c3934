"""Paraphrases by one synonym, from the curated table synonyms.txt; never a word that a flip exchanges."""

from collections.abc import Callable
from importlib.resources import files
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
from vlprobe.perturb.paraphrase import Paraphrase
from vlprobe.perturb.tokens import like, takes_an

_SPORTS = frozenset("tennis baseball soccer football basketball volleyball hockey golf polo cricket rugby frisbee chess "
                    "cards softball badminton wii".split())  # fmt: skip
_AT_WORK = frozenset("player field park team game skate street wooden".split())


class Synonym(NamedTuple):
    """Words, and what to put for them where the condition holds."""

    words: tuple[str, ...]
    new: str
    condition: str


def _np(sentence: Sentence, start: int, end: int) -> bool:
    return bool(sentence.tags(end) & (DETERMINER | NUMBER | NOUN | ADJECTIVE)) and not sentence.tags(end) & PREPOSITION


def _noun(sentence: Sentence, start: int, end: int) -> bool:
    return bool(sentence.tags(end) & (NOUN | ADJECTIVE))


def _next_noun(sentence: Sentence, end: int) -> int:
    """What the head of the nouns and adjectives that start here can be."""
    head = 0
    for place in range(end, min(end + 5, sentence.size)):
        bits = sentence.bits[place]
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
    for place in range(start - 1, -1, -1):
        if sentence.bits[place] & NOUN and not (sentence.bits[place] & VERB and place == start - 1 and place > 0 and False):
            return sentence.bits[place]
    return 0


def _human(sentence: Sentence, start: int, end: int) -> bool:
    return bool(_last_noun(sentence, start) & HUMAN)


def _animate(sentence: Sentence, start: int, end: int) -> bool:
    return bool(_last_noun(sentence, start) & (HUMAN | ANIMAL))


def _place(sentence: Sentence, start: int, end: int) -> bool:
    return bool(sentence.tags(end) & PREPOSITION) or sentence.word(end) == "next"


def _noun_end(sentence: Sentence, start: int, end: int) -> bool:
    return not sentence.tags(end) & NOUN and not sentence.tags(end) & ADJECTIVE


CONDITIONS: dict[str, Callable[[Sentence, int, int], bool]] = {
    "": lambda sentence, start, end: True,
    "np": _np,
    "noun": _noun,
    "thing": _thing,
    "plural": _plural,
    "human": _human,
    "animate": _animate,
    "human-place": lambda sentence, start, end: _human(sentence, start, end) and _place(sentence, start, end),
    "animate-place": lambda sentence, start, end: _animate(sentence, start, end) and _place(sentence, start, end),
    "noun-end": _noun_end,
    "game": lambda sentence, start, end: sentence.word(end) in _SPORTS,
    "plane": lambda sentence, start, end: _noun_end(sentence, start, end),
    "kid": lambda sentence, start, end: _noun_end(sentence, start, end),
    "snowy": lambda sentence, start, end: _thing(sentence, start, end) and sentence.word(end) not in ("day", "weather"),
    "bath": lambda sentence, start, end: sentence.word(start - 1) not in ("bath", "hot") and _noun_end(sentence, start, end),
    "flying": lambda sentence, start, end: sentence.word(start - 1) in ("flying", "flies"),
}


def _read() -> dict[str, list[Synonym]]:
    table: dict[str, list[Synonym]] = {}
    for line in files("vlprobe.perturb").joinpath("synonyms.txt").read_text(encoding="utf-8").splitlines():
        if line.startswith("#") or not line:
            continue
        words, _, rest = line.partition(" = ")
        new, _, condition = rest.partition("[")
        entry = Synonym(tuple(words.split()), new.strip(), condition.rstrip("]"))
        table.setdefault(entry.words[0], []).append(entry)
    for entries in table.values():
        entries.sort(key=lambda entry: -len(entry.words))
    return table


SYNONYMS = _read()


def synonyms(sentence: Sentence) -> list[Paraphrase]:
    """The caption with one word or phrase exchanged for a synonym; one paraphrase for each place where that is safe."""
    out = []
    lower = sentence.lower
    for start, word in enumerate(lower[: sentence.size]):
        for entry in SYNONYMS.get(word, ()):
            end = start + len(entry.words)
            if tuple(lower[start:end]) == entry.words:
                if CONDITIONS[entry.condition](sentence, start, end):
                    out.append(_exchanged(sentence, start, end, entry.new))
                break
    return [one for one in out if one]


def _exchanged(sentence: Sentence, start: int, end: int, new: str) -> Paraphrase | None:
    text, spans, words = sentence.reading.text, sentence.reading.spans, sentence.reading.words
    if not new:  # the words are left out, and the blank after them
        first, last = spans[start][0], spans[end][0]
        return Paraphrase(text[:first] + text[last:], "synonym", "advanced", text[first:last].strip(), "",
                          ((0, first), (last, len(text))))  # fmt: skip
    if any(word[:1].isupper() for word in words[max(start, 1) : end]):
        return None
    first, last = spans[start][0], spans[end - 1][1]
    put = like(words[start] if len(words[start]) > 1 or start else "A" if words[start].isupper() else "a", new)
    source = text[first:last]
    if put.isupper() and not source.isupper():
        put = new[:1].upper() + new[1:]
    before = first
    article = ""
    if start and sentence.lower[start - 1] in ("a", "an"):
        right = "an" if takes_an(put) else "a"
        if right != sentence.lower[start - 1]:
            before = spans[start - 1][0]
            article = like(words[start - 1] + "x", right) + text[spans[start - 1][1] : first]
    put = article + put
    return Paraphrase(text[:before] + put + text[last:], "synonym", "advanced", text[before:last], put,
                      ((0, before), put, (last, len(text))))  # fmt: skip
