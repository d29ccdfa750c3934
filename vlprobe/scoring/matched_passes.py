"""The passes over a gallery that a matching head ranks: before these, each query's short-lists are found
and matched.

    lists      a share's columns that may be on a short-list, in the gallery and in that of the originals
    matches    the head's logits, a block of queries a share: the batches do not depend on the shares
    best       as in `passes`, by cosine and logit
    counts     likewise
"""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from vlprobe.scoring import short_list
from vlprobe.scoring.gallery import Gallery, Piece
from vlprobe.scoring.passes import (
    BestOwn,
    Counts,
    Search,
    Share,
    Stage,
    merged_best,
    merged_counts,
)
from vlprobe.scoring.short_list import Match


class ShortLists(NamedTuple):
    """Columns whose cosine is a query's SHORT_LIST best so far, ties with the last included."""

    query: np.ndarray
    column: np.ndarray
    cosine: np.ndarray
    clean_query: np.ndarray  # the same among the columns of the originals
    clean_column: np.ndarray
    clean_cosine: np.ndarray


class Logits(NamedTuple):
    """What the head says of a query and a column; by query, then by column."""

    query: np.ndarray
    column: np.ndarray
    logit: np.ndarray  # float32


class MatchedSearch:
    """As `passes.Search`, by a model that looks at pairs."""

    STAGES = ("lists", "matches", *Search.STAGES)

    def __init__(self, search: Search, match: Match) -> None:
        self.search, self.match = search, match
        self._is_clean, self._representatives = search.gallery.columns_within(~search.altered)

    @property
    def gallery(self) -> Gallery:
        """What is searched."""
        return self.search.gallery

    @property
    def stages(self) -> Sequence[Stage]:
        """As a `passes.SharedSearch`."""
        lists, matches, best, counts = self.STAGES
        return (
            Stage(lists, ShortLists, lambda _, share: self.lists(share.products), merged_lists),
            Stage(matches, Logits, lambda before, share: self.logits(before[0], share), _joined),
            Stage(best, BestOwn, self._best_own, merged_best),
            Stage(counts, Counts, self._counts, merged_counts),
        )

    def lists(self, products: range) -> ShortLists:
        """The short-lists among the columns of some products."""
        of_block: dict[int, ShortLists] = {}
        for queries, columns, cosines in self.gallery.products(self.search.queries, products):
            inside = np.flatnonzero(self._is_clean[columns])
            block_lists = ShortLists(
                *_listed(cosines, queries.start, np.arange(columns.start, columns.stop)),
                *_listed(cosines[:, inside], queries.start, columns.start + inside),
            )
            before = of_block.get(queries.start)
            of_block[queries.start] = merged_lists([before, block_lists]) if before else block_lists
        none = np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0, np.float32)
        return ShortLists(
            *map(np.concatenate, zip((*none, *none), *of_block.values(), strict=True))
        )

    def logits(self, lists: ShortLists, share: Share) -> Logits:
        """The head's logits of what is on either short-list, for a share of the queries."""
        pairs = np.unique(
            np.concatenate(
                [
                    np.stack([lists.query, lists.column], axis=1),
                    np.stack([lists.clean_query, lists.clean_column], axis=1),
                ]
            ),
            axis=0,
        )
        block_pairs = [np.empty((0, 2), np.int64)]
        values = [np.empty(0, np.float32)]
        blocks = self.gallery.row_blocks(len(self.search.queries))
        for block in blocks[share.number :: share.of]:
            rows = slice(*np.searchsorted(pairs[:, 0], [block.start, block.stop]))
            query, column = pairs[rows].T
            block_pairs.append(pairs[rows])
            values.append(self.match(query, self._representatives[column]).astype(np.float32))
        query, column = np.concatenate(block_pairs).T
        return Logits(query, column, np.concatenate(values))

    def _best_own(self, before: Sequence[Any], share: Share) -> BestOwn:
        best = self.search.no_best(np.float64)
        lists, logits = before
        for piece in self._pieces(lists, logits, share.products, self.search.holds_own()):
            self.search.add_best(piece, best)
        return best

    def _counts(self, before: Sequence[Any], share: Share) -> Counts:
        lists, logits, best = before
        counts = self.search.no_counts(np.float64)
        for piece in self._pieces(lists, logits, share.products):
            self.search.add_counts(piece, best, counts)
        return counts

    def _pieces(
        self,
        lists: ShortLists,
        logits: Logits,
        products: range,
        among: np.ndarray | None = None,
    ) -> Iterator[Piece]:
        """As `Gallery.pieces`, by cosine plus logit as `short_list.raised` has them."""
        n = len(self.search.queries)
        on_list = _Raised.of(lists[:3], logits, n)
        on_clean = _Raised.of(lists[3:], logits, n)
        for queries, columns, cosines in self.gallery.products(
            self.search.queries, products, among
        ):
            scores, clean = (
                raised.scores(cosines, queries, columns) for raised in (on_list, on_clean)
            )
            for candidates, holder_columns in self.gallery.holders(columns):
                yield Piece(
                    queries, candidates, scores[:, holder_columns], clean[:, holder_columns]
                )


class _Raised(NamedTuple):
    """The scores of one short-list of each query."""

    query: np.ndarray
    column: np.ndarray
    score: np.ndarray  # float64
    lowest: np.ndarray  # of each query

    @classmethod
    def of(cls, listed: Sequence[np.ndarray], logits: Logits, n_queries: int) -> "_Raised":
        query, column, cosine = listed
        width = 1 + max(int(logits.column.max(initial=0)), int(column.max(initial=0)))
        row = np.searchsorted(logits.query * width + logits.column, query * width + column)
        score = cosine.astype(np.float64)
        score += logits.logit[row]
        lowest = np.full(n_queries, np.inf)
        np.minimum.at(lowest, query, score)
        return cls(query, column, score, lowest)

    def scores(self, cosines: np.ndarray, queries: slice, columns: slice) -> np.ndarray:
        """Of some queries with the columns of a product, float64."""
        scores = cosines.astype(np.float64)
        scores += self.lowest[queries, None]
        scores -= 3  # cosines differ by 2 at most
        is_here = (self.query >= queries.start) & (self.query < queries.stop)
        is_here &= (self.column >= columns.start) & (self.column < columns.stop)
        row, column = self.query[is_here] - queries.start, self.column[is_here] - columns.start
        scores[row, column] = self.score[is_here]
        return scores


def merged_lists(shares: Sequence[ShortLists]) -> ShortLists:
    """The short-lists of all columns, from those of shares."""
    arrays = [np.concatenate(values) for values in zip(*shares, strict=True)]
    return ShortLists(*_best(*arrays[:3]), *_best(*arrays[3:]))


def _listed(
    cosines: np.ndarray, first_query: int, columns: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Query, column and cosine of what may be on the short-list."""
    least = np.full((len(cosines), 1), -np.inf, np.float32)
    if cosines.shape[1] > (k := short_list.SHORT_LIST):
        least = np.partition(cosines, -k, axis=1)[:, -k, None]
    query, column_index = np.nonzero(cosines >= least)
    return query + first_query, columns[column_index], cosines[query, column_index]


def _best(
    query: np.ndarray, column: np.ndarray, cosine: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The SHORT_LIST best of each query, ties with the last included; by query, then by column."""
    order = np.lexsort([-cosine, query])
    ranked_query, ranked_cosine = query[order], cosine[order]
    is_new = np.append(True, ranked_query[1:] != ranked_query[:-1])[: len(order)]  # none: none
    starts = np.flatnonzero(is_new)
    ends = np.append(starts, len(order))[1:]
    last_rank = np.minimum(starts + short_list.SHORT_LIST, ends) - 1
    least = np.repeat(ranked_cosine[last_rank], ends - starts)
    rows = order[ranked_cosine >= least]
    rows = rows[np.lexsort([column[rows], query[rows]])]
    return query[rows], column[rows], cosine[rows]


def _joined(shares: Sequence[Logits]) -> Logits:
    """All logits, from those of shares of the queries."""
    query, column, logit = (np.concatenate(values) for values in zip(*shares, strict=True))
    order = np.lexsort([column, query])
    return Logits(query[order], column[order], logit[order])
