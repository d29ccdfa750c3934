"""Queries against any number of candidates: neither the candidates nor the matrix is ever held whole.

Similarities are products of fixed shape: PRODUCT_BYTES of candidates, some hundred queries. Which
candidates share a product depends on the candidates alone, not on the memory: a similarity has the
same bits everywhere. Candidates with
equal embeddings share one column of a product, so that what the model cannot tell apart ties to the
bit, wherever in the gallery it stands. A gallery larger than its share of the memory is read from a
file, product by product; so are whole rows of similarities that memory does not hold.
"""

import functools
import itertools
from collections.abc import Callable, Iterator
from typing import NamedTuple, Protocol

import numpy as np

from vlprobe.scoring.distinct import DistinctQueries, distinct_rows, row_digests
from vlprobe.scoring.short_list import Match, raised, reranked, short_listed
from vlprobe.scoring.vector_file import VectorFile

BLOCK_BYTES = 64 << 20  # of similarities at once
PRODUCT_BYTES = 64 << 20  # of the candidates of one product
PRODUCT_CANDIDATES = 32_768  # more of them make no fewer queries of a product
ENCODE_CHUNK = 8192  # candidates that are encoded or read at once, where a file holds them
MEMORY_SHARES = 32  # of the memory: what one gallery of several may take of it

Similarity = Callable[[np.ndarray, np.ndarray], np.ndarray]


class Rows(Protocol):
    """Embeddings by the number of their row."""

    def __getitem__(self, rows: slice, /) -> np.ndarray:
        """Float32 of shape (n, width)."""
        ...


class Piece(NamedTuple):
    """Some queries against some candidates."""

    queries: slice
    candidates: slice | np.ndarray  # their numbers, rising
    scores: np.ndarray  # shape (n_queries, n_candidates)
    clean: np.ndarray  # the same in the smaller gallery; the same array without a matching head

    @property
    def numbers(self) -> np.ndarray:
        """The numbers of the candidates, rising."""
        if isinstance(self.candidates, slice):
            return np.arange(self.candidates.start, self.candidates.stop)
        return self.candidates


class Gallery:
    """Candidates as embeddings, float32 of shape (n, dim)."""

    def __init__(self, vectors: np.ndarray, similarity: Similarity | None = None) -> None:
        products = _Columns.of_vectors(vectors)
        self._fill(vectors, products, vectors.shape[1], similarity)
        if len(self.representatives) < self.n:  # the others are of no more use
            self._rows, self._is_compact = vectors[self.representatives], True

    @classmethod
    def of_rows(
        cls, rows: Rows, digests: np.ndarray, width: int, similarity: Similarity | None = None
    ) -> "Gallery":
        """A gallery of candidates that are read when they are needed.

        Args:
            rows: The embeddings of all candidates.
            digests: As `row_digests` gives them.
            width: Numbers in a row.
            similarity: As in `encode`.
        """
        gallery = cls.__new__(cls)
        fits = len(digests) <= product_rows(width)
        columns = (
            _Columns.of_vectors(rows[0 : len(digests)]) if fits else _Columns.of_digests(digests)
        )
        gallery._fill(rows, columns, width, similarity)
        return gallery

    @classmethod
    def encode(
        cls,
        encode: Callable[[slice], np.ndarray],
        n: int,
        width: int,
        memory: int,
        similarity: Similarity | None = None,
    ) -> "Gallery":
        """A gallery of candidates that are encoded when it is made.

        Args:
            encode: Candidates by their numbers to embeddings, float32 of shape (len, width); one
                candidate is encoded to the same bits in whatever slice.
            n: How many candidates.
            width: Numbers in a row.
            memory: Bytes that the whole run may take; a gallery of more than 1 / MEMORY_SHARES of
                them goes to an unnamed temporary file.
            similarity: How a query is compared with a candidate, as an encoder says; None: by a
                product.
        """
        if 4 * n * width <= memory // MEMORY_SHARES:
            return cls(encode(slice(0, n)), similarity)
        rows, digests = VectorFile(width), np.empty((n, 2), dtype=np.uint64)
        for start in range(0, n, ENCODE_CHUNK):
            chunk = slice(start, min(start + ENCODE_CHUNK, n))
            vectors = encode(chunk)
            rows.write(start, vectors)
            digests[chunk] = row_digests(vectors)
        return cls.of_rows(rows, digests, width, similarity)

    def _fill(
        self, rows: Rows, columns: "_Columns", width: int, similarity: Similarity | None
    ) -> None:
        self._rows, self._is_compact = rows, isinstance(columns.column_of, slice)
        self.representatives, self.column_of = columns
        self.n = columns.n_candidates
        self._similarity = similarity or similarity_matrix
        self._room = product_rows(width)

    @property
    def n_products(self) -> int:
        """How many products of fixed shape a query takes."""
        return max(1, -(-len(self.representatives) // self._room))

    @property
    def block(self) -> int:
        """How many whole rows of similarities are handed out at once."""
        return max(1, BLOCK_BYTES // (4 * max(self.n, 1)))

    @property
    def product_queries(self) -> int:
        """How many queries a product has."""
        n_columns = max(1, min(self.n, max(PRODUCT_CANDIDATES, self._room)))
        return max(1, BLOCK_BYTES // (4 * n_columns))

    def blocks(self) -> Iterator[tuple[int, np.ndarray]]:
        """The distinct candidates, those of one product at once, and the number of the first of
        these.
        """
        for number in range(self.n_products):
            yield number * self._room, self._vectors(number)

    def _vectors(self, product: int) -> np.ndarray:
        """The distinct candidates of a product."""
        columns = slice(product * self._room, (product + 1) * self._room)
        if self._is_compact:
            return self._rows[columns]
        numbers = self.representatives[columns]
        order = np.argsort(numbers, kind="stable")
        rising, pieces = numbers[order], []
        for start in range(int(rising[0]), int(rising[-1]) + 1, ENCODE_CHUNK):
            stop = min(start + ENCODE_CHUNK, int(rising[-1]) + 1)
            within = rising[slice(*np.searchsorted(rising, [start, stop]))]
            if len(within):
                pieces.append(self._rows[start:stop][within - start])
        vectors = np.concatenate(pieces)
        if (order[:-1] < order[1:]).all():
            return vectors
        return vectors[np.argsort(order)]

    def pieces(
        self,
        queries: np.ndarray,
        among: np.ndarray | None = None,
        size: int = 0,
    ) -> Iterator[Piece]:
        """The similarities of all queries, product by product, float32, each candidate once.

        Args:
            queries: Shape (q, dim).
            among: Which blocks of `product_queries` are asked in which product, bool of shape
                (n_blocks, n_products); None: all.
            size: How many queries a product has; 0: `product_queries`.
        """
        product, holders = -1, []
        for block, columns, scores in self.products(queries, among, size):
            if columns.start != product:
                product, holders = columns.start, list(self.holders(columns))
            for candidates, holder_columns in holders:
                values = scores[:, holder_columns]
                yield Piece(block, candidates, values, values)

    def products(
        self, queries: np.ndarray, among: np.ndarray | None = None, size: int = 0
    ) -> Iterator[tuple[slice, slice, np.ndarray]]:
        """As `pieces`, by distinct candidate: queries, columns, and similarities of their shape."""
        distinct = DistinctQueries.blocks(queries, size or self.product_queries)
        for product in range(self.n_products):
            block_mask = [True] * len(distinct) if among is None else among[:, product].tolist()
            if not any(block_mask):
                continue
            vectors, start = self._vectors(product), product * self._room
            for block in itertools.compress(distinct, block_mask):
                columns = slice(start, start + len(vectors))
                yield block.queries, columns, self._similarity(block.vectors, vectors)[block.row_of]

    def holders(self, columns: slice) -> Iterator[tuple[slice | np.ndarray, slice | np.ndarray]]:
        """The numbers of the candidates in a product's columns, and the places of these columns."""
        start, stop = columns.start, columns.stop
        if isinstance(self.column_of, slice):
            yield slice(start, stop), slice(None)
            return
        by_column, firsts = self._by_column
        numbers = np.sort(by_column[firsts[start] : firsts[stop]])
        for offset in range(0, len(numbers), self._room):
            candidates = numbers[offset : offset + self._room]
            yield candidates, self.column_of[candidates] - start

    @functools.cached_property
    def _by_column(self) -> tuple[np.ndarray, np.ndarray]:
        """The candidates column by column, and where those of each column begin."""
        column_of = np.arange(self.n)[self.column_of]
        order = np.argsort(column_of, kind="stable")
        return order, np.searchsorted(column_of[order], np.arange(len(self.representatives) + 1))

    def products_of(self, numbers: np.ndarray) -> np.ndarray:
        """The product that each of these candidates is in."""
        columns = numbers if isinstance(self.column_of, slice) else self.column_of[numbers]
        return columns // self._room

    def similarities(
        self, queries: np.ndarray, match: Match | None = None
    ) -> Iterator[tuple[slice, np.ndarray]]:
        """Blocks of queries and their similarities to every candidate, of shape (block, n).

        Float32 cosines, or with `match` what `reranked` makes of them.
        """
        for block, cosines in self._cosines(queries):
            if match:
                cosines = reranked(cosines, _numbered(match, block, self.representatives))
            yield block, cosines[:, self.column_of]

    def similarities_within(
        self, queries: np.ndarray, among: np.ndarray, match: Match | None = None
    ) -> Iterator[Piece]:
        """As `similarities`, and those of the gallery that consists of some of the candidates
        alone.

        Args:
            queries: Shape (q, dim).
            among: Which candidates form the smaller gallery, bool of shape (n,), at least one.
            match: The logit of a query and a candidate. Each gallery has a short-list of its own;
                what is on both is matched once. What a candidate of the smaller gallery scores in
                it does not depend on the others.

        Yields:
            Of `clean`, only the columns of the smaller gallery's candidates mean anything.
        """
        everything = slice(0, self.n)
        inside, representative = self.columns_within(among)
        for block, cosines in self._cosines(queries):
            if not match:
                scores = cosines[:, self.column_of]
                yield Piece(block, everything, scores, scores)
                continue
            listed = short_listed(cosines)
            listed_within = np.zeros_like(listed)
            listed_within[:, inside] = short_listed(cosines[:, inside])
            either = listed | listed_within
            logits = np.zeros_like(cosines)
            logits[either] = _numbered(match, block, representative)(*np.nonzero(either))
            scores, clean = (
                raised(cosines, on_list, logits)[:, self.column_of]
                for on_list in (listed, listed_within)
            )
            yield Piece(block, everything, scores, clean)

    def columns_within(self, among: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Which columns stand for some of the candidates, bool of shape (n,), and what each of all
        columns is matched as: the lowest number of these, or of others where it has none of these.
        """
        column_of = np.arange(len(self.representatives))[self.column_of]
        smaller = np.flatnonzero(among)[::-1]
        inside = np.zeros(len(self.representatives), dtype=bool)
        inside[column_of[smaller]] = True
        representative = self.representatives.copy()
        representative[column_of[smaller]] = smaller  # reversed: the lowest of a column stays
        return inside, representative

    def _cosines(self, queries: np.ndarray) -> Iterator[tuple[slice, np.ndarray]]:
        """Blocks of queries and their cosines with every distinct candidate; those that memory does
        not hold are written to a file, product by product, and read from it, query by query.
        """
        n_columns = len(self.representatives)
        for block in DistinctQueries.blocks(queries, self.product_queries):
            if self.n_products == 1:
                cosines = self._similarity(block.vectors, self._vectors(0))
                yield block.queries, cosines[block.row_of]
                continue
            spill = VectorFile(n_columns)
            for start, vectors in self.blocks():
                spill.write_columns(0, start, self._similarity(block.vectors, vectors))
            row_of = np.arange(len(block.vectors))[block.row_of]
            for start in range(0, len(row_of), self.block):
                rows = row_of[start : start + self.block]
                cosines = np.concatenate([spill[row : row + 1] for row in rows.tolist()])
                query = block.queries.start + start
                yield slice(query, query + len(rows)), cosines


class _Columns(NamedTuple):
    """Which candidates a gallery's columns stand for."""

    representatives: np.ndarray  # the candidate of each column
    column_of: np.ndarray | slice  # the column of each candidate; slice(None): each has its own

    @property
    def n_candidates(self) -> int:
        """How many candidates there are."""
        listed = self.representatives if isinstance(self.column_of, slice) else self.column_of
        return len(listed)

    @classmethod
    def of_vectors(cls, vectors: np.ndarray) -> "_Columns":
        """Of a gallery in memory: one of a single product has its columns in the order of
        `distinct_rows`, a larger one in that of the candidates.
        """
        if len(vectors) <= product_rows(vectors.shape[1]):
            return cls(*distinct_rows(vectors))
        return cls.of_digests(row_digests(vectors))

    @classmethod
    def of_digests(cls, digests: np.ndarray) -> "_Columns":
        """Each distinct row's first candidate, in the order of the candidates."""
        order = np.lexsort(digests.T)  # stable: of equal ones the lower number first
        ranked = digests[order]
        is_new = np.append(True, (ranked[1:] != ranked[:-1]).any(axis=1))
        if is_new.all():
            return cls(np.arange(len(digests)), slice(None))
        firsts = order[is_new]
        representatives = np.sort(firsts)
        column_of = np.empty(len(digests), dtype=np.int64)
        column_of[order] = np.searchsorted(representatives, firsts)[np.cumsum(is_new) - 1]
        return cls(representatives, column_of)


def _numbered(match: Match, block: slice, candidate_of: np.ndarray) -> Match:
    """`match` for the rows of a block and the columns of distinct candidates."""
    return lambda query, column: match(block.start + query, candidate_of[column])


def product_rows(width: int) -> int:
    """How many candidates of so many numbers one product has."""
    return max(1, PRODUCT_BYTES // (4 * width))


def similarity_matrix(left: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Similarity of every row of one with every row of the other; the best, where a row is several
    vectors.

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
