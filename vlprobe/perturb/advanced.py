"""Advanced paraphrases: the caption said with another construction or word, and the same meaning.

Source: LGIP, appendix A.1 (ii). The rules are our own; each leaves alone what it does not understand whole.
"""

from vlprobe.perturb.clauses import restatements, subject, without_there
from vlprobe.perturb.grammar import PLAIN, Sentence
from vlprobe.perturb.moves import moves
from vlprobe.perturb.paraphrase import Paraphrase
from vlprobe.perturb.synonyms import synonyms

_MARKERS = (("marker:in-the-image", "In the image, ", ""), ("marker:in-the-scene", "In the scene, ", ""))


def paraphrases(sentence: Sentence) -> list[Paraphrase]:
    """Every advanced paraphrase of the caption, discourse markers apart."""
    reading = sentence.reading
    if not reading.words or reading.text.isupper():
        return []
    out = synonyms(sentence)
    if not PLAIN.match(reading.text):
        return out
    if sentence.lower[0] == "there":
        return out + without_there(sentence)
    found = subject(sentence)
    if found is None:
        return out
    first, who = found
    return out + restatements(sentence, first, who) + moves(sentence, who)


def markers(caption: str) -> list[Paraphrase]:
    """The caption after a discourse marker: what the paper also counts as advanced, though it changes no word."""
    caption = caption.strip()
    return [
        Paraphrase(before + caption + after, rule, "advanced", parts=(before, (0, len(caption)), after))
        for rule, before, after in _MARKERS
    ]
