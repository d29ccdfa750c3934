"""Where the right candidates of queries stand in a gallery: ranks, and what is first."""

from dataclasses import dataclass

import numpy as np

from vlprobe.errors import InvalidInput
from vlprobe.scoring.first_few import FirstFew, best_first, padded
from vlprobe.scoring.gallery import Gallery
from vlprobe.scoring.passes import BestOwn, Counts, Search
from vlprobe.scoring.short_list import Match


@dataclass(frozen=True, slots=True)
class RetrievalRanks:
    """What retrieval gave for each query: arrays of shape (n_queries,); those of the first few
    candidates of shape (n_queries, FIRST), as in `first_few.FirstFew`.
    """

    best_own: np.ndarray  # similarity of the query's own best candidate, among all
    best_altered: np.ndarray  # similarity of the best altered candidate
    top_altered: np.ndarray  # 1 where no original is strictly above it
    which_altered: np.ndarray  # its number in the gallery
    rank_clean: np.ndarray  # rank of the best own candidate among originals
    rank: np.ndarray  # the same with the altered candidates in the gallery
    least_rank_clean: (
        np.ndarray
    )  # what rank_clean would be if no tie counted against the own candidate
    least_rank: np.ndarray  # the same of rank
    top_tied: np.ndarray  # 1 where the best original and the best altered candidate are equal
    first_clean: np.ndarray  # numbers of the best originals, best first
    first_clean_scores: np.ndarray  # their similarities among originals
    first: np.ndarray  # the same of all candidates
    first_scores: np.ndarray
    own_altered: np.ndarray  # similarity of the best altered candidate of the query's item, or NaN
    own_altered_rank: np.ndarray  # its rank if no tie counted against it; NaN: there is none


def ranks(search: Search, best: BestOwn, counts: Counts) -> RetrievalRanks:
    """Of the first and the second pass over all products, where something was altered."""
    is_top = counts.best_altered >= counts.best_original
    return _ranks(
        search,
        best,
        counts,
        counts.best_altered,
        counts.which_altered,
        is_top,
        counts.best_original,
    )


def clean_ranks(search: Search, best: BestOwn, counts: Counts) -> RetrievalRanks:
    """The same where nothing was: what stands against the own candidates is the best other."""
    numbers, scores = best_first(
        counts.front_clean, counts.front_clean_scores, search.is_own(counts.front_clean)
    )
    rival = np.argmin(search.is_own(numbers), axis=1)[:, None]
    against = np.take_along_axis(scores, rival, 1)[:, 0]
    which = np.take_along_axis(numbers, rival, 1)[:, 0]
    return _ranks(search, best, counts, against, which, against >= best.original, best.original)


def _ranks(
    search: Search,
    best: BestOwn,
    counts: Counts,
    against: np.ndarray,
    which: np.ndarray,
    is_top: np.ndarray,
    original: np.ndarray,
) -> RetrievalRanks:
    front_clean = _few(search, counts.front_clean, counts.front_clean_scores)
    front = _few(search, counts.front, counts.front_scores)
    has_none = np.isneginf(best.altered)
    return RetrievalRanks(
        best_own=best.original,
        best_altered=against,
        top_altered=is_top,
        which_altered=which,
        rank_clean=1 + counts.clean_level,
        rank=1 + counts.originals_level + counts.altered_level,
        least_rank_clean=1 + counts.clean_above,
        least_rank=1 + counts.above,
        top_tied=against == original,
        first_clean=front_clean.numbers,
        first_clean_scores=front_clean.scores,
        first=front.numbers,
        first_scores=front.scores,
        own_altered=np.where(has_none, np.nan, best.altered),
        own_altered_rank=np.where(has_none, np.nan, 1.0 + counts.above_altered),
    )


def _few(search: Search, numbers: np.ndarray, scores: np.ndarray) -> FirstFew:
    numbers, scores = best_first(numbers, scores, search.is_own(numbers))
    return padded(numbers, np.where(numbers < 0, np.nan, scores))


def retrieve(
    queries: np.ndarray,
    query_item: np.ndarray,
    gallery: Gallery,
    owner: np.ndarray,
    altered: np.ndarray,
    match: Match | None = None,
) -> RetrievalRanks:
    """Ranks each query's own original candidates in the clean gallery and in the one with altered
    candidates.

    Args:
        queries: Shape (q, dim).
        query_item: The item of each query, shape (q,); every item has an original in the gallery.
        gallery: The n candidates.
        owner: The item of each candidate, shape (n,).
        altered: Whether a candidate was altered, shape (n,), at least one.
        match: The logit of a query and a candidate, of a model that looks at pairs.

    Returns:
        Ranks from 1; every other candidate with at least the own best similarity ranks before it.
        The clean rank does not depend on the altered candidates: with `match`, each of the two
        galleries has a short-list of its own.
    """
    if not altered.any():
        raise InvalidInput(
            "Nothing in the gallery was altered, so nothing can be asked. Choose another policy."
        )
    search = Search(queries, query_item, gallery, owner, altered)
    return ranks(search, *both_passes(search, match))


def retrieve_clean(
    queries: np.ndarray,
    query_item: np.ndarray,
    gallery: Gallery,
    owner: np.ndarray,
    match: Match | None = None,
) -> RetrievalRanks:
    """As `retrieve`, in a gallery where nothing is altered: what stands against the query's own
    candidates is the best of all others, and both ranks are the clean one.

    Raises InvalidInput where all candidates are of one item.
    """
    if (owner == owner[0]).all():
        raise InvalidInput(
            "The gallery holds the captions and the picture of one item alone. Ask about two items or more."
        )
    search = Search(queries, query_item, gallery, owner, np.zeros(len(owner), dtype=bool))
    return clean_ranks(search, *both_passes(search, match))


def both_passes(search: Search, match: Match | None) -> tuple[BestOwn, Counts]:
    """Make both passes; at once where whole rows of similarities are there."""
    gallery = search.gallery
    if gallery.n_products > 1 and not match:
        best = search.best_own()
        return best, search.counts(best)
    dtype = np.float64 if match else np.float32
    best, counts = search.no_best(dtype), search.no_counts(dtype)
    for piece in gallery.similarities_within(search.queries, ~search.altered, match):
        search.add_best(piece, best)
        search.add_counts(piece, best, counts)
    return best, counts
