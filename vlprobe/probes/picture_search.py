"""Searches with changed pictures for the probe `pictures`: compute ranks and overlaps in both directions.

i2t: the picture and its changed copy each rank the captions of all items. t2i: the true caption ranks the pictures of
all items, and then the same pictures after the same change; if an item does not have that change, its unchanged
picture is in both galleries. Each gallery is encoded once per run, and its changed pictures come from the cases.
"""

import itertools
from collections.abc import Callable, Iterator, Sequence

import numpy as np
import pyarrow as pa

from vlprobe.metrics.picture_changes import DEPTH, SEARCH_COLUMNS
from vlprobe.metrics.ranking import counted_overlaps
from vlprobe.scoring import cases as scoring_cases
from vlprobe.scoring.gallery import Gallery
from vlprobe.types import Encoder, Item, Picture, Reader


class PictureSearch:
    """Runs searches with unchanged and changed pictures. The results become columns in the table of scores.

    Args:
        items: The items of the run; items without a picture are in no gallery.
    """

    def __init__(self, encoder: Encoder, items: Sequence[Item], cases: Reader) -> None:
        self.encoder = encoder
        self._pictures = {item.id: item.image for item in items if item.image}
        self._captions = [caption for item in items if item.image for caption in item.captions]
        ends = np.cumsum([len(item.captions) for item in items if item.image]).tolist()
        self._captions_of = {
            item_id: slice(start, end)
            for item_id, (start, end) in zip(
                self._pictures, itertools.pairwise([0, *ends]), strict=True
            )
        }
        self._number_of = {item_id: number for number, item_id in enumerate(self._pictures)}
        self._changed: dict[str, dict[str, str]] = {}  # changed picture's name, by rule and item
        for block in cases(["rule", "item", "images"]):
            for case in block.to_pylist():
                self._changed.setdefault(case["rule"], {})[case["item"]] = case["images"][1]
        self._galleries: dict[str, tuple[Gallery, list[Picture]]] = {}

    def __call__(self, cases: pa.Table) -> dict[str, np.ndarray]:
        """Compute SEARCH_COLUMNS for a block of cases: float64 of shape (n_cases,), NaN if a score is unknown."""
        columns = {name: np.full(len(cases), np.nan) for name in SEARCH_COLUMNS}
        item_ids, rules = cases["item"].to_pylist(), np.array(cases["rule"].to_pylist())
        pictures = [[*map(Picture.from_name, names)] for names in cases["images"].to_pylist()]
        rows_of_both = [self._rank_captions([pair[side] for pair in pictures]) for side in (0, 1)]
        owned = [self._captions_of[item_id] for item_id in item_ids]
        _fill(columns, "i2t", range(len(cases)), owned, zip(*rows_of_both, strict=True))
        queries = [texts[0] for texts in cases["texts"].to_pylist()]
        for rule in dict.fromkeys(rules.tolist()):
            rows = np.flatnonzero(rules == rule).tolist()
            texts = [queries[row] for row in rows]
            rows_of_both = [self._rank_pictures(texts, name) for name in ("", rule)]
            numbers = [self._number_of[item_ids[row]] for row in rows]
            owned = [slice(number, number + 1) for number in numbers]
            _fill(columns, "t2i", rows, owned, zip(*rows_of_both, strict=True))
        return columns

    def _rank_captions(self, queries: Sequence[Picture]) -> Iterator[np.ndarray]:
        """Yield the similarities of each picture to all captions."""
        encoder, captions = self.encoder, self._captions
        if "captions" not in self._galleries:
            gallery = self._encoded(
                lambda block: encoder.texts(captions[block], keep=True), len(captions), encoder.dim
            )
            self._galleries["captions"] = gallery, []
        match = scoring_cases.pair_matcher(encoder, queries, captions, query_side="images")
        blocks = self._galleries["captions"][0].similarities(encoder.images(queries), match)
        return itertools.chain.from_iterable(scores for _, scores in blocks)

    def _rank_pictures(self, queries: Sequence[str], rule: str) -> Iterator[np.ndarray]:
        """Yield each caption's similarities to all pictures, which are changed by the rule first ("": unchanged)."""
        encoder = self.encoder
        if rule not in self._galleries:
            changed = self._changed.get(rule, {})
            pictures = [
                Picture.from_name(changed[item_id]) if item_id in changed else picture
                for item_id, picture in self._pictures.items()
            ]
            gallery = self._encoded(
                lambda block: encoder.images(pictures[block]), len(pictures), encoder.image_dim
            )
            self._galleries[rule] = gallery, pictures
        gallery, pictures = self._galleries[rule]
        match = scoring_cases.pair_matcher(encoder, pictures, queries, query_side="texts")
        blocks = gallery.similarities(encoder.texts(queries, keep=True), match)
        return itertools.chain.from_iterable(scores for _, scores in blocks)

    def _encoded(self, encode: Callable[[slice], np.ndarray], n: int, width: int) -> Gallery:
        # All galleries of a run stay in memory, because each block of cases has all changes.
        memory = self.encoder.memory // (2 + len(self._changed))
        return Gallery.encode(encode, n, width, memory, self.encoder.similarity)


def _fill(
    columns: dict[str, np.ndarray],
    direction: str,
    rows: Sequence[int],
    owned: Sequence[slice],
    scores_of_both: Iterator[tuple[np.ndarray, np.ndarray]],
) -> None:
    """Write the ranks and overlaps of some queries into the columns. `owned` has each query's right candidates."""
    for row, right, scores in zip(rows, owned, scores_of_both, strict=True):
        if np.isnan(scores).any():
            continue
        for name, of_gallery in zip(("clean", "changed"), scores, strict=True):
            best = of_gallery[right].max()
            at_least = (of_gallery >= best).sum() - (of_gallery[right] >= best).sum()
            columns[f"{direction}_rank_{name}"][row] = 1 + at_least
        columns[f"least_{direction}_rank_changed"][row] = (
            1 + (scores[1] > scores[1][right].max()).sum()
        )
        if len(scores[0]) > DEPTH:
            columns[f"{direction}_overlap"][row] = counted_overlaps(np.stack(scores), DEPTH)[0]
