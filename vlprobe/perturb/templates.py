"""Simple paraphrases: the nine wrappers of LGIP's appendix A.1, around the raw caption or fitted to it.

Source: LGIP, appendix A.1 (i).
"""

from typing import NamedTuple

from vlprobe.perturb.lexicon import TAGS
from vlprobe.perturb.paraphrase import Paraphrase
from vlprobe.perturb.tokens import Reading


class Template(NamedTuple):
    """A wrapper: what stands before and after the caption."""

    rule: str
    before: str
    after: str
    names_it: bool  # whether the caption becomes the noun phrase that is "a photo of", "a scene showing"


TEMPLATES = (
    Template("template:a-photo-of", "a photo of ", "", True),
    Template("template:an-image-of", "an image of ", "", True),
    Template("template:a-picture-of", "a picture of ", "", True),
    Template("template:plain", "", "", False),
    Template("template:in-the-scene", "", " in the scene", False),
    Template("template:a-scene-showing", "a scene showing ", "", True),
    Template("template:in-this-image", "In this image, ", "", False),
    Template("template:in-the-picture", "In the picture, ", "", False),
    Template("template:this-image-shows", "This image shows ", "", True),
)
MARKERS = ("a photo of", "an image of", "a picture of", "in this image", "in the picture", "this image shows")

_META = frozenset("picture pictures photo photos photograph photographs image images shot view close-up closeup close "
                  "portrait selfie snapshot painting drawing scene looking".split())  # fmt: skip
_KEEPS_CAPITAL = frozenset("i i'm".split())


def has_marker(text: str) -> bool:
    """The paper's test for a simple paraphrase: one of six template phrases occurs in it, whatever the case."""
    text = text.lower()
    return any(marker in text for marker in MARKERS)


def raw(caption: str) -> list[Paraphrase]:
    """The templates that change the caption, word for word as in the appendix, in its order."""
    caption = caption.strip()
    return [
        Paraphrase(before + caption + after, rule, "simple", parts=(before, (0, len(caption)), after))
        for rule, before, after, _ in TEMPLATES
        if before or after
    ]


def fitted(reading: Reading) -> list[Paraphrase]:
    """The templates as a careful writer fills them in; none where the caption has no word.

    The caption's first letter goes to lower case inside a sentence (unless it starts a name, or all is in capitals), its
    full stop moves to the end, the sentence starts with a capital where the caption did, and a caption that already is
    "a picture of" something, or a sentence of its own ("There is ..."), is not wrapped a second time as a noun phrase.
    """
    caption, words = reading.text, reading.words
    if not words:
        return []
    core = caption.rstrip(" .") if caption.endswith(".") else caption
    stop = "." if len(core) < len(caption) else ""
    first = words[0]
    inner = core[:1].lower() + core[1:] if _can_be_lowered(words, caption) else core
    capital = caption[:1].isupper()
    is_phrase = not _is_meta(words) and first.lower() not in ("there", "it", "this", "these", "here", "in", "on", "i")
    out = []
    for rule, before, after, names_it in TEMPLATES:
        if not (before or after) or (names_it and not is_phrase):
            continue
        if before:
            before = before[:1].upper() + before[1:] if capital else before[:1].lower() + before[1:]
        body = inner if before else core
        out.append(Paraphrase(before + body + after + stop, rule, "simple", parts=(before, (0, len(core)), after + stop)))
    return out


def _can_be_lowered(words: list[str], caption: str) -> bool:
    first = words[0]
    if not first[:1].isupper() or first.lower() in _KEEPS_CAPITAL or caption.isupper():
        return False
    if len(first) > 1 and not first[1:].islower():
        return False
    known = first.lower() in TAGS or first.endswith(("ing", "ed", "ers", "less"))
    return known and not (len(words) > 1 and words[1][:1].isupper() and len(words[1]) > 1 and first.lower() not in ("a", "an", "the"))


def _is_meta(words: list[str]) -> bool:
    return any(word.lower() in _META for word in words[:4])
