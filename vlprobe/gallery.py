"""Queries against thousands of candidates, a block of queries at a time: the whole matrix is never held.

Candidates with equal embeddings share one column of the product, so that what the model cannot tell apart ties to the
bit, wherever in the gallery it stands.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

BLOCK_BYTES = 64 << 20  # of similarities at once


class Gallery:
    """Candidates as embeddings, float32 of shape (n, dim)."""

    def __init__(self, vectors: np.ndarray) -> None:
        rows = np.ascontiguousarray(vectors).view(np.dtype((np.void, vectors.shape[1] * 4))).ravel()
        _, first, which = np.unique(rows, return_index=True, return_inverse=True)
        self.vectors, self.which = vectors[first], which.ravel()

    def similarities(self, queries: np.ndarray) -> Iterator[tuple[slice, np.ndarray]]:
        """Blocks of queries and their similarities to every candidate, float32 of shape (block, n)."""
        step = max(1, BLOCK_BYTES // (4 * max(len(self.which), 1)))
        for start in range(0, len(queries), step):
            block = slice(start, min(start + step, len(queries)))
            yield block, (queries[block] @ self.vectors.T)[:, self.which]


@dataclass(frozen=True, slots=True)
class Found:
    """What retrieval gave for each query; arrays of shape (n_queries,)."""

    best_own: np.ndarray  # similarity of the query's own best candidate
    best_altered: np.ndarray  # similarity of the best altered candidate
    top_altered: np.ndarray  # 1 where no original is strictly above it
    which_altered: np.ndarray  # its number in the gallery
    rank_clean: np.ndarray  # rank of the best own candidate among originals
    rank: np.ndarray  # the same with the altered candidates in the gallery


def retrieve(
    queries: np.ndarray, query_item: np.ndarray, gallery: Gallery, owner: np.ndarray, altered: np.ndarray
) -> Found:
    """Ranks each query's own original candidates in the clean gallery and in the one with altered candidates.

    Args:
        queries: Shape (q, dim).
        query_item: The item of each query, shape (q,); every item has an original in the gallery.
        gallery: The n candidates.
        owner: The item of each candidate, shape (n,).
        altered: Whether a candidate was altered, shape (n,), at least one.

    Returns:
        Ranks from 1; every other candidate with at least the own best similarity ranks before it.
    """
    columns: dict[str, list[np.ndarray]] = {name: [] for name in Found.__slots__}
    changed = np.flatnonzero(altered)
    for block, scores in gallery.similarities(queries):
        own = (owner == query_item[block, None]) & ~altered
        best_own = np.where(own, scores, -np.inf).max(axis=1)
        at_least = scores >= best_own[:, None]
        rank_clean = 1 + (at_least & ~own & ~altered).sum(axis=1)
        which = changed[scores[:, changed].argmax(axis=1)]
        best_altered = scores[np.arange(len(scores)), which]
        best_original = np.where(altered, -np.inf, scores).max(axis=1)
        columns["best_own"].append(best_own)
        columns["best_altered"].append(best_altered)
        columns["top_altered"].append(best_altered >= best_original)
        columns["which_altered"].append(which)
        columns["rank_clean"].append(rank_clean)
        columns["rank"].append(rank_clean + (at_least & altered).sum(axis=1))
    return Found(**{name: np.concatenate(parts) for name, parts in columns.items()})
