"""From scored cases to estimates: every metric, as a whole and in slices, a block of cases at a time."""

from collections import defaultdict
from collections.abc import Iterator, Sequence

import numpy as np
import pandas as pd

from vlprobe.metrics import estimate
from vlprobe.types import Metric

MAX_SLICES = 60  # a tag with more values than this is an identifier, not something to slice by


class Judge:
    """Means and intervals of every metric over a run's cases and over each slice of them, and what they rest on.

    Args:
        metrics: What to compute; each on the rows of its own kinds.
        n_items: Items that were asked about, those without any case included.
        tags: Names of tags to slice by.
    """

    def __init__(self, metrics: Sequence[Metric], n_items: int, tags: Sequence[str]) -> None:
        self.metrics, self.n_items = metrics, n_items
        self._columns = ["subtype", "rule", "strength_bin", *(f"tag:{tag}" for tag in tags)]
        self._sums = estimate.Sums(n_items)
        # Of each metric, what it is sliced by, and the number of cases and of ties in each slice.
        self._slices = [defaultdict(dict, {"all": {"": np.zeros(2, dtype=np.int64)}}) for _ in metrics]
        self._by_item = {
            (metric.name, averaging): np.zeros((2, n_items)) for metric in metrics for averaging in metric.averaging
        }

    def add(self, rows: pd.DataFrame) -> None:
        """Judges a block of cases.

        Args:
            rows: One row a case with `item_code`, `group_code` (integers, which may be others in another block),
                `kind`, `subtype`, `rule`, `margin`, what the metrics ask for, and one column `tag:NAME` for each tag.
                A margin of NaN is a case that the model cannot answer: it counts for no metric but those that are
                `model_free`. All cases of a group are in one block.
        """
        for metric, slices in zip(self.metrics, self._slices, strict=True):
            own = rows[rows["kind"].isin(metric.kinds)]
            if len(own):
                self._add(metric, slices, own)

    def _add(self, metric: Metric, slices: dict[str, dict], own: pd.DataFrame) -> None:
        value = metric.value(own)
        if not metric.model_free:
            value = np.where(own["margin"].isna(), np.nan, value)
        weight = metric.weight(own) if metric.weight else np.ones(len(own))
        tie = metric.tied(own) if metric.tied else np.zeros(len(own), dtype=bool)
        items, item = np.unique(own["item_code"].to_numpy(), return_inverse=True)
        groups = pd.factorize(own["group_code"])[0]
        n_items, n_groups = len(items), int(groups.max()) + 1
        for by, code, names in self._sliced(metric, slices, own):
            in_slice = code >= 0
            code = code[in_slice]
            for name, *more in zip(names, np.bincount(code), np.bincount(code, tie[in_slice]), strict=True):
                slices[by][name] = slices[by].get(name, 0) + np.array(more, dtype=np.int64)
            cell = code * n_items + item[in_slice]  # of a table of slices by items
            for averaging in metric.averaging:
                measure = (
                    estimate.micro(value[in_slice], weight[in_slice], cell)
                    if averaging == "micro"
                    else estimate.macro(value[in_slice], weight[in_slice], code * n_groups + groups[in_slice], cell)
                )
                total, weighed = (
                    np.bincount(measure.item, column, len(names) * n_items).reshape(len(names), n_items)
                    for column in (measure.weight * measure.value, measure.weight)
                )
                self._sums.add([(metric.name, averaging, by, name) for name in names], total, weighed, items)
                if by == "all":
                    self._by_item[metric.name, averaging][:, items] += total[0], weighed[0]

    def _sliced(
        self, metric: Metric, slices: dict[str, dict], rows: pd.DataFrame
    ) -> Iterator[tuple[str, np.ndarray, list]]:
        """What to slice by, the code of each row's slice in this block (-1: none), and the names of these slices."""
        yield "all", np.zeros(len(rows), dtype=np.int64), [""]
        for by in self._columns:
            if by not in rows or len(slices[by]) > MAX_SLICES:
                continue
            code, names = pd.factorize(rows[by])
            fresh = {name: np.zeros(2, dtype=np.int64) for name in names if name not in slices[by]}
            if len(slices[by]) + len(fresh) <= MAX_SLICES:
                yield by, code, list(names)
                continue
            for name in slices[by]:
                for averaging in metric.averaging:
                    self._sums.drop((metric.name, averaging, by, name))
            slices[by] |= fresh

    def estimates(self) -> pd.DataFrame:
        """One row for each metric, averaging and slice.

        Returns:
            `metric`, `averaging`, `by`, `slice`, `value`, `low`, `high`, `n_items`, `n_cases`, `ties` (cases
            in which what this metric compares is equal).
        """
        found = []
        for metric, slices in zip(self.metrics, self._slices, strict=True):
            for by in ["all", *self._columns]:
                names = slices[by] if len(slices[by]) <= MAX_SLICES else []
                for name in sorted(name for name in names if name != "" or by == "all"):
                    for averaging in metric.averaging:
                        e = self._sums.estimate((metric.name, averaging, by, name), metric.unit == "rate")
                        label = (metric.name, averaging, by, str(name))
                        found.append((*label, e.value, e.low, e.high, e.n_items, *slices[by][name].tolist()))
        columns = ["metric", "averaging", "by", "slice", "value", "low", "high", "n_items", "n_cases", "ties"]
        return pd.DataFrame(found, columns=columns)

    def sums(self) -> pd.DataFrame:
        """One row for each metric, averaging and item that counts, so that models can be compared item by item.

        Returns:
            `metric`, `averaging`, `item_code`, `total` (of weight times value), `weight`; the value of a metric is the
            sum of totals over the sum of weights.
        """
        found = []
        for (metric, averaging), (total, weight) in self._by_item.items():
            there = np.flatnonzero(weight > 0).astype(np.int32)
            columns = {"item_code": there, "total": total[there], "weight": weight[there]}
            found.append(pd.DataFrame({"metric": metric, "averaging": averaging, **columns}))
        return pd.concat(found, ignore_index=True)
