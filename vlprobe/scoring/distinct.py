"""Rows that are equal to the bit: found once, and told from all others by a digest."""

import hashlib
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np


class DistinctQueries(NamedTuple):
    """The distinct queries of a block."""

    queries: slice
    vectors: np.ndarray
    row_of: np.ndarray | slice  # of each query

    @classmethod
    def blocks(cls, queries: np.ndarray, size: int) -> "Sequence[DistinctQueries]":
        """All queries, so many at once."""
        blocks = []  # equal queries have equal rows, to the bit
        for start in range(0, len(queries), size):
            block = slice(start, min(start + size, len(queries)))
            representatives, row_of = distinct_rows(queries[block])
            blocks.append(cls(block, queries[block][representatives], row_of))
        return blocks


def row_digests(vectors: np.ndarray) -> np.ndarray:
    """16 bytes that tell each row from all others, uint64 of shape (n, 2)."""
    digests = b"".join(
        hashlib.blake2b(row.data, digest_size=16).digest() for row in np.ascontiguousarray(vectors)
    )
    return np.frombuffer(digests, dtype=np.uint64).reshape(-1, 2)


def distinct_rows(vectors: np.ndarray) -> tuple[np.ndarray, np.ndarray | slice]:
    """Where each distinct row stands first, and which of these each row is; no two equal: every
    row, as it stands.
    """
    rows = np.ascontiguousarray(vectors).view(np.dtype((np.void, vectors.shape[1] * 4))).ravel()
    _, representatives, row_of = np.unique(rows, return_index=True, return_inverse=True)
    if len(representatives) == len(vectors):
        return np.arange(len(vectors)), slice(None)
    return representatives, row_of.ravel()
