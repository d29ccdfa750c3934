"""Surface edits: letter case, punctuation and typos, which do not change the meaning of a caption.

Limits: a caption with capitals after its first letter is not changed to lowercase ("US" and "us"), commas stay, and a
typo never makes a word that the lexicon or the caption contains.
"""

from vlprobe.perturb.concepts import named
from vlprobe.perturb.lexicon import ADJECTIVE, ADVERB, ING, NAME, NOUN, TAGS, VERB
from vlprobe.perturb.rewriting import Change
from vlprobe.perturb.tokens import Reading, word_list

FEWEST_LETTERS = 6  # of a word with a slip: it stays easy to read
_ENDINGS = (".", "!", "...")
_KEYS = {  # the keys next to each consonant on a QWERTY keyboard, only consonants
    "b": "vgn",
    "c": "xvd",
    "d": "sfc",
    "f": "dgv",
    "g": "fhb",
    "h": "gjn",
    "k": "jlm",
    "l": "k",
    "m": "nk",
    "n": "bmh",
    "p": "l",
    "r": "tf",
    "s": "dxz",
    "t": "rg",
    "v": "cbf",
    "w": "qs",
}
# English words outside the lexicon that a slip makes of a word of the lexicon or of 25,010 captions of COCO.
_OTHER_WORDS = word_list("surface.other-words")


def cases(reading: Reading) -> list[Change]:
    """Return the caption in other letter cases: all lowercase, all uppercase, and with every word capitalized."""
    title = text = reading.text
    for (start, _), word in zip(reading.spans, reading.words, strict=True):
        if word[:1].isalpha():
            title = title[:start] + word[:1].upper() + title[start + 1 :]
    forms = {"upper": text.upper(), "title": title}
    if not any(letter.isupper() for letter in text[1:]):
        forms["lower"] = text.lower()
    return [Change(new, f"case:{name}") for name, new in forms.items() if new != text]


def punctuations(reading: Reading) -> list[Change]:
    """Return the caption with other endings: a period, no punctuation, an exclamation mark, an ellipsis."""
    text = reading.text
    stem = text.rstrip(" .")
    if not stem[-1:].isalnum():
        return []
    ending = text[len(stem) :].strip()
    if ending not in ("", *_ENDINGS):
        return []
    names = {"": "none", ".": "stop", "!": "exclamation", "...": "ellipsis"}
    return [
        Change(stem + new, f"punctuation:{names[new]}", ending, new)
        for new in names
        if new != ending
    ]


def typos(reading: Reading) -> list[Change]:
    """Return the caption with one word misspelled: either two inner letters exchanged, or a neighboring key hit."""
    caption_words = frozenset(reading.lower)
    out = []
    for (start, end), word, lower in zip(reading.spans, reading.words, reading.lower, strict=True):
        if not _can_slip(word, lower):
            continue
        for rule, slip in (("transposed", _transposed(lower)), ("key", _wrong_key(lower))):
            is_word = slip in TAGS or slip in _OTHER_WORDS or slip in caption_words
            if slip and not is_word and not named(slip):
                new = word[0] + slip[1:]
                text = reading.text[:start] + new + reading.text[end:]
                out.append(Change(text, f"typo:{rule}", word, new))
    return out


def _can_slip(word: str, lower: str) -> bool:
    bits = TAGS.get(lower, 0)
    is_content = bits & (NOUN | VERB | ING | ADJECTIVE | ADVERB) and not bits & NAME
    return bool(
        len(word) >= FEWEST_LETTERS
        and word.isascii()
        and word[1:].isalpha()
        and word[1:].islower()
        and is_content
    )


def _transposed(word: str) -> str:
    """Exchange two different neighboring letters near the middle of a word, but never the first or the last letter."""
    middle = len(word) // 2
    for i in (middle, middle - 1, middle + 1):
        if 0 < i < len(word) - 2 and word[i] != word[i + 1]:
            return word[:i] + word[i + 1] + word[i] + word[i + 2 :]
    return ""


def _wrong_key(word: str) -> str:
    """Replace the consonant nearest to the middle of a word with one from a neighboring key."""
    middle = len(word) // 2
    for i in (middle, middle - 1, middle + 1):
        if 0 < i < len(word) - 1 and word[i] in _KEYS:
            return word[:i] + _KEYS[word[i]][0] + word[i + 1 :]
    return ""
