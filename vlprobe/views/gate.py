"""Regression checks that compare a run with a baseline run, for training pipelines and CI."""

import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass

from vlprobe import registry
from vlprobe.errors import InvalidInput, NotFound
from vlprobe.metrics.estimate import FEWEST_ITEMS
from vlprobe.types import POOLED
from vlprobe.views import runs
from vlprobe.views.paired_tests import NOT_OF_MODELS, DifferenceRow, compare_metrics
from vlprobe.views.records import records
from vlprobe.views.runs import QuestionSet


@dataclass(frozen=True, slots=True)
class Promise:
    """A limit on how much a metric may get worse, and the result of checking it. Unknown numbers are NaN."""

    metric: str
    max_drop: float  # in the metric's unit
    base: float  # value of the baseline run
    value: float
    drop: float  # how much worse the run is; below 0 if it is better
    low: float  # 95 %
    high: float
    n_items: int
    is_strict: bool  # whether the limit is broken unless the whole interval is within it

    @property
    def outcome(self) -> str:
        """Outcome of the check: "kept", "broken", "unknown", or "open" if the interval includes the limit."""
        if math.isnan(self.drop) or math.isnan(self.low) or math.isnan(self.high):
            return "unknown"
        if self.low > self.max_drop:
            return "broken"
        return "kept" if self.high <= self.max_drop else "open"

    @property
    def is_broken(self) -> bool:
        """Return whether the limit counts as broken. Unknown counts as broken; open only if `is_strict` is set."""
        return self.outcome in ("broken", "unknown") or (self.is_strict and self.outcome == "open")

    @property
    def sentence(self) -> str:
        """The result of the check in one line of text."""
        if self.outcome == "unknown":
            reason = "" if math.isnan(self.drop) else f" on fewer than {FEWEST_ITEMS} pictures"
            return (
                f"{self.metric}: unknown{reason}; allowed to get worse by at most {self.max_drop:g}"
            )
        sign, word = (1, "worse") if self.drop > 0 else (-1, "better")
        low, high = sorted((sign * self.low, sign * self.high))
        return (
            f"{self.metric}: {self.outcome}; {word} by {abs(self.drop):.4f} ({low:.4f} to {high:.4f}) on "
            f"{self.n_items:,} items, from {self.base:.4f} to {self.value:.4f}; allowed: at most {self.max_drop:g}"
        )


def promises(
    question_set: QuestionSet,
    max_drops: Mapping[str, float],
    averaging: str = POOLED,
    is_strict: bool = False,
    named_slice: str = "",
) -> list[Promise]:
    """Compare a run with a baseline run, and check each limit in the given order.

    Args:
        question_set: A question set with two runs: the baseline, then the run to check.
        max_drops: How much each metric may get worse, 0 or more, by metric name.
        is_strict: Whether a limit with an inconclusive result counts as broken.
        named_slice: Name of a slice whose cases are used; "" means all cases.

    Raises:
        NotFound: the probe does not have a metric.
        InvalidInput: a metric has no better direction or does not depend on the model, or a limit
            is negative.
    """
    metrics = question_set.metrics
    for name, limit in max_drops.items():
        if name not in metrics:
            raise NotFound(f"metric of {question_set.probe}", name, metrics)
        if metrics[name].direction == "none" or name in NOT_OF_MODELS:
            raise InvalidInput(
                f"'{name}' cannot regress, because neither higher nor lower values are better. "
                "Choose another metric."
            )
        if not (math.isfinite(limit) and limit >= 0):
            raise InvalidInput(
                f"'{name}={limit}' is not a valid limit. Expected a number of 0 or more."
            )
    models, only = question_set.models, tuple(max_drops)
    table = compare_metrics(question_set, models, averaging, only=only, named_slice=named_slice)
    rows = {row.metric: row for row in records(DifferenceRow, table)}
    checked = []
    for name, limit in max_drops.items():
        row, drops = rows[name], (rows[name].difference, rows[name].low, rows[name].high)
        if metrics[name].direction == "up":
            drops = (-row.difference, -row.high, -row.low)
        checked.append(Promise(name, limit, row.base, row.value, *drops, row.n_items, is_strict))
    return checked


def probes_with(names: Collection[str]) -> list[str]:
    """Return the probes that measure all of the given metrics. Raises NotFound for an unknown metric, and InvalidInput
    if no probe measures all of them.
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
            f"No probe has all of these metrics: {', '.join(names)}. Use metrics of one "
            "probe at a time."
        )
    return probes
