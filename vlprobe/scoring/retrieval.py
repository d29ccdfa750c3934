"""Ranks of the right candidates for queries in a gallery, and the top candidates for display.

A tie is a failure: every other candidate that is at least as similar as the best correct one ranks
before it.
"""

from dataclasses import dataclass, fields
from typing import NamedTuple

import numpy as np

from vlprobe.errors import InvalidInput
from vlprobe.scoring.gallery import Gallery, Match

FIRST = 6  # top candidates: five that are shown, and one that moves up if another is removed
_CHUNK = 32  # candidates in a chunk; its highest similarity decides if any can be among the best


class FirstFew(NamedTuple):
    """The first few candidates for each query, best first."""

    numbers: np.ndarray  # int64 with shape (n_queries, FIRST); -1: there are no more
    scores: np.ndarray  # float32 with the same shape; NaN: there are no more


def best_first(
    numbers: np.ndarray, scores: np.ndarray, is_own: np.ndarray | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """Sort the candidates for each query and their similarities, best first, shape (n_queries, k).
    Among ties, the query's own candidates come last, and otherwise lower numbers come first.
    """
    own_last = (is_own,) if is_own is not None else ()
    order = np.lexsort((numbers, *own_last, -scores))
    return np.take_along_axis(numbers, order, 1), np.take_along_axis(scores, order, 1)


def padded(numbers: np.ndarray, scores: np.ndarray) -> FirstFew:
    """Pad or cut a sorted array of candidates with shape (n_queries, k) to FIRST columns."""
    missing = ((0, 0), (0, max(0, FIRST - numbers.shape[1])))
    return FirstFew(
        np.pad(numbers[:, :FIRST].astype(np.int64), missing, constant_values=-1),
        np.pad(scores[:, :FIRST].astype(np.float32), missing, constant_values=np.nan),
    )


def best_columns(scores: np.ndarray, k: int) -> np.ndarray:
    """Find the k best columns in each row, shape (n_queries, k). Ties are ordered by index.

    The k best columns are in the k chunks with the highest maxima, so the matrix is read only once.
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
    """Find the positions of the k highest values in each row, best first. The lower position comes first among equal
    values. Searching k times is faster than sorting.
    """
    remaining = np.where(np.isnan(values), np.finfo(values.dtype).min, values)
    rows, order = np.arange(len(values)), np.empty((len(values), k), dtype=np.int64)
    for place in range(k):
        order[:, place] = remaining.argmax(axis=1)
        remaining[rows, order[:, place]] = -np.inf
    return order


@dataclass(frozen=True, slots=True)
class RetrievalRanks:
    """Retrieval results for each query, as arrays with shape (n_queries,). Arrays with the first few candidates have
    shape (n_queries, FIRST), as in `FirstFew`.
    """

    best_own: np.ndarray  # similarity of the query's own best candidate in the full gallery
    best_altered: np.ndarray  # similarity of the best altered candidate
    top_altered: np.ndarray  # 1 if no original scores strictly above the best altered candidate
    which_altered: np.ndarray  # number of the best altered candidate in the gallery
    rank_clean: np.ndarray  # rank of the best own candidate among originals
    rank: np.ndarray  # the same with the altered candidates in the gallery
    least_rank_clean: np.ndarray  # rank_clean if no tie counted against the own candidate
    least_rank: np.ndarray  # rank if no tie counted against the own candidate
    top_tied: np.ndarray  # 1 if the best original and the best altered candidate are equal
    first_clean: np.ndarray  # numbers of the best originals, best first
    first_clean_scores: np.ndarray  # their similarities among originals
    first: np.ndarray  # numbers of the best candidates in the full gallery, best first
    first_scores: np.ndarray
    own_altered: np.ndarray  # similarity of the best altered candidate of the query's item, or NaN
    own_altered_rank: np.ndarray  # its rank if no tie counted against it; NaN: there is none


def retrieve(
    queries: np.ndarray,
    query_item: np.ndarray,
    gallery: Gallery,
    owner: np.ndarray,
    altered: np.ndarray | None = None,
    match: Match | None = None,
) -> RetrievalRanks:
    """Rank each query's own candidates in the clean gallery and in the gallery with altered
    candidates.

    Args:
        queries: The embeddings of the queries, shape (q, dim).
        query_item: The item that each query belongs to, shape (q,). Every item has an original in the gallery.
        gallery: A gallery with n candidates.
        owner: The item that each candidate belongs to, shape (n,).
        altered: A mask of the altered candidates, shape (n,), at least one of them True. None means that
            the gallery has no altered candidates, and both ranks are the clean rank.
        match: A function that returns the logit for a query and a candidate, for models that score
            pairs.

    Returns:
        Ranks from 1. Every other candidate that is at least as similar as the query's best own candidate
        ranks before it. The clean rank does not depend on the altered candidates, because with `match`,
        each of the two galleries has a separate short list.

    Raises:
        InvalidInput: The mask marks no candidate, or there is no mask and all candidates belong to one item.
    """
    if altered is None:
        if (owner == owner[0]).all():
            raise InvalidInput("The gallery contains only one item. Use at least two items.")
        altered = np.zeros(len(owner), dtype=bool)
    elif not altered.any():
        raise InvalidInput(
            "Nothing in the gallery was altered, so there are no decoys to search for. "
            "Choose another policy."
        )
    blocks = [
        _block_ranks(scores, clean, query_item[block], owner, altered)
        for block, scores, clean in gallery.similarities_within(queries, ~altered, match)
    ]
    columns = ([getattr(block, field.name) for block in blocks] for field in fields(RetrievalRanks))
    return RetrievalRanks(*map(np.concatenate, columns))


def _block_ranks(
    scores: np.ndarray, clean: np.ndarray, items: np.ndarray, owner: np.ndarray, altered: np.ndarray
) -> RetrievalRanks:
    """Rank one block of queries from complete rows of similarities, shape (queries, n). `clean` is for originals."""
    is_own = owner == items[:, None]
    own_cells = np.nonzero(is_own & ~altered)
    best, best_clean = _best(scores, own_cells), _best(clean, own_cells)
    rivals = scores.copy()
    rivals_clean = rivals if clean is scores else clean.copy()
    rivals[own_cells] = rivals_clean[own_cells] = -np.inf
    false, original, numbers = rivals, best, np.arange(len(owner))
    originals = numbers
    if altered.any():
        false, original = scores[:, altered], scores[:, ~altered].max(axis=1)
        numbers, originals = np.flatnonzero(altered), np.flatnonzero(~altered)
        clean, rivals_clean = clean[:, originals], rivals_clean[:, originals]
    place = false.argmax(axis=1)  # the lowest number among equal values
    against = false[np.arange(len(false)), place]
    own_altered = _best(scores, np.nonzero(is_own & altered))
    has_none = np.isneginf(own_altered)
    n_first = FIRST + int(np.bincount(own_cells[0]).max())

    def first_few(scores: np.ndarray, numbers: np.ndarray) -> FirstFew:
        columns = best_columns(scores, min(n_first, len(numbers)))
        first, first_scores = numbers[columns], np.take_along_axis(scores, columns, 1)
        is_own = ~altered[first] & (owner[first] == items[:, None])
        return padded(*best_first(first, first_scores, is_own))

    first_clean, first = first_few(clean, originals), first_few(scores, np.arange(len(owner)))
    return RetrievalRanks(
        best_own=best,
        best_altered=against,
        top_altered=against >= original,
        which_altered=numbers[place],
        rank_clean=1 + _count(rivals_clean >= best_clean[:, None]),
        rank=1 + _count(rivals >= best[:, None]),
        least_rank_clean=1 + _count(rivals_clean > best_clean[:, None]),
        least_rank=1 + _count(rivals > best[:, None]),
        top_tied=against == original,
        first_clean=first_clean.numbers,
        first_clean_scores=first_clean.scores,
        first=first.numbers,
        first_scores=first.scores,
        own_altered=np.where(has_none, np.nan, own_altered),
        own_altered_rank=np.where(has_none, np.nan, 1.0 + _count(scores > own_altered[:, None])),
    )


def _best(scores: np.ndarray, pairs: tuple[np.ndarray, ...]) -> np.ndarray:
    """Return the highest similarity for each query among the given (row, column) pairs, or -inf if it has no pair."""
    best = np.full(len(scores), -np.inf, scores.dtype)
    np.maximum.at(best, pairs[0], scores[pairs])
    return best


def _count(mask: np.ndarray) -> np.ndarray:
    """Count the true values in each row, which is faster than summing."""
    return np.fromiter(map(np.count_nonzero, mask), np.int64, len(mask))
