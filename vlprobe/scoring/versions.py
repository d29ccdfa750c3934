"""How alike the first candidates of a query's versions are, with one product of the gallery in memory.

Two passes over the products: what each version ranks first and the similarities of sampled candidates,
then how many candidates two versions have in common above and at their borders.
"""

import itertools
import math
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from vlprobe.scoring.first_few import best_columns, best_first
from vlprobe.scoring.gallery import Gallery, Piece

TOP = 5  # candidates of each version's ranking that are told by number


class Fronts(NamedTuple):
    """The first pass, of all versions; -inf and -1: there are no more."""

    highest: np.ndarray  # the highest similarities, best first: (n_versions, deepest)
    numbers: np.ndarray  # of the first candidates: (n_versions, TOP)
    scores: np.ndarray  # their similarities
    sampled: np.ndarray  # similarities of the sampled candidates: (n_versions, n_sampled)


class Common(NamedTuple):
    """The second pass, whole numbers; the depths are those of the search."""

    above: np.ndarray  # candidates above the border: (n_depths, n_versions)
    level: np.ndarray  # candidates at it
    # Candidates of two versions: above in both, above in one and level in the other, level in both:
    pairs: np.ndarray  # (n_depths, n_pairs, 4), the pairs of a query after those of the one before


class VersionSearch:
    """The versions of some queries in a gallery.

    Args:
        vectors: Of all versions, query by query: shape (n_versions, width), one product's at most.
        n_versions: Of each query.
        gallery: The candidates.
        depths: How many of the first are compared, rising, each less than there are candidates.
        samples: The numbers of the candidates that each query samples, rising, equally many.
    """

    def __init__(
        self,
        vectors: np.ndarray,
        n_versions: Sequence[int],
        gallery: Gallery,
        depths: Sequence[int],
        samples: Sequence[np.ndarray],
    ) -> None:
        self.vectors, self.gallery, self.depths, self.samples = vectors, gallery, depths, samples
        ends = np.cumsum(n_versions).tolist()
        self.rows = [slice(end - n, end) for n, end in zip(n_versions, ends, strict=True)]
        self.pairs = [
            pair
            for rows in self.rows
            for pair in itertools.combinations(range(rows.start, rows.stop), 2)
        ]

    def fronts(self) -> Fronts:
        """The first pass."""
        n, deepest = len(self.vectors), max(self.depths, default=1)
        fronts = Fronts(
            np.full((n, deepest), -np.inf, np.float32),
            np.full((n, TOP), -1, np.int64),
            np.full((n, TOP), -np.inf, np.float32),
            np.full((n, len(self.samples[0])), -np.inf, np.float32),
        )
        for piece in self.gallery.pieces(self.vectors, size=len(self.vectors)):
            self._add_front(piece, fronts)
        return fronts

    def _add_front(self, piece: Piece, fronts: Fronts) -> None:
        scores, numbers = piece.scores, piece.numbers
        n_kept = fronts.highest.shape[1]
        values = scores
        if scores.shape[1] > n_kept:
            values = np.partition(scores, -n_kept, axis=1)[:, -n_kept:]
        fronts.highest[:] = _highest([fronts.highest, values], n_kept)
        columns = best_columns(scores, min(TOP, scores.shape[1]))
        merged = best_first(
            np.concatenate([fronts.numbers, numbers[columns]], axis=1),
            np.concatenate([fronts.scores, np.take_along_axis(scores, columns, 1)], axis=1),
        )
        fronts.numbers[:], fronts.scores[:] = (values[:, :TOP] for values in merged)
        for rows, sample in zip(self.rows, self.samples, strict=True):
            low, high = np.searchsorted(sample, [numbers[0], numbers[-1] + 1])
            column = np.searchsorted(numbers, sample[low:high])
            is_here = numbers[column] == sample[low:high]
            where = np.arange(low, high)[is_here]
            fronts.sampled[rows, where] = scores[rows, column[is_here]]

    def common(self, fronts: Fronts) -> Common:
        """The second pass."""
        shape = len(self.depths), len(self.vectors)
        common = Common(
            np.zeros(shape, np.int64),
            np.zeros(shape, np.int64),
            np.zeros((len(self.depths), len(self.pairs), 4), np.int64),
        )
        for piece in self.gallery.pieces(self.vectors, size=len(self.vectors)):
            for number, depth in enumerate(self.depths):
                border = fronts.highest[:, depth - 1, None]
                above, level = piece.scores > border, piece.scores == border
                common.above[number] += list(map(np.count_nonzero, above))
                common.level[number] += list(map(np.count_nonzero, level))
                for pair, (i, j) in enumerate(self.pairs):
                    common.pairs[number, pair] += [
                        np.count_nonzero(left & right)
                        for left in (above[i], level[i])
                        for right in (above[j], level[j])
                    ]
        return common

    def overlaps(self, common: Common) -> list[dict[int, np.ndarray]]:
        """For each query, by depth, the share of the first that each two versions have in common: as
        `metrics.ranking.top_overlaps`.
        """
        overlaps: list[dict[int, np.ndarray]] = [{} for _ in self.rows]
        for number, depth in enumerate(self.depths):
            chance = (depth - common.above[number]) / common.level[number]
            i, j = np.array(self.pairs).T
            both, left, right, level = common.pairs[number].T
            shares = (
                both + left * chance[j] + right * chance[i] + level * chance[i] * chance[j]
            ) / depth
            n_pairs = [math.comb(rows.stop - rows.start, 2) for rows in self.rows]
            for query, values in enumerate(np.split(shares, np.cumsum(n_pairs)[:-1])):
                overlaps[query][depth] = values
        return overlaps


def query_blocks(
    queries: Sequence[Sequence[str]], max_versions: int
) -> Iterator[list[Sequence[str]]]:
    """Queries in blocks of at most so many versions, or of one query that has more.

    >>> list(query_blocks(["abc", "def", "gh"], 6))
    [['abc', 'def'], ['gh']]
    """
    block: list[Sequence[str]] = []
    for versions in queries:
        if block and sum(map(len, block)) + len(versions) > max_versions:
            yield block
            block = []
        block.append(versions)
    if block:
        yield block


def _highest(values: Sequence[np.ndarray], n_kept: int) -> np.ndarray:
    """So many of the highest of each row, best first."""
    return -np.sort(-np.concatenate(values, axis=1), axis=1)[:, :n_kept]
