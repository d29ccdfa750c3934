"""Means, their intervals, and differences between models, made here for every metric in the same way.

A value is a weighted mean over cases. Its interval comes from resampling items, because five captions and ten edits of
one image are not fifty observations. The same resampling serves every metric of a run and, since it depends on the
number of items alone, every model on the same dataset: differences between models are paired.

Where all items say the same, resampling shows no spread, and its interval would have no width: of a rate, the exact
bound for as many items is given instead.
"""

import functools
import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import numpy as np

from vlprobe.types import Estimate, Measure

RESAMPLES = 1000
LEVEL = 0.95
EXCHANGES = 20_000  # so that the smallest p, 1 in 20,001, stays below .05 in a family of hundreds
GROUPS = 1024  # more items than this are compared in so many random groups
NO_SPREAD = 1e-9  # an interval narrower than this has no width but for rounding
_CHUNK = 50  # resamples held in memory at once
_ITEMS = 1024  # items whose draws are multiplied at once
_EXCHANGED = 1000  # exchanges held in memory at once


def without_spread(value: float, n_items: int, lowest: float = 0.0) -> tuple[float, float]:
    """The 95 % interval of a mean that all items agree on, from how many of them they are.

    Of values between `lowest` and 1, at most a share q of all items can differ from the ones that were drawn, where
    (1 - q)^n = .025: with a larger share one of n items would have differed, 39 times in 40. At worst these lie at one
    end. For a rate of 0 or 1 that is the exact binomial interval; it holds for items that are means of several cases.

    Args:
        value: What all items have.
        n_items: How many they are, at least one; cases of one item count once.
        lowest: The least that a value can be: 0 of a rate, -1 of a difference of rates.

    Source: Clopper and Pearson 1934.

    >>> [round(end, 3) for end in without_spread(1.0, 10)]  # ten of ten
    [0.692, 1.0]
    """
    other = 1 - ((1 - LEVEL) / 2) ** (1 / n_items)
    return value - other * (value - lowest), value + other * (1 - value)


@dataclass(frozen=True, slots=True)
class Difference:
    """One model's mean minus another's on the same cases; unknown is NaN."""

    value: float = math.nan
    low: float = math.nan
    high: float = math.nan
    p: float = math.nan  # two-sided
    n_items: int = 0  # items that both models answered


def macro(value: np.ndarray, weight: np.ndarray, group: np.ndarray, item: np.ndarray) -> Measure:
    """The mean within each group first, every group then counting once (equations 2, 4 and 5 of LGIP as printed).

    Args:
        value: Float of shape (n,); NaN does not apply.
        weight: Float of shape (n,), the weight of a row within its group.
        group: Integer codes of shape (n,).
        item: Integer codes of shape (n,); a group lies within one item.
    """
    weight = np.where(np.isnan(value), 0.0, weight)
    n_groups = int(group.max()) + 1 if len(group) else 0
    total = np.bincount(group, weight, n_groups)
    summed = np.bincount(group, weight * np.nan_to_num(value), n_groups)
    owner = np.zeros(n_groups, dtype=np.int64)
    owner[group] = item
    there = total > 0
    return Measure(summed[there] / total[there], np.ones(int(there.sum())), owner[there])


def micro(value: np.ndarray, weight: np.ndarray, item: np.ndarray) -> Measure:
    """All rows pooled: a caption with more edits counts more (what LGIP's released code computes)."""
    there = ~np.isnan(value) & (weight > 0)
    return Measure(value[there], weight[there], item[there])


def resample_counts(n_items: int, first: int, last: int) -> np.ndarray:
    """How often each item is drawn in resamples `first` to `last`, float32 of shape (last - first, n_items).

    Depends on nothing but the number of items and the resample's own number.
    """
    counts = np.empty((last - first, n_items), dtype=np.float32)
    for row, number in enumerate(range(first, last)):
        drawn = np.random.default_rng([n_items, number]).integers(n_items, size=n_items)
        counts[row] = np.bincount(drawn, minlength=n_items)
    return counts


class Sums:
    """What many means and their intervals rest on, from blocks of items that come one after another.

    It grows with the number of items by RESAMPLES bytes each, and not with the number of cases.
    """

    def __init__(self, n_items: int) -> None:
        self.n_items = n_items
        self._sums: dict[Hashable, _Sum] = {}

    @functools.cached_property
    def _counts(self) -> np.ndarray:
        """How often each item is drawn in each resample, shape (n_items, RESAMPLES); never more than 255 times."""
        counts = np.empty((self.n_items, RESAMPLES), dtype=np.uint8)
        for first in range(0, RESAMPLES, _CHUNK):
            last = min(first + _CHUNK, RESAMPLES)
            counts[:, first:last] = resample_counts(self.n_items, first, last).T
        return counts

    def add(self, names: Sequence[Hashable], total: np.ndarray, weight: np.ndarray, item: np.ndarray) -> None:
        """Adds to the measures of these names what a block of items has of them.

        Args:
            names: Of the measures, each once.
            total: Weight times value, summed within each item, shape (len(names), items in the block).
            weight: The same of the weight.
            item: The codes of the items, each once in a block; an item may come again in a later one.
        """
        drawn = np.zeros((2 * len(names), RESAMPLES))
        both = np.concatenate([total, weight])
        for start in range(0, len(item), _ITEMS):
            own = slice(start, start + _ITEMS)
            drawn += both[:, own] @ self._counts[item[own]].astype(np.float64)
        for row, name in enumerate(names):
            known = self._sums.get(name) or self._sums.setdefault(name, _Sum(self.n_items))
            known.pooled += total[row].sum(), weight[row].sum()
            known.drawn += drawn[row], drawn[len(names) + row]
            there = item[weight[row] > 0]
            np.bitwise_or.at(known.there, there >> 3, (1 << (there & 7)).astype(np.uint8))

    def drop(self, name: Hashable) -> None:
        """Forgets a measure."""
        self._sums.pop(name, None)

    def estimate(self, name: Hashable, is_rate: bool = False) -> Estimate:
        """The weighted mean of a measure, with a 95 % percentile interval clustered on the item.

        A measure without any weight is unknown: NaN with n_items 0. With fewer than two items the interval is NaN. The
        interval of a rate, of values 0 to 1, that all items agree on is `without_spread`.
        """
        known = self._sums.get(name)
        if known is None or known.pooled[1] == 0:
            return Estimate()
        n_items = int(np.bitwise_count(known.there).sum())
        top, bottom = known.drawn
        means = top[bottom > 0] / bottom[bottom > 0]
        tail = (1 - LEVEL) / 2
        low, high = np.quantile(means, [tail, 1 - tail]) if n_items > 1 else (math.nan, math.nan)
        value = float(known.pooled[0] / known.pooled[1])
        if is_rate and high - low < NO_SPREAD:
            low, high = without_spread(value, n_items)
        return Estimate(value, float(low), float(high), n_items)


class _Sum:
    """Totals of a measure: of weight times value, and of weight; as they are and in every resample."""

    __slots__ = ("drawn", "pooled", "there")

    def __init__(self, n_items: int) -> None:
        self.pooled, self.drawn = np.zeros(2), np.zeros((2, RESAMPLES))
        self.there = np.zeros(n_items // 8 + 1, dtype=np.uint8)  # a bit an item: whether it has any weight


def estimates(measures: Sequence[Measure], n_items: int, are_rates: bool = False) -> list[Estimate]:
    """The estimate of each measure; see `Sums.estimate`.

    Args:
        measures: What to average.
        n_items: How many items were asked about, those without a case included.
        are_rates: Whether their values are 0 to 1.
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
    """How much higher the first model of each pair scores than the second, and whether that may be chance.

    The interval is the 95 % percentile interval of the difference over resampled items, the draws being those of
    `estimates`. The p-value is that of a randomization test: it asks how often a difference at least as large, either
    way, comes about when each item exchanges its two models' answers by a fair coin, as it might if the models were
    alike (for plain means that turns the signs of the items' differences). It holds its level where few items tell the
    models apart (five items for one and none for the other give 1/16, where resampled items give .01), and is McNemar's
    exact test where each item has one right or wrong answer.

    Only items that have a row in both measures take part: what one model alone answered would compare other questions,
    not other models. A row of weight 0 is an answer that does not count for that model.

    With more than GROUPS items, items are thrown together into GROUPS random groups, which are then resampled and
    exchanged as one: a hundred thousand items cost no more than a thousand, in time or memory, and the estimated
    standard error is off by some 2 % (1 / sqrt(2 GROUPS)).

    Two models that answered every item alike may still differ on others: where all items have the same difference of
    rates, the interval is `without_spread` for as many items. What is no rate has no bound, and keeps an interval
    without width. The p-value needs nothing of the kind: no difference at all is as likely as can be, p = 1.

    Args:
        pairs: Two models' measures of one metric; items have the same codes in both.
        n_items: How many items were asked about, those without a case included.
        are_rates: Of each pair, whether its values are 0 to 1; empty: none is.

    Returns:
        One Difference a pair; unknown where a model has no value, without interval and p with fewer than two items.

    Source: Pitman 1937 (randomization tests); Wolter, Introduction to Variance Estimation, chapter 2 (random groups).
    """
    if not pairs:
        return []
    n_groups = min(n_items, GROUPS)
    group = np.arange(n_items)
    if n_items > GROUPS:
        group = np.random.default_rng(n_items).permutation(n_items) % GROUPS
    pairs = [_common(*pair) for pair in pairs]
    totals = [[np.bincount(group[m.item], m.weight * m.value, n_groups) for m in pair] for pair in pairs]
    weights = [[np.bincount(group[m.item], m.weight, n_groups) for m in pair] for pair in pairs]
    sums = np.array([totals, weights], dtype=np.float64)  # counts of nothing are integers
    value = _difference(*sums.sum(axis=3))
    low, high = _interval(sums)
    p = _exchanged(sums, value)
    found = []
    for place, (first, second) in enumerate(pairs):
        answered = [np.bincount(m.item, m.weight, n_items) > 0 for m in (first, second)]
        both = int((answered[0] & answered[1]).sum())
        if np.isnan(value[place]):
            found.append(Difference())
        elif both < 2:
            found.append(Difference(float(value[place]), n_items=both))
        else:
            ends = float(low[place]), float(high[place])
            if are_rates and are_rates[place] and ends[1] - ends[0] < NO_SPREAD:
                ends = without_spread(float(value[place]), both, lowest=-1.0)
            found.append(Difference(float(value[place]), *ends, float(p[place]), n_items=both))
    return found


def _common(first: Measure, second: Measure) -> tuple[Measure, Measure]:
    """Both without the items of which only one has a row."""
    found = []
    for own, other in ((first, second), (second, first)):
        there = np.isin(own.item, other.item)
        found.append(Measure(own.value[there], own.weight[there], own.item[there]))
    return found[0], found[1]


def _difference(totals: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Shapes (..., pairs, 2) to (..., pairs): the first model's mean minus the second's, NaN where one has none."""
    means = np.divide(totals, weights, out=np.full_like(totals, np.nan), where=weights > 0)
    return means[..., 0] - means[..., 1]


def _interval(sums: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The middle 95 % of each pair's difference over resampled groups.

    Args:
        sums: Shape (2, pairs, 2, groups): weight times value, and weight, of each pair's two models in each group.
    """
    resampled = []
    for first in range(0, RESAMPLES, _CHUNK):
        counts = resample_counts(sums.shape[3], first, min(first + _CHUNK, RESAMPLES)).astype(np.float64)
        drawn = counts @ sums.reshape(-1, sums.shape[3]).T
        resampled.append(_difference(*drawn.reshape(len(counts), *sums.shape[:3]).swapaxes(0, 1)))
    known = np.concatenate(resampled)
    known[:, np.isnan(known).all(axis=0)] = 0.0  # unknown as a whole, and told so by the value
    low, high = np.nanquantile(known, [(1 - LEVEL) / 2, (1 + LEVEL) / 2], axis=0)
    return low, high


def _exchanged(sums: np.ndarray, value: np.ndarray) -> np.ndarray:
    """The share of random exchanges, with the one that was seen, that make as large a difference as was seen."""
    n_groups = sums.shape[3]
    moved = (sums[:, :, 1] - sums[:, :, 0]).swapaxes(1, 2)  # what a group's exchange adds to the first model's sums
    start, pooled = sums[:, None, :, 0].sum(axis=3), sums[:, None].sum(axis=(3, 4))
    # Sums differ in their last digits by their order: what equals the seen difference but for these counts as equal.
    seen = np.abs(value) - 1e-9 * np.abs(sums[0]).sum(axis=(1, 2)) / np.maximum(pooled[1, 0], 1e-300)
    large = np.ones(len(value))
    for first in range(0, EXCHANGES, _EXCHANGED):
        size = min(_EXCHANGED, EXCHANGES - first)
        coins = np.frombuffer(np.random.default_rng([n_groups, first]).bytes(size * -(-n_groups // 8)), np.uint8)
        exchange = np.unpackbits(coins.reshape(size, -1), axis=1, count=n_groups).astype(np.float64)
        own = start + exchange @ moved
        large += (~(np.abs(_difference(*np.stack([own, pooled - own], axis=-1))) < seen)).sum(axis=0)  # so does NaN
    return large / (EXCHANGES + 1)


def mcnemar(only_first: int, only_second: int) -> float:
    """How often a fair coin divides the cases that only one of two models gets wrong at least as unevenly as this.

    Twice the lower tail of a binomial, at most 1. For independent cases only: one case an item.

    Source: McNemar 1947, in its exact form.
    """
    n, fewer = only_first + only_second, min(only_first, only_second)
    halves = n * math.log(2)
    tail = sum(
        math.exp(math.lgamma(n + 1) - math.lgamma(k + 1) - math.lgamma(n - k + 1) - halves) for k in range(fewer + 1)
    )
    return min(1.0, 2 * tail)


def holm(p: Sequence[float]) -> np.ndarray:
    """P-values raised so that calling all below .05 real errs in any of them at most once in twenty times.

    The k-th smallest of m is multiplied by m - k + 1, and is no smaller than the one before it. NaN stays NaN and is
    not counted.

    Source: Holm 1979.
    """
    given = np.asarray(p, dtype=np.float64)
    order = np.argsort(given)[: int((~np.isnan(given)).sum())]  # NaN sorts last
    raised = np.full(len(given), np.nan)
    raised[order] = np.minimum(1.0, np.maximum.accumulate(given[order] * np.arange(len(order), 0, -1)))
    return raised
