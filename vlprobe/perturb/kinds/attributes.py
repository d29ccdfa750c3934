"""Attribute swap: two things in a caption exchange their colors, sizes, ages, materials or counts.

"A red car and a blue bus" becomes "A blue car and a red bus": the same words, attached to the other thing. The rules
swap two attributes only if they are different, are of one sort (such as color), precede different nouns, and are the
only two attributes of that sort in the caption. Colors that people confuse (gray and white) stay unchanged. So does a
pair if another caption of the image already describes a thing as the swap would.

Source of the idea: ARO (arXiv 2210.01936), attribution; Winoground (arXiv 2204.03162).
"""

from collections.abc import Iterable, Sequence

from vlprobe.perturb.grammar import Sentence
from vlprobe.perturb.idioms import bad_color, bad_number
from vlprobe.perturb.lexicon import ADJECTIVE, DETERMINER, NOUN, PLURAL
from vlprobe.perturb.rewriting import Change, is_plain
from vlprobe.perturb.tokens import Reading, like, takes_an, words
from vlprobe.perturb.truths import NEAR

_COLORS = frozenset((*NEAR, "grey"))
_SIZES = {
    **dict.fromkeys(("small", "little", "tiny"), "small"),
    **dict.fromkeys(("large", "big", "huge"), "large"),
}
_AGES = {"young": "young", "old": "old", "older": "old", "elderly": "old"}
_MATERIALS = words("wooden metal plastic brick stone leather wicker cardboard concrete")
_COUNTS = words("two three four five six seven")
# "little girl" is no small one
_IDIOM = words("hair haired eyed boy girl lady body screen part group")
_SHADE = words("- very light dark pale bright too so")


def swaps(sentence: Sentence, siblings: Sequence[Reading] = ()) -> list[Change]:
    """Return the caption with two attributes exchanged, once for each exchange that the rules allow.

    Args:
        sentence: The caption.
        siblings: All captions of the same image.
    """
    if not is_plain(sentence):
        return []
    out = []
    for sort, sense in _SORTS.items():
        attributes = [i for i in range(sentence.size) if sentence.lower[i] in sense]
        if len(attributes) != 2:
            continue
        left, right = attributes
        if _can_swap(sentence, sort, left, right):
            out += _swapped(sentence, sort, left, right, siblings)
    return out


_SORTS: dict[str, dict[str, str]] = {
    "color": {color: color.replace("grey", "gray") for color in _COLORS},
    "size": _SIZES,
    "age": _AGES,
    "material": {material: material for material in _MATERIALS},
    "number": {count: count for count in _COUNTS},
}


def _can_swap(sentence: Sentence, sort: str, left: int, right: int) -> bool:
    lower, sense = sentence.lower, _SORTS[sort]
    left_sense, right_sense = sense[lower[left]], sense[lower[right]]
    if left_sense == right_sense or (sort == "color" and right_sense in NEAR[left_sense]):
        return False
    heads = [_head(sentence, i) for i in (left, right)]
    if "" in heads or heads[0] == heads[1] or right - left < 3:
        return False
    for i in (left, right):
        bad = bad_color(lower, i, sense[lower[i]]) if sort == "color" else ""
        if sort == "number":
            bad = bad_number(lower, i)
            if not sentence.bits[i + 1] & (PLURAL | ADJECTIVE):
                return False
        if bad or lower[i + 1] in _IDIOM or lower[i - 1] in _SHADE:
            return False
    return True


def _head(sentence: Sentence, i: int) -> str:
    """Return the noun that an attribute describes (the last noun in the phrase after it); "" if there is none."""
    noun = ""
    for index in range(i + 1, min(i + 5, sentence.size)):
        bits = sentence.bits[index]
        if bits & NOUN:
            noun = sentence.lower[index]
        elif noun or not bits & ADJECTIVE or bits & DETERMINER:
            break
    return noun


def _swapped(
    sentence: Sentence, sort: str, left: int, right: int, siblings: Iterable[Reading]
) -> list[Change]:
    reading, lower = sentence.reading, sentence.lower
    pairs = {(lower[right], _head(sentence, left)), (lower[left], _head(sentence, right))}
    for sibling in siblings:
        if any(_says(sibling.lower, attribute, noun) for attribute, noun in pairs):
            return []
    new_words = {
        left: like(reading.words[left], lower[right]),
        right: like(reading.words[right], lower[left]),
    }
    for i in (left, right):
        if i and lower[i - 1] in ("a", "an"):
            article = "an" if takes_an(new_words[i]) else "a"
            new_words[i - 1] = like(reading.words[i - 1], article)
    text = reading.text
    for i, word in sorted(new_words.items(), reverse=True):
        start, end = reading.spans[i]
        text = text[:start] + word + text[end:]
    source, target = f"{lower[left]}, {lower[right]}", f"{lower[right]}, {lower[left]}"
    return [Change(text, f"attribute-swap:{sort}", source, target)]


def _says(lower: Sequence[str], attribute: str, noun: str) -> bool:
    """Return whether a caption has the attribute before the noun, with at most two words in between."""
    return any(word == attribute and noun in lower[i + 1 : i + 4] for i, word in enumerate(lower))
