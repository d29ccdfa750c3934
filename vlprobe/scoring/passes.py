"""Two passes over the products of a gallery, one product in memory at a time.

The first finds the best of each query's own candidates, the second counts how many others are at
least as similar and keeps the first few.
"""

from typing import NamedTuple

import numpy as np

from vlprobe.scoring.first_few import FIRST, best_columns, best_first
from vlprobe.scoring.gallery import Gallery, Piece


class BestOwn(NamedTuple):
    """The first pass: the best of a query's own candidates, shape (n_queries,) each; -inf: none."""

    original: np.ndarray  # similarity of the best own original
    clean: np.ndarray  # the same in the gallery of originals
    altered: np.ndarray  # of the best altered candidate of the query's item


class Counts(NamedTuple):
    """The second pass: candidates counted, and the first few; arrays of n_queries."""

    originals_level: np.ndarray  # originals of other items, at least as similar as the best own
    altered_level: np.ndarray  # altered candidates that are
    clean_level: np.ndarray  # as the first, in the gallery of originals
    above: np.ndarray  # all candidates above the best own original
    clean_above: np.ndarray  # originals above it in the gallery of originals
    above_altered: np.ndarray  # all candidates above the best own altered one
    best_altered: np.ndarray  # similarity of the best altered candidate, -inf: none
    which_altered: np.ndarray  # its number, the lowest of equals
    best_original: np.ndarray  # similarity of the best original
    front: np.ndarray  # numbers of the first candidates, (n_queries, k); -1: there are no more
    front_scores: np.ndarray  # their similarities; -inf: there are no more
    front_clean: np.ndarray  # the same of originals in the gallery of originals
    front_clean_scores: np.ndarray


class Pairs(NamedTuple):
    """Pairs of a query and a candidate, by the candidate's number."""

    query: np.ndarray
    candidate: np.ndarray

    @classmethod
    def of_items(cls, query_item: np.ndarray, owner: np.ndarray, among: np.ndarray) -> "Pairs":
        """Each query with the candidates of its item among some, bool of shape (n,)."""
        numbers = np.flatnonzero(among & np.isin(owner, query_item))
        numbers = numbers[np.argsort(owner[numbers], kind="stable")]
        starts = np.searchsorted(owner[numbers], query_item)
        n_own = np.searchsorted(owner[numbers], query_item, side="right") - starts
        query = np.repeat(np.arange(len(query_item)), n_own)
        within = np.arange(len(query)) - np.repeat(np.cumsum(n_own) - n_own, n_own)
        candidate = numbers[np.repeat(starts, n_own) + within]
        order = np.argsort(candidate, kind="stable")
        return cls(query[order], candidate[order])

    def inside(self, piece: Piece) -> tuple[np.ndarray, np.ndarray]:
        """Row and column in the piece of those pairs that it holds."""
        numbers = piece.candidates
        lowest, highest = (
            (numbers.start, numbers.stop - 1)
            if isinstance(numbers, slice)
            else (numbers[0], numbers[-1])
        )
        span = slice(*np.searchsorted(self.candidate, [lowest, highest + 1]))
        query, candidate = self.query[span], self.candidate[span]
        is_inside = (query >= piece.queries.start) & (query < piece.queries.stop)
        if isinstance(numbers, slice):
            column = candidate - lowest
        else:
            column = np.searchsorted(numbers, candidate)
            is_inside &= numbers[column] == candidate
        return query[is_inside] - piece.queries.start, column[is_inside]


class Search:
    """Queries of items in a gallery.

    Args:
        queries: Shape (q, dim).
        query_item: The item of each query, shape (q,); every item has an original in the gallery.
        gallery: The n candidates.
        owner: The item of each candidate, shape (n,).
        altered: Whether a candidate was altered, shape (n,).
    """

    def __init__(
        self,
        queries: np.ndarray,
        query_item: np.ndarray,
        gallery: Gallery,
        owner: np.ndarray,
        altered: np.ndarray,
    ) -> None:
        self.queries, self.query_item, self.gallery = queries, query_item, gallery
        self.owner, self.altered = owner, altered
        self._own = Pairs.of_items(query_item, owner, ~altered)
        self._own_altered = Pairs.of_items(query_item, owner, altered)
        most_own = np.bincount(self._own.query, minlength=1).max()
        self._k = int(min(FIRST + most_own, gallery.n))

    def best_own(self) -> BestOwn:
        """The first pass, over the products with own candidates of a query."""
        best = self.no_best(np.float32)
        for piece in self.gallery.pieces(self.queries, self.holds_own()):
            self.add_best(piece, best)
        return best

    def holds_own(self) -> np.ndarray:
        """Which products hold own candidates of a block of queries, (n_blocks, n_products)."""
        gallery = self.gallery
        n_blocks = -(-len(self.queries) // gallery.product_queries)
        holds = np.zeros((n_blocks, gallery.n_products), dtype=bool)
        for pairs in (self._own, self._own_altered):
            blocks = pairs.query // gallery.product_queries
            holds[blocks, gallery.products_of(pairs.candidate)] = True
        return holds

    def no_best(self, dtype: type) -> BestOwn:
        """Of no candidate at all."""
        return BestOwn(*(np.full(len(self.queries), -np.inf, dtype) for _ in BestOwn._fields))

    def add_best(self, piece: Piece, best: BestOwn) -> None:
        """Adds to the first pass what a piece has."""
        queries = piece.queries
        row, column = self._own.inside(piece)
        np.maximum.at(best.original[queries], row, piece.scores[row, column])
        np.maximum.at(best.clean[queries], row, piece.clean[row, column])
        row, column = self._own_altered.inside(piece)
        np.maximum.at(best.altered[queries], row, piece.scores[row, column])

    def counts(self, best: BestOwn) -> Counts:
        """The second pass, over all products."""
        counts = self.no_counts(np.float32)
        for piece in self.gallery.pieces(self.queries):
            self.add_counts(piece, best, counts)
        return counts

    def no_counts(self, dtype: type) -> Counts:
        """Of no candidate at all."""
        n = len(self.queries)
        whole_numbers = {name: np.zeros(n, dtype=np.int64) for name in Counts._fields[:6]}
        return Counts(
            **whole_numbers,
            best_altered=np.full(n, -np.inf, dtype),
            which_altered=np.full(n, -1, dtype=np.int64),
            best_original=np.full(n, -np.inf, dtype),
            front=np.full((n, self._k), -1, dtype=np.int64),
            front_scores=np.full((n, self._k), -np.inf, dtype),
            front_clean=np.full((n, self._k), -1, dtype=np.int64),
            front_clean_scores=np.full((n, self._k), -np.inf, dtype),
        )

    def add_counts(self, piece: Piece, best: BestOwn, counts: Counts) -> None:
        """Adds to the second pass what a piece has; `best` is that of all products."""
        queries, scores, clean = piece.queries, piece.scores, piece.clean
        altered = self.altered[piece.candidates]
        is_mixed = altered.any() and not altered.all()
        originals: slice | np.ndarray = (
            ~altered if is_mixed else slice(0, 0 if altered.all() else None)
        )
        own_row, own_column = self._own.inside(piece)
        own_best, own_clean = best.original[queries, None], best.clean[queries, None]
        level = scores >= own_best
        n_level, n_originals = _true(level), _true(level[:, originals])
        counts.altered_level[queries] += n_level - n_originals
        np.subtract.at(n_originals, own_row, level[own_row, own_column])
        counts.originals_level[queries] += n_originals
        above = scores > own_best
        counts.above[queries] += _true(above)
        if clean is scores:
            n_clean, n_clean_above = n_originals, _true(above[:, originals])
        else:
            level = clean >= own_clean
            n_clean, n_clean_above = (
                _true(level[:, originals]),
                _true((clean > own_clean)[:, originals]),
            )
            np.subtract.at(n_clean, own_row, level[own_row, own_column])
        counts.clean_level[queries] += n_clean
        counts.clean_above[queries] += n_clean_above
        if len(self._own_altered.query):
            counts.above_altered[queries] += _true(scores > best.altered[queries, None])
        numbers = piece.numbers
        self._add_front(counts.front, counts.front_scores, queries, numbers, scores)
        if not altered.all():
            self._add_front(
                counts.front_clean,
                counts.front_clean_scores,
                queries,
                numbers[originals],
                clean[:, originals],
            )
            highest = scores[:, originals].max(axis=1)
            np.maximum(counts.best_original[queries], highest, out=counts.best_original[queries])
        if altered.any():
            false_scores = scores[:, altered] if is_mixed else scores
            _add_top(counts, queries, numbers[altered], false_scores)

    def _add_front(
        self,
        front: np.ndarray,
        front_scores: np.ndarray,
        queries: slice,
        numbers: np.ndarray,
        scores: np.ndarray,
    ) -> None:
        columns = best_columns(scores, min(self._k, scores.shape[1]))
        merged = best_first(
            np.concatenate([front[queries], numbers[columns]], axis=1),
            np.concatenate([front_scores[queries], np.take_along_axis(scores, columns, 1)], axis=1),
        )
        front[queries], front_scores[queries] = (values[:, : self._k] for values in merged)

    def is_own(self, numbers: np.ndarray) -> np.ndarray:
        """Which candidates are originals of the query's item, shape (n_queries, k)."""
        is_original = (numbers >= 0) & ~self.altered[numbers]
        return is_original & (self.owner[numbers] == self.query_item[:, None])


def _true(mask: np.ndarray) -> np.ndarray:
    """How many of each row are true; faster than a sum."""
    return np.fromiter(map(np.count_nonzero, mask), np.int64, len(mask))


def _add_top(counts: Counts, queries: slice, numbers: np.ndarray, scores: np.ndarray) -> None:
    """The best of some altered candidates, the lowest number of equals."""
    columns = scores.argmax(axis=1)
    values, which = scores[np.arange(len(scores)), columns], numbers[columns]
    best, number = counts.best_altered[queries], counts.which_altered[queries]
    is_better = (values > best) | ((values == best) & ((which < number) | (number < 0)))
    best[is_better], number[is_better] = values[is_better], which[is_better]
