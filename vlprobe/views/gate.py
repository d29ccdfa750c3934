"""Regression checks of a run against another one, for training pipelines and CI."""

import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass

from vlprobe import registry
from vlprobe.errors import InvalidInput, NotFound
from vlprobe.metrics.estimate import FEWEST_ITEMS
from vlprobe.storage.store import Store
from vlprobe.types import POOLED
from vlprobe.views import runs
from vlprobe.views.paired_tests import NOT_OF_MODELS, DifferenceRow, compare_metrics
from vlprobe.views.records import records
from vlprobe.views.runs import QuestionSet


@dataclass(frozen=True, slots=True)
class Promise:
    """A metric that may get worse by so much and no more; unknown numbers are NaN."""

    metric: str
    max_drop: float  # in the metric's unit
    base: float  # of the other run
    value: float
    drop: float  # how much worse the run is; below 0 it is better
    low: float  # 95 %
    high: float
    n_items: int
    is_strict: bool  # broken unless the whole interval is within the limit

    @property
    def outcome(self) -> str:
        """Kept, broken, unknown, or open: the interval lies on both sides of the limit."""
        if math.isnan(self.drop) or math.isnan(self.low) or math.isnan(self.high):
            return "unknown"
        if self.low > self.max_drop:
            return "broken"
        return "kept" if self.high <= self.max_drop else "open"

    @property
    def is_broken(self) -> bool:
        """Return whether it counts as broken; an unknown one does."""
        return self.outcome in ("broken", "unknown") or (self.is_strict and self.outcome == "open")

    @property
    def sentence(self) -> str:
        """One line."""
        if self.outcome == "unknown":
            reason = "" if math.isnan(self.drop) else f" on fewer than {FEWEST_ITEMS} pictures"
            return (
                f"{self.metric}: unknown{reason}; allowed to get worse by at most {self.max_drop:g}"
            )
        return (
            f"{self.metric}: {self.outcome}; worse by {self.drop:.4f} ({self.low:.4f} to {self.high:.4f}) on "
            f"{self.n_items:,} items, from {self.base:.4f} to {self.value:.4f}; allowed: at most {self.max_drop:g}"
        )


def promises(
    store: Store,
    question_set: QuestionSet,
    max_drops: Mapping[str, float],
    averaging: str = POOLED,
    is_strict: bool = False,
) -> list[Promise]:
    """Evaluate each condition, in their order.

    Args:
        store: Where results are.
        question_set: Two runs: the one that is compared with, then the one that is judged.
        max_drops: By metric, how much worse it may be, 0 or more.
        averaging: "macro" or "micro".
        is_strict: Count a condition that the interval leaves undecided as broken.

    Raises:
        NotFound: a metric is not one of the probe's.
        InvalidInput: a metric of which no direction is better, or that no model moves; a limit below 0.
    """
    metrics = question_set.metrics
    for name, limit in max_drops.items():
        if name not in metrics:
            raise NotFound(f"metric of {question_set.probe}", name, metrics)
        if metrics[name].direction == "none" or name in NOT_OF_MODELS:
            raise InvalidInput(
                f"'{name}' cannot drop: no value of it is better. Name another metric."
            )
        if not (math.isfinite(limit) and limit >= 0):
            raise InvalidInput(
                f"'{name}={limit}' is not a valid limit. Expected a number of 0 or more."
            )
    table = compare_metrics(
        store, question_set, question_set.models, averaging, only=tuple(max_drops)
    )
    rows = {row.metric: row for row in records(DifferenceRow, table)}
    return [
        _promise(rows[name], metrics[name].direction == "up", limit, is_strict)
        for name, limit in max_drops.items()
    ]


def _promise(row: DifferenceRow, up_is_better: bool, limit: float, is_strict: bool) -> Promise:
    """One difference: the run minus the other one."""
    drop, low, high = (
        (-row.difference, -row.high, -row.low)
        if up_is_better
        else (row.difference, row.low, row.high)
    )
    return Promise(row.metric, limit, row.base, row.value, drop, low, high, row.n_items, is_strict)


def probes_with(names: Collection[str]) -> list[str]:
    """The probes that have all of these metrics. Raises NotFound where there is none of that name, and
    InvalidInput where no probe has all.
    """
    by_probe = {probe: runs.metrics(probe) for probe in registry.names("probes")}
    for name in names:
        if not any(name in metrics for metrics in by_probe.values()):
            metric_names = dict.fromkeys(
                metric for metrics in by_probe.values() for metric in metrics
            )
            raise NotFound("metric", name, metric_names)
    probes = [probe for probe, metrics in by_probe.items() if set(names) <= set(metrics)]
    if not probes:
        raise InvalidInput(
            f"No probe has all of these metrics: {', '.join(names)}. Hold a run to those of one probe at a time."
        )
    return probes
