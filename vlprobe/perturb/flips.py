"""Flips as in the paper: one word from a small vocabulary is exchanged for another. Words are matched only by spelling.

Source: LGIP, section 3.2 and appendix A.2. The careful rule set is in strict.py.
"""

import re
from typing import NamedTuple

from vlprobe.perturb.draws import draw
from vlprobe.perturb.tokens import ordered_words

VOCABULARY = {kind: ordered_words(f"flips.{kind}") for kind in ("color", "number", "object")}
TYPES = tuple(VOCABULARY)
MIN_LENGTH = 5  # characters; a shorter edit is dropped (appendix A.2)

_KIND = {word: kind for kind, words in VOCABULARY.items() for word in words}
_WORD = re.compile(r"\w+")
_PATTERNS = {kind: re.compile(rf"\b(?:{'|'.join(words)})\b") for kind, words in VOCABULARY.items()}


class Flip(NamedTuple):
    """A caption in which one word was exchanged for another, and the two words."""

    type: str  # color, number or object
    text: str
    source: str  # as written in the caption
    target: str  # as written in the text
    start: int  # where the source starts in the stripped caption
    word: str  # the target's entry in VOCABULARY, "" for a word of another vocabulary


def literal(caption: str, item_id: str, index: int, seed: int) -> list[Flip]:
    """Make at most one flip per type: replace the leftmost vocabulary word (case-sensitive) with another word, drawn
    uniformly.

    Nothing else changes: articles, plurals and idioms are ignored. Unlike the paper's single
    random.Random(42), the draw depends only on the caption, so the order of a dataset does not
    matter.
    """
    caption = caption.strip()
    out: list[Flip] = []
    # Far faster than three searches.
    present = {_KIND[word] for word in _WORD.findall(caption) if word in _KIND}
    for kind in TYPES:
        match = _PATTERNS[kind].search(caption) if kind in present else None
        if match is None:
            continue
        source = match.group()
        others = [word for word in VOCABULARY[kind] if word != source]
        target = others[draw(seed, item_id, index, f"flip:{kind}") % len(others)]
        text = substituted(caption, match.start(), source, target)
        if len(text) >= MIN_LENGTH and all(text != flip.text for flip in out):
            out.append(Flip(kind, text, source, target, match.start(), target))
    return out


def literal_again(paraphrase: str, flip: Flip) -> str | None:
    """Apply a flip to a paraphrase by replacing the first occurrence of the flip's source word. Return None if the
    paraphrase does not contain the word.
    """
    match = re.search(rf"\b{re.escape(flip.source)}\b", paraphrase)
    return substituted(paraphrase, match.start(), flip.source, flip.target) if match else None


def substituted(text: str, i: int, source: str, target: str) -> str:
    """Return the text with the source word at index `i` replaced by the target."""
    return text[:i] + target + text[i + len(source) :]
