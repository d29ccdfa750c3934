"""A gallery on the disk, in lists of neighbours, of which a query is compared with the nearest alone.

faiss sorts the candidates into lists of neighbours (k-means on a sample of them); they lie on the
disk list by list, so that a block of queries reads each list once. Similarities of the candidates
that a search returns are exact: only which candidates it returns is approximate, and `recall`
measures that. faiss runs on one thread in each thread of an executor, since its results would else
depend on their number.
"""

import functools
import math
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import numpy as np

from vlprobe.scoring.distinct import distinct_rows
from vlprobe.scoring.gallery import MEMORY_SHARES, Gallery, similarity_matrix
from vlprobe.scoring.vector_file import VectorFile

if TYPE_CHECKING:
    import faiss

MIN_PROBED_LISTS = 64  # lists at least that a query is compared with
LISTS_PER_PROBE = 16  # one list in so many, where that is more
TRAINING_ROWS_PER_LIST = 64  # candidates a list that k-means sees
KMEANS_ITERATIONS = 10  # of k-means
QUERY_CHUNK = 512  # queries that read the lists together
RECALL_DEPTHS = (1, 10)  # the recall of the true first so many is told


class ApproximateGallery:
    """A gallery in lists of neighbours.

    Args:
        gallery: The candidates.
        k: How many of them are looked up for a query.
        memory: Bytes that the whole run may take.
        workers: Threads.
    """

    def __init__(self, gallery: Gallery, k: int, memory: int, workers: int) -> None:
        self.k, self.workers = k, workers
        rows = len(gallery.representatives)
        width = next(gallery.blocks())[1].shape[1]
        self._room = max(1, memory // MEMORY_SHARES // (4 * width))
        n_lists = max(1, math.isqrt(rows))
        self._probed = min(n_lists, max(MIN_PROBED_LISTS, n_lists // LISTS_PER_PROBE))
        with self._threads(1) as thread:
            self._lists = thread.submit(
                _lists, gallery, rows, n_lists, memory // 8 // (4 * width)
            ).result()
            searches = [
                thread.submit(self._lists.search, block, 1).result()
                for _, block in gallery.blocks()
            ]
        list_of = np.concatenate([lists.ravel() for _, lists in searches])
        order = np.argsort(list_of, kind="stable")
        self._starts = np.searchsorted(list_of[order], np.arange(n_lists + 1))
        position = np.empty(rows, dtype=np.int64)
        position[order] = np.arange(rows)
        self._rows = VectorFile(width)
        for start, vectors in gallery.blocks():
            _scatter(self._rows, position[start : start + len(vectors)], vectors)
        self.row_of = position[np.arange(rows)[gallery.column_of]]  # the row of each candidate
        self._candidates = np.argsort(self.row_of, kind="stable")  # row by row
        self._first = np.searchsorted(self.row_of[self._candidates], np.arange(rows + 1))

    def search(
        self, queries: np.ndarray, k: int, among: np.ndarray | None = None
    ) -> tuple[np.ndarray, np.ndarray]:
        """The best distinct candidates that are found for each query.

        Args:
            queries: Shape (q, width).
            k: How many.
            among: Which rows of the gallery count, of shape (rows,); None: all.

        Returns:
            Their rows and their similarities, best first, of shape (q, k); -1 and -inf where there
            are no more.
        """
        representatives, query_of = distinct_rows(queries)
        distinct = queries[representatives]
        chunks = [
            distinct[start : start + QUERY_CHUNK] for start in range(0, len(distinct), QUERY_CHUNK)
        ]
        with self._threads(self.workers) as threads:
            searches = list(
                threads.map(functools.partial(self._searched, k=k, among=among), chunks)
            )
        rows, values = (np.concatenate(blocks)[query_of] for blocks in zip(*searches, strict=True))
        return rows, values

    def similarities(self, query: np.ndarray, rows: np.ndarray) -> np.ndarray:
        """Exact similarities of a query and some rows of the gallery, the same whatever else is
        asked.
        """
        vectors = np.concatenate([self._rows[row : row + 1] for row in rows.tolist()])
        return np.einsum("nd,d->n", vectors, query)

    def dense_similarities(
        self, rows: np.ndarray, values: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """What was found for several queries side by side.

        Args:
            rows: As `search` returns them.
            values: Likewise.

        Returns:
            The numbers of all candidates found for any, in order, and the similarities of each
            query to these, of shape (q, candidates); -inf where it was not found.
        """
        union = np.unique(rows[rows >= 0])
        dense = np.full((len(rows), len(union)), -np.inf, dtype=np.float32)
        query, column = np.nonzero(rows >= 0)
        dense[query, np.searchsorted(union, rows[query, column])] = values[query, column]
        candidates, row = self.candidates_in(union)
        order = np.argsort(candidates)
        return candidates[order], dense[:, row[order]]

    def candidates_in(self, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The numbers of all candidates in some rows, row by row, and for each which of `rows` it
        is in.
        """
        counts = self._first[rows + 1] - self._first[rows]
        within = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
        row = np.repeat(np.arange(len(rows)), counts)
        return self._candidates[self._first[rows][row] + within], row

    def rows_holding(self, candidates: np.ndarray) -> np.ndarray:
        """Which rows hold one of the candidates that are true, shape (n,); `among` of a search."""
        return np.bincount(self.row_of[candidates], minlength=len(self._rows)) > 0

    def recall(
        self,
        queries: np.ndarray,
        among: np.ndarray | None = None,
        depths: Sequence[int] = RECALL_DEPTHS,
    ) -> np.ndarray:
        """Which share of the true first so many candidates is found, float32 of shape (q,
        len(depths)).

        The truth is an exact search of the same candidates; those that are alike count once.

        Args:
            queries: As of `search`.
            among: Likewise.
            depths: How many, rising and at most `k`; of all candidates where there are fewer.
        """
        counts = np.ones(len(self._rows), dtype=bool) if among is None else among
        depth = min(depths[-1], int(counts.sum()))
        approximate, _ = self.search(queries, self.k, among)
        best, rows = (np.full((len(queries), depth), fill) for fill in (-np.inf, -1))
        for start in range(0, len(self._rows), self._room):
            offsets = np.flatnonzero(counts[start : start + self._room])
            values = similarity_matrix(queries, self._rows[start : start + self._room][offsets])
            numbers = np.broadcast_to(start + offsets, values.shape)
            values, rows = (
                np.concatenate([best, values], axis=1),
                np.concatenate([rows, numbers], axis=1),
            )
            order = np.argpartition(-values, depth - 1, axis=1)[:, :depth]
            best, rows = np.take_along_axis(values, order, 1), np.take_along_axis(rows, order, 1)
        rows = np.take_along_axis(rows, np.argsort(-best, axis=1, kind="stable"), axis=1)
        hit = np.stack(
            [np.isin(exact, listed) for exact, listed in zip(rows, approximate, strict=True)]
        )
        return np.stack([hit[:, :depth].mean(axis=1) for depth in depths], axis=1).astype(
            np.float32
        )

    def _searched(
        self, queries: np.ndarray, k: int, among: np.ndarray | None
    ) -> tuple[np.ndarray, np.ndarray]:
        k_found = min(k, len(self._rows) if among is None else int(among.sum()))
        rows = self._search_lists(queries, self._probed, k_found, among)
        incomplete = np.flatnonzero((rows < 0).any(axis=1))
        if len(incomplete):
            rows[incomplete] = self._search_lists(
                queries[incomplete], len(self._starts) - 1, k_found, among
            )
        values = np.stack(
            [
                self.similarities(query, query_rows)
                for query, query_rows in zip(queries, rows, strict=True)
            ]
        )
        order = np.lexsort((rows, -values))
        rows, values = np.take_along_axis(rows, order, 1), np.take_along_axis(values, order, 1)
        none = ((0, 0), (0, k - rows.shape[1]))
        return np.pad(rows, none, constant_values=-1), np.pad(values, none, constant_values=-np.inf)

    def _search_lists(
        self, queries: np.ndarray, probed: int, k: int, among: np.ndarray | None
    ) -> np.ndarray:
        """VectorFile of the best candidates in the nearest lists, in any order; -1 where these
        hold fewer.
        """
        import faiss

        near = self._lists.search(queries, probed)[1].ravel()
        order = np.argsort(near, kind="stable")
        heap = faiss.ResultHeap(len(queries), k, keep_max=True)
        for group in np.split(order, 1 + np.flatnonzero(np.diff(near[order]))):
            group_queries = group // probed
            list_start, list_stop = self._starts[near[group[0]] : near[group[0]] + 2]
            for start in range(list_start, list_stop, self._room):
                stop = min(start + self._room, list_stop)
                numbers, vectors = np.arange(start, stop), self._rows[start:stop]
                if among is not None:
                    numbers, vectors = numbers[among[start:stop]], vectors[among[start:stop]]
                if len(numbers):
                    best = min(k, len(numbers))
                    values, indices = faiss.knn(
                        queries[group_queries], vectors, best, metric=faiss.METRIC_INNER_PRODUCT
                    )
                    heap.add_result_subset(group_queries, values, numbers[indices])
        return heap.I

    @staticmethod
    def _threads(n: int) -> ThreadPoolExecutor:
        import faiss

        return ThreadPoolExecutor(n, initializer=faiss.omp_set_num_threads, initargs=(1,))


def _lists(gallery: Gallery, rows: int, n_lists: int, room: int) -> "faiss.Index":
    """An index of the lists' centres."""
    import faiss

    n_sampled = min(rows, max(n_lists, min(TRAINING_ROWS_PER_LIST * n_lists, room)))
    sample = np.unique(np.linspace(0, rows - 1, n_sampled).astype(np.int64))
    blocks = [
        vectors[
            sample[np.searchsorted(sample, start) : np.searchsorted(sample, start + len(vectors))]
            - start
        ]
        for start, vectors in gallery.blocks()
    ]
    taught = np.concatenate(blocks)
    means = faiss.Kmeans(
        taught.shape[1],
        n_lists,
        niter=KMEANS_ITERATIONS,
        seed=1,
        spherical=True,
        min_points_per_centroid=1,
        max_points_per_centroid=len(taught),
    )
    means.train(taught)
    return means.index


def _scatter(rows: VectorFile, position: np.ndarray, vectors: np.ndarray) -> None:
    """Writes each vector at its position; neighbours together."""
    order = np.argsort(position)
    for run in np.split(order, 1 + np.flatnonzero(np.diff(position[order]) > 1)):
        rows.write(int(position[run[0]]), vectors[run])
