"""Assembly of a paraphrase from new words and kept spans of the caption."""

from vlprobe.perturb.grammar import Sentence, can_lower
from vlprobe.perturb.paraphrase import Paraphrase, Segment


def rewritten(
    sentence: Sentence,
    rule: str,
    segments: list[str | tuple[int, int]],
    source: str = "",
    target: str = "",
) -> Paraphrase | None:
    """The parts joined by blanks, with the caption's own full stop and capital; None if a name
    would lose its capital.

    Args:
        sentence: The caption.
        rule: Id of the rule.
        parts: New words, or (first, last + 1) of kept tokens.
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
