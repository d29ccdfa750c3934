"""Two to four models side by side on the same cases: paired differences of metrics with p-values.

They come from the sums that each run stores, item by item; `views.paired_outcomes` counts outcomes.
"""

from collections.abc import Mapping, Sequence
from dataclasses import fields

import numpy as np
import pandas as pd

from vlprobe.errors import InvalidInput
from vlprobe.metrics import estimate, estimate_cache
from vlprobe.storage.store import Store
from vlprobe.types import POOLED, Measure, Metric
from vlprobe.views import sums
from vlprobe.views.records import DifferenceRow, RunRow, records
from vlprobe.views.runs import QuestionSet

SIGNIFICANCE = 0.05  # Holm's p must stay below it, or the two models are tied
NOT_OF_MODELS = ("words_t2t_accuracy",)  # a property of the texts: the same for every model
COMPARED = [column.name for column in fields(DifferenceRow)]


def compare(
    store: Store,
    question_set: QuestionSet,
    models: tuple[str, ...],
    averaging: str = POOLED,
    unit: str = "cosine",
    only: tuple[str, ...] = (),
) -> pd.DataFrame:
    """Every metric of each model against the first of them, over the items that both answered
    alike.

    Both sides rest on the same items: one of which the two models answered different numbers of
    cases is left out, and so is one that only one of them could answer, or that counts for only one
    of them (a drop rate counts what a model finds in the clean gallery). Else a model that gives no
    answer to the harder half would look better than itself. Where both answered as many of an
    item's cases, they are taken to be the same ones.

    Args:
        store: Where results are.
        question_set: The models and their runs.
        models: The baseline, then the models that are compared with it.
        averaging: One of AVERAGINGS; metrics that have only one of them are given in that one.
        unit: "cosine", or "spread": each model's cosines divided by its own spread, which counts as
            known exactly; in spreads of 0 nothing is known.
        only: Metrics that are compared; without any, all.

    Returns:
        The columns of `DifferenceRow`, one row per metric and model: base (the baseline's value on
        these items), value (the model's), difference (value minus base), low, high (95 %), p
        (two-sided), p_holm (adjusted for all rows), verdict (of the model: "better", "worse",
        "differs" where no direction is better, "tied", or "" where nothing is known), n_items (that
        count for both), left_out (items that one of them answered and that do not take part),
        base_alone and base_items (the baseline's value and items, whatever the model answered).
    """
    if unit not in ("cosine", "spread"):
        raise InvalidInput(f"Unit '{unit}' is not known. Expected cosine or spread.")
    baseline, *others = runs = select_runs(question_set, models)
    n_items = baseline.n_units
    metrics = {
        name: metric for name, metric in question_set.metrics.items() if name not in NOT_OF_MODELS
    }
    compared = {name: metric for name, metric in metrics.items() if not only or name in only}
    averagings = {
        name: averaging if averaging in metric.averaging else metric.averaging[0]
        for name, metric in compared.items()
    }
    counting = _counting_metrics(metrics, tuple(compared))
    wanted = {*averagings.items(), *((name, POOLED) for name in counting.values())}
    measures = {run.key: sums.measures(store, run.key, wanted) for run in runs}
    counts = {
        (run.key, name): _answer_counts(measures[run.key][counting[name], POOLED], n_items)
        for run in runs
        for name in compared
    }
    rows, pairs, item_counts = [], [], []
    for name, metric in compared.items():
        scaled = unit == "spread" and metric.unit == "cosine"
        scales = {run.key: (run.spread or np.nan) if scaled else 1.0 for run in runs}
        averaged = averagings[name]
        baseline_measure = measures[baseline.key][name, averaged]
        base_alone = _mean(baseline_measure) / scales[baseline.key]
        base_items = _answer_counts(baseline_measure, n_items) > 0
        for run in others:
            counted = base_items, _answer_counts(measures[run.key][name, averaged], n_items) > 0
            answered_alike = counts[run.key, name] == counts[baseline.key, name]
            selected = answered_alike & counted[0] & counted[1]
            value, base = (
                _select_items(measures[side.key][name, averaged], selected, scales[side.key])
                for side in (run, baseline)
            )
            rows.append((name, averaged, baseline.model, run.model, _mean(base), _mean(value)))
            pairs.append((value, base))
            left_out = int((counted[0] | counted[1]).sum() - selected.sum())
            item_counts.append((left_out, base_alone, int(base_items.sum())))
    differences = estimate_cache.differences(
        pairs,
        n_items,
        [metrics[row[0]].unit == "rate" for row in rows],
    )
    table = pd.DataFrame(rows, columns=pd.Index(COMPARED[:6]))
    for column, name in (
        ("difference", "value"),
        ("low", "low"),
        ("high", "high"),
        ("p", "p"),
        ("n_items", "n_items"),
    ):
        table[column] = [getattr(difference, name) for difference in differences]
    table[COMPARED[-3:]] = pd.DataFrame(item_counts, columns=pd.Index(COMPARED[-3:]))
    table["p_holm"] = estimate.holm(table["p"].tolist())
    table["verdict"] = ""
    table = table.loc[:, COMPARED]
    return table.assign(
        verdict=[
            verdict(
                metrics[row.metric],
                row.difference,
                row.p_holm,
            )
            for row in records(DifferenceRow, table)
        ]
    )


def select_runs(question_set: QuestionSet, models: tuple[str, ...]) -> list[RunRow]:
    """The runs of these models, in order, each once. Raises NotFound and, for fewer than two,
    InvalidInput.
    """
    runs = [question_set.run(name) for name in dict.fromkeys(models)]
    if len(runs) < 2:
        raise InvalidInput(f"To compare takes two models. Given: {', '.join(models) or 'none'}.")
    return runs


def _counting_metrics(metrics: Mapping[str, Metric], names: Sequence[str]) -> dict[str, str]:
    """The metric whose weights say how many cases of an item each of these judges.

    A metric that weighs cases does not tell an answer of weight 0 from none, so another metric of
    its kinds counts.
    """
    unweighted = {
        metric.kinds: name
        for name, metric in reversed(list(metrics.items()))
        if metric.weight is None
    }
    return {
        name: name if metrics[name].weight is None else unweighted[metrics[name].kinds]
        for name in names
    }


def _answer_counts(measure: Measure, n_items: int) -> np.ndarray:
    """Count how many cases of each item were answered, shape (n_items,), by a micro mean's measure."""
    return np.bincount(measure.item, measure.weight, n_items)


def _select_items(measure: Measure, selected: np.ndarray, scale: float) -> Measure:
    """A row for each selected item, in units of `scale`; no row if that is NaN.

    Args:
        measure: A row an item.
        selected: bool of shape (n_items,).
        scale: What values are divided by.
    """
    items = np.flatnonzero(selected & ~np.isnan(scale))
    value, weight = np.zeros((2, len(selected)))
    value[measure.item], weight[measure.item] = measure.value / scale, measure.weight
    return Measure(value[items], weight[items], items)


def _mean(measure: Measure) -> float:
    return (
        float(
            np.average(
                measure.value,
                weights=measure.weight,
            )
        )
        if measure.weight.any()
        else np.nan
    )


def verdict(metric: Metric, difference: float, p: float) -> str:
    """Return the verdict of an adjusted p on a model at this distance from the baseline: a word of `compare`."""
    if np.isnan(p):
        return ""
    if p >= SIGNIFICANCE:
        return "tied"
    if metric.direction == "none":
        return "differs"
    return "better" if (difference > 0) == (metric.direction == "up") else "worse"
