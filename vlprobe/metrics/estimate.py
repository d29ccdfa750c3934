"""Means, their intervals, and differences between models, computed in the same way for every metric.

A value is a weighted mean over cases. Its interval comes from resampling items, because five
captions and ten edits of one image are not fifty observations. The same resamples are used for
every metric of a run. They depend only on the number of items, so they are also used for every
model on the same dataset, and differences between models are paired.

The interval of a rate is Wilson's, for the number of items that would give the same spread, because
near 0 and 1 resampling underestimates the spread. With fewer than FEWEST_ITEMS items, the
interval is NaN.
"""

import functools
import math
import statistics
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from vlprobe.metrics.resampling import RESAMPLE_BLOCK, RESAMPLES, every_resample
from vlprobe.types import Estimate, Measure

LEVEL = 0.95
Z = statistics.NormalDist().inv_cdf((1 + LEVEL) / 2)  # 1.96
FEWEST_ITEMS = 5  # with fewer, a 95 % interval from resampling covers 50 to 81 %
EXCHANGES = 20_000  # drawn at random if not all of them can be counted
LEAST_P = 1e-12  # smallest p from counted exchanges; their Fourier transform has a smaller error
MOST_PRODUCTS = 2**25  # cosines to compute for one Fourier transform, which takes 0.4 s
GROUPS = 1024  # if there are more items, they are pooled into this many random groups
NO_SPREAD = 1e-9  # a narrower interval only has a width because of rounding
ITEM_BLOCK = 1024  # items whose draws are multiplied at once
EXCHANGE_BLOCK = 1000  # exchanges held in memory at once


def rate_interval(value: float, variance: float, n_items: int) -> tuple[float, float]:
    """Compute the 95 % Wilson interval for a mean of values in [0, 1], using the effective sample size.

    The design effect is the variance of the mean divided by value (1 - value) / n_items, the
    variance for the same number of independent right-or-wrong answers. It is below 1 if items have
    many independent cases. Near 0 and 1, too few items differ to estimate it, so it is shrunk
    toward 1 with weight exp(-2 n_items value (1 - value) / Z^2), the fastest decay for which one
    more error never lowers the upper end.

    Args:
        value: The mean.
        variance: Variance of the mean, estimated from resampled items.
        n_items: Number of items with any weight (1 or more).

    Source: Wilson 1927; Korn and Graubard 1998 (effective sample size).

    >>> [round(end, 3) for end in rate_interval(0.0, 0.0, 40)]  # no error on 40 pictures
    [0.0, 0.088]
    >>> [round(end, 3) for end in rate_interval(1 / 40, 39 / 40**3, 40)]  # one error
    [0.004, 0.129]
    """
    if variance < NO_SPREAD**2:
        return without_spread(value, n_items)
    single = value * (1 - value)
    design_effect = variance * n_items / single
    design_effect += (1 - design_effect) * math.exp(-2 * n_items * single / Z**2)
    squared = Z**2 * design_effect / n_items
    center = (value + squared / 2) / (1 + squared)
    half_width = math.sqrt(squared * single + squared**2 / 4) / (1 + squared)
    return max(0.0, center - half_width), min(1.0, center + half_width)


def without_spread(value: float, n_items: int, lowest: float = 0.0) -> tuple[float, float]:
    """Compute the 95 % interval for the mean when all items in the sample have the same value.

    At most a share Z^2 / (n_items + Z^2) of all items has a different value; this is the upper end
    of Wilson's interval for 0 of n_items. In the worst case these items have the value `lowest`, or
    1.

    Args:
        value: The mean, which is the value of every item.
        n_items: Number of items (1 or more); cases of one item count once.
        lowest: The smallest possible value: 0 for a rate, -1 for a difference of rates.

    Source: Wilson 1927.

    >>> [round(end, 3) for end in without_spread(1.0, 10)]  # ten of ten
    [0.722, 1.0]
    """
    differing = Z**2 / (n_items + Z**2)
    return value - differing * (value - lowest), value + differing * (1 - value)


@dataclass(frozen=True, slots=True)
class Difference:
    """Difference between two models: the first model's mean minus the second's, on the same cases. NaN if unknown."""

    value: float = math.nan
    low: float = math.nan
    high: float = math.nan
    p: float = math.nan  # two-sided
    n_items: int = 0  # items that both models answered


def macro(value: np.ndarray, weight: np.ndarray, group: np.ndarray, item: np.ndarray) -> Measure:
    """Build a measure in which all groups count equally, by averaging the rows in each group first (equations 2, 4 and
    5 in LGIP as printed).

    Args:
        value: Value of each row, float of shape (n,); NaN if the metric does not apply to the row.
        weight: Weight of each row within its group, float of shape (n,).
        group: Group of each row, integer codes of shape (n,).
        item: Item of each row, integer codes of shape (n,); all rows in a group belong to one item.
    """
    weight = np.where(np.isnan(value), 0.0, weight)
    n_groups = int(group.max()) + 1 if len(group) else 0
    group_weight = np.bincount(group, weight, n_groups)
    group_total = np.bincount(group, weight * np.nan_to_num(value), n_groups)
    item_of_group = np.zeros(n_groups, dtype=np.int64)
    item_of_group[group] = item
    counts = group_weight > 0
    means = group_total[counts] / group_weight[counts]
    return Measure(means, np.ones(len(means)), item_of_group[counts])


def micro(value: np.ndarray, weight: np.ndarray, item: np.ndarray) -> Measure:
    """Build a measure in which all rows count equally: a caption with more edits counts more (as in LGIP's code)."""
    counts = ~np.isnan(value) & (weight > 0)
    return Measure(value[counts], weight[counts], item[counts])


class Sums:
    """Running sums for the means and intervals of many measures. They are updated with one block of items at a time.

    Memory grows by RESAMPLES bytes per item and does not depend on the number of cases.
    """

    def __init__(self, n_items: int) -> None:
        self.n_items = n_items
        self._running: dict[Hashable, RunningMean] = {}

    @functools.cached_property  # each block of items needs it: 70 ms for 5,000 items
    def _resample_counts(self) -> np.ndarray:
        """How often each item is drawn in each resample: shape (n_items, RESAMPLES)."""
        return every_resample(self.n_items)

    def add(
        self, names: Sequence[Hashable], total: np.ndarray, weight: np.ndarray, item: np.ndarray
    ) -> None:
        """Add the sums for a block of items to the named measures.

        Args:
            names: Names of the measures, without duplicates.
            total: Weight times value, summed within each item, shape (len(names), items in the
                block).
            weight: Weight, summed in the same way.
            item: The codes of the items, without duplicates; an item may occur again in a later
                block.
        """
        sums = np.concatenate([total, weight])
        resampled = resampled_sums(sums, self._resample_counts, item)
        for index, name in enumerate(names):
            if name not in self._running:
                self._running[name] = RunningMean(self.n_items)
            running = self._running[name]
            running.observed += total[index].sum(), weight[index].sum()
            running.resampled += resampled[index], resampled[len(names) + index]
            running.counted_items.add(item[weight[index] > 0])

    def drop(self, name: Hashable) -> None:
        """Remove a measure and its running sums."""
        self._running.pop(name, None)

    def count_evenly(self, name: Hashable, strata: Iterable[tuple[Hashable, Hashable]]) -> None:
        """Weight all strata of a measure equally, both in the estimate and in each resample.

        Args:
            name: The measure, whose weights are 1 over the size of the stratum.
            strata: For each stratum, the names of two measures: one for its values, and one for
                all of its cases, whether answered or not.
        """
        resampled = np.zeros((2, RESAMPLES))
        for values, cases in strata:
            sizes = self._running[cases].resampled[1]
            resampled += np.divide(
                self._running[values].resampled,
                sizes,
                out=np.zeros((2, RESAMPLES)),
                where=sizes > 0,
            )
        self._running[name].resampled = resampled

    def estimate(self, name: Hashable, is_rate: bool = False) -> Estimate:
        """Compute the weighted mean of a measure, with a 95 % interval clustered on the item.

        The interval is `rate_interval` for a rate (values from 0 to 1), and the percentile interval
        otherwise. It is NaN if there are fewer than FEWEST_ITEMS items. A measure with a total
        weight of 0 is unknown: its value is NaN and its n_items is 0.
        """
        running = self._running.get(name)
        if running is None or running.observed[1] == 0:
            return Estimate()
        n_items = len(running.counted_items)
        value = float(running.observed[0] / running.observed[1])
        if n_items < FEWEST_ITEMS:
            return Estimate(value, n_items=n_items)
        totals, weights = running.resampled
        means = totals[weights > 0] / weights[weights > 0]
        if is_rate:
            return Estimate(value, *rate_interval(value, float(means.var()), n_items), n_items)
        low, high = np.quantile(means, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
        return Estimate(value, float(low), float(high), n_items)


def resampled_sums(sums: np.ndarray, counts: np.ndarray, item: np.ndarray) -> np.ndarray:
    """Compute each sum in every resample, counting an item as often as it is drawn: float64 of shape (n_sums,
    RESAMPLES).

    Args:
        sums: Sums per item, shape (n_sums, items).
        counts: How often each item is drawn in each resample, shape (n_items, RESAMPLES).
        item: The codes of the items in `sums`.
    """
    resampled = np.zeros((len(sums), RESAMPLES))
    for start in range(0, len(item), ITEM_BLOCK):
        block = slice(start, start + ITEM_BLOCK)
        resampled += sums[:, block] @ counts[item[block]].astype(np.float64)
    return resampled


class RunningMean:
    """Running sums for the mean of one measure: the sum of weight times value, and the sum of weights."""

    __slots__ = ("counted_items", "observed", "resampled")

    def __init__(self, n_items: int) -> None:
        self.observed = np.zeros(2)
        self.resampled = np.zeros((2, RESAMPLES))  # the two sums in every resample
        self.counted_items = BitSet(n_items)  # items with any weight


class BitSet:
    """A set of integers from 0 to `size` - 1 that takes one bit per integer."""

    __slots__ = ("_bytes",)

    def __init__(self, size: int) -> None:
        self._bytes = np.zeros(size // 8 + 1, dtype=np.uint8)

    def add(self, numbers: np.ndarray) -> None:
        """Add an array of integers, of shape (n,), to the set."""
        np.bitwise_or.at(self._bytes, numbers >> 3, (1 << (numbers & 7)).astype(np.uint8))

    def __len__(self) -> int:
        return int(np.bitwise_count(self._bytes).sum())


def estimates(measures: Sequence[Measure], n_items: int, are_rates: bool = False) -> list[Estimate]:
    """Compute the mean of each measure, with its interval; see `Sums.estimate`.

    Args:
        measures: Measures to average.
        n_items: Total number of items, including items whose cases are all excluded.
        are_rates: Whether the values of the measures range from 0 to 1.
    """
    sums, names = Sums(n_items), range(len(measures))
    if measures:
        weight = np.stack([np.bincount(m.item, m.weight, n_items) for m in measures])
        total = np.stack([np.bincount(m.item, m.weight * m.value, n_items) for m in measures])
        sums.add(names, total, weight, np.arange(n_items))
    return [sums.estimate(name, are_rates) for name in names]


def differences(
    pairs: Sequence[tuple[Measure, Measure]], n_items: int, are_rates: Sequence[bool] = ()
) -> list[Difference]:
    """Compute the paired difference between two models, with its interval and p-value, for each pair of measures.

    The interval is the 95 % percentile interval of the difference over resampled items, with the same draws as in
    `estimates`. The p-value comes from a randomization test: it is the share of exchanges with a difference at least
    as large in either direction. In an exchange, each item swaps its two models' answers with probability 1/2, as if
    the models were equal. The test keeps its level even if the models differ on few items (five items in favor of one
    model and none in favor of the other give 1/16, while resampled items give .01).

    If both models have the same weights, and the differences of the items' sums are multiples of 1/2, as for counts of
    right answers, all exchanges are counted (`exchange_p`), so that p can be small enough to be significant among
    thousands of tests. Otherwise, EXCHANGES random exchanges are drawn. If none of these is as large as the observed
    difference, and the weights are the same, p is the smaller of 1 / (EXCHANGES + 1) and Hoeffding's bound
    2 exp(-T^2 / (2 sum d^2)) for the differences d with the sum T. This keeps the level, because the bound is valid for
    every level below 1 / (EXCHANGES + 1), and above that p comes from the random exchanges.

    Only items with a row in both measures are compared, because items that only one model answered would compare
    questions instead of models. A row with weight 0 is an answer that does not count for that model.

    If there are more than GROUPS items, they are pooled into GROUPS random groups. Each group is resampled, and in
    random exchanges exchanged, as a unit. A hundred thousand items then need no more time or memory than a thousand,
    and the estimated standard error is off by about 2 % (1 / sqrt(2 GROUPS)).

    Two models that gave the same answers on every item may still differ on others, so if all items have the same
    difference of rates, the interval is `without_spread` for that number of items. Other metrics are unbounded, so
    their interval has zero width. The p-value needs no correction: without any difference, p = 1.

    Args:
        pairs: Two models' measures of one metric; items have the same codes in both.
        n_items: Total number of items, including items whose cases are all excluded.
        are_rates: For each pair, whether its values range from 0 to 1; if empty, no pair's values do.

    Returns:
        One Difference per pair. It is unknown if a model has no value; its interval is unknown with fewer than
        FEWEST_ITEMS items, and its p with fewer than two.

    Source: Pitman 1937 (randomization tests); Hoeffding 1963, theorem 2; Wolter, Introduction to Variance Estimation,
        chapter 2 (random groups).
    """
    if not n_items:
        return [Difference() for _ in pairs]
    if not pairs:
        return []
    pairs = [_common(*pair) for pair in pairs]
    sums = _group_sums(pairs, n_items)
    value = _difference(*sums.sum(axis=3))
    low, high = _interval(sums)
    p = p_values(pairs, n_items)
    results = []
    for index, pair in enumerate(pairs):
        answered = [np.bincount(measure.item, measure.weight, n_items) > 0 for measure in pair]
        n_common = int((answered[0] & answered[1]).sum())
        difference = float(value[index])
        if np.isnan(difference):
            results.append(Difference())
        elif n_common < 2:
            results.append(Difference(difference, n_items=n_common))
        else:
            ends = float(low[index]), float(high[index])
            if n_common < FEWEST_ITEMS:
                ends = math.nan, math.nan
            elif are_rates and are_rates[index] and ends[1] - ends[0] < NO_SPREAD:
                ends = without_spread(difference, n_common, lowest=-1.0)
            results.append(Difference(difference, *ends, float(p[index]), n_items=n_common))
    return results


def p_values(pairs: Sequence[tuple[Measure, Measure]], n_items: int) -> np.ndarray:
    """Compute the p-values for `differences`, float64 of shape (len(pairs),).

    Each pair must have two or more items in common.
    """
    pairs = [_common(*pair) for pair in pairs]
    p, others = np.ones(len(pairs)), []
    for index, pair in enumerate(pairs):
        differences = _whole_differences(pair, n_items)
        if differences is None:
            others.append(index)
        else:
            p[index] = exchange_p(differences)
    if others:
        sums = _group_sums([pairs[index] for index in others], n_items)
        p[others] = _exchanged(sums, _difference(*sums.sum(axis=3)))
    return p


def _group_sums(pairs: Sequence[tuple[Measure, Measure]], n_items: int) -> np.ndarray:
    """Sum up weight times value, and weight, per group, for both models in each pair: shape (2, pairs, 2, groups)."""
    n_groups = min(n_items, GROUPS)
    group = np.arange(n_items)
    if n_items > GROUPS:
        group = np.random.default_rng(n_items).permutation(n_items) % GROUPS
    totals = [
        [np.bincount(group[m.item], m.weight * m.value, n_groups) for m in pair] for pair in pairs
    ]
    weights = [[np.bincount(group[m.item], m.weight, n_groups) for m in pair] for pair in pairs]
    return np.array([totals, weights], dtype=np.float64)  # bincount of nothing returns integers


def _common(left: Measure, right: Measure) -> tuple[Measure, Measure]:
    """Keep only the items for which both measures have a row."""
    return _of_items(left, right.item), _of_items(right, left.item)


def _of_items(measure: Measure, items: np.ndarray) -> Measure:
    """Keep only the rows of a measure that belong to the given items."""
    if np.array_equal(measure.item, items):
        return measure
    rows = np.isin(measure.item, items)
    return Measure(measure.value[rows], measure.weight[rows], measure.item[rows])


def _difference(totals: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Subtract the second model's mean from the first's. Shapes (..., pairs, 2) become (..., pairs). The result is NaN
    if either model has no mean.
    """
    means = np.divide(totals, weights, out=np.full_like(totals, np.nan), where=weights > 0)
    return means[..., 0] - means[..., 1]


def _interval(sums: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Compute the 95 % percentile interval of each pair's difference, by resampling the groups.

    Args:
        sums: Shape (2, pairs, 2, groups): weight times value, and weight, for both models in each
            pair, in each group.
    """
    resampled, every = [], every_resample(sums.shape[3])
    for start in range(0, RESAMPLES, RESAMPLE_BLOCK):
        stop = min(start + RESAMPLE_BLOCK, RESAMPLES)
        # A different memory order could change the last digits of the sums.
        counts = np.ascontiguousarray(every[:, start:stop].T, dtype=np.float64)
        resampled_sums = counts @ sums.reshape(-1, sums.shape[3]).T
        resampled.append(
            _difference(*resampled_sums.reshape(len(counts), *sums.shape[:3]).swapaxes(0, 1))
        )
    resampled_differences = np.concatenate(resampled)
    resampled_differences[:, np.isnan(resampled_differences).all(axis=0)] = (
        0.0  # unknown in every resample; `value` is NaN there, too
    )
    low, high = np.nanquantile(resampled_differences, [(1 - LEVEL) / 2, (1 + LEVEL) / 2], axis=0)
    return low, high


def _exchanged(sums: np.ndarray, value: np.ndarray) -> np.ndarray:
    """Estimate each pair's p-value from random exchanges, as the share with a difference at least as large as observed.

    The observed assignment counts as one of the exchanges. If no other is as large, p is at most Hoeffding's bound.
    """
    n_groups = sums.shape[3]
    # The amount that exchanging a group adds to the first model's sums
    moved = (sums[:, :, 1] - sums[:, :, 0]).swapaxes(1, 2)
    weights_move = bool(moved[1].any())  # False if both models answered the same cases
    start, pooled = sums[:, None, :, 0].sum(axis=3), sums[:, None].sum(axis=(3, 4))
    # The last digits of a sum depend on the order of the terms, so a sum that differs from the observed
    # one only in these digits counts as equal.
    observed = np.abs(value) - 1e-9 * np.abs(sums[0]).sum(axis=(1, 2)) / np.maximum(
        pooled[1, 0], 1e-300
    )

    large = np.ones(len(value))  # exchanges whose difference is at least as large as observed
    for first in range(0, EXCHANGES, EXCHANGE_BLOCK):
        size = min(EXCHANGE_BLOCK, EXCHANGES - first)
        coins = np.frombuffer(
            np.random.default_rng([n_groups, first]).bytes(size * -(-n_groups // 8)), np.uint8
        )
        exchange = np.unpackbits(coins.reshape(size, -1), axis=1, count=n_groups).astype(np.float64)
        left = np.repeat(start, size, axis=1)
        left[0] += exchange @ moved[0]
        if weights_move:
            left[1] += exchange @ moved[1]
        exchanged = np.abs(_difference(*np.stack([left, pooled - left], axis=-1)))
        large += (~(exchanged < observed)).sum(axis=0)  # NaN counts too
    p = large / (EXCHANGES + 1)
    is_bounded = (large == 1) & ~moved[1].any(axis=0)
    squares = 2 * (moved[0] ** 2).sum(axis=0)
    exponent = np.divide(moved[0].sum(axis=0) ** 2, squares, where=squares > 0, out=0 * squares)
    return np.where(is_bounded, np.minimum(p, 2 * np.exp(-exponent)), p)


def count_answers(pair: tuple[Measure, Measure], n_items: int) -> float:
    """Count the answers of a pair of measures with the same items, if each answer is right or wrong; else return 0."""
    is_counted = _whole_differences(pair, n_items) is not None
    return float(pair[0].weight.sum()) if is_counted else 0.0


def _whole_differences(pair: tuple[Measure, Measure], n_items: int) -> np.ndarray | None:
    """Return twice the difference between the two models' sums for each item, as integers of shape (n_items,). Return
    None if these are not whole numbers, the models' weights differ, or there are too many exchanges to count.
    """
    first, second = (np.bincount(each.item, each.weight, n_items) for each in pair)
    if not np.array_equal(first, second):
        return None
    totals = [np.bincount(each.item, each.weight * each.value, n_items) for each in pair]
    doubled = 2 * (totals[0] - totals[1])
    rounded = np.rint(doubled)
    sizes = np.abs(rounded)
    n_products = len(np.unique(sizes)) * sizes.sum()
    is_whole = np.abs(doubled - rounded).max(initial=0.0) < 1e-6 and n_products <= MOST_PRODUCTS
    return rounded.astype(np.int64) if is_whole else None


def exchange_p(differences: np.ndarray) -> float:
    """Compute the exact p-value of the randomization test from one integer difference per item.

    The observed sum of the differences is compared with the sums for all 2^n choices of signs. The
    distribution of these sums is the inverse Fourier transform of the product of the items' transforms,
    which are cosines. If all differences have the same size, this is McNemar's exact test and is
    computed as such; otherwise the smallest possible p is LEAST_P.

    Args:
        differences: Integers of shape (n_items,), such as one model's number of right answers minus the other's.

    Source: Pagano and Tritchler 1983.

    >>> exchange_p(np.array([1, 1, 1, 1, 2]))  # 2 of 32 choices of signs
    0.0625
    """
    differences = differences[differences != 0]
    sizes, counts = np.unique(np.abs(differences), return_counts=True)
    if len(sizes) < 2:
        return mcnemar(int((differences > 0).sum()), int((differences < 0).sum()))
    divisor = np.gcd.reduce(sizes)
    sizes = sizes // divisor
    total, observed = int(sizes @ counts), abs(int(differences.sum())) // int(divisor)
    n_points = 1 << total.bit_length()  # a power of 2 above the total, for a fast transform
    angle = np.pi * np.arange(n_points // 2 + 1) / n_points
    transform = np.exp(-1j * total * angle)
    for size, count in zip(sizes, counts, strict=True):
        transform *= np.cos(size * angle) ** count
    shares = np.fft.irfft(transform, n_points)  # share of each sum, from -total in steps of 2
    return min(1.0, max(LEAST_P, 2 * float(shares[: (total - observed) // 2 + 1].sum())))


def mcnemar(only_first: int, only_second: int) -> float:
    """Compute McNemar's exact p-value from two counts: the cases that only the first model gets wrong, and the cases
    that only the second model gets wrong.

    This is twice the lower tail of a binomial, capped at 1. It is valid only for independent cases,
    that is, one case per item.

    Source: McNemar 1947, in its exact form.
    """
    n, fewer = only_first + only_second, min(only_first, only_second)
    halves = n * math.log(2)
    tail = sum(
        math.exp(math.lgamma(n + 1) - math.lgamma(k + 1) - math.lgamma(n - k + 1) - halves)
        for k in range(fewer + 1)
    )
    return min(1.0, 2 * tail)


def holm(p: Sequence[float]) -> np.ndarray:
    """Adjust p-values so that the probability of any false positive below .05 is at most .05.

    The k-th smallest of m p-values is multiplied by m - k + 1, and raised to at least the previous
    adjusted one. NaN stays NaN and is not counted.

    Source: Holm 1979.
    """
    p_values = np.asarray(p, dtype=np.float64)
    order = np.argsort(p_values)[: int((~np.isnan(p_values)).sum())]  # NaN sorts last
    raised = np.full(len(p_values), np.nan)
    raised[order] = np.minimum(
        1.0, np.maximum.accumulate(p_values[order] * np.arange(len(order), 0, -1))
    )
    return raised
