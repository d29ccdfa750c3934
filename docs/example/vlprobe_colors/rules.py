"""Edits of captions: in capitals, which should change nothing, and negated, which should."""

from vlprobe.types import Edit


def edits(captions, item_id, seed):
    return [_of_caption(caption) for caption in captions]


def _of_caption(caption):
    yield caption.upper(), Edit("paraphrase", "simple", "capitals")
    if " is " in caption:
        negated = caption.replace(" is ", " is not ", 1)
        yield negated, Edit("flip", "negation", "not", source="is", target="is not")
