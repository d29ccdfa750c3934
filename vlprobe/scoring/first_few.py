"""The best few candidates of a query, best first: what a person looks at."""

from typing import NamedTuple

import numpy as np

FIRST = 6  # of a gallery: five that are shown, and the one that moves up when another leaves
_CHUNK = 32  # candidates whose highest similarity decides whether one of them can be among the best


class FirstFew(NamedTuple):
    """The best candidates of some queries, best first."""

    numbers: np.ndarray  # int64 of shape (n_queries, FIRST); -1: there are no more
    scores: np.ndarray  # float32 of the same shape; NaN: there are no more


def first_few(scores: np.ndarray, is_own: np.ndarray, most_own: int) -> FirstFew:
    """The FIRST best candidates of each query.

    Of equal ones the query's own come last, as in its rank, and else the lower number first. What
    has no similarity (NaN) comes after all others.

    Args:
        scores: Shape (n_queries, n_candidates).
        is_own: Whether a candidate is the query's own, of the same shape.
        most_own: How many own candidates a query has at most.
    """
    columns = _best_columns(scores, min(FIRST + most_own, scores.shape[1]))
    values = np.take_along_axis(scores, columns, 1)
    order = np.lexsort((columns, np.take_along_axis(is_own, columns, 1), -values))[:, :FIRST]
    return padded(np.take_along_axis(columns, order, 1), np.take_along_axis(values, order, 1))


def padded(numbers: np.ndarray, scores: np.ndarray) -> FirstFew:
    """Candidates of queries, best first, of shape (n_queries, k), as they are handed on."""
    missing = ((0, 0), (0, max(0, FIRST - numbers.shape[1])))
    return FirstFew(
        np.pad(numbers[:, :FIRST].astype(np.int64), missing, constant_values=-1),
        np.pad(scores[:, :FIRST].astype(np.float32), missing, constant_values=np.nan),
    )


def _best_columns(scores: np.ndarray, k: int) -> np.ndarray:
    """The k best columns of each row, of equal ones the lower first; shape (n_queries, k).

    The k best are within the k chunks of columns whose highest value is best, of equal ones the
    first, so that the whole matrix is read once.
    """
    n_queries, n_candidates = scores.shape
    n_chunks = n_candidates // _CHUNK
    columns = np.broadcast_to(np.arange(n_candidates), scores.shape)
    if n_chunks > k:
        chunks = scores[:, : n_chunks * _CHUNK].reshape(n_queries, n_chunks, _CHUNK)
        best = np.sort(_highest(np.fmax.reduce(chunks, axis=2), k), axis=1)
        inside = (best[:, :, None] * _CHUNK + np.arange(_CHUNK)).reshape(n_queries, -1)
        columns = np.concatenate([inside, columns[:, n_chunks * _CHUNK :]], axis=1)
    order = _highest(np.take_along_axis(scores, columns, 1), k)
    return np.take_along_axis(columns, order, 1)


def _highest(values: np.ndarray, k: int) -> np.ndarray:
    """Where the k highest values of each row stand, best first and of equal ones the lower first:
    sooner told by k searches than by sorting.
    """
    remaining = np.where(np.isnan(values), np.finfo(values.dtype).min, values)
    rows, order = np.arange(len(values)), np.empty((len(values), k), dtype=np.int64)
    for place in range(k):
        order[:, place] = remaining.argmax(axis=1)
        remaining[rows, order[:, place]] = -np.inf
    return order


class GalleryFronts:
    """What stands first for a query in a gallery, and in the same one without its altered
    candidates; where the query's own altered candidate stands.

    Args:
        owner: The item of each candidate, shape (n_candidates,).
        altered: Whether a candidate was altered, of the same shape.
    """

    def __init__(self, owner: np.ndarray, altered: np.ndarray) -> None:
        self._originals = np.flatnonzero(~altered)
        self._most_own = int(np.bincount(owner[self._originals]).max())
        n_originals = len(self._originals)
        come_first = self._originals[-1] < n_originals  # then a slice of a matrix is no copy
        self._clean: slice | np.ndarray = slice(0, n_originals) if come_first else self._originals
        self._own_altered = own_candidates(owner, altered)

    def columns(
        self, scores: np.ndarray, clean: np.ndarray, is_own: np.ndarray, query_item: np.ndarray
    ) -> dict[str, np.ndarray]:
        """The columns of `RetrievalRanks` from `first_clean` on, for a block of queries.

        Args:
            scores: Similarities in the whole gallery, shape (n_queries, n_candidates).
            clean: Those in the gallery of originals, of the same shape.
            is_own: Whether a candidate is an original of the query's item, of the same shape.
            query_item: The item of each query, shape (n_queries,).
        """
        few_clean = first_few(clean[:, self._clean], is_own[:, self._clean], self._most_own)
        few = first_few(scores, is_own, self._most_own)
        numbers = np.append(self._originals, -1)[few_clean.numbers]  # of all candidates
        own = self._own_altered[query_item]
        values = np.where(own < 0, -np.inf, np.take_along_axis(scores, own, 1)).max(axis=1)
        rank = 1.0 + (scores > values[:, None]).sum(axis=1)
        has_none = (own < 0).all(axis=1)
        return {
            "first_clean": numbers,
            "first_clean_scores": few_clean.scores,
            "first": few.numbers,
            "first_scores": few.scores,
            "own_altered": np.where(has_none, np.nan, values),
            "own_altered_rank": np.where(has_none, np.nan, rank),
        }


def own_candidates(owner: np.ndarray, altered: np.ndarray) -> np.ndarray:
    """The numbers of each item's altered candidates, int64 of shape (n_items, most of an item), at
    least one column; -1: there are no more.

    >>> own_candidates(np.array([0, 1, 2, 1, 2, 1]), np.array([0, 0, 0, 1, 1, 1], dtype=bool)).tolist()
    [[-1, -1], [3, 5], [4, -1]]
    """
    numbers = np.flatnonzero(altered)
    numbers = numbers[np.argsort(owner[numbers], kind="stable")]
    counts = np.bincount(owner[numbers], minlength=int(owner.max()) + 1)
    table = np.full((len(counts), max(1, int(counts.max(initial=0)))), -1, dtype=np.int64)
    starts = np.cumsum(counts) - counts
    table[owner[numbers], np.arange(len(numbers)) - starts[owner[numbers]]] = numbers
    return table
