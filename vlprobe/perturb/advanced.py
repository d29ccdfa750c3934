"""Advanced paraphrases: captions that use another construction or word but keep the meaning.

Source: LGIP, appendix A.1 (ii). The rules are our own. Each rule skips captions that it does not fully understand.
"""

from vlprobe.perturb.clauses import restatements, subject_phrases, without_there
from vlprobe.perturb.grammar import PLAIN, Sentence
from vlprobe.perturb.moves import moves
from vlprobe.perturb.rewriting import Paraphrase
from vlprobe.perturb.synonyms import synonyms

_MARKERS = (
    ("marker:in-the-image", "In the image, "),
    ("marker:in-the-scene", "In the scene, "),
)


def paraphrases(sentence: Sentence) -> list[Paraphrase]:
    """Return all advanced paraphrases of a caption, except those made with discourse markers (see `markers`)."""
    reading = sentence.reading
    if not reading.words or reading.text.isupper():
        return []
    out = synonyms(sentence)
    if not PLAIN.match(reading.text):
        return out
    if sentence.lower[0] == "there":
        return out + without_there(sentence)
    phrases = subject_phrases(sentence)
    if phrases is None:
        return out
    first_phrase, subject = phrases
    return out + restatements(sentence, first_phrase, subject) + moves(sentence, subject)


def markers(caption: str) -> list[Paraphrase]:
    """Return paraphrases that put a discourse marker before the caption. The paper counts them as advanced."""
    caption = caption.strip()
    return [
        Paraphrase(start + caption, rule, "advanced", segments=(start, (0, len(caption)), ""))
        for rule, start in _MARKERS
    ]
