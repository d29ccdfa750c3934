"""Evaluate every metric on scored cases, overall and in slices, one block of cases at a time."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
import pandas as pd

from vlprobe.metrics import estimate
from vlprobe.types import Metric

MAX_SLICES = 60  # a tag with more values than this is an identifier and does not define slices


# Numbers of cases and ties, int64 of shape (2,), by slicing column and by value.
Slices = dict[str, dict[str, np.ndarray]]


def metrics_on(scale: str, metrics: Sequence[Metric]) -> list[Metric]:
    """Adapt metrics to a scale of scores. On an unknown scale, and for verdicts, metrics in cosine units return NaN."""
    if scale not in ("unknown", "verdict"):
        return list(metrics)
    return [
        replace(metric, value=lambda rows: np.full(len(rows), np.nan))
        if metric.unit == "cosine" and not metric.model_free
        else metric
        for metric in metrics
    ]


class Judge:
    """Computes the mean, interval and counts for every metric, over all cases of a run and in each slice.

    Args:
        metrics: Metrics to compute. Each is computed on cases of the kinds that it supports.
        n_items: Total number of items, including items whose cases are all excluded.
        tags: Names of the tags to slice by.
    """

    def __init__(self, metrics: Sequence[Metric], n_items: int, tags: Sequence[str]) -> None:
        self.metrics, self.n_items = metrics, n_items
        self._columns = ["subtype", "rule", "strength_bin", *(f"tag:{tag}" for tag in tags)]
        self._sums = estimate.Sums(n_items)
        self._slices: list[Slices] = [
            defaultdict(dict, {"all": {"": np.zeros(2, dtype=np.int64)}}) for _ in metrics
        ]  # one per metric
        # For each metric with equal weight for all values of a column: the measures for these values.
        self._strata: dict[str, set[tuple[str, str]]] = defaultdict(set)
        self._by_item = {
            (metric.name, averaging): np.zeros((2, n_items))
            for metric in metrics
            for averaging in metric.averaging
        }

    def add(self, rows: pd.DataFrame) -> None:
        """Evaluate all metrics on a block of cases, and add the results to the running sums.

        Args:
            rows: One row per case with `item_code`, `group_code` (integers, which may differ
                between blocks), `kind`, `subtype`, `rule`, `margin`, the columns that the metrics
                use, and one column `tag:NAME` per tag. A margin of NaN marks a case that the model
                cannot answer; only `model_free` metrics count it. All cases of a group must be in
                the same block.
        """
        for metric, slices in zip(self.metrics, self._slices, strict=True):
            of_kinds = rows.loc[rows["kind"].isin(metric.kinds), :]
            if len(of_kinds):
                self._add(metric, slices, of_kinds)

    def _add(self, metric: Metric, slices: Slices, rows: pd.DataFrame) -> None:
        """Evaluate one metric on rows with kinds that it supports, and add the results to the running sums."""
        value = metric.value(rows)
        if not metric.model_free:
            value = np.where(rows["margin"].isna(), np.nan, value)
        weight = metric.weight(rows) if metric.weight else np.ones(len(rows))
        has_weight = weight > 0
        is_tied = metric.tied(rows) if metric.tied else np.zeros(len(rows), dtype=bool)
        items, item = np.unique(rows["item_code"].to_numpy(), return_inverse=True)
        groups = pd.factorize(rows["group_code"])[0]
        n_items, n_groups = len(items), int(groups.max()) + 1
        if metric.even_over:
            self._add_strata(metric, rows[metric.even_over].to_numpy(), value, item, items)
        for column, code, names in self._sliced(metric, slices, rows):
            in_slice = code >= 0
            code = code[in_slice]
            counts = np.stack(
                [
                    np.bincount(code, has_weight[in_slice]),
                    np.bincount(code, (is_tied & has_weight)[in_slice]),
                ],
                axis=1,
            ).astype(np.int64)
            for name, cases_and_ties in zip(names, counts, strict=True):
                slices[column][name] = slices[column].get(name, 0) + cases_and_ties
            cell = code * n_items + item[in_slice]  # cell in a table of slices by items
            for averaging in metric.averaging:
                measure = (
                    estimate.micro(value[in_slice], weight[in_slice], cell)
                    if averaging == "micro"
                    else estimate.macro(
                        value[in_slice], weight[in_slice], code * n_groups + groups[in_slice], cell
                    )
                )
                totals, weights = (
                    np.bincount(measure.item, summand, len(names) * n_items).reshape(
                        len(names), n_items
                    )
                    for summand in (measure.weight * measure.value, measure.weight)
                )
                self._sums.add(
                    [(metric.name, averaging, column, name) for name in names],
                    totals,
                    weights,
                    items,
                )
                if column == "all":
                    self._by_item[metric.name, averaging][:, items] += totals[0], weights[0]

    def _add_strata(
        self,
        metric: Metric,
        column: np.ndarray,
        value: np.ndarray,
        item: np.ndarray,
        items: np.ndarray,
    ) -> None:
        """Add rows to the running sums of a metric that gives all values of a column the same weight."""
        code, names = pd.factorize(column)
        cell = code * len(items) + item
        is_known = ~np.isnan(value)
        total, weight, cases = (
            np.bincount(cell, summand, len(names) * len(items)).reshape(len(names), -1)
            for summand in (np.where(is_known, value, 0.0), is_known, np.ones(len(value)))
        )
        values = [(metric.name, name) for name in names]
        self._sums.add(values, total, weight, items)
        self._sums.add([(*stratum, "cases") for stratum in values], cases, cases, items)
        self._strata[metric.name].update(values)

    def _sliced(
        self, metric: Metric, slices: Slices, rows: pd.DataFrame
    ) -> Iterator[tuple[str, np.ndarray, list]]:
        """Yield each column to slice by, each row's slice number in this block (-1: none), and the slice names."""
        yield "all", np.zeros(len(rows), dtype=np.int64), [""]
        for column in self._columns:
            counts = slices[column]
            if column not in rows or len(counts) > MAX_SLICES:
                continue
            code, names = pd.factorize(rows[column])
            new_counts = {name: np.zeros(2, dtype=np.int64) for name in names if name not in counts}
            if len(counts) + len(new_counts) <= MAX_SLICES:
                yield column, code, list(names)
                continue
            for name in counts:
                for averaging in metric.averaging:
                    self._sums.drop((metric.name, averaging, column, name))
            counts |= new_counts

    def estimates(self) -> pd.DataFrame:
        """Return a table with one row per metric, averaging and slice.

        Returns:
            `metric`, `averaging`, `by`, `slice`, `value`, `low`, `high`, `n_items`, `n_cases`
            (cases with a weight above 0), `ties` (cases with a weight above 0 in which the scores
            that the metric compares are equal).
        """
        for metric in self.metrics:
            for averaging in metric.averaging if metric.name in self._strata else ():
                strata = [
                    (values, (*values, "cases")) for values in sorted(self._strata[metric.name])
                ]
                self._sums.count_evenly((metric.name, averaging, "all", ""), strata)
        table = []
        for metric, slices in zip(self.metrics, self._slices, strict=True):
            for column in ["all", *self._columns]:
                counts = slices[column] if len(slices[column]) <= MAX_SLICES else {}
                for name in sorted(name for name in counts if name != "" or column == "all"):
                    for averaging in metric.averaging:
                        label = (metric.name, averaging, column, str(name))
                        mean = self._sums.estimate(
                            (metric.name, averaging, column, name), metric.is_share
                        )
                        numbers = (mean.value, mean.low, mean.high, mean.n_items)
                        table.append((*label, *numbers, *counts[name].tolist()))
        names = [
            "metric",
            "averaging",
            "by",
            "slice",
            "value",
            "low",
            "high",
            "n_items",
            "n_cases",
            "ties",
        ]
        return pd.DataFrame(table, columns=pd.Index(names))

    def sums(self) -> pd.DataFrame:
        """Return a table with one row per metric, averaging and item, for comparing models by item.

        Returns:
            `metric`, `averaging`, `item_code`, `total` (sum of weight times value), `weight`; the
            value of a metric is the sum of its totals divided by the sum of its weights.
        """
        tables = []
        for (metric, averaging), (total, weight) in self._by_item.items():
            items = np.flatnonzero(weight > 0).astype(np.int32)
            columns = {"item_code": items, "total": total[items], "weight": weight[items]}
            tables.append(pd.DataFrame({"metric": metric, "averaging": averaging, **columns}))
        return pd.concat(tables, ignore_index=True)
