"""In-memory cache for the results of `estimate.estimates` and `estimate.differences`.

A page that compares four models requests the same measures for each selection of models. The result for a measure, or
for a pair of measures, does not depend on the others. The keys are digests of the numbers themselves, so entries never
become invalid.
"""

import hashlib
from collections.abc import Hashable, Sequence
from dataclasses import replace

import numpy as np

from vlprobe.metrics import estimate
from vlprobe.metrics.estimate import Difference
from vlprobe.storage.memory import SingleFlightCache
from vlprobe.types import Estimate, Measure

MOST_KEPT = 20_000  # estimates, which are a few numbers each
_estimates = SingleFlightCache(MOST_KEPT)
_differences = SingleFlightCache(MOST_KEPT)


def estimates(measures: Sequence[Measure], n_items: int, are_rates: bool = False) -> list[Estimate]:
    """Return the same as `estimate.estimates`, but compute each measure only once."""

    def compute(indices: list[int]) -> list[Estimate]:
        return estimate.estimates([measures[index] for index in indices], n_items, are_rates)

    keys = [(n_items, are_rates, _digest(measure)) for measure in measures]
    return _estimates.get_many(keys, compute)


def differences(
    pairs: Sequence[tuple[Measure, Measure]], n_items: int, are_rates: Sequence[bool] = ()
) -> list[Difference]:
    """Return the same as `estimate.differences`, but compute each pair of measures, in either order, only once."""
    rates = list(are_rates) or [False] * len(pairs)
    digests = [(_digest(first), _digest(second)) for first, second in pairs]
    are_turned = [first > second for first, second in digests]

    def compute(indices: list[int]) -> list[Difference]:
        in_order = [
            (pairs[index][are_turned[index]], pairs[index][not are_turned[index]])
            for index in indices
        ]
        return estimate.differences(in_order, n_items, [rates[index] for index in indices])

    keys: list[Hashable] = [
        (n_items, is_rate, *sorted(pair)) for pair, is_rate in zip(digests, rates, strict=True)
    ]
    return [
        _turned(difference) if is_turned else difference
        for difference, is_turned in zip(
            _differences.get_many(keys, compute), are_turned, strict=True
        )
    ]


def _turned(difference: Difference) -> Difference:
    """Reverse a difference: the second model's mean minus the first's."""
    value, low, high = -difference.value, -difference.high, -difference.low
    return replace(difference, value=value, low=low, high=high)


def _digest(measure: Measure) -> bytes:
    """Hash a measure's numbers, including their types and shapes."""
    digest = hashlib.sha256()
    for column in (measure.value, measure.weight, measure.item):
        values = np.ascontiguousarray(column)
        digest.update(f"{values.dtype.str}{values.shape}".encode())
        digest.update(values.data)
    return digest.digest()
