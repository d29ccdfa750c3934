"""A caption changed in one way, and how a change is written."""

from typing import NamedTuple

from vlprobe.perturb.grammar import PLAIN, Sentence
from vlprobe.perturb.rewriting import rewritten
from vlprobe.perturb.tokens import word_list, words

NEGATIVE = word_list("changes.negative")
# A word that changes meaning, or reads badly, next to a negation or after an exchange of phrases.
UNDER_POLARITY = words("some any both already still also too yet only almost either but except")


class Change(NamedTuple):
    """A caption's new text, the rule that made it, and the words that it exchanged."""

    text: str
    rule: str
    source: str = ""
    target: str = ""


def change(
    sentence: Sentence,
    rule: str,
    segments: list[str | tuple[int, int]],
    source: str,
    target: str,
) -> list[Change]:
    """Build the caption from new words and kept tokens; none where a name would lose its capital."""
    rewording = rewritten(sentence, rule, segments, source, target)
    return [Change(rewording.text, rule, source, target)] if rewording else []


def is_plain(sentence: Sentence) -> bool:
    """Return whether the caption is one sentence in usual letters, which rules of grammar can read."""
    text = sentence.reading.text
    return bool(
        sentence.size > 2
        and PLAIN.match(text)
        and not text.isupper()
        and "." not in sentence.lower[: sentence.size]
    )
