"""The best few candidates of a query, best first, for display."""

from typing import NamedTuple

import numpy as np

FIRST = 6  # of a gallery: five that are shown, and the one that moves up when another leaves
_CHUNK = 32  # candidates whose highest similarity decides whether one of them can be among the best


class FirstFew(NamedTuple):
    """The best candidates of some queries, best first."""

    numbers: np.ndarray  # int64 of shape (n_queries, FIRST); -1: there are no more
    scores: np.ndarray  # float32 of the same shape; NaN: there are no more


def best_first(
    numbers: np.ndarray, scores: np.ndarray, is_own: np.ndarray | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """Candidates of queries, and their similarities, best first; of equal ones the query's own come
    last, and else the lower number first. All of shape (n_queries, k).
    """
    own_last = (is_own,) if is_own is not None else ()
    order = np.lexsort((numbers, *own_last, -scores))
    return np.take_along_axis(numbers, order, 1), np.take_along_axis(scores, order, 1)


def padded(numbers: np.ndarray, scores: np.ndarray) -> FirstFew:
    """Pad or cut the candidates of queries, best first, of shape (n_queries, k), to FIRST columns."""
    missing = ((0, 0), (0, max(0, FIRST - numbers.shape[1])))
    return FirstFew(
        np.pad(numbers[:, :FIRST].astype(np.int64), missing, constant_values=-1),
        np.pad(scores[:, :FIRST].astype(np.float32), missing, constant_values=np.nan),
    )


def best_columns(scores: np.ndarray, k: int) -> np.ndarray:
    """Find the k best columns of each row, the lower first if equal; shape (n_queries, k).

    The k best are within the k chunks of columns with the highest maxima, the first if equal, so that the matrix is
    only read once.
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
    """Find the positions of the k highest values of each row, best first and the lower first if equal: k searches are
    faster than sorting.
    """
    remaining = np.where(np.isnan(values), np.finfo(values.dtype).min, values)
    rows, order = np.arange(len(values)), np.empty((len(values), k), dtype=np.int64)
    for place in range(k):
        order[:, place] = remaining.argmax(axis=1)
        remaining[rows, order[:, place]] = -np.inf
    return order
