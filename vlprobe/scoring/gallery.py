"""Exact similarities between queries and the candidates in a gallery, computed in bounded memory on one machine.

Similarities are matrix products with a fixed shape: PRODUCT_BYTES of candidates by a few hundred
queries. The candidates in a product do not depend on the available memory, so similarities are
bitwise reproducible. Candidates with equal embeddings share one column in a product, so candidates
that the model cannot distinguish tie exactly. A gallery larger than its share of the memory, and
rows of similarities that span several products, are memory-mapped from an unnamed file.

A model that scores pairs re-ranks the short list for each query, which holds its best candidates by cosine.
"""

import hashlib
import tempfile
from collections.abc import Callable, Iterable, Iterator

import numpy as np

SHORT_LIST = 256  # candidates per query that a matching head scores, the k in BLIP's released code

# Takes the numbers of queries and of candidates, each with shape (n,), and returns the logit of each pair
Match = Callable[[np.ndarray, np.ndarray], np.ndarray]


def short_listed(cosines: np.ndarray) -> np.ndarray:
    """Return a mask, in the shape of `cosines`, of each query's SHORT_LIST best candidates and ties with the last.

    Source: BLIP's released retrieval code, which RoCOCO follows. It scores all other candidates -100.
    """
    k = min(SHORT_LIST, cosines.shape[1])
    return cosines >= np.partition(cosines, -k, axis=1)[:, -k, None]


def raised(cosines: np.ndarray, listed: np.ndarray, logits: np.ndarray) -> np.ndarray:
    """Return the cosine plus the logit for candidates on the short list, float64. All others score lower, in the
    order of their cosines.
    """
    scores = cosines.astype(np.float64)
    scores[listed] += logits[listed]
    lowest = np.where(listed, scores, np.inf).min(axis=1, keepdims=True)
    return np.where(listed, scores, scores + lowest - 3)  # cosines differ by 2 at most


BLOCK_BYTES = 64 << 20  # similarities that are in memory at once
PRODUCT_BYTES = 64 << 20  # candidates in one product
PRODUCT_CANDIDATES = 32_768  # more candidates do not reduce the number of queries in a product
ENCODE_CHUNK = 8192  # candidates that are encoded at once for a gallery in a file
MEMORY_SHARES = 32  # 1 / MEMORY_SHARES of the memory is for one gallery

Similarity = Callable[[np.ndarray, np.ndarray], np.ndarray]


class Gallery:
    """The candidates of a search, stored as embeddings.

    Args:
        vectors: The embeddings, float32 with shape (n, width).
        similarity: A function that compares queries with candidates, or None for the matrix product.
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
        """Encode candidates and build a gallery from them.

        Args:
            encode: A function that takes candidate numbers and returns embeddings, float32 with shape
                (len, width). Results must not depend on the slice.
            n: The number of candidates.
            width: The embedding dimension.
            memory: The memory limit for the entire run, in bytes. A gallery larger than 1 / MEMORY_SHARES
                of this limit is written to a file.
            similarity: The comparison function, as in the constructor.
        """
        if 4 * n * width <= memory // MEMORY_SHARES:
            return cls(encode(slice(0, n)), similarity)
        chunks = (slice(start, min(start + ENCODE_CHUNK, n)) for start in range(0, n, ENCODE_CHUNK))
        return cls(_on_disk(map(encode, chunks)).reshape(n, width), similarity)

    @property
    def n_products(self) -> int:
        """The number of fixed-shape products per query."""
        return max(1, -(-len(self.representatives) // self._room))

    @property
    def block(self) -> int:
        """The number of complete rows of similarities that fit in BLOCK_BYTES."""
        return max(1, BLOCK_BYTES // (4 * max(self.n, 1)))

    @property
    def product_queries(self) -> int:
        """The number of queries per product."""
        n_columns = max(1, min(self.n, max(PRODUCT_CANDIDATES, self._room)))
        return max(1, BLOCK_BYTES // (4 * n_columns))

    def similarities(
        self, queries: np.ndarray, match: Match | None = None
    ) -> Iterator[tuple[slice, np.ndarray]]:
        """Yield blocks of queries and their similarities to every candidate, shape (block, n).

        The similarities are float32 cosines or, if `match` is given, the scores from `raised`.
        """
        every = np.ones(self.n, dtype=bool)
        for block, scores, _ in self.similarities_within(queries, every, match):
            yield block, scores

    def similarities_within(
        self, queries: np.ndarray, among: np.ndarray, match: Match | None = None
    ) -> Iterator[tuple[slice, np.ndarray, np.ndarray]]:
        """Yield the same blocks as `similarities`, together with the similarities in a smaller gallery that has only
        some of the candidates.

        Args:
            queries: The embeddings of the queries, shape (q, width).
            among: A mask of the candidates in the smaller gallery, bool with shape (n,), at least one of them True.
            match: A function that returns the logit for a query and a candidate. Each gallery has its own short list,
                and a pair on both lists is matched once. The score of a candidate in the smaller gallery does not
                depend on candidates outside that gallery.

        Yields:
            The queries, their similarities, and their similarities in the smaller gallery. In the last array, only the
            columns for candidates in the smaller gallery are valid. Without `match`, both arrays are the same.
        """
        if not match:
            for block, cosines in self._cosines(queries):
                scores = cosines[:, self.column_of]
                yield block, scores, scores
            return
        # A column stands for the lowest candidate number in the smaller gallery that it contains, if any
        smaller = np.flatnonzero(among)[::-1]
        columns = np.arange(len(self.representatives))[self.column_of][smaller]
        inside = np.zeros(len(self.representatives), dtype=bool)
        inside[columns] = True
        representatives = self.representatives.copy()
        representatives[columns] = smaller
        for block, cosines in self._cosines(queries):
            listed = short_listed(cosines)
            listed_within = np.zeros_like(listed)
            listed_within[:, inside] = short_listed(cosines[:, inside])
            query, column = np.nonzero(listed | listed_within)
            logits = np.zeros_like(cosines)
            logits[query, column] = match(block.start + query, representatives[column])
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
        """Yield the embeddings of the distinct candidates in each product."""
        for start in range(0, len(self.representatives), self._room):
            columns = slice(start, start + self._room)
            if isinstance(self.column_of, slice):
                yield self._vectors[columns]
            else:
                yield self._vectors[self.representatives[columns]]


def distinct_rows(vectors: np.ndarray) -> tuple[np.ndarray, np.ndarray | slice]:
    """Return the first index of each distinct row, and for every row the number of the distinct row that it equals.
    The second value is slice(None) if no two rows are bitwise equal.
    """
    width = vectors.shape[1] * vectors.itemsize
    return _distinct(np.ascontiguousarray(vectors).view(np.dtype((np.void, width))).ravel())


def _distinct(rows: np.ndarray) -> tuple[np.ndarray, np.ndarray | slice]:
    _, representatives, row_of = np.unique(rows, return_index=True, return_inverse=True)
    if len(representatives) == len(rows):
        return np.arange(len(rows)), slice(None)
    return representatives, row_of.ravel()


def _columns(vectors: np.ndarray, one_product: bool) -> tuple[np.ndarray, np.ndarray | slice]:
    """Find distinct rows like `distinct_rows`. For several products, rows stay in the order of the candidates and are
    compared by digest, so that only one product is in memory.
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


def similarity_matrix(left: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Compute the similarity between all pairs of rows. If a row consists of several vectors, the best one counts.

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
