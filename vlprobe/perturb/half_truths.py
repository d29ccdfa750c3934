"""Half-truths: pairs of a short true caption and a longer caption that adds one wrong detail.

The rules take a caption with a detail. They make the detail wrong for the long caption, and drop it for the short one:

    object     "A dog on a bench."        short "A dog."            wrong "A dog on a horse."
    attribute  "A red bus on a street."   short "A bus on a street." wrong "A blue bus on a street."
    relation   "A cat sitting on a car."  short "A cat sitting."    wrong "A cat sitting under a car."

The short caption states less than the original, so it is true if the original is true. Captions with a negation are
left unchanged. Source of the idea: arXiv 2602.23906.
"""

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from vlprobe.perturb import lgip, substitution
from vlprobe.perturb.draws import draw
from vlprobe.perturb.grammar import Sentence
from vlprobe.perturb.kinds.relation import relations
from vlprobe.perturb.lexicon import ADJECTIVE, AUXILIARY, ING, NOUN, PARTICIPLE, PREPOSITION
from vlprobe.perturb.rewriting import NEGATIVE, is_plain
from vlprobe.perturb.tokens import Reading, like, takes_an, word_list
from vlprobe.types import Edit

TYPES = ("object", "attribute", "relation")
KIND = "half-truth"
MOST_WORDS = 6  # extra words of the wrong caption: one detail, not the rest of a long caption
# Words whose meaning a detail completes: "a group", "the top".
_INCOMPLETE = word_list("half_truths.incomplete")


class HalfTruth(NamedTuple):
    """A short true caption, a longer wrong caption, and the edit that made the detail wrong."""

    short: str
    text: str
    edit: Edit


def half_truths(
    captions: Sequence[str], item_id: str, seed: int
) -> tuple[list[list[HalfTruth]], dict[str, int]]:
    """Make at most one half-truth of each type from each caption of an image.

    Args:
        captions: All captions of the image.
        item_id: Id of the image. With the seed and the caption's index, it determines the random draws.
        seed: Seed of the run.

    Returns:
        The half-truths for each caption in the order of TYPES, and the number of captions without one, by type.
    """
    dropped: Counter[str] = Counter()
    flipped = lgip.edits(captions, item_id, seed=seed, kinds=("flip",)).edits
    altered = substitution.alter(captions, item_id, "same-concept", seed=seed)[0]
    out = []
    for index, caption in enumerate(captions):
        sentence = Sentence(Reading(caption))
        made: dict[str, HalfTruth | None] = dict.fromkeys(TYPES)
        if is_plain(sentence) and not NEGATIVE.intersection(sentence.lower):
            made["attribute"] = _attribute(sentence, flipped[index])
            if change := altered[index]:
                made["object"] = _object(sentence, change.text, change.edit)
            changes = [
                half_truth
                for change in relations(sentence)
                if (half_truth := _relation(sentence, *change))
            ]
            if changes:
                number = draw(seed, item_id, index, "half-truth:relation")
                made["relation"] = changes[number % len(changes)]
        dropped.update(
            f"{name}, no rule fits" for name, half_truth in made.items() if not half_truth
        )
        out.append([half_truth for half_truth in made.values() if half_truth])
    return out, dict(dropped)


def _attribute(sentence: Sentence, flips: Sequence[tuple[str, Edit]]) -> HalfTruth | None:
    """Make a half-truth about a color: the short caption omits the color, and the wrong caption has another color."""
    for text, edit in flips:
        if edit.subtype != "color":
            continue
        i = _first_difference(sentence, text, edit.source)
        if i is None or not sentence.bits[i + 1] & (NOUN | ADJECTIVE):
            return None
        kept = [*sentence.reading.words[:i], *sentence.reading.words[i + 1 : sentence.size]]
        if i and sentence.lower[i - 1] in ("a", "an"):
            article = "an" if takes_an(kept[i]) else "a"
            kept[i - 1] = like(kept[i - 1], article)
        short = _written(sentence, kept)
        return HalfTruth(short, text, _edit("attribute", edit.source, edit.target))
    return None


def _object(sentence: Sentence, text: str, edit: Edit) -> HalfTruth | None:
    """Make a half-truth about a thing: the short caption ends before the preposition in front of the thing."""
    i = _first_difference(sentence, text, edit.source)
    if i is None:
        return None
    previous = [place for place in range(1, i) if sentence.bits[place] & PREPOSITION]
    if (
        not previous
        or sentence.size - previous[-1] > MOST_WORDS
        or "of" in sentence.lower[previous[-1] : i]
    ):
        return None
    short = _start(sentence, previous[-1])
    return HalfTruth(short, text, _edit("object", edit.source, edit.target)) if short else None


def _relation(
    sentence: Sentence, text: str, rule: str, source: str, target: str
) -> HalfTruth | None:
    """Make a half-truth about a relation: the short caption ends before the relation that was exchanged."""
    i = _first_difference(sentence, text, source)
    short = None if i is None or sentence.size - i > MOST_WORDS else _start(sentence, i)
    return HalfTruth(short, text, _edit("relation", source, target)) if short else None


def _edit(subtype: str, source: str, target: str) -> Edit:
    return Edit(KIND, subtype, f"{KIND}:{subtype}", source, target)


def _first_difference(sentence: Sentence, text: str, source: str) -> int | None:
    """Return the index of the token where the caption and the text diverge; None unless that token begins `source`."""
    first = source.lower().split(" ")[0]
    others = Reading(text).lower
    for i, word in enumerate(sentence.lower[: sentence.size]):
        if i >= len(others) or (word != others[i] and word not in ("a", "an")):
            return i if word == first else None
    return None


def _start(sentence: Sentence, end: int) -> str | None:
    """Return the tokens before `end` as a caption; None unless they end in a noun or a verb such as "sitting"."""
    while end and sentence.bits[end - 1] & AUXILIARY and sentence.lower[end - 1] != "parked":
        end -= 1
    last = sentence.bits[end - 1] if end else 0
    named = any(sentence.bits[i] & NOUN for i in range(end))
    if end < 2 or not named or not last & (NOUN | ING | PARTICIPLE):
        return None
    if last & PREPOSITION or sentence.lower[end - 1] in _INCOMPLETE:
        return None
    return _written(sentence, sentence.reading.words[:end])


def _written(sentence: Sentence, tokens: Sequence[str]) -> str:
    """Join tokens to a sentence, with a capital and a full stop if the caption has them."""
    text = " ".join(tokens).replace(" ,", ",").replace(" 's", "'s").replace(" ’s", "’s")
    if sentence.reading.text[:1].isupper():
        text = text[:1].upper() + text[1:]
    return text + ("." if sentence.reading.text.endswith(".") else "")
