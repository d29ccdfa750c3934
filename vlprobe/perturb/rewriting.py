"""Build rewritten captions from new words and parts of the original: paraphrases, and changes of meaning."""

from collections.abc import Sequence
from typing import NamedTuple

from vlprobe.perturb.grammar import PLAIN, Sentence, can_lower
from vlprobe.perturb.tokens import word_list, words

NEGATIVE = word_list("rewriting.negative")
# A word that changes meaning, or reads badly, next to a negation or after an exchange of phrases.
UNDER_POLARITY = words("some any both already still also too yet only almost either but except")


Segment = str | tuple[int, int]  # new words, or a span of the caption that is kept


class Paraphrase(NamedTuple):
    """A paraphrased caption, and the rule that made it."""

    text: str
    rule: str
    subtype: str  # simple or advanced
    source: str = ""
    target: str = ""
    # In the order of the text; a kept stretch may differ in the case of its first letter
    segments: tuple[Segment, ...] = ()

    def where(self, position: int) -> int | None:
        """Map an index in the stripped caption to the index in the paraphrase; None if the character was replaced."""
        i = 0
        for segment in self.segments:
            if isinstance(segment, str):
                i += len(segment)
                continue
            start, end = segment
            if start <= position < end:
                return i + position - start
            i += end - start
        return None


def rewritten(
    sentence: Sentence,
    rule: str,
    segments: Sequence[Segment],
    source: str = "",
    target: str = "",
) -> Paraphrase | None:
    """Build a paraphrase by joining segments with blanks. The caption's final full stop and initial capital are kept.
    Return None if a name would lose its capital.

    Args:
        sentence: The caption.
        rule: Id of the rule.
        segments: New words, or (first, last + 1) for tokens kept from the caption.
        source: The removed words.
        target: The inserted words.
    """
    text, spans = sentence.reading.text, sentence.reading.spans
    placed: list[Segment] = []
    out = ""
    for segment in segments:
        begins = segment if isinstance(segment, str) else sentence.lower[segment[0]]
        joint = " " if out and not begins.startswith(",") else ""
        if isinstance(segment, str):
            out += joint + segment
            placed.append(joint + segment)
            continue
        first_token, end = segment
        if first_token >= end:
            continue
        start, stop = spans[first_token][0], spans[end - 1][1]
        stretch = text[start:stop]
        if first_token == 0 and out and stretch[:1].isupper():
            if not can_lower(sentence):
                return None
            stretch = stretch[:1].lower() + stretch[1:]
        if joint:
            placed.append(joint)
        out += joint + stretch
        placed.append((start, stop))
    if text[:1].isupper():
        out = out[:1].upper() + out[1:]
    if text.endswith("."):
        out += "."
        placed.append(".")
    return Paraphrase(out, rule, "advanced", source, target, tuple(placed))


def exchanged(sentence: Sentence, rule: str, start: int, end: int, new: str) -> Paraphrase | None:
    """Replace the tokens from `start` up to `end` by new words. Without tokens the words are inserted, and without
    words the tokens are left out. See `rewritten`.
    """
    segments: list[Segment] = [(0, start), *filter(None, [new]), (end, sentence.size)]
    source = " ".join(sentence.reading.words[start:end])
    return rewritten(sentence, rule, segments, source, new)


class Change(NamedTuple):
    """A caption whose meaning was changed, the rule that changed it, and the exchanged words."""

    text: str
    rule: str
    source: str = ""
    target: str = ""


def changes(rewording: Paraphrase | None) -> list[Change]:
    """Return a rewritten caption as a change of meaning; empty if a name would lose its capital."""
    if rewording is None:
        return []
    return [Change(rewording.text, rewording.rule, rewording.source, rewording.target)]


def is_plain(sentence: Sentence) -> bool:
    """Return whether a caption is a single sentence in ordinary letters, which the grammar rules can parse."""
    text = sentence.reading.text
    return bool(
        sentence.size > 2
        and PLAIN.match(text)
        and not text.isupper()
        and "." not in sentence.lower[: sentence.size]
    )
