"""Simple paraphrases: the nine templates in LGIP's appendix A.1, such as "a photo of ...", put around a caption.

Source: LGIP, appendix A.1 (i).
"""

from typing import NamedTuple

from vlprobe.perturb.grammar import Sentence, no_finite_verb
from vlprobe.perturb.lexicon import NAME, PREPOSITION, TAGS
from vlprobe.perturb.rewriting import Paraphrase
from vlprobe.perturb.tokens import word_list, words


class Template(NamedTuple):
    """A template: the text before and the text after a caption."""

    rule: str
    beginning: str
    ending: str
    # Whether the caption becomes the noun phrase that is "a photo of", "a scene showing"
    names_it: bool


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
_WRAPPERS = tuple(template for template in TEMPLATES if template.beginning or template.ending)
MARKERS = (
    *("a photo of", "an image of", "a picture of"),
    *("in this image", "in the picture", "this image shows"),
)

_META = word_list("templates.meta")
_NO_NOUN = words("there it this these here in on at i we he she while as")


def has_marker(text: str) -> bool:
    """Return whether a caption is a simple paraphrase by the paper's test: it contains one of six template phrases,
    regardless of letter case.
    """
    text = text.lower()
    return any(marker in text for marker in MARKERS)


def raw(caption: str) -> list[Paraphrase]:
    """Put the unchanged caption into each template, as in the appendix. Templates that change nothing are left out."""
    caption = caption.strip()
    caption_span = (0, len(caption))
    return [
        Paraphrase(
            beginning + caption + ending, rule, "simple", "", "", (beginning, caption_span, ending)
        )
        for rule, beginning, ending, _ in _WRAPPERS
    ]


def fitted(sentence: Sentence) -> list[Paraphrase]:
    """Put the caption, which has a word, into each template and adapt it to the grammar.

    Inside a sentence the caption's first letter becomes lowercase, unless it starts a name or the whole caption
    is in capitals. The caption's full stop moves to the end, and the result starts with a capital if the
    caption did. A caption that is a full sentence, or already "a picture of" something, is
    not wrapped as the noun phrase after "a photo of".
    """
    caption, words = sentence.reading.text, sentence.reading.words
    core = caption.rstrip(" .") if caption.endswith(".") else caption
    stop = "." if len(core) < len(caption) else ""
    capital = caption[:1].isupper()
    inner = core[:1].lower() + core[1:] if _can_be_lowered(words, caption) else core
    is_meta = sentence.lower[0] in _NO_NOUN or not _META.isdisjoint(sentence.lower[:4])
    is_phrase = not is_meta and no_finite_verb(sentence, 0)
    ends_in_preposition = bool(sentence.bits[sentence.size - 1] & PREPOSITION)
    out = []
    for rule, beginning, ending, names_it in _WRAPPERS:
        if (names_it and not is_phrase) or (ending and ends_in_preposition):
            continue
        start = (beginning[:1].upper() if capital else beginning[:1].lower()) + beginning[1:]
        text = start + (inner if beginning else core) + ending + stop
        out.append(Paraphrase(text, rule, "simple", "", "", (start, (0, len(core)), ending + stop)))
    return out


def _can_be_lowered(words: list[str], caption: str) -> bool:
    first_word = words[0]
    if (
        caption.isupper()
        or not first_word[:1].isupper()
        or (len(first_word) > 1 and not first_word[1:].islower())
    ):
        return False
    if first_word in ("A", "An", "The"):
        return True
    bits = TAGS.get(first_word.lower(), 0)
    if (
        bits & NAME
        or first_word == "I"
        or not (bits or first_word.endswith(("ing", "ed", "ers", "less")))
    ):
        return False
    return len(words) == 1 or not words[1][:1].isupper()
