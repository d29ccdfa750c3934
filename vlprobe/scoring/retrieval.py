"""Ranks of the right candidates of queries in a gallery, and the first few candidates.

A tie is a failure: every other candidate with at least the similarity of the best own one ranks
before it.
"""

from dataclasses import dataclass, fields

import numpy as np

from vlprobe.errors import InvalidInput
from vlprobe.scoring.first_few import FIRST, FirstFew, best_columns, best_first, padded
from vlprobe.scoring.gallery import Gallery
from vlprobe.scoring.short_list import Match


@dataclass(frozen=True, slots=True)
class RetrievalRanks:
    """Result of retrieval for each query: arrays of shape (n_queries,); those of the first few
    candidates of shape (n_queries, FIRST), as in `first_few.FirstFew`.
    """

    best_own: np.ndarray  # similarity of the query's own best candidate, among all
    best_altered: np.ndarray  # similarity of the best altered candidate
    top_altered: np.ndarray  # 1 where no original is strictly above it
    which_altered: np.ndarray  # its number in the gallery
    rank_clean: np.ndarray  # rank of the best own candidate among originals
    rank: np.ndarray  # the same with the altered candidates in the gallery
    least_rank_clean: np.ndarray  # rank_clean if no tie counted against the own candidate
    least_rank: np.ndarray  # the same of rank
    top_tied: np.ndarray  # 1 where the best original and the best altered candidate are equal
    first_clean: np.ndarray  # numbers of the best originals, best first
    first_clean_scores: np.ndarray  # their similarities among originals
    first: np.ndarray  # the same of all candidates
    first_scores: np.ndarray
    own_altered: np.ndarray  # similarity of the best altered candidate of the query's item, or NaN
    own_altered_rank: np.ndarray  # its rank if no tie counted against it; NaN: there is none


def retrieve(
    queries: np.ndarray,
    query_item: np.ndarray,
    gallery: Gallery,
    owner: np.ndarray,
    altered: np.ndarray,
    match: Match | None = None,
) -> RetrievalRanks:
    """Rank each query's own original candidates in the clean gallery and in the one with altered candidates.

    Args:
        queries: Shape (q, dim).
        query_item: The item of each query, shape (q,); every item has an original in the gallery.
        gallery: The n candidates.
        owner: The item of each candidate, shape (n,).
        altered: Mask of altered candidates, shape (n,), at least one.
        match: The logit of a query and a candidate, for a model that scores pairs.

    Returns:
        Ranks from 1; every other candidate with at least the own best similarity ranks before it.
        The clean rank does not depend on the altered candidates: with `match`, each of the two galleries has a
        separate short-list.
    """
    if not altered.any():
        raise InvalidInput(
            "Nothing in the gallery was altered, so nothing can be asked. Choose another policy."
        )
    return _retrieve(queries, query_item, gallery, owner, altered, match)


def retrieve_clean(
    queries: np.ndarray,
    query_item: np.ndarray,
    gallery: Gallery,
    owner: np.ndarray,
    match: Match | None = None,
) -> RetrievalRanks:
    """Rank like `retrieve`, in a gallery without altered candidates: the competitor of the query's own candidates is
    the best of all others, and both ranks are the clean one.

    Raises InvalidInput if all candidates are of one item.
    """
    if (owner == owner[0]).all():
        raise InvalidInput(
            "The gallery holds the captions and the picture of one item alone. Ask about two items or more."
        )
    altered = np.zeros(len(owner), dtype=bool)
    return _retrieve(queries, query_item, gallery, owner, altered, match)


def _retrieve(
    queries: np.ndarray,
    query_item: np.ndarray,
    gallery: Gallery,
    owner: np.ndarray,
    altered: np.ndarray,
    match: Match | None,
) -> RetrievalRanks:
    blocks = [
        _block_ranks(scores, clean, query_item[block], owner, altered)
        for block, scores, clean in gallery.similarities_within(queries, ~altered, match)
    ]
    columns = ([getattr(block, field.name) for block in blocks] for field in fields(RetrievalRanks))
    return RetrievalRanks(*map(np.concatenate, columns))


def _block_ranks(
    scores: np.ndarray, clean: np.ndarray, items: np.ndarray, owner: np.ndarray, altered: np.ndarray
) -> RetrievalRanks:
    """Rank in complete rows of similarities, of shape (queries, n); `clean` has those among originals."""
    is_own = owner == items[:, None]
    own = np.nonzero(is_own & ~altered)
    best, best_clean = _best(scores, own), _best(clean, own)
    rivals = scores.copy()
    rivals_clean = rivals if clean is scores else clean.copy()
    rivals[own] = rivals_clean[own] = -np.inf
    false, original, numbers = rivals, best, np.arange(len(owner))
    originals = numbers
    if altered.any():
        false, original = scores[:, altered], scores[:, ~altered].max(axis=1)
        numbers, originals = np.flatnonzero(altered), np.flatnonzero(~altered)
        clean, rivals_clean = clean[:, originals], rivals_clean[:, originals]
    place = false.argmax(axis=1)  # of equal ones the lowest number
    against = false[np.arange(len(false)), place]
    own_altered = _best(scores, np.nonzero(is_own & altered))
    has_none = np.isneginf(own_altered)
    n_first = FIRST + int(np.bincount(own[0]).max())

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
    """Return the highest similarity of each query among these pairs of row and column; -inf: no pair."""
    best = np.full(len(scores), -np.inf, scores.dtype)
    np.maximum.at(best, pairs[0], scores[pairs])
    return best


def _count(mask: np.ndarray) -> np.ndarray:
    """Count how many of each row are true; faster than a sum."""
    return np.fromiter(map(np.count_nonzero, mask), np.int64, len(mask))
