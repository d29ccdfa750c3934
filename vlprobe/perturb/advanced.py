"""Advanced paraphrases: captions with another construction or word, and the same meaning.

Source: LGIP, appendix A.1 (ii). The rules are our own; each skips captions that it does
not fully understand.
"""

from vlprobe.perturb.clauses import restatements, subject_phrases, without_there
from vlprobe.perturb.grammar import PLAIN, Sentence
from vlprobe.perturb.moves import moves
from vlprobe.perturb.rewriting import Paraphrase
from vlprobe.perturb.synonyms import synonyms

_MARKERS = (
    ("marker:in-the-image", "In the image, ", ""),
    ("marker:in-the-scene", "In the scene, ", ""),
)


def paraphrases(sentence: Sentence) -> list[Paraphrase]:
    """Return all advanced paraphrases of a caption, except those with discourse markers."""
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
    """Return a caption after each discourse marker. The paper counts these as advanced paraphrases."""
    caption = caption.strip()
    return [
        Paraphrase(
            beginning + caption + ending,
            rule,
            "advanced",
            segments=(beginning, (0, len(caption)), ending),
        )
        for rule, beginning, ending in _MARKERS
    ]
