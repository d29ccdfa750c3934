"""Exact similarities of queries to the candidates of a gallery, in bounded memory on one machine.

Similarities are matrix products of fixed shape: PRODUCT_BYTES of candidates by a few hundred
queries. The candidates of a product do not depend on the available memory, so similarities are
bitwise reproducible. Candidates with equal embeddings share one column of a product, so candidates
that the model cannot distinguish tie exactly. A gallery larger than its share of the memory, and
rows of similarities that span several products, are memory-mapped from an unnamed file.

A model that scores pairs re-ranks the short list of a query, that is, its best candidates by cosine.
"""

import hashlib
import tempfile
from collections.abc import Callable, Iterable, Iterator

import numpy as np

SHORT_LIST = 256  # candidates a query that a matching head looks at: BLIP's released k

# Numbers of queries and of candidates, each of shape (n,), to the logit of each pair
Match = Callable[[np.ndarray, np.ndarray], np.ndarray]


def reranked(cosines: np.ndarray, match: Match) -> np.ndarray:
    """Re-rank a query's SHORT_LIST best candidates by the head's logit plus the cosine; all others
    rank below them.

    Candidates that tie with the last one of the short list are included. The others keep the order
    of their cosines.

    Args:
        cosines: Shape (queries, candidates).
        match: Function that returns the logit of a query and a candidate.

    Returns:
        Scores, float64 of the same shape.

    Source: BLIP's released retrieval code, which RoCOCO follows; there, all others score -100.
    """
    listed = short_listed(cosines)
    logits = np.zeros_like(cosines)
    logits[listed] = match(*np.nonzero(listed))
    return raised(cosines, listed, logits)


def short_listed(cosines: np.ndarray) -> np.ndarray:
    """Mark the SHORT_LIST best candidates of each query, including ties with the last one; the same shape."""
    k = min(SHORT_LIST, cosines.shape[1])
    return cosines >= np.partition(cosines, -k, axis=1)[:, -k, None]


def raised(cosines: np.ndarray, listed: np.ndarray, logits: np.ndarray) -> np.ndarray:
    """Return cosine plus logit for the short list, float64; all others score lower, in the order of their
    cosines.
    """
    scores = cosines.astype(np.float64)
    scores[listed] += logits[listed]
    lowest = np.where(listed, scores, np.inf).min(axis=1, keepdims=True)
    return np.where(listed, scores, scores + lowest - 3)  # cosines differ by 2 at most


BLOCK_BYTES = 64 << 20  # of similarities at once
PRODUCT_BYTES = 64 << 20  # of the candidates of one product
PRODUCT_CANDIDATES = 32_768  # more candidates do not reduce the queries of a product
ENCODE_CHUNK = 8192  # candidates that are encoded at once for a gallery in a file
MEMORY_SHARES = 32  # 1 / MEMORY_SHARES of the memory is for one gallery

Similarity = Callable[[np.ndarray, np.ndarray], np.ndarray]


class Gallery:
    """Candidates as embeddings, float32 of shape (n, width).

    Args:
        vectors: The embeddings.
        similarity: Function that compares queries with candidates; None: the matrix product.
    """

    def __init__(self, vectors: np.ndarray, similarity: Similarity | None = None) -> None:
        self.n, width = vectors.shape
        self._vectors, self._similarity = vectors, similarity or similarity_matrix
        self._room = max(1, PRODUCT_BYTES // (4 * width))  # candidates of one product
        # The candidate of each column, and the column of each candidate
        self.representatives, self.column_of = _columns(vectors, one_product=self.n <= self._room)

    @classmethod
    def encode(
        cls,
        encode: Callable[[slice], np.ndarray],
        n: int,
        width: int,
        memory: int,
        similarity: Similarity | None = None,
    ) -> "Gallery":
        """Encode candidates and return their gallery.

        Args:
            encode: Function from candidate numbers to embeddings, float32 of shape (len, width);
                results must not depend on the slice.
            n: The number of candidates.
            width: Embedding dimension.
            memory: Memory limit of the entire run (bytes); a gallery larger than 1 / MEMORY_SHARES
                of this limit is written to a file.
            similarity: As in the constructor.
        """
        if 4 * n * width <= memory // MEMORY_SHARES:
            return cls(encode(slice(0, n)), similarity)
        chunks = (slice(start, min(start + ENCODE_CHUNK, n)) for start in range(0, n, ENCODE_CHUNK))
        return cls(_on_disk(map(encode, chunks)).reshape(n, width), similarity)

    @property
    def n_products(self) -> int:
        """Number of fixed-shape products per query."""
        return max(1, -(-len(self.representatives) // self._room))

    @property
    def block(self) -> int:
        """Number of complete rows of similarities that fit in BLOCK_BYTES."""
        return max(1, BLOCK_BYTES // (4 * max(self.n, 1)))

    @property
    def product_queries(self) -> int:
        """Number of queries per product."""
        n_columns = max(1, min(self.n, max(PRODUCT_CANDIDATES, self._room)))
        return max(1, BLOCK_BYTES // (4 * n_columns))

    def similarities(
        self, queries: np.ndarray, match: Match | None = None
    ) -> Iterator[tuple[slice, np.ndarray]]:
        """Yield blocks of queries and their similarities to every candidate, of shape (block, n).

        The similarities are float32 cosines, or with `match`, the scores of `reranked`.
        """
        for block, cosines in self._cosines(queries):
            if match:
                cosines = reranked(cosines, _numbered(match, block, self.representatives))
            yield block, cosines[:, self.column_of]

    def similarities_within(
        self, queries: np.ndarray, among: np.ndarray, match: Match | None = None
    ) -> Iterator[tuple[slice, np.ndarray, np.ndarray]]:
        """Yield the blocks of `similarities`, together with the similarities in a smaller gallery with only
        some of the candidates.

        Args:
            queries: Embeddings of the queries, shape (q, width).
            among: Mask of the candidates in the smaller gallery, bool of shape (n,), at least one.
            match: Function that returns the logit of a query and a candidate. Each gallery has its own short list; a
                pair on both lists is matched once. The score of a candidate in the smaller gallery does not depend on
                candidates outside of it.

        Yields:
            Queries, similarities, and similarities in the smaller gallery. In the last array, only the columns of its
            candidates are valid; without `match`, both arrays are the same.
        """
        # A column is matched as the lowest number of the smaller gallery that it has, if any
        smaller = np.flatnonzero(among)[::-1]
        columns = np.arange(len(self.representatives))[self.column_of][smaller]
        inside = np.zeros(len(self.representatives), dtype=bool)
        inside[columns] = True
        representatives = self.representatives.copy()
        representatives[columns] = smaller
        for block, cosines in self._cosines(queries):
            if not match:
                scores = cosines[:, self.column_of]
                yield block, scores, scores
                continue
            listed = short_listed(cosines)
            listed_within = np.zeros_like(listed)
            listed_within[:, inside] = short_listed(cosines[:, inside])
            either = listed | listed_within
            logits = np.zeros_like(cosines)
            logits[either] = _numbered(match, block, representatives)(*np.nonzero(either))
            scores, clean = (
                raised(cosines, on_list, logits)[:, self.column_of]
                for on_list in (listed, listed_within)
            )
            yield block, scores, clean

    def _cosines(self, queries: np.ndarray) -> Iterator[tuple[slice, np.ndarray]]:
        """Yield blocks of queries and their cosines with every distinct candidate."""
        for start in range(0, len(queries), self.product_queries):
            block = queries[start : start + self.product_queries]
            representatives, row_of = distinct_rows(block)
            distinct = block[representatives]
            products = (self._similarity(distinct, vectors) for vectors in self._products())
            if self.n_products == 1:
                yield slice(start, start + len(block)), next(products)[row_of]
                continue
            flat, size = _on_disk(products), len(distinct) * self._room
            parts = [
                part.reshape(len(distinct), -1)
                for part in np.split(flat, range(size, len(flat), size))
            ]
            row_of = np.arange(len(distinct))[row_of]
            for first in range(0, len(block), self.block):
                rows = row_of[first : first + self.block]
                cosines = np.concatenate([part[rows] for part in parts], axis=1)
                yield slice(start + first, start + first + len(rows)), cosines

    def _products(self) -> Iterator[np.ndarray]:
        """Yield the embeddings of the distinct candidates of each product."""
        for start in range(0, len(self.representatives), self._room):
            columns = slice(start, start + self._room)
            if isinstance(self.column_of, slice):
                yield self._vectors[columns]
            else:
                yield self._vectors[self.representatives[columns]]


def distinct_rows(vectors: np.ndarray) -> tuple[np.ndarray, np.ndarray | slice]:
    """Return the index of the first occurrence of each distinct row, and the number of each row's distinct
    row; slice(None) if no two rows are bitwise equal.
    """
    width = vectors.shape[1] * vectors.itemsize
    return _distinct(np.ascontiguousarray(vectors).view(np.dtype((np.void, width))).ravel())


def _distinct(rows: np.ndarray) -> tuple[np.ndarray, np.ndarray | slice]:
    _, representatives, row_of = np.unique(rows, return_index=True, return_inverse=True)
    if len(representatives) == len(rows):
        return np.arange(len(rows)), slice(None)
    return representatives, row_of.ravel()


def _columns(vectors: np.ndarray, one_product: bool) -> tuple[np.ndarray, np.ndarray | slice]:
    """Find distinct rows like `distinct_rows`. For several products, they are in the order of the candidates and found
    by digests of the rows, so that only one product is in memory.
    """
    if one_product:
        return distinct_rows(vectors)
    digests = (hashlib.blake2b(row.data, digest_size=16).digest() for row in vectors)
    firsts, column_of = _distinct(np.fromiter(digests, "V16", len(vectors)))
    if isinstance(column_of, slice):
        return firsts, column_of
    order = np.argsort(firsts)
    return firsts[order], np.argsort(order)[column_of]


def _on_disk(arrays: Iterable[np.ndarray]) -> np.ndarray:
    """Write float32 arrays consecutively to an unnamed file, and map it as one flat array."""
    with tempfile.TemporaryFile() as file:
        for array in arrays:
            file.write(np.ascontiguousarray(array).data)
        file.flush()
        return np.asarray(np.memmap(file, np.float32, "r"))


def _numbered(match: Match, block: slice, candidate_of: np.ndarray) -> Match:
    """Return `match` for the rows of a block and the columns of distinct candidates."""
    return lambda query, column: match(block.start + query, candidate_of[column])


def similarity_matrix(left: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Compute the similarity of all pairs of rows; if a row consists of several vectors, the best one.

    >>> two_in_a_row, one = np.array([[1.0, 0.0, 0.6, 0.8]]), np.array([[0.0, 1.0], [1.0, 0.0]])
    >>> similarity_matrix(two_in_a_row, one).tolist(), similarity_matrix(one, two_in_a_row).tolist()
    ([[0.8, 1.0]], [[0.8], [1.0]])
    """
    dim = min(left.shape[1], right.shape[1])
    if left.shape[1] == right.shape[1]:
        return left @ right.T
    if right.shape[1] > dim:
        return similarity_matrix(right, left).T
    similarities = left.reshape(-1, dim) @ right.T
    return similarities.reshape(len(left), -1, len(right)).max(axis=1)
