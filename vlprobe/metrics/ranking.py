"""PRSM's measures of agreement between two rankings of the same gallery.

Candidates with higher similarity rank first. Tied candidates share their average rank, and every
order of them counts equally, so a model that gives all candidates the same score is at chance.

For galleries that are too large to rank, the rank correlation is estimated from a random sample of the candidates
(Spearman's rho of m candidates has a standard error of about sqrt((1 + rho^2 / 2) / (m - 3)); Bonett and Wright 2000).
Each query draws its own sample, so its error is independent of all others and adds to the variance between queries.
The interval over queries therefore covers it.
"""

import functools
import math
from dataclasses import dataclass
from hashlib import blake2b
from itertools import combinations

import numpy as np

from vlprobe.types import Metric

OVERLAPS = (10, 100, 1000)  # top candidates compared; the last two are the paper's k
SAMPLED = "global_sampled"  # the column of the estimated correlation


@dataclass(frozen=True, slots=True)
class Rankings:
    """Several rankings of the same n candidates, one for each version of a query."""

    order: np.ndarray  # int64 (n_versions, n): numbers of the candidates, best first, ties in the order of the numbers
    # float64 of the same shape: average rank of each candidate minus the mean rank
    centered: np.ndarray
    # for each version, the first and last position (from 0) of every group of ties
    tied: list[tuple[np.ndarray, np.ndarray]]


def ranked(values: np.ndarray) -> Rankings:
    """Rank the candidates for a query by similarities of shape (n_versions, n), float32 or float64. With float64, it
    takes several times as long.

    >>> ranked(np.float32([[0.1, 0.9, 0.5]])).order.tolist()
    [[1, 2, 0]]
    """
    n = values.shape[1]
    ranks = np.arange(n) - (n - 1) / 2  # centered
    rankings = Rankings(np.empty(values.shape, np.int64), np.empty(values.shape), [])
    sort = _sort_bits if values.dtype == np.float32 else _sort
    for similarities, order, centered in zip(
        values, rankings.order, rankings.centered, strict=True
    ):
        starts, ends = _tie_groups(sort(similarities, order))
        centered[order] = ranks
        size = ends - starts + 1
        within = np.repeat(starts - (np.cumsum(size) - size), size) + np.arange(size.sum())
        centered[order[within]] = np.repeat((ranks[starts] + ranks[ends]) / 2, size)
        rankings.tied.append((starts, ends))
    return rankings


def _sort_bits(values: np.ndarray, order: np.ndarray) -> np.ndarray:
    """Sort like `_sort`, but use integers that combine a float's bits with the candidate's number.

    The bits are arranged so that integers sort like floats. A single sort of these integers gives the
    order, several times as fast as sorting the candidate numbers by float.
    """
    raw = (values + np.float32(0)).view(np.int32)  # -0 becomes 0
    order[:] = ~(((raw >> 31) & 0x7FFFFFFF) ^ raw)
    order <<= 32
    order |= np.arange(len(order))
    order.sort()
    ties = np.flatnonzero((order[1:] ^ order[:-1]) >> 32 == 0)
    order &= 0xFFFFFFFF
    return ties


def _sort(values: np.ndarray, order: np.ndarray) -> np.ndarray:
    """Sort the candidates. Write their numbers to `order`, best first, and return the positions that are tied with the
    next one.
    """
    order[:] = np.argsort(-values, kind="stable")
    ranked = values[order]
    return np.flatnonzero(ranked[1:] == ranked[:-1])


def _tie_groups(ties: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the first and the last position of every group of tied candidates."""
    ends = np.flatnonzero(np.diff(ties) > 1)
    return ties[np.append(0, ends + 1)[: len(ties)]], ties[np.append(ends, -1)[: len(ties)]] + 1


def rank_correlations(rankings: Rankings) -> np.ndarray:
    """Compute the Spearman correlation of each pair of versions, with ties at their average rank:
    float64 of shape (n_pairs,), in the order of itertools.combinations; NaN if either version is
    constant.

    >>> rank_correlations(ranked(np.float32([[0.9, 0.5, 0.1], [0.7, 0.1, 0.2]]))).round(3).tolist()
    [0.5]

    Source: PRSM, section 3 (global), read as a correlation of ranks.
    """
    rows = rankings.centered
    squares = [row @ row for row in rows]
    return np.array(
        [
            rows[i] @ rows[j] / math.sqrt(squares[i] * squares[j])
            if squares[i] and squares[j]
            else math.nan
            for i, j in combinations(range(len(rows)), 2)
        ],
        dtype=np.float64,
    )


def rank_correlation(rankings: Rankings) -> float:
    """Compute the mean of `rank_correlations`; NaN if a version is constant."""
    return _mean(rank_correlations(rankings))


def list_correlations(rankings: Rankings) -> np.ndarray:
    """For each pair of versions, correlate the two ranked lists of candidate ids: float64 of shape (n_pairs,), NaN if
    either version is constant. This is not a measure of stability.

    Rankings that differ by one insertion at the top disagree at every later position, and candidate
    ids are arbitrary. It is included because the correlations published in PRSM (.02 to .04, with
    overlaps of .64 to .89) match this quantity and are unlikely to be rank correlations.
    """
    rows, n = rankings.order, rankings.order.shape[1]
    is_ranked = [bool(row.any()) for row in rankings.centered]
    # The ids are 0 to n - 1, whose mean and variance are known. Integers avoid rounding errors.
    square, spread = n * (n - 1) ** 2, n * (n - 1) * (n + 1) / 3
    return np.array(
        [
            (4 * int(rows[i] @ rows[j]) - square) / spread
            if is_ranked[i] and is_ranked[j]
            else math.nan
            for i, j in combinations(range(len(rows)), 2)
        ],
        dtype=np.float64,
    )


def top_overlaps(rankings: Rankings, k: int) -> np.ndarray:
    """For each pair of versions, compute the overlap between their first k candidates: float64 of shape (n_pairs,).

    A candidate that is tied at the cutoff is weighted by the probability that a random order of the
    tied candidates ranks it among the first k.

    Args:
        rankings: Rankings of the versions.
        k: Number of candidates to compare, less than n_candidates; otherwise the overlap is always 1,
            and NaN is returned.

    Source: PRSM, section 3 (local).
    """
    n_versions, n = rankings.order.shape
    pairs = list(combinations(range(n_versions), 2))
    if k >= n:
        return np.full(len(pairs), math.nan)
    borders = [_border(starts, ends, k) for starts, ends in rankings.tied]
    shares = []
    for i, j in pairs:
        top = rankings.order[i, : borders[i][1] + 1]
        chances = [
            _inside(rankings.centered[version, top] + (n - 1) / 2, *borders[version])
            for version in (i, j)
        ]
        shares.append((chances[0] * chances[1]).sum() / k)
    return np.array(shares, dtype=np.float64)


def _mean(values: np.ndarray) -> float:
    """Compute the mean; NaN if there are no values or any of them is NaN."""
    return float(np.mean(values)) if len(values) else math.nan


def _border(starts: np.ndarray, ends: np.ndarray, k: int) -> tuple[int, int, float]:
    """Find the candidates that are tied across the cutoff. Return their first and last position, and the probability
    that each of them is above the cutoff.
    """
    group = np.searchsorted(ends, k)
    if group < len(ends) and starts[group] < k:
        start, end = int(starts[group]), int(ends[group])
        return start, end, (k - start) / (end - start + 1)
    return k, k - 1, 0.0


def _inside(rank: np.ndarray, start: int, end: int, chance: float) -> np.ndarray:
    """Return the probability that each candidate is above the cutoff, given its rank (0 is best) and the `_border`."""
    return np.where(rank < start, 1.0, np.where(rank <= end, chance, 0.0))


def _column(name: str):
    return lambda rows: rows[name].to_numpy(np.float64)


def sampled_numbers(seed: int, case_id: str, n_candidates: int, n_sampled: int) -> np.ndarray:
    """Sample candidates for a query and return their indices in ascending order. If there are at
    most `n_sampled` candidates, return all of them.
    """
    if n_sampled >= n_candidates:
        return np.arange(n_candidates)
    key = blake2b(f"{seed}/candidates/{case_id}".encode(), digest_size=16).digest()
    rng = np.random.default_rng(int.from_bytes(key))
    return np.sort(rng.choice(n_candidates, n_sampled, replace=False, shuffle=False))


def counted_overlaps(values: np.ndarray, k: int) -> np.ndarray:
    """Compute the same overlaps as `top_overlaps`, but without sorting, by counting the candidates above and at the
    cutoff.

    Args:
        values: Similarities, shape (n_versions, n_candidates).
        k: Number of candidates to compare, less than n_candidates.
    """
    border = np.partition(values, -k, axis=1)[:, -k, None]
    above, level = values > border, values == border
    chance = (k - np.count_nonzero(above, axis=1)) / np.count_nonzero(level, axis=1)
    shares = []
    for i, j in combinations(range(len(values)), 2):
        both, left, right, tied = (
            np.count_nonzero(of_i & of_j)
            for of_i in (above[i], level[i])
            for of_j in (above[j], level[j])
        )
        share = both + left * chance[j] + right * chance[i] + tied * chance[i] * chance[j]
        shares.append(share / k)
    return np.array(shares, dtype=np.float64)


_metric = functools.partial(Metric, kinds=("ranking",), direction="up", tied=None)
METRICS = (
    _metric(
        name="prsm_global",
        version=2,
        label="Rank correlation",
        help="Rank correlation of the full rankings for two wordings of a query: 1 is the same order, 0 is no "
        "correlation.",
        unit="correlation",
        chance=0.0,
        source="PRSM, section 3 (global), on ranks",
        value=_column("global"),
    ),
    *(
        _metric(
            name=f"prsm_local_{k}",
            version=3,
            label=f"Top-{k} overlap",
            help=f"Overlap of the top {k} pictures for two wordings of a query; chance is {k} divided by the gallery "
            "size.",
            unit="rate",
            chance=math.nan,
            source="PRSM, section 3 (local)",
            value=_column(f"local_{k}"),
        )
        for k in OVERLAPS
    ),
    _metric(
        name="prsm_global_idlist",
        version=2,
        label="Id-list correlation (not a stability measure)",
        help="Correlation between the lists of picture ids, which gives values like the paper's. "
        "It does not measure stability.",
        unit="correlation",
        direction="none",
        chance=0.0,
        source="PRSM, table 1 (inferred from its values)",
        value=_column("global_idlist"),
    ),
)
SAMPLED_METRIC = _metric(
    name="prsm_global_sampled",
    version=2,
    label="Rank correlation, estimated",
    help="Rank correlation over a random sample of candidates per query, an estimate of the full rank correlation. "
    "The interval includes the sampling error.",
    unit="correlation",
    chance=0.0,
    source="PRSM, section 3 (global), on ranks of sampled candidates",
    value=lambda rows: _column(SAMPLED)(rows) if SAMPLED in rows else np.full(len(rows), math.nan),
)


def pair_measures(rankings: Rankings) -> dict[str, np.ndarray]:
    """Compute all measures for each pair of a query's versions in one gallery. Return them by column name, as float64
    of shape (n_pairs,), in the order of itertools.combinations.
    """
    return {
        "global": rank_correlations(rankings),
        "global_idlist": list_correlations(rankings),
        **{f"local_{k}": top_overlaps(rankings, k) for k in OVERLAPS},
    }


def means(pairs: dict[str, np.ndarray]) -> dict[str, float]:
    """Average each measure from `pair_measures` over the pairs of versions, by column name."""
    return {name: _mean(values) for name, values in pairs.items()}
