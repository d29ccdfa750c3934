"""Galleries past memory, as probes search them: the option, the ranks of a retrieval, and the recall
that is stored beside them.

`searchable` decides whether a gallery is searched exactly or by an `ApproximateGallery`.
"""

import importlib.util
import math
from collections.abc import Mapping, Sequence
from hashlib import blake2b
from typing import NamedTuple

import numpy as np

from vlprobe.errors import InvalidInput, MissingDependency
from vlprobe.scoring.approximate_gallery import QUERY_CHUNK, RECALL_DEPTHS, ApproximateGallery
from vlprobe.scoring.first_few import own_candidates, padded
from vlprobe.scoring.gallery import Gallery
from vlprobe.scoring.retrieval import RetrievalRanks
from vlprobe.types import Encoder
from vlprobe.types.options import Option

MIN_LOOKED_UP = 10  # candidates to look up: what R@10 and the overlap of the first 10 need
EXACT_LIMIT = (
    5000  # distinct candidates, at most, that are all compared: lists of fewer save nothing
)
QUERY_BLOCK = 8 * QUERY_CHUNK  # queries whose finds are held at once
RECALL_QUERIES = 256  # queries, about, whose exact search tells the recall
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
        raise MissingDependency("Option 'approximate'", "faiss-cpu", "'vlprobe[scale]'")
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


def searchable(gallery: Gallery, k: int, encoder: Encoder) -> ApproximateGallery | Gallery:
    """The gallery in lists; as it is where k is 0, where it is EXACT_LIMIT, or where no more than k
    are in it.

    Raises InvalidInput of a model whose similarity is more than a product of two vectors.
    """
    if k and (encoder.scores_pairs or encoder.image_dim != encoder.dim):
        raise InvalidInput(
            f"Model '{encoder.model.name}' compares a text with more than one vector of a picture, which only an exact "
            "search does. Leave out the option 'approximate', or choose a dual encoder."
        )
    if k and encoder.model.capabilities.has_matrix:
        raise InvalidInput(
            f"'{encoder.model.name}' has scores and no vectors to search approximately. Leave out the option "
            "'approximate'."
        )
    exact = not k or len(gallery.representatives) <= max(EXACT_LIMIT, k)
    return gallery if exact else ApproximateGallery(gallery, k, encoder.memory, encoder.workers)


def retrieve(
    queries: np.ndarray,
    query_item: np.ndarray,
    nearest: ApproximateGallery,
    owner: np.ndarray,
    altered: np.ndarray,
) -> RetrievalRanks:
    """As `retrieval.retrieve`, from the best originals and the best altered candidates that are found
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
    own_altered_of = own_candidates(owner, altered)
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
            own_numbers = originals[starts[item] : starts[item + 1]]
            own_rows = nearest.row_of[own_numbers]
            own_values = nearest.similarities(query, own_rows)
            clean = _Finds(np.append(rows, own_rows), np.append(values, own_values))
            whole = _Finds(np.append(clean.rows, changed), np.append(clean.values, changed_values))
            few_clean = clean.first_few(nearest, ~altered, own_numbers)
            few = whole.first_few(nearest, np.ones_like(altered), own_numbers)
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
            own_altered, own_altered_rank = math.nan, math.nan
            numbers = own_altered_of[item][own_altered_of[item] >= 0]
            if len(numbers):
                own_altered = nearest.similarities(query, nearest.row_of[numbers]).max()
                if max(values[-1], changed_values[-1]) <= own_altered:
                    own_altered_rank = 1.0 + n_original[rows[values > own_altered]].sum()
                    own_altered_rank += n_altered[changed[changed_values > own_altered]].sum()
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
                    *few_clean,
                    *few,
                    own_altered,
                    own_altered_rank,
                )
            )
    return RetrievalRanks(*map(np.array, zip(*results, strict=True)))


class _Finds(NamedTuple):
    """Distinct candidates that were found for a query, some perhaps twice."""

    rows: np.ndarray  # of the gallery, shape (n,); -1: none
    values: np.ndarray  # similarities, of the same shape

    def first_few(
        self, nearest: ApproximateGallery, counts: np.ndarray, own_numbers: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """The numbers and similarities of the best candidates among those that count, shape
        (FIRST,) each: as `retrieval.retrieve` finds them for one query.
        """
        rows, at = np.unique(self.rows, return_index=True)
        rows, at = rows[rows >= 0], at[rows >= 0]
        numbers, row = nearest.candidates_in(rows)
        counting = counts[numbers]
        numbers, values = numbers[counting], self.values[at][row][counting]
        order = np.lexsort((numbers, np.isin(numbers, own_numbers), -values))
        few = padded(numbers[None, order], values[None, order])
        return few.numbers[0], few.scores[0]


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
