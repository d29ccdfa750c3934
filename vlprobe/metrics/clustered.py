"""Rates of clustered answers, for which several cases about one picture are not independent observations.

A binomial test compares the rate in a group of cases with an average rate, at the group's effective sample size. For n
cases in clusters of n_c cases, this size is n^2 / sum(n_c (1 + (n_c - 1) r)), where r is how much more often two cases
from the same cluster agree than any two cases do. The test does not need a normal approximation and is therefore valid
for three pictures as well as for three thousand. The test and the interval use the same sample size.

Source: Rao and Scott 1992 (effective sample size); Korn and Graubard 1998 (exact interval with it);
Benjamini and Hochberg 1995.
"""

from dataclasses import dataclass

import numpy as np

LEVEL = 0.95


@dataclass(frozen=True, slots=True)
class GroupRates:
    """Counts for groups of clustered cases. Each attribute is an array of shape (n_groups,)."""

    n_cases: np.ndarray
    n_events: np.ndarray
    n_clusters: np.ndarray
    effective_sizes: np.ndarray

    @property
    def rates(self) -> np.ndarray:
        """Share of events in each group; NaN for a group without cases."""
        n_cases = np.where(self.n_cases > 0, self.n_cases, np.nan)
        return self.n_events / n_cases


def group_rates(group: np.ndarray, cluster: np.ndarray, event: np.ndarray) -> GroupRates:
    """Compute the rate and the effective sample size of each group.

    The agreement within clusters is estimated over all groups, relative to each group's rate. If the
    cases in a group agree more than that, the group uses its own estimate.

    Args:
        group: Group of each case, integer codes starting at 0, shape (n,).
        cluster: Cluster of each case, integer codes starting at 0, shape (n,); a cluster may be in
            several groups.
        event: Whether the event occurred in each case, bool of shape (n,).
    """
    n_groups = int(group.max()) + 1 if len(group) else 0
    cell_codes = group.astype(np.int64) * (int(cluster.max(initial=0)) + 1) + cluster
    cells, cell = np.unique(cell_codes, return_inverse=True)
    sizes = np.bincount(cell).astype(np.float64)
    events = np.bincount(cell, weights=event)
    group_of_cell = cells // (int(cluster.max(initial=0)) + 1)

    def total(values: np.ndarray) -> np.ndarray:
        return np.bincount(group_of_cell, weights=values, minlength=n_groups)

    n_cases, n_events = total(sizes), total(events)
    rates = n_events / np.maximum(n_cases, 1)
    pairs = total(sizes * (sizes - 1))
    excess = total(events * (events - 1)) - pairs * rates**2
    largest = pairs * rates * (1 - rates)
    pooled = excess.sum() / largest.sum() if largest.sum() > 0 else 0.0
    own_agreement = np.divide(excess, largest, out=np.zeros(n_groups), where=largest > 0)
    agreement = np.clip(np.maximum(own_agreement, pooled), 0.0, 1.0)
    inflated = n_cases + agreement * pairs
    effective = np.divide(n_cases**2, inflated, out=np.zeros(n_groups), where=inflated > 0)
    n_clusters = np.bincount(group_of_cell, minlength=n_groups)
    return GroupRates(n_cases, n_events, n_clusters, effective)


def chance_of_more(groups: GroupRates, rates: np.ndarray) -> np.ndarray:
    """Test whether the event is more frequent in each group than expected, and return one-sided p-values.

    The p-value is the probability of at least as many events as observed if the group's true rate is the one in
    `rates`, which has shape (n_groups,). It is 1 if the observed rate does not exceed the rate in `rates`.
    """
    from scipy.special import betainc

    is_more = groups.n_events > rates * groups.n_cases
    p = np.where(is_more, 0.0, 1.0)
    tested = is_more & (rates > 0)
    sizes = groups.effective_sizes[tested]
    above = groups.rates[tested] * sizes
    p[tested] = betainc(above, sizes - above + 1, rates[tested])
    return p


def rate_interval(groups: GroupRates) -> tuple[np.ndarray, np.ndarray]:
    """Compute the exact 95 % interval for each group's rate at the group's effective sample size. Return the lower and
    upper ends as arrays of shape (n_groups,); they are NaN for a group without cases.
    """
    from scipy.special import betaincinv

    size = groups.effective_sizes
    events = groups.rates * size
    tail = (1 - LEVEL) / 2
    low, high = np.zeros(len(size)), np.ones(len(size))
    some, not_all = groups.n_events > 0, groups.n_events < groups.n_cases
    low[some] = betaincinv(events[some], size[some] - events[some] + 1, tail)
    high[not_all] = betaincinv(events[not_all] + 1, size[not_all] - events[not_all], 1 - tail)
    unknown = groups.n_cases == 0
    return np.where(unknown, np.nan, low), np.where(unknown, np.nan, high)


def benjamini_hochberg(p: np.ndarray) -> np.ndarray:
    """Adjust p-values so that, on average, at most 5 % of the adjusted p-values below .05 are false discoveries.

    The k-th smallest of m p-values is multiplied by m / k and capped at the next larger adjusted one.
    """
    m = len(p)
    order = np.argsort(p, kind="stable")
    raised = np.empty(m)
    stepped = p[order] * m / np.arange(1, m + 1)
    raised[order] = np.minimum.accumulate(stepped[::-1])[::-1]
    return np.minimum(raised, 1.0)
