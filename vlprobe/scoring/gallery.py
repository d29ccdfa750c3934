"""Queries against thousands of candidates, a block of queries at a time: the whole matrix is never
held.

Candidates with equal embeddings share one column of the product, so that what the model cannot tell
apart ties to the bit, wherever in the gallery it stands. A model that also looks at pairs ranks the
short-list of each query again; where altered candidates hide in the gallery, the originals alone
are a gallery with a short-list of its own. A gallery larger than its share of the memory is read
from a file, block by block.
"""

import hashlib
import os
import tempfile
import weakref
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from vlprobe.errors import InvalidInput
from vlprobe.scoring.first_few import GalleryFronts

BLOCK_BYTES = 64 << 20  # of similarities at once
ENCODE_CHUNK = 8192  # candidates that are encoded at once, where a file holds them
MEMORY_SHARES = 32  # of the memory: what one gallery of several may take of it
SHORT_LIST = 256  # candidates a query that a matching head looks at: BLIP's released k

# Numbers of queries and of candidates, each of shape (n,), to the logit of each pair
Match = Callable[[np.ndarray, np.ndarray], np.ndarray]


class Gallery:
    """Candidates as embeddings, float32 of shape (n, dim)."""

    def __init__(
        self,
        vectors: np.ndarray,
        similarity: "Callable[[np.ndarray, np.ndarray], np.ndarray] | None" = None,
    ) -> None:
        self.n = len(vectors)
        self._similarity = similarity or similarity_matrix
        self.representatives, self.column_of = distinct_rows(vectors)
        self._rows: np.ndarray | VectorFile = (
            vectors if len(self.representatives) == len(vectors) else vectors[self.representatives]
        )
        self._room = max(1, len(self._rows))

    @classmethod
    def encode(
        cls,
        encode: Callable[[slice], np.ndarray],
        n: int,
        width: int,
        memory: int,
        similarity: "Callable[[np.ndarray, np.ndarray], np.ndarray] | None" = None,
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
        rows = VectorFile(width)
        row_of: dict[bytes, int] = {}
        representatives: list[int] = []
        column_of = np.empty(n, dtype=np.int64)
        for start in range(0, n, ENCODE_CHUNK):
            vectors = np.ascontiguousarray(encode(slice(start, min(start + ENCODE_CHUNK, n))))
            n_written = len(representatives)
            for number, row in enumerate(vectors, start):
                key = hashlib.blake2b(row.tobytes(), digest_size=16).digest()
                if key not in row_of:
                    row_of[key] = len(representatives)
                    representatives.append(number)
                column_of[number] = row_of[key]
            rows.write(
                n_written, vectors[np.array(representatives[n_written:], dtype=np.int64) - start]
            )
        gallery = cls.__new__(cls)
        gallery.n = n
        gallery._similarity = similarity or similarity_matrix
        gallery.representatives = np.array(representatives)
        gallery.column_of = column_of if len(representatives) < n else slice(None)
        gallery._rows, gallery._room = rows, max(1, memory // MEMORY_SHARES // (4 * width))
        return gallery

    @property
    def block(self) -> int:
        """How many queries are asked at once."""
        return max(1, BLOCK_BYTES // (4 * max(self.n, 1)))

    def blocks(self) -> Iterator[tuple[int, np.ndarray]]:
        """The distinct candidates, as many at once as there is room for, and the number of the
        first of these.
        """
        for start in range(0, len(self._rows), self._room):
            yield start, self._rows[start : start + self._room]

    def similarities(
        self, queries: np.ndarray, match: Match | None = None
    ) -> Iterator[tuple[slice, np.ndarray]]:
        """Blocks of queries and their similarities to every candidate, of shape (block, n).

        Float32 cosines, or with `match` what `reranked` makes of them. Equal queries have equal
        rows, to the bit.
        """
        for block, cosines in self._cosines(queries):
            if match:
                cosines = reranked(cosines, self._numbered(match, block, self.representatives))
            yield block, cosines[:, self.column_of]

    def similarities_within(
        self, queries: np.ndarray, among: np.ndarray, match: Match | None = None
    ) -> Iterator[tuple[slice, np.ndarray, np.ndarray]]:
        """As `similarities`, and those of the gallery that consists of some of the candidates
        alone.

        Args:
            queries: Shape (q, dim).
            among: Which candidates form the smaller gallery, bool of shape (n,), at least one.
            match: The logit of a query and a candidate. Each gallery has a short-list of its own;
                what is on both is matched once. What a candidate of the smaller gallery scores in
                it does not depend on the others.

        Yields:
            The block; the similarities in the whole gallery; those in the smaller one, of the same
            shape, of which only the columns of its candidates mean anything. Without `match` both
            are the same array.
        """
        column_of = np.arange(len(self.representatives))[self.column_of]
        smaller = np.flatnonzero(among)[::-1]
        inside = np.zeros(len(self.representatives), dtype=bool)
        inside[column_of[smaller]] = True
        representative = self.representatives.copy()
        representative[column_of[smaller]] = (
            smaller  # reversed: the lowest number of a column stays
        )
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
            logits[either] = self._numbered(match, block, representative)(*np.nonzero(either))
            yield (
                block,
                _raised(cosines, listed, logits)[:, self.column_of],
                _raised(cosines, listed_within, logits)[:, self.column_of],
            )

    def _cosines(self, queries: np.ndarray) -> Iterator[tuple[slice, np.ndarray]]:
        """Blocks of queries and their cosines with every distinct candidate."""
        for start in range(0, len(queries), self.block):
            block = slice(start, min(start + self.block, len(queries)))
            representatives, row_of = distinct_rows(queries[block])
            distinct = queries[block][representatives]
            pieces = [self._similarity(distinct, vectors) for _, vectors in self.blocks()]
            yield block, (pieces[0] if len(pieces) == 1 else np.concatenate(pieces, axis=1))[row_of]

    @staticmethod
    def _numbered(match: Match, block: slice, candidate_of: np.ndarray) -> Match:
        """`match` for the rows of a block and the columns of distinct candidates."""
        return lambda query, column: match(block.start + query, candidate_of[column])


class VectorFile:
    """Vectors in a file without a name, which disappears with them; a slice of them is read from
    the disk.
    """

    def __init__(self, width: int) -> None:
        self._file = tempfile.TemporaryFile()  # noqa: SIM115 - closed with these rows
        weakref.finalize(self, self._file.close)
        self._bytes, self._n = 4 * width, 0

    def __len__(self) -> int:
        return self._n

    def __getitem__(self, rows: slice) -> np.ndarray:
        start, stop, _ = rows.indices(self._n)
        content = os.pread(self._file.fileno(), self._bytes * (stop - start), self._bytes * start)
        return np.frombuffer(content, dtype=np.float32).reshape(stop - start, self._bytes // 4)

    def write(self, start: int, vectors: np.ndarray) -> None:
        """Writes vectors, float32 of shape (n, width), as the rows from `start` on."""
        self._file.seek(self._bytes * start)
        self._file.write(np.ascontiguousarray(vectors).data)
        self._file.flush()
        self._n = max(self._n, start + len(vectors))


def distinct_rows(vectors: np.ndarray) -> tuple[np.ndarray, np.ndarray | slice]:
    """Where each distinct row stands first, and which of these each row is; no two equal: every
    row, as it stands.
    """
    rows = np.ascontiguousarray(vectors).view(np.dtype((np.void, vectors.shape[1] * 4))).ravel()
    _, representatives, row_of = np.unique(rows, return_index=True, return_inverse=True)
    if len(representatives) == len(vectors):
        return np.arange(len(vectors)), slice(None)
    return representatives, row_of.ravel()


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


def reranked(cosines: np.ndarray, match: Match) -> np.ndarray:
    """A query's SHORT_LIST best candidates by the head's logit plus the cosine, all others below
    these.

    Candidates that tie with the last of the short-list are on it. The others keep the order of
    their cosines.

    Args:
        cosines: Shape (queries, candidates).
        match: Gives the logit of a query and a candidate.

    Returns:
        Float64 of the same shape.

    Source: the released retrieval of BLIP, which RoCOCO follows; there the others all score -100.
    """
    listed = short_listed(cosines)
    logits = np.zeros_like(cosines)
    logits[listed] = match(*np.nonzero(listed))
    return _raised(cosines, listed, logits)


def short_listed(cosines: np.ndarray) -> np.ndarray:
    """Which candidates are a query's SHORT_LIST best, those that tie with the last of them
    included; the same shape.
    """
    k = min(SHORT_LIST, cosines.shape[1])
    return cosines >= np.partition(cosines, -k, axis=1)[:, -k, None]


def _raised(cosines: np.ndarray, listed: np.ndarray, logits: np.ndarray) -> np.ndarray:
    """Cosine plus logit on the short-list, float64; below its lowest, in the order of their
    cosines, all others.
    """
    scores = cosines.astype(np.float64)
    scores[listed] += logits[listed]
    lowest = np.where(listed, scores, np.inf).min(axis=1, keepdims=True)
    return np.where(listed, scores, scores + lowest - 3)  # cosines differ by 2 at most


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
    columns: dict[str, list[np.ndarray]] = {name: [] for name in RetrievalRanks.__slots__}
    changed = np.flatnonzero(altered)
    if not len(changed):
        raise InvalidInput(
            "Nothing in the gallery was altered, so nothing can be asked. Choose another policy."
        )
    fronts = GalleryFronts(owner, altered)
    for block, scores, clean in gallery.similarities_within(queries, ~altered, match):
        is_own = (owner == query_item[block, None]) & ~altered
        best_own = np.where(is_own, scores, -np.inf).max(axis=1)
        best_clean = np.where(is_own, clean, -np.inf).max(axis=1)
        which = changed[scores[:, changed].argmax(axis=1)]
        best_altered = scores[np.arange(len(scores)), which]
        best_original = np.where(altered, -np.inf, scores).max(axis=1)
        columns["best_own"].append(best_own)
        columns["best_altered"].append(best_altered)
        columns["top_altered"].append(best_altered >= best_original)
        columns["which_altered"].append(which)
        columns["rank_clean"].append(
            1 + ((clean >= best_clean[:, None]) & ~is_own & ~altered).sum(axis=1)
        )
        columns["rank"].append(1 + ((scores >= best_own[:, None]) & ~is_own).sum(axis=1))
        columns["least_rank_clean"].append(
            1 + ((clean > best_clean[:, None]) & ~altered).sum(axis=1)
        )
        columns["least_rank"].append(1 + (scores > best_own[:, None]).sum(axis=1))
        columns["top_tied"].append(best_altered == best_original)
        for name, column in fronts.columns(scores, clean, is_own, query_item[block]).items():
            columns[name].append(column)
    return RetrievalRanks(**{name: np.concatenate(blocks) for name, blocks in columns.items()})


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
    if len(np.unique(owner)) < 2:
        raise InvalidInput(
            "The gallery holds the captions and the picture of one item alone. Ask about two items or more."
        )
    columns: dict[str, list[np.ndarray]] = {name: [] for name in RetrievalRanks.__slots__}
    fronts = GalleryFronts(owner, np.zeros(len(owner), dtype=bool))
    for block, scores in gallery.similarities(queries, match):
        is_own = owner == query_item[block, None]
        best_own = np.where(is_own, scores, -np.inf).max(axis=1)
        others = np.where(is_own, -np.inf, scores)
        best_other = others.max(axis=1)
        rank = 1 + ((scores >= best_own[:, None]) & ~is_own).sum(axis=1)
        least_rank = 1 + (scores > best_own[:, None]).sum(axis=1)
        columns["best_own"].append(best_own)
        columns["best_altered"].append(best_other)
        columns["top_altered"].append(best_other >= best_own)
        columns["which_altered"].append(others.argmax(axis=1))
        for name, ranks in (("rank", rank), ("least_rank", least_rank)):
            columns[name].append(ranks)
            columns[f"{name}_clean"].append(ranks)
        columns["top_tied"].append(best_other == best_own)
        for name, column in fronts.columns(scores, scores, is_own, query_item[block]).items():
            columns[name].append(column)
    return RetrievalRanks(**{name: np.concatenate(blocks) for name, blocks in columns.items()})
