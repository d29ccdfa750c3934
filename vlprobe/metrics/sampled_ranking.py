"""PRSM's rank correlation, estimated from a sample of the candidates for galleries that are too
large to rank.

The correlation in a random sample estimates the correlation over all candidates (Spearman's rho of
m candidates has a standard error of about sqrt((1 + rho^2 / 2) / (m - 3)); Bonett and Wright 2000).
Each query draws its own sample, so its error is independent of all others and adds to the variance
between queries. The interval over queries therefore covers it.
"""

import math
from hashlib import blake2b
from itertools import combinations

import numpy as np

from vlprobe.metrics import ranking
from vlprobe.types import Metric

COLUMN = "global_sampled"


def sampled_numbers(seed: int, case_id: str, n_candidates: int, n_sampled: int) -> np.ndarray:
    """Return the candidates sampled for a query, in ascending order; all of them if there are no more
    than `n_sampled`.
    """
    if n_sampled >= n_candidates:
        return np.arange(n_candidates)
    key = blake2b(f"{seed}/candidates/{case_id}".encode(), digest_size=16).digest()
    rng = np.random.default_rng(int.from_bytes(key))
    return np.sort(rng.choice(n_candidates, n_sampled, replace=False, shuffle=False))


def sampled_correlation(values: np.ndarray) -> float:
    """Compute the mean rank correlation over all pairs of versions on sampled candidates.

    Args:
        values: Similarities, shape (n_versions, n_sampled).
    """
    return ranking.rank_correlation(ranking.Ranker()(values))


def counted_overlaps(values: np.ndarray, k: int) -> np.ndarray:
    """Compute `ranking.top_overlaps` without sorting, from counts of candidates above and at the
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


METRIC = Metric(
    name="prsm_global_sampled",
    version=2,
    label="Rank correlation, estimated",
    help=(
        "Rank correlation over a random sample of candidates per query, an estimate of the "
        "full rank correlation. The interval includes the sampling error."
    ),
    unit="correlation",
    direction="up",
    chance=0.0,
    source="PRSM, section 3 (global), on ranks of sampled candidates",
    kinds=("ranking",),
    value=lambda rows: (
        rows[COLUMN].to_numpy(np.float64) if COLUMN in rows else np.full(len(rows), math.nan)
    ),
    tied=None,
)
