"""Galleries past memory: a query is compared with its nearest lists of candidates alone, and what
that loses is told.

faiss sorts the candidates into lists of neighbours (k-means on a sample of them); they lie on the
disk list by list, so that a block of queries reads each list once. Similarities of what is found
are exact: only which candidates are found is approximate, and `recall` measures how many of those
that should be are. faiss runs on one thread in each of ours, for what it finds would else depend on
their number.
"""

import functools
import importlib.util
import math
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from hashlib import blake2b
from typing import TYPE_CHECKING

import numpy as np

from vlprobe.errors import InvalidInput, MissingDependency
from vlprobe.scoring.gallery import (
    MEMORY_SHARES,
    Gallery,
    RetrievalRanks,
    VectorFile,
    distinct_rows,
    similarity_matrix,
)
from vlprobe.types import Encoder
from vlprobe.types.options import Option

if TYPE_CHECKING:
    import faiss

MIN_LOOKED_UP = 10  # candidates to look up: what R@10 and the overlap of the first 10 need
EXACT_LIMIT = (
    5000  # distinct candidates, at most, that are all compared: lists of fewer save nothing
)
MIN_PROBED_LISTS = 64  # lists at least that a query is compared with
LISTS_PER_PROBE = 16  # one list in so many, where that is more
TRAINING_ROWS_PER_LIST = 64  # candidates a list that k-means sees
KMEANS_ITERATIONS = 10  # of k-means
QUERY_CHUNK = 512  # queries that read the lists together
QUERY_BLOCK = 8 * QUERY_CHUNK  # queries whose finds are held at once
RECALL_QUERIES = 256  # queries, about, whose exact search tells the recall
RECALL_DEPTHS = (1, 10)  # the recall of the true first so many is told
APPROXIMATE = Option(  # of a probe that searches galleries
    name="approximate",
    default=0,
    label="Candidates looked up, 0: all",
    help="An approximate search (faiss) looks up so many candidates for a query; the share that it finds is told.",
    minimum=MIN_LOOKED_UP,
    off_value=0,
    expected=f"0 (exact), or {MIN_LOOKED_UP} candidates or more",
)


def pin_options(options: Mapping[str, object]) -> dict[str, object]:
    """The options of a probe, without `approximate` where it is 0: a run that is exact is named as
    it always was.

    Raises:
        InvalidInput: Fewer candidates are to be looked up than the measures need.
        MissingDependency: faiss is not there.
    """
    k = int(str(options["approximate"]))
    if not k:
        return {name: value for name, value in options.items() if name != "approximate"}
    if k < MIN_LOOKED_UP:
        raise InvalidInput(
            f"Option 'approximate' is {k}. Expected 0 (exact), or {MIN_LOOKED_UP} candidates or more."
        )
    if importlib.util.find_spec("faiss") is None:
        raise MissingDependency("Option 'approximate'", "faiss-cpu", "-r requirements-ray.txt")
    return dict(options)


def recall_columns(
    k: int, separate: bool, depths: Sequence[int] = RECALL_DEPTHS
) -> tuple[str, ...]:
    """Columns of `recall_table` where k candidates are looked up, altered ones `separate`: no depth
    beyond k.

    >>> recall_columns(500, False, (1, 10, 100, 1000))
    ('looked_up', 'found_1', 'found_10', 'found_100')
    >>> recall_columns(10, True)
    ('looked_up', 'found_1', 'found_10', 'altered_1', 'altered_10')
    """
    sides = ("found", "altered") if separate else ("found",)
    return ("looked_up", *(f"{side}_{depth}" for side in sides for depth in depths if depth <= k))


def searchable(gallery: Gallery, k: int, encoder: Encoder) -> "ApproximateGallery | Gallery":
    """The gallery in lists; as it is where k is 0, where it is EXACT_LIMIT, or where no more than k
    are in it.

    Raises InvalidInput of a model whose similarity is more than a product of two vectors.
    """
    if k and (encoder.scores_pairs or encoder.image_dim != encoder.dim):
        raise InvalidInput(
            f"Model '{encoder.model.name}' compares a text with more than one vector of a picture, which only an exact "
            "search does. Leave out the option 'approximate', or choose a dual encoder."
        )
    exact = not k or len(gallery.representatives) <= max(EXACT_LIMIT, k)
    return gallery if exact else ApproximateGallery(gallery, k, encoder.memory, encoder.workers)


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
        alike = self._first[union + 1] - self._first[union]
        within = np.arange(alike.sum()) - np.repeat(np.cumsum(alike) - alike, alike)
        candidates = self._candidates[np.repeat(self._first[union], alike) + within]
        order = np.argsort(candidates)
        return candidates[order], np.repeat(dense, alike, axis=1)[:, order]

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


def retrieve(
    queries: np.ndarray,
    query_item: np.ndarray,
    nearest: ApproximateGallery,
    owner: np.ndarray,
    altered: np.ndarray,
) -> RetrievalRanks:
    """As `gallery.retrieve`, from the best originals and the best altered candidates that are found
    for a query.

    The query's own originals are always compared.

    Returns: likewise; where all `nearest.k` that were looked up come before the best own candidate,
        its rank is more than k: NaN, and a least rank is what it is at least.
    """
    if not altered.any():
        raise InvalidInput(
            "Nothing in the gallery was altered, so nothing can be asked. Choose another policy."
        )
    n_rows = nearest.row_of.max() + 1
    n_original, n_altered = (
        np.bincount(nearest.row_of[mask], minlength=n_rows) for mask in (~altered, altered)
    )
    number = np.full(n_rows, len(altered))
    np.minimum.at(
        number, nearest.row_of[altered], np.flatnonzero(altered)
    )  # the first altered candidate of a row
    originals = np.flatnonzero(~altered)
    originals = originals[np.argsort(owner[originals], kind="stable")]
    starts = np.searchsorted(owner[originals], np.arange(owner.max() + 2))
    max_own = int(np.diff(starts).max())  # own candidates, which do not count for a rank
    results: list[tuple] = []
    for start in range(0, len(queries), QUERY_BLOCK):
        block = queries[start : start + QUERY_BLOCK]
        searches = zip(
            block,
            query_item[start : start + QUERY_BLOCK],
            *nearest.search(block, nearest.k + max_own, nearest.rows_holding(~altered)),
            *nearest.search(block, nearest.k, nearest.rows_holding(altered)),
            strict=True,
        )
        for query, item, rows, values, changed, changed_values in searches:
            own_rows = nearest.row_of[originals[starts[item] : starts[item + 1]]]
            own_values = nearest.similarities(query, own_rows)
            best_own = own_values.max()
            level = own_rows[own_values == best_own]
            before = np.union1d(rows[values >= best_own], level)
            rank_clean = (
                1.0 + n_original[before].sum() - len(level) if values[-1] < best_own else math.nan
            )
            before = np.union1d(changed[changed_values >= best_own], level)
            rank = (
                rank_clean + n_altered[before].sum() if changed_values[-1] < best_own else math.nan
            )
            above = (
                n_original[rows[values > best_own]].sum(),
                n_altered[changed[changed_values > best_own]].sum(),
            )
            changed, at = np.append(changed, own_rows), np.append(changed_values, own_values)
            at[n_altered[changed] == 0] = -np.inf
            top = at.max()
            top_candidate, best = number[changed[at == top]].min(), max(best_own, values[0])
            least_ranks = 1 + above[0], 1 + sum(above)
            results.append(
                (
                    best_own,
                    top,
                    top >= best,
                    top_candidate,
                    rank_clean,
                    rank,
                    *least_ranks,
                    top == best,
                )
            )
    return RetrievalRanks(*map(np.array, zip(*results, strict=True)))


def measures_recall(cases: Sequence[str], seed: int, of: int) -> np.ndarray:
    """Which cases measure the recall: about RECALL_QUERIES of so many, chosen by their ids."""
    drawn = [
        int.from_bytes(blake2b(f"{seed}/recall/{case}".encode(), digest_size=8).digest())
        for case in cases
    ]
    return np.array(drawn, dtype=np.float64) * of < RECALL_QUERIES * 2.0**64


def recall_table(
    gallery: ApproximateGallery | Gallery,
    queries: np.ndarray,
    measured: np.ndarray,
    names: Sequence[str],
    altered: np.ndarray | None = None,
) -> dict[str, np.ndarray]:
    """What is stored beside the answer to each query.

    Args:
        gallery: What was searched.
        queries: Those that measure the recall, shape (m, width).
        measured: Which of all queries these are, shape (q,), m of them true.
        names: As `recall_columns` returns them.
        altered: Which candidates were altered, shape (n,), where `retrieve` looked these up apart.

    Returns:
        `looked_up`, how many candidates were; `found_N`, which share of the true first N was found,
        with `altered` of the originals, and `altered_N` of the others. All NaN where a small
        gallery was searched exactly; recall is where it was not measured.
    """
    values = np.full((len(measured), len(names)), np.nan)
    if isinstance(gallery, ApproximateGallery):
        values[:, 0] = gallery.k
        if measured.any():
            searches = (
                [None]
                if altered is None
                else [gallery.rows_holding(~altered), gallery.rows_holding(altered)]
            )
            depths = [recall_depth(name) for name in names if name.startswith("found_")]
            recalls = [gallery.recall(queries, among, depths) for among in searches]
            values[measured, 1:] = np.concatenate(recalls, axis=1)
    return dict(zip(names, values.T, strict=True))


def recall_depth(name: str) -> int:
    """Of a column of recalls: 10 of `found_10`."""
    return int(name.rpartition("_")[2])


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
