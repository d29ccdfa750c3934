"""Split captions into words and punctuation marks, and apply the spelling rules that all edits share."""

import re
from functools import cache, cached_property
from importlib.resources import files

TOKEN = re.compile(r"\w+(?:[-'’](?!s\b)\w+)*|['’]s\b|[^\w\s]")

_VOWEL_LETTER_NAMES = frozenset("aefhilmnorsx")
_SOUNDS_LIKE_CONSONANT = re.compile(
    r"eu|ew[ei]|on[ce]e?\b|one-|uni(?!n|m)|us[aeiu]|ut[ie]|u[bcfklrtv]i|ura|uku",
)
_SILENT_H = re.compile(r"hour|hono|hones|heir|8|11\b|18\b")


def words(text: str) -> frozenset[str]:
    """Split text at blanks, and return its words as a set."""
    return frozenset(text.split())


def read_resource(name: str) -> str:
    """Return the content of a text file that is stored next to this module."""
    return files("vlprobe.perturb").joinpath(name).read_text(encoding="utf-8")


@cache  # .7 ms, and each of 52 lists needs it when this package is imported
def _word_lists() -> dict[str, str]:
    lines = read_resource("word_lists.txt").splitlines()
    return dict(line.split(": ") for line in lines if not line.startswith("#"))


def ordered_words(name: str) -> tuple[str, ...]:
    """Return the words in one list in word_lists.txt, in their order."""
    return tuple(_word_lists()[name].split())


def word_list(name: str) -> frozenset[str]:
    """Return the words in one list in word_lists.txt."""
    return words(_word_lists()[name])


def word_table(name: str) -> dict[str, frozenset[str]]:
    """Return all word lists whose name has the form NAME.KEY in word_lists.txt, by KEY."""
    start = f"{name}."
    return {
        key.removeprefix(start): words(text)
        for key, text in _word_lists().items()
        if key.startswith(start)
    }


class Reading:
    """A caption without surrounding blanks, and its tokens."""

    def __init__(self, caption: str) -> None:
        self.text = caption.strip()
        self.words = TOKEN.findall(self.text)
        self.lower = [word.lower() for word in self.words]

    @cached_property  # rules look up the places of many tokens
    def spans(self) -> list[tuple[int, int]]:
        """Start and end index of each token in the caption."""
        out, end = [], 0
        for word in self.words:  # two tokens are separated only by blanks
            start = self.text.index(word, end)
            end = start + len(word)
            out.append((start, end))
        return out


def takes_an(word: str) -> bool:
    """Return whether a word takes "an", judging by its spelling ("hour" and "umbrella" do, "unicorn" does not)."""
    if 1 < len(word) <= 3 and word.isupper():
        return word[0].lower() in _VOWEL_LETTER_NAMES  # an acronym is read letter by letter
    word = word.lower()
    if word[:1] in ("a", "e", "i", "o", "u"):
        return not _SOUNDS_LIKE_CONSONANT.match(word)
    return bool(_SILENT_H.match(word))


def like(pattern: str, word: str) -> str:
    """Return a word in the letter case of a pattern: UPPER, Capitalized, or lower."""
    if len(pattern) > 1 and pattern.isupper():
        return word.upper()
    return word[:1].upper() + word[1:] if pattern[:1].isupper() else word
