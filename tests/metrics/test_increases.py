"""The increase of one mean over another, against single draws and scipy."""

import math

import numpy as np
import pytest
from scipy import stats

from vlprobe.metrics.increases import increases
from vlprobe.metrics.resampling import RESAMPLES
from vlprobe.types import Measure

N = 60


def measure(value, item) -> Measure:
    return Measure(np.asarray(value, np.float64), np.ones(len(value)), np.asarray(item))


@pytest.fixture(scope="module")
def pair() -> tuple[Measure, Measure]:
    """Return two means that share most of each item's contribution; some items have no value, some several."""
    random = np.random.default_rng(7)
    level = random.gamma(2.0, 1.0, N)
    items, base_items = random.integers(N, size=150), random.integers(N, size=90)
    return (
        measure(1.3 * level[items] + random.normal(0, 0.1, 150), items),
        measure(level[base_items] + random.normal(0, 0.1, 90), base_items),
    )


def test_value_and_interval_match_items_drawn_one_resample_at_a_time(pair):
    (found,) = increases([pair], N)
    first, second = pair
    assert found.value == pytest.approx(first.value.mean() / second.value.mean() - 1)
    drawn = []
    for number in range(RESAMPLES):
        items = np.random.default_rng([N, number]).integers(N, size=N)
        means = [
            np.concatenate([side.value[side.item == item] for item in items]).mean()
            for side in pair
        ]
        drawn.append(means[0] / means[1] - 1)
    assert (found.low, found.high) == pytest.approx(np.quantile(drawn, [0.025, 0.975]))
    assert found.n_items == len(np.union1d(first.item, second.item))


def test_the_interval_is_close_to_scipys_paired_bootstrap():
    random = np.random.default_rng(3)
    base = random.gamma(3.0, 1.0, N)
    first = 1.2 * base + random.normal(0, 0.2, N)
    (found,) = increases([(measure(first, np.arange(N)), measure(base, np.arange(N)))], N)
    other = stats.bootstrap(
        (first, base),
        lambda x, y, axis: x.mean(axis=axis) / y.mean(axis=axis) - 1,
        paired=True, method="percentile", n_resamples=4000, rng=np.random.default_rng(1),
    ).confidence_interval  # fmt: skip
    width = other.high - other.low
    assert (found.low, found.high) == pytest.approx((other.low, other.high), abs=0.15 * width)
    unpaired = increases([(measure(first, np.arange(N)), measure(base[::-1], np.arange(N)))], N)[0]
    assert unpaired.high - unpaired.low > 2 * (found.high - found.low)  # draws are shared


def test_an_undefined_increase_has_no_value_or_no_interval():
    none, zero = measure([], np.array([], dtype=np.int64)), measure([0.0, 0.0], [0, 1])
    some = measure([1.0, 2.0], [0, 1])
    of_one = measure([3.0], [0]), measure([2.0], [0])
    nothing, over_none, over_zero, single = increases(
        [(none, some), (some, none), (some, zero), of_one], 2
    )
    assert all(
        math.isnan(found.value) and found.n_items == 0 for found in (nothing, over_none, over_zero)
    )
    assert single.value == 0.5 and math.isnan(single.low) and single.n_items == 1
    assert increases([], 5) == []
