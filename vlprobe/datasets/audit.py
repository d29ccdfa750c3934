"""What is wrong with a dataset, counted before anybody believes a score on it.

An alteration is a foil, and foil j was made from caption j (from the last one, if there are more foils than captions):
that holds in RoCOCO, SugarCrepe(++), VISLA and in pairs. Two captions are the same if they differ in case and spaces
only, which CLIP's tokenizer does not see; a foil says the same as a caption if it has the same words in the same order,
since a comma makes nothing wrong.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from vlprobe.perturb import language
from vlprobe.scoring import pictures
from vlprobe.types import Item

EXAMPLES = 5
NOT_ENGLISH = "not_english"
WORD = re.compile(r"\w+")
GLUED_LETTERS = 3  # an inserted word is looked for inside other words if it has so many
GLUED_TIMES = 5  # and is inserted on its own this many times as often


@dataclass(frozen=True, slots=True)
class Finding:
    """A kind of defect, and how many of how many have it; a count of 0 says that it was looked for."""

    name: str
    meaning: str  # one plain sentence
    count: int
    of: int
    examples: tuple[str, ...]  # ids of the first items that have it


class Alteration(NamedTuple):
    """A foil, the caption it was made from, and the id of their item."""

    item: str
    caption: str
    foil: str


def check(items: Sequence[Item], cache: Path) -> list[Finding]:
    """Looks for every kind of defect that the items can have; one that they cannot have is not in the list.

    Args:
        items: Of any dataset; without foils only captions and pictures are looked at.
        cache: Where the digests of image files are kept.

    Raises:
        InvalidInput: an image file cannot be read.
    """
    contents = _contents(items, cache)
    findings = [*_captions(items, contents), _languages(items), *_pictures(items, contents)]
    alterations = [row for item in items for row in _made(item)]
    return findings + (_alterations(items, alterations) if alterations else [])


def _made(item: Item) -> list[Alteration]:
    last = len(item.captions) - 1
    return [Alteration(item.id, item.captions[min(j, last)], foil) for j, foil in enumerate(item.foils)]


def _contents(items: Sequence[Item], cache: Path) -> dict[Path, str]:
    files = list(dict.fromkeys(picture.path for item in items for picture in (item.image, item.foil_image) if picture))
    return dict(zip(files, pictures.file_digests(files, cache), strict=True))


class _Words(dict[str, tuple[str, ...]]):
    """The words of a text without case and punctuation; each text is taken apart once."""

    def __missing__(self, text: str) -> tuple[str, ...]:
        self[text] = tuple(WORD.findall(text.casefold()))
        return self[text]


def _plain(text: str) -> str:
    return " ".join(text.casefold().split())


def _finding(name: str, meaning: str, marked: Iterable[tuple[str, bool]]) -> Finding:
    """From the id of an item and whether it has the defect, for all that could have it."""
    marked = list(marked)
    having = [item for item, defect in marked if defect]
    return Finding(name, meaning, len(having), len(marked), tuple(dict.fromkeys(having))[:EXAMPLES])


def _captions(items: Sequence[Item], contents: Mapping[Path, str]) -> list[Finding]:
    seen: dict[str, set[str]] = {}
    for item in items:
        for caption in item.captions:
            seen.setdefault(_plain(caption), set()).add(_shown(item, contents))
    return [
        _finding(
            "repeated_caption",
            "Two captions of the item are the same (P1 = P2): a comparison between them is won without reading.",
            ((item.id, len(set(map(_plain, item.captions))) < len(item.captions)) for item in items),
        ),
        _finding(
            "shared_caption",
            "The same caption belongs to another image too (without images: to another item), so that a search for it "
            "has several right answers.",
            ((item.id, len(seen[_plain(caption)]) > 1) for item in items for caption in item.captions),
        ),
    ]


def _languages(items: Sequence[Item]) -> Finding:
    foreign = {caption: language.is_foreign(caption) for caption in {text for item in items for text in item.captions}}
    return _finding(
        NOT_ENGLISH,
        "The caption is not in English, as far as its letters and words tell: edits of captions follow English grammar "
        "and English templates, so that numbers on its edits mean nothing.",
        ((item.id, foreign[caption]) for item in items for caption in item.captions),
    )


def _shown(item: Item, contents: Mapping[Path, str]) -> str:
    """What tells images apart: the bytes, or without a picture the name that the dataset gives it."""
    return contents[item.image.path] if item.image else item.unit


def _pictures(items: Sequence[Item], contents: Mapping[Path, str]) -> list[Finding]:
    times = Counter(contents[item.image.path] for item in items if item.image)
    found = []
    if times:
        found.append(
            _finding(
                "shared_image",
                "Another item has the same image, byte for byte: the items are not independent of each other.",
                ((item.id, times[contents[item.image.path]] > 1) for item in items if item.image),
            )
        )
    if any(item.foil_image for item in items):
        found.append(
            _finding(
                "same_image_twice",
                "The two images of the pair are the same, byte for byte: nothing can tell them apart.",
                (
                    (item.id, contents[item.image.path] == contents[item.foil_image.path])
                    for item in items
                    if item.image and item.foil_image
                ),
            )
        )
    return found


def _alterations(items: Sequence[Item], alterations: Sequence[Alteration]) -> list[Finding]:
    words = _Words()
    return [
        _finding(
            "unchanged",
            "The foil says the same as the caption it was made from (N = P1): nobody can get it right.",
            ((item, words[caption] == words[foil]) for item, caption, foil in alterations),
        ),
        _finding(
            "true_foil",
            "The foil says the same as another caption of its item: it is not wrong.",
            (
                (item.id, words[row.foil] in {words[caption] for caption in item.captions} - {words[row.caption]})
                for item in items
                for row in _made(item)
            ),
        ),
        _finding(
            "order_only",
            "Caption and foil have the same words in another order: a bag of words cannot tell them apart.",
            (
                (item, words[caption] != words[foil] and sorted(words[caption]) == sorted(words[foil]))
                for item, caption, foil in alterations
            ),
        ),
        _finding(
            "glued_word",
            "The foil has an inserted word stuck in another one, such as 'wocriminal' for 'woman': it was replaced "
            "without regard to where words end.",
            ((row.item, bool(glued)) for row, glued in zip(alterations, glued_words(alterations), strict=True)),
        ),
        _style("upper_case", "capital letters", lambda text: text != text.lower(), alterations),
        _style("full_stop", "a full stop at the end", lambda text: text.endswith("."), alterations),
    ]


def _style(name: str, feature: str, has: Callable[[str], bool], alterations: Sequence[Alteration]) -> Finding:
    """Style leak: what tells a foil from its caption without reading a word."""
    captions = sum(has(row.caption) for row in alterations) / len(alterations)
    foils = sum(has(row.foil) for row in alterations) / len(alterations)
    return _finding(
        name,
        f"One of caption and foil has {feature} and the other has not, so that style tells them apart: "
        f"{captions:.1%} of captions and {foils:.1%} of foils have.",
        ((row.item, has(row.caption) != has(row.foil)) for row in alterations),
    )


def glued_words(alterations: Sequence[Alteration]) -> list[list[str]]:
    """For each alteration, the words in which an inserted word is stuck: "criminal" for "man" makes "wocriminal".

    Such a word occurs in no caption and stands in place of one (woman). It has that word's beginning and end (wo-), and
    between them a word that is otherwise inserted on its own (criminal) where that one had a word of its own (man). A
    plural is not one. Nobody has to name the inserted words; the price is a rare false alarm ("offstage", "onstage").
    """
    words = _Words()
    known = {word for row in alterations for word in words[row.caption]}
    changes = []
    for row in alterations:
        before, after = words[row.caption], words[row.foil]
        gone = [word for word in before if word not in after]
        changes.append((gone, [word for word in after if word not in before]))
    inserted = Counter(word for _, new in changes for word in new)
    return [
        [word for word in new if word not in known and any(_is_glued(word, old, inserted, known) for old in gone)]
        for gone, new in changes
    ]


def _is_glued(word: str, old: str, inserted: Mapping[str, int], known: set[str]) -> bool:
    for start in range(len(word)):
        if word[:start] != old[:start]:
            return False
        for end in range(start + GLUED_LETTERS, len(word) + 1):
            rest = word[end:]
            middle = old[start : len(old) - len(rest)]
            plural = start == 0 and rest in ("", "s")
            often = inserted.get(word[start:end], 0) >= GLUED_TIMES * inserted[word]
            if often and not plural and old.endswith(rest) and middle in known:
                return True
    return False
