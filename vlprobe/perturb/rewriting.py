"""Putting a paraphrase together from new words and kept stretches of the caption."""

from vlprobe.perturb.grammar import Sentence, can_lower
from vlprobe.perturb.paraphrase import Paraphrase, Part


def rewritten(
    sentence: Sentence, rule: str, parts: list[str | tuple[int, int]], source: str = "", target: str = ""
) -> Paraphrase | None:
    """The parts joined by blanks, with the caption's own full stop and capital; None if a name would lose its capital.

    Args:
        sentence: The caption.
        rule: That made it.
        parts: New words, or (first, last + 1) of kept tokens.
        source: The words taken out.
        target: The words put in.
    """
    text, spans = sentence.reading.text, sentence.reading.spans
    placed: list[Part] = []
    out = ""
    for part in parts:
        begins = part if isinstance(part, str) else sentence.lower[part[0]]
        joint = " " if out and not begins.startswith(",") else ""
        if isinstance(part, str):
            out += joint + part
            placed.append(joint + part)
            continue
        first, end = part
        if first >= end:
            continue
        start, stop = spans[first][0], spans[end - 1][1]
        kept = text[start:stop]
        if first == 0 and out and kept[:1].isupper():
            if not can_lower(sentence):
                return None
            kept = kept[:1].lower() + kept[1:]
        if joint:
            placed.append(joint)
        out += joint + kept
        placed.append((start, stop))
    if text[:1].isupper():
        out = out[:1].upper() + out[1:]
    if text.endswith("."):
        out += "."
        placed.append(".")
    return Paraphrase(out, rule, "advanced", source, target, tuple(placed))
