"""Estimates from memory are those that are made anew, whatever they are asked with."""

import numpy as np
import pytest

from vlprobe.metrics import estimate, estimate_cache
from vlprobe.types import Measure

N_ITEMS = 40


@pytest.fixture
def measures() -> list[Measure]:
    rng = np.random.default_rng(3)
    items = [np.sort(rng.integers(0, N_ITEMS, 60)) for _ in range(4)]
    return [Measure(rng.random(60) < 0.4, rng.integers(0, 3, 60), item) for item in items]


@pytest.fixture
def computed(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many measures, or pairs, were asked for at once."""
    sizes: list[int] = []
    for name in ("estimates", "differences"):
        plain = getattr(estimate, name)

        def counted(asked, *rest, plain=plain):
            sizes.append(len(asked))
            return plain(asked, *rest)

        monkeypatch.setattr(estimate, name, counted)
    monkeypatch.setattr(estimate_cache, "_estimates", estimate_cache.SingleFlightCache(100))
    monkeypatch.setattr(estimate_cache, "_differences", estimate_cache.SingleFlightCache(100))
    return sizes


def test_each_measure_is_asked_for_once_and_has_its_own_estimate(measures, computed):
    few = estimate_cache.estimates(measures[:2], N_ITEMS, True)
    value, weight, item = measures[1].value, measures[1].weight, measures[1].item
    alike = Measure(value.copy(), weight.copy(), item.copy())
    every = estimate_cache.estimates([measures[3], alike, *measures], N_ITEMS, True)
    assert computed == [2, 2]
    assert every[1] == every[3] == few[1]
    for measure, cached in zip([measures[3], alike, *measures], every, strict=True):
        (anew,) = estimate.estimates([measure], N_ITEMS, True)
        assert cached.n_items == anew.n_items
        np.testing.assert_allclose(
            [cached.value, cached.low, cached.high], [anew.value, anew.low, anew.high], rtol=1e-12
        )


def test_a_pair_is_computed_once_for_both_ways_round_and_another_one_as_no_rate(measures, computed):
    one, other = measures[:2]
    there, back = estimate_cache.differences([(one, other), (other, one)], N_ITEMS, [True, True])
    assert estimate_cache.differences([(other, one)], N_ITEMS, [True]) == [back]
    assert computed == [1]
    for pair, cached in (((one, other), there), ((other, one), back)):
        (anew,) = estimate.differences([pair], N_ITEMS, [True])
        assert cached.p == anew.p and cached.n_items == anew.n_items > 0
        ends = [[each.value, each.low, each.high] for each in (cached, anew)]
        np.testing.assert_allclose(*ends, rtol=1e-12)
    computed.clear()
    estimate_cache.differences([(one, other)], N_ITEMS)
    estimate_cache.differences([(one, other)], N_ITEMS + 1, [True])
    assert computed == [1, 1]


def test_numbers_that_look_alike_as_bytes_are_told_apart(measures, computed):
    zeros = np.zeros(4, dtype=np.int64)
    ones = [Measure(zeros.astype(kind), np.ones(4), np.arange(4)) for kind in (np.int64, float)]
    estimate_cache.estimates(ones, 4)
    assert computed == [2]
