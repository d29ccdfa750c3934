"""Advanced paraphrases: the caption said with another construction or another word, meaning the same.

Source: LGIP, appendix A.1 (ii). The rules are our own; each leaves a caption alone unless it understands the whole of it.
"""

from vlprobe.perturb.clauses import restatements
from vlprobe.perturb.grammar import PLAIN, Sentence
from vlprobe.perturb.moves import moves
from vlprobe.perturb.paraphrase import Paraphrase
from vlprobe.perturb.synonyms import synonyms
from vlprobe.perturb.tokens import Reading

_MARKERS = (("marker:in-the-image", "In the image, ", ""), ("marker:in-the-scene", "In the scene, ", ""))


def paraphrases(reading: Reading) -> list[Paraphrase]:
    """Every advanced paraphrase of the caption, discourse markers apart."""
    if not reading.words or reading.text.isupper():
        return []
    sentence = Sentence(reading)
    out = synonyms(sentence)
    if PLAIN.match(reading.text):
        out += restatements(sentence)
        out += moves(sentence)
    return out


def markers(caption: str) -> list[Paraphrase]:
    """The caption after a discourse marker: what the paper also counts as advanced, though it changes no word."""
    caption = caption.strip()
    return [
        Paraphrase(before + caption + after, rule, "advanced", parts=(before, (0, len(caption)), after))
        for rule, before, after in _MARKERS
    ]
