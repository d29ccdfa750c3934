"""Count defects of a dataset before anyone trusts a score on it.

An alteration is a foil with its caption: foil j was made from caption j (or from the last one, if there are more
foils than captions), as in RoCOCO, SugarCrepe(++), VISLA and in pairs. Two captions are the
same if they differ only in case and spaces, which CLIP's tokenizer ignores. A foil says the
same as a caption if it has the same words in the same order, because a comma does not make a caption wrong.
"""

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np

from vlprobe import registry
from vlprobe.datasets.languages import foreign_captions
from vlprobe.datasets.validation import image_digests
from vlprobe.errors import printable
from vlprobe.perturb.language import is_doubtful
from vlprobe.types import Item

EXAMPLES = 5
MOST_JUDGED = (
    1_000  # captions whose language is detected without their pictures: a millisecond each
)
NOT_ENGLISH = "not_english"
REPEATED = (
    "repeated_caption",
    "Two captions of the item are the same (P1 = P2): comparing them is trivial.",
)
SHARED = (
    "shared_caption",
    (
        "The same caption also belongs to another image (or item), so a search for it has "
        "several right answers."
    ),
)
FOREIGN = (
    NOT_ENGLISH,
    (
        "The caption is probably not in English, judging by its letters and words. Rules for "
        "English do not edit it; use edits from a file."
    ),
)
UNCHANGED = (
    "unchanged",
    "The foil has the same text as its original caption (N = P1), so no model can be right.",
)
TRUE_FOIL = (
    "true_foil",
    "The foil has the same text as another caption of its item, so it is not wrong.",
)
ORDER_ONLY = (
    "order_only",
    (
        "Caption and foil have the same words in a different order; a bag of words cannot "
        "distinguish them."
    ),
)
GLUED = (
    "glued_word",
    (
        "The foil has a word replaced inside another word, such as 'wocriminal' for 'woman', "
        "because word boundaries were ignored."
    ),
)
UPPER_CASE, FULL_STOP = "capital letters", "a full stop at the end"
WORD = re.compile(r"\w+")
GLUED_LETTERS = 3  # minimum length of an inserted word that is searched for inside other words
GLUED_TIMES = 5  # minimum ratio of its insertions as a separate word to those inside another word


@dataclass(frozen=True, slots=True)
class AuditFinding:
    """A kind of defect and the number of candidates that have it; 0 if none was found."""

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


def check_texts(name: str, cache: Path) -> list[AuditFinding]:
    """Find the defects of a dataset's texts; identify pictures by name if its family supports that.

    Raises:
        VlprobeError: it cannot be read.
    """
    parsed = registry.parse_name("datasets", name)
    parsed.check()
    if lint := getattr(parsed.family, "lint", None):
        return lint(name, cache)
    return check(registry.load_dataset(parsed, cache).items, cache, sees_pictures=False)


def check(items: Sequence[Item], cache: Path, sees_pictures: bool = True) -> list[AuditFinding]:
    """Search for every kind of defect that the items can have; other kinds are not in the list.

    Args:
        items: Of any dataset; without foils, only captions and pictures are checked.
        cache: Folder in which the digests of image files are cached.
        sees_pictures: Compare the bytes of pictures; otherwise compare their paths, and check the language of only a
            sample of the captions if there are many.

    Raises:
        InvalidInput: an image file cannot be read.
    """
    digests = image_digests(items, cache) if sees_pictures else _paths(items)
    captions = [(item.id, caption) for item in items for caption in item.captions]
    judged = range(len(captions)) if sees_pictures else drawn_rows(len(captions))
    findings = [
        *_caption_findings(items, digests),
        language_finding([captions[row] for row in judged], len(captions), cache),
        *(_picture_findings(items, digests) if sees_pictures else ()),
    ]
    altered = alterations(items)
    return findings + (_alteration_findings(items, altered) if altered else [])


def alterations(items: Iterable[Item]) -> list[Alteration]:
    """Return every foil of the items with the caption that it was made from."""
    return [row for item in items for row in _item_alterations(item)]


def _paths(items: Sequence[Item]) -> dict[Path, str]:
    return {item.image.path: str(item.image.path) for item in items if item.image}


def _item_alterations(item: Item) -> list[Alteration]:
    final_index = len(item.captions) - 1
    return [
        Alteration(item.id, item.captions[min(j, final_index)], foil)
        for j, foil in enumerate(item.foils)
    ]


class _Words(dict[str, tuple[str, ...]]):
    """Words of a text without case and punctuation; each text is split once."""

    def __missing__(self, text: str) -> tuple[str, ...]:
        self[text] = tuple(WORD.findall(text.casefold()))
        return self[text]


def plain(text: str) -> str:
    """Return the text as CLIP's tokenizer sees it: case and blanks are ignored."""
    return " ".join(text.casefold().split())


def _finding(name: str, meaning: str, marked: Iterable[tuple[str, bool]]) -> AuditFinding:
    """Build a finding from pairs of item id and whether it has the defect, for all items that could have it."""
    marked = list(marked)
    having = [item for item, defect in marked if defect]
    return AuditFinding(
        name, meaning, len(having), len(marked), tuple(dict.fromkeys(having))[:EXAMPLES]
    )


def _caption_findings(items: Sequence[Item], digests: Mapping[Path, str]) -> list[AuditFinding]:
    images_by_caption: dict[str, set[str]] = {}
    for item in items:
        for caption in item.captions:
            images_by_caption.setdefault(plain(caption), set()).add(_image_identity(item, digests))
    return [
        _finding(
            *REPEATED,
            ((item.id, len(set(map(plain, item.captions))) < len(item.captions)) for item in items),
        ),
        _finding(
            *SHARED,
            (
                (item.id, len(images_by_caption[plain(caption)]) > 1)
                for item in items
                for caption in item.captions
            ),
        ),
    ]


def drawn_rows(n_captions: int) -> np.ndarray:
    """Draw the numbers of the captions whose language is checked if checking all would take too long: the same
    ones each time, in order.
    """
    if n_captions <= MOST_JUDGED:
        return np.arange(n_captions)
    return np.sort(np.random.default_rng(42).choice(n_captions, MOST_JUDGED, replace=False))


def language_finding(
    rows: Sequence[tuple[str, str]], n_captions: int, cache: Path | None = None
) -> AuditFinding:
    """Find the captions in other languages.

    Args:
        rows: Item id and caption of each caption to check.
        n_captions: Total number of captions.
        cache: Folder in which the results for many captions are cached.
    """
    name, meaning = FOREIGN
    if len(rows) < n_captions:
        meaning = f"Of {n_captions:,} captions, {len(rows):,} were drawn and looked at. {meaning}"
    captions = {caption for _, caption in rows}
    if doubtful := sorted(filter(is_doubtful, captions)):
        meaning += (
            f" {len(doubtful):,} more captions of one to three words may not be English either, such as "
            f"'{printable(doubtful[0])}'. They are edited with the rules for English."
        )
    foreign = foreign_captions(captions, cache)
    return _finding(name, meaning, ((item, caption in foreign) for item, caption in rows))


def _image_identity(item: Item, digests: Mapping[Path, str]) -> str:
    """Return the identity of an item's image: the digest of its bytes or, without a picture, its unit."""
    return digests[item.image.path] if item.image else item.unit


def _picture_findings(items: Sequence[Item], digests: Mapping[Path, str]) -> list[AuditFinding]:
    image_counts = Counter(digests[item.image.path] for item in items if item.image)
    how = "byte for byte"
    if any(picture.absent for item in items for picture in item.pictures):
        how = "byte for byte, or by name if the file is missing"
    findings = []
    if image_counts:
        findings.append(
            _finding(
                "shared_image",
                f"Another item has the same image ({how}), so the items are not independent.",
                (
                    (item.id, image_counts[digests[item.image.path]] > 1)
                    for item in items
                    if item.image
                ),
            )
        )
    if any(item.foil_image for item in items):
        findings.append(
            _finding(
                "same_image_twice",
                f"The two images of the pair are identical ({how}).",
                (
                    (item.id, digests[item.image.path] == digests[item.foil_image.path])
                    for item in items
                    if item.image and item.foil_image
                ),
            )
        )
    return findings


def _alteration_findings(
    items: Sequence[Item], alterations: Sequence[Alteration]
) -> list[AuditFinding]:
    words = _Words()
    return [
        _finding(
            *UNCHANGED,
            ((item, words[caption] == words[foil]) for item, caption, foil in alterations),
        ),
        _finding(
            *TRUE_FOIL,
            (
                (
                    item.id,
                    words[row.foil]
                    in {words[caption] for caption in item.captions} - {words[row.caption]},
                )
                for item in items
                for row in _item_alterations(item)
            ),
        ),
        _finding(
            *ORDER_ONLY,
            (
                (
                    item,
                    words[caption] != words[foil] and sorted(words[caption]) == sorted(words[foil]),
                )
                for item, caption, foil in alterations
            ),
        ),
        _finding(
            *GLUED,
            (
                (row.item, bool(glued))
                for row, glued in zip(alterations, glued_words(alterations), strict=True)
            ),
        ),
        _style_finding(
            "upper_case",
            UPPER_CASE,
            lambda text: text != text.lower(),
            alterations,
        ),
        _style_finding(
            "full_stop",
            FULL_STOP,
            lambda text: text.endswith("."),
            alterations,
        ),
    ]


def _style_finding(
    name: str,
    feature: str,
    has: Callable[[str], bool],
    alterations: Sequence[Alteration],
) -> AuditFinding:
    """Find a style leak: a feature that distinguishes foils from captions without reading a word."""
    captions = sum(has(row.caption) for row in alterations) / len(alterations)
    foils = sum(has(row.foil) for row in alterations) / len(alterations)
    return _finding(
        name,
        style_meaning(feature, captions, foils),
        ((row.item, has(row.caption) != has(row.foil)) for row in alterations),
    )


def style_meaning(feature: str, captions: float, foils: float) -> str:
    """Describe a style leak: the share of captions and of foils with the feature."""
    return (
        f"Either the caption or the foil has {feature}, so style distinguishes them: "
        f"{captions:.1%} of captions and {foils:.1%} of foils have it."
    )


def glued_words(alterations: Sequence[Alteration]) -> list[list[str]]:
    """Return, for each alteration, the words that contain an inserted word: "criminal" for "man" makes
    "wocriminal".

    Such a word does not occur in any caption and replaces one (woman). It has that word's
    beginning and end (wo-) and, between them, a word that is elsewhere inserted separately
    (criminal) in place of a separate word (man). A plural does not count. The
    inserted words need not be listed, at the price of a rare false alarm ("offstage", "onstage").
    """
    words = _Words()
    caption_words = {word for row in alterations for word in words[row.caption]}
    changes = []
    for row in alterations:
        before, after = words[row.caption], words[row.foil]
        removed = [word for word in before if word not in after]
        changes.append((removed, [word for word in after if word not in before]))
    inserted = Counter(word for _, new in changes for word in new)
    return [
        [
            word
            for word in new
            if word not in caption_words
            and any(is_glued(word, replaced, inserted, caption_words) for replaced in removed)
        ]
        for removed, new in changes
    ]


def is_glued(
    word: str,
    replaced: str,
    inserted: Mapping[str, int],
    caption_words: Collection[str],
) -> bool:
    """Return whether a word contains an inserted one; see `glued_words`."""
    for start in range(len(word)):
        if word[:start] != replaced[:start]:
            return False
        for end in range(start + GLUED_LETTERS, len(word) + 1):
            rest = word[end:]
            middle = replaced[start : len(replaced) - len(rest)]
            is_plural_of_it = start == 0 and rest in ("", "s")
            is_frequent = inserted.get(word[start:end], 0) >= GLUED_TIMES * inserted[word]
            if (
                is_frequent
                and not is_plural_of_it
                and replaced.endswith(rest)
                and middle in caption_words
            ):
                return True
    return False
