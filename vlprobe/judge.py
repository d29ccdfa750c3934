"""From scored cases to estimates: every metric, as a whole and in slices, macro and micro."""

from collections.abc import Iterator, Sequence

import numpy as np
import pandas as pd

from vlprobe import estimate
from vlprobe.types import Measure, Metric

MAX_SLICES = 60  # a tag with more values than this is an identifier, not something to slice by


def judge(
    rows: pd.DataFrame, metrics: Sequence[Metric], n_items: int, tags: Sequence[str]
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Means and intervals of every metric over a run's cases and over each slice of them, and what they rest on.

    Args:
        rows: One row a case with `item_code`, `group_code` (integers), `kind`, `subtype`, `rule`, `margin`, what the
            metrics ask for, and one column `tag:NAME` for each of `tags`. A margin of NaN is a case that the model
            cannot answer: it counts for no metric.
        metrics: What to compute; each on the rows of its own kinds.
        n_items: Items that were asked about, those without any case included.
        tags: Names of tags to slice by.

    Returns:
        Estimates, one row for each metric, averaging and slice: `metric`, `averaging`, `by`, `slice`, `value`, `low`,
        `high`, `n_items`, `n_cases`, `ties` (cases with a margin of exactly 0, unless 0 is the aim). And sums, one row
        for each metric, averaging and item that counts: `metric`, `averaging`, `item_code`, `total` (of weight times
        value), `weight`; the value of a metric is the sum of totals over the sum of weights, so that two models on the
        same questions can be compared item by item.
    """
    labels, measures, sums = [], [], []
    for metric in metrics:
        own = rows[rows["kind"].isin(metric.kinds)]
        value = metric.value(own) if len(own) else np.empty(0)
        value = np.where(own["margin"].isna(), np.nan, value)
        weight = metric.weight(own) if metric.weight and len(own) else np.ones(len(own))
        item, group = own["item_code"].to_numpy(), own["group_code"].to_numpy()
        zero = metric.ties & (own["margin"].to_numpy() == 0)
        for by, name, mask in _slices(own, tags):
            for averaging in metric.averaging:
                labels.append((metric.name, averaging, by, name, int(mask.sum()), int(zero[mask].sum())))
                measures.append(_measure(averaging, value[mask], weight[mask], group[mask], item[mask]))
                if by == "all":
                    sums.append(_sums(metric.name, averaging, measures[-1], n_items))
    columns = ["metric", "averaging", "by", "slice", "n_cases", "ties"]
    table = pd.DataFrame(labels, columns=columns)
    found = pd.DataFrame(
        [(e.value, e.low, e.high, e.n_items) for e in estimate.estimates(measures, n_items)],
        columns=["value", "low", "high", "n_items"],
    )
    return pd.concat([table[columns[:4]], found, table[columns[4:]]], axis=1), pd.concat(sums, ignore_index=True)


def _sums(metric: str, averaging: str, measure: Measure, n_items: int) -> pd.DataFrame:
    weight = np.bincount(measure.item, measure.weight, n_items)
    total = np.bincount(measure.item, measure.weight * measure.value, n_items)
    there = np.flatnonzero(weight > 0).astype(np.int32)
    columns = {"item_code": there, "total": total[there], "weight": weight[there]}
    return pd.DataFrame({"metric": metric, "averaging": averaging, **columns})


def _measure(averaging: str, value: np.ndarray, weight: np.ndarray, group: np.ndarray, item: np.ndarray) -> Measure:
    if averaging == "micro":
        return estimate.micro(value, weight, item)
    return estimate.macro(value, weight, np.unique(group, return_inverse=True)[1], item)


def _slices(rows: pd.DataFrame, tags: Sequence[str]) -> Iterator[tuple[str, str, np.ndarray]]:
    yield "all", "", np.ones(len(rows), dtype=bool)
    for by in ["subtype", "rule", "strength_bin", *(f"tag:{tag}" for tag in tags)]:
        if by not in rows:
            continue
        codes, names = pd.factorize(rows[by], sort=True)
        if len(names) <= MAX_SLICES:
            for code, name in enumerate(names):
                if name != "":
                    yield by, str(name), codes == code
