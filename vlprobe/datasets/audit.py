"""Count the defects in a dataset, so that you can find them before you trust a score on it.

An alteration is a foil together with the caption that it was made from. Foil j was made from caption j (or from the
last caption, if an item has more foils than captions), as in RoCOCO, SugarCrepe(++), VISLA and in pairs. Two captions
are equal if they differ only in case and spaces, which CLIP's tokenizer ignores. A foil says the same as a caption if
it has the same words in the same order, because a comma does not make a caption wrong.
"""

import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from vlprobe import registry
from vlprobe.datasets.languages import foreign_captions
from vlprobe.datasets.validation import image_digests
from vlprobe.errors import printable
from vlprobe.perturb.language import is_doubtful
from vlprobe.types import Item

EXAMPLES = 5
# Captions whose language is detected without their pictures: a millisecond each
MOST_JUDGED = 1_000
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
STYLE = (  # a feature, and the shares of captions and of foils that have it
    "Either the caption or the foil has {}, so style distinguishes them: "
    "{:.1%} of captions and {:.1%} of foils have it."
)
WORD = re.compile(r"\w+")
# ASCII: the lowercase letter for each letter that a word may have, and a blank for every other character.
LETTERS = {code: chr(code).lower() if WORD.match(chr(code)) else " " for code in range(128)}
# ASCII letters with one blank between words: `plain` only changes their case.
SIMPLE = pc.MatchSubstringOptions(r"^[!-~]+( [!-~]+)*$")
BLOCK_ROWS = 65_536
GLUED_LETTERS = 3  # minimum length of an inserted word that is searched for inside other words
GLUED_TIMES = 5  # minimum ratio of its insertions as a separate word to those inside another word


@dataclass(frozen=True, slots=True)
class AuditFinding:
    """One kind of defect, and how many of the checked items, captions or foils have it."""

    name: str
    meaning: str  # one plain sentence
    count: int
    of: int
    examples: tuple[str, ...]  # ids of the first items that have it


class Alteration(NamedTuple):
    """A foil, the caption that it was made from, and the id of the item that contains both."""

    item: str
    caption: str
    foil: str


def check_texts(name: str, cache: Path) -> list[AuditFinding]:
    """Find defects in a dataset's captions and foils. Pictures are compared by name if the family supports that.

    Raises:
        VlprobeError: the dataset cannot be read.
    """
    parsed = registry.parse_name("datasets", name)
    parsed.check()
    if lint := getattr(parsed.family, "lint", None):
        return lint(name, cache)
    return check(registry.load_dataset(parsed, cache).items, cache, sees_pictures=False)


@dataclass(frozen=True, slots=True)
class TextColumns:
    """The captions and foils of a dataset, stored as columns.

    Attributes:
        ids: Id of each item.
        images: Picture number of each item: int64 of shape (n_items,), less than n_items.
        captions: All captions, in the order of the items.
        items: Number of the item that each caption belongs to: int64 of shape (n_captions,), ascending.
        foils: All foils, in the order of the items.
        sources: Number of the caption that each foil was made from: int64 of shape (n_foils,).
    """

    ids: pa.ChunkedArray
    images: np.ndarray
    captions: pa.ChunkedArray
    items: np.ndarray
    foils: pa.ChunkedArray
    sources: np.ndarray


def check(items: Sequence[Item], cache: Path, sees_pictures: bool = True) -> list[AuditFinding]:
    """Search items for every kind of defect. Kinds that do not apply to the items are left out of the list.

    Args:
        items: Items from any dataset. If they have no foils, only captions and pictures are checked.
        sees_pictures: Whether to compare the bytes of pictures. If false, their paths are compared, and if there are
            many captions, only a sample of them is checked for its language.

    Raises:
        InvalidInput: an image file cannot be read.
    """
    if sees_pictures:
        digests = image_digests(items, cache)
    else:
        digests = {item.image.path: str(item.image.path) for item in items if item.image}
    pictures = [digests[item.image.path] if item.image else item.unit for item in items]
    first_captions = np.cumsum([0, *(len(item.captions) for item in items)])[:-1]
    rows = TextColumns(
        ids=_column(item.id for item in items),
        images=codes(_column(pictures)),
        captions=_column(caption for item in items for caption in item.captions),
        items=np.repeat(np.arange(len(items)), [len(item.captions) for item in items]),
        foils=_column(foil for item in items for foil in item.foils),
        sources=np.array(
            [
                first + min(number, len(item.captions) - 1)
                for first, item in zip(first_captions, items, strict=True)
                for number in range(len(item.foils))
            ],
            dtype=np.int64,
        ),
    )
    of_pictures = list(_picture_findings(items, rows, digests)) if sees_pictures else None
    return check_columns(rows, cache, of_pictures)


def _column(texts: Iterable[str]) -> pa.ChunkedArray:
    return pa.chunked_array([pa.array(texts, pa.large_string())])


def check_columns(
    rows: TextColumns, cache: Path | None = None, of_pictures: Sequence[AuditFinding] | None = None
) -> list[AuditFinding]:
    """Search text columns for defects, as `check` does for items. This needs memory for the columns, for the vocabulary
    of the foils, and for a few bytes per row.

    Args:
        cache: Folder in which the results for many captions are cached.
        of_pictures: Findings about the pictures, to list before those of the foils. If None, no pictures were read, and
            if there are many captions, only a sample of them is checked for its language.
    """
    n_items, n_captions = len(rows.ids), len(rows.captions)
    texts = codes(pa.chunked_array(plain_blocks(rows.captions), rows.captions.type))
    # Each text of each item, and of each picture, once, as one number.
    texts_of_items = distinct(texts * n_items + rows.items) % n_items
    captions_per_item = np.bincount(rows.items, minlength=n_items)
    repeats = np.bincount(texts_of_items, minlength=n_items) < captions_per_item
    texts_of_pictures = distinct(texts * n_items + rows.images[rows.items]) // n_items
    is_shared = np.bincount(texts_of_pictures)[texts] > 1
    del texts, texts_of_items, texts_of_pictures
    judged = drawn_rows(n_captions) if of_pictures is None else np.arange(n_captions)
    return [
        _finding(REPEATED, rows, np.arange(n_items), repeats),
        _finding(SHARED, rows, rows.items, is_shared),
        _language_finding(rows, judged, cache),
        *(of_pictures or ()),
        *(_foil_findings(rows, captions_per_item) if len(rows.foils) else ()),
    ]


def _finding(
    kind: tuple[str, str], rows: TextColumns, items: np.ndarray, marked: np.ndarray
) -> AuditFinding:
    """Build a finding from the item number of each checked text or item, and a mask of those with the defect."""
    having = items[marked]
    first_items = having[np.sort(np.unique(having, return_index=True)[1])][:EXAMPLES]
    examples = tuple(rows.ids.take(pa.array(first_items)).to_pylist())
    return AuditFinding(*kind, len(having), len(marked), examples)


def _foil_findings(rows: TextColumns, captions_per_item: np.ndarray) -> list[AuditFinding]:
    n_foils, items = len(rows.foils), rows.items[rows.sources]
    unchanged, is_true, order_only = np.zeros((3, n_foils), dtype=bool)
    upper, stop = np.zeros((2, 2, n_foils), dtype=bool)  # one row for captions, one for foils
    glued = GluedWords()
    first_captions = np.searchsorted(rows.items, np.arange(len(rows.ids)))
    item, captions_of_item = -1, []  # for the newest row whose item has several captions
    for start in range(0, n_foils, BLOCK_ROWS):
        block = slice(start, start + BLOCK_ROWS)
        captions = rows.captions.take(pa.array(rows.sources[block])).to_pylist()
        foils = rows.foils.slice(start, BLOCK_ROWS).to_pylist()
        for side, column in enumerate((captions, foils)):
            upper[side, block] = [text != text.lower() for text in column]
            stop[side, block] = [text.endswith(".") for text in column]
        for row, (caption, foil) in enumerate(zip(captions, foils, strict=True), start):
            true_words, wrong_words = split_words(caption), split_words(foil)
            unchanged[row] = true_words == wrong_words
            order_only[row] = true_words != wrong_words and sorted(true_words) == sorted(
                wrong_words
            )
            glued.add(row, true_words, wrong_words)
            if items[row] != item and captions_per_item[items[row]] > 1:
                item = items[row]
                texts = rows.captions.slice(first_captions[item], captions_per_item[item])
                captions_of_item = list(map(split_words, texts.to_pylist()))
            is_true[row] = (
                items[row] == item and true_words != wrong_words and wrong_words in captions_of_item
            )
    is_glued = np.zeros(n_foils, dtype=bool)
    is_glued[list(glued.words())] = True
    kinds = [(UNCHANGED, unchanged), (TRUE_FOIL, is_true), (ORDER_ONLY, order_only)]
    kinds.append((GLUED, is_glued))
    for name, feature, marked in (
        ("upper_case", UPPER_CASE, upper),
        ("full_stop", FULL_STOP, stop),
    ):
        meaning = STYLE.format(feature, *marked.mean(axis=1))
        kinds.append(((name, meaning), marked[0] != marked[1]))
    return [_finding(kind, rows, items, marked) for kind, marked in kinds]


def alterations(items: Iterable[Item]) -> list[Alteration]:
    """Return every foil in the items, together with the caption that it was made from."""
    return [
        Alteration(item.id, item.captions[min(number, len(item.captions) - 1)], foil)
        for item in items
        for number, foil in enumerate(item.foils)
    ]


def split_words(text: str) -> list[str]:
    """Split text into lowercase words without punctuation."""
    return text.translate(LETTERS).split() if text.isascii() else WORD.findall(text.casefold())


def plain(text: str) -> str:
    """Normalize text as CLIP's tokenizer does: lowercase, with single spaces."""
    return " ".join(text.casefold().split())


def plain_blocks(captions: pa.ChunkedArray) -> Iterator[pa.Array]:
    """Yield captions that are normalized as by `plain`, one block at a time."""
    for start in range(0, len(captions), BLOCK_ROWS):
        for chunk in captions.slice(start, BLOCK_ROWS).chunks:
            simple = pc.call_function("match_substring_regex", [chunk], SIMPLE)
            if pc.call_function("all", [simple]).as_py():
                yield pc.call_function("ascii_lower", [chunk])
            else:
                yield pa.array(list(map(plain, chunk.to_pylist())), chunk.type)


def codes(texts: pa.ChunkedArray) -> np.ndarray:
    """Return a whole number for each text. Equal texts have equal numbers, assigned in order of first occurrence."""
    if not len(texts):
        return np.zeros(0, dtype=np.int64)
    encoded = pc.call_function("dictionary_encode", [texts.cast(pa.large_string())])
    return np.concatenate([chunk.indices.to_numpy() for chunk in encoded.chunks]).astype(np.int64)


def distinct(numbers: np.ndarray) -> np.ndarray:
    """Return the distinct whole numbers in ascending order. Sorting is 20 times as fast as numpy's hash table."""
    ordered = np.sort(numbers)
    is_new = np.ones(len(ordered), dtype=bool)
    is_new[1:] = ordered[1:] != ordered[:-1]  # differences of hashes may be beyond int64
    return ordered[is_new]


def drawn_rows(n_captions: int) -> np.ndarray:
    """Return the row numbers of the captions whose language is checked, in ascending order: all of them, or a fixed
    random sample if checking all would take too long.
    """
    if n_captions <= MOST_JUDGED:
        return np.arange(n_captions)
    return np.sort(np.random.default_rng(42).choice(n_captions, MOST_JUDGED, replace=False))


def _language_finding(rows: TextColumns, judged: np.ndarray, cache: Path | None) -> AuditFinding:
    """Find the captions that are not in English, among those with the given row numbers."""
    name, meaning = FOREIGN
    n_captions = len(rows.captions)
    if len(judged) < n_captions:
        meaning = f"Of {n_captions:,} captions, {len(judged):,} were drawn and looked at. {meaning}"
    texts = rows.captions.take(pa.array(judged)).to_pylist()
    captions = set(texts)
    if doubtful := sorted(filter(is_doubtful, captions)):
        meaning += (
            f" {len(doubtful):,} more captions of one to three words may not be English either, such as "
            f"'{printable(doubtful[0])}'. They are edited with the rules for English."
        )
    foreign = foreign_captions(captions, cache)
    marked = np.array([text in foreign for text in texts], dtype=bool)
    return _finding((name, meaning), rows, rows.items[judged], marked)


def _picture_findings(
    items: Sequence[Item], rows: TextColumns, digests: Mapping[Path, str]
) -> Iterator[AuditFinding]:
    how = "byte for byte"
    if any(picture.absent for item in items for picture in item.pictures):
        how = "byte for byte, or by name if the file is missing"
    digest_of = {
        number: digests[item.image.path] for number, item in enumerate(items) if item.image
    }
    if digest_of:
        counts = Counter(digest_of.values())
        meaning = f"Another item has the same image ({how}), so the items are not independent."
        marked = np.array([counts[digest] > 1 for digest in digest_of.values()])
        yield _finding(("shared_image", meaning), rows, np.array(list(digest_of)), marked)
    pairs = {
        number: digest == digests[foil_image.path]
        for number, digest in digest_of.items()
        if (foil_image := items[number].foil_image)
    }
    if any(item.foil_image for item in items):
        meaning = f"The two images of the pair are identical ({how})."
        marked = np.array(list(pairs.values()), dtype=bool)
        of_pairs = np.array(list(pairs), dtype=np.int64)
        yield _finding(("same_image_twice", meaning), rows, of_pairs, marked)


class GluedWords:
    """Find words in foils that contain an inserted word, such as "wocriminal", made from "woman" by replacing "man".

    A glued word does not occur in any caption, and replaces a caption's word (woman). It begins and ends like that
    word (wo-) and has, in between, a word (criminal) that other foils insert as a separate
    word in place of another separate word (man). A plural does not count. The inserted
    words need not be listed, at the price of a rare false alarm ("offstage", "onstage").
    """

    def __init__(self) -> None:
        self._caption_words: set[str] = set()
        self._inserted: Counter[str] = Counter()
        self._changes: list[tuple[int, set[str], list[str]]] = []

    def add(self, row: int, true_words: Sequence[str], wrong_words: Sequence[str]) -> None:
        """Add one row: the words of a caption and the words of the foil made from it."""
        self._caption_words.update(true_words)
        removed = set(true_words).difference(wrong_words)
        new = set(wrong_words).difference(true_words)
        inserted = [word for word in wrong_words if word in new]
        self._inserted.update(inserted)
        if removed and not self._caption_words.issuperset(new):
            self._changes.append((row, removed, inserted))

    def words(self) -> dict[int, list[str]]:
        """Return the glued words by row number, without the rows that have none."""
        words = {
            row: [
                word
                for word in inserted
                if word not in self._caption_words
                and any(
                    _is_glued(word, replaced, self._inserted, self._caption_words)
                    for replaced in removed
                )
            ]
            for row, removed, inserted in self._changes
        }
        return {row: glued for row, glued in words.items() if glued}


def _is_glued(
    word: str, replaced: str, inserted: Mapping[str, int], caption_words: Collection[str]
) -> bool:
    """Return whether a word contains a word that other foils insert separately; see `GluedWords`."""
    for start in range(len(word)):
        if word[:start] != replaced[:start]:
            return False
        for end in range(start + GLUED_LETTERS, len(word) + 1):
            ending = word[end:]
            middle = replaced[start : len(replaced) - len(ending)]
            is_plural_of_it = start == 0 and ending in ("", "s")
            is_frequent = inserted.get(word[start:end], 0) >= GLUED_TIMES * inserted[word]
            if (
                is_frequent
                and not is_plural_of_it
                and replaced.endswith(ending)
                and middle in caption_words
            ):
                return True
    return False
