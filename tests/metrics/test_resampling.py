"""The draws of all resamples: cached ones equal new ones, and callers cannot change them."""

import numpy as np
import pytest

from vlprobe.metrics import resampling


@pytest.mark.parametrize("n_items", [1, 3, 70, 1100])
def test_cached_draws_match_those_of_each_resample(n_items: int):
    every = resampling.every_resample(n_items)
    assert every.shape == (n_items, resampling.RESAMPLES)
    for number in (0, 49, 50, resampling.RESAMPLES - 1):
        drawn = np.random.default_rng([n_items, number]).integers(n_items, size=n_items)
        assert [np.count_nonzero(drawn == item) for item in range(n_items)] == every[
            :, number
        ].tolist()
    assert (every.sum(axis=0, dtype=np.int64) == n_items).all()


def test_draws_of_few_items_are_cached_and_those_of_many_are_not(monkeypatch):
    monkeypatch.setattr(resampling, "MOST_KEPT", 41)
    assert resampling.every_resample(41) is resampling.every_resample(41)
    assert resampling.every_resample(42) is not resampling.every_resample(42)


def test_cached_draws_are_read_only():
    with pytest.raises(ValueError, match="read-only"):
        resampling.every_resample(5)[0, 0] = 1
