"""Power of comparisons: the smallest difference that a question set can detect, and how many
pictures would be needed to detect a given difference.
"""

import math
from collections.abc import Sequence

import pandas as pd

from vlprobe.metrics import power
from vlprobe.types import POOLED, Metric
from vlprobe.views import estimates
from vlprobe.views.paired_tests import compare_metrics
from vlprobe.views.runs import QuestionSet

COLUMNS = ["metric", "unit", "baseline", "model", "n_items", "error", "detectable", "pictures"]


def plan(
    question_set: QuestionSet,
    models: Sequence[str],
    detect: float = math.nan,
    n_tests: int = 0,
    averaging: str = POOLED,
) -> pd.DataFrame:
    """Compute the power of comparing the first model with each other model, for each metric.

    The standard error is computed from paired differences by picture. If only one model is given, a second model with
    the same variance and independent errors is assumed. This overestimates the error for models that find the same
    pictures hard.

    Args:
        models: The baseline, then the models to compare with it, if any.
        detect: The difference to detect, in the unit of each metric; NaN omits the column `pictures`.
        n_tests: Number of tests to correct for; 0 means the number of rows of the table.

    Returns:
        A table with COLUMNS, one row per metric and model with a known error. The column `pictures` is present only if
        `detect` is given.
    """
    metrics = question_set.metrics
    if len(models) > 1:
        table, scale = compare_metrics(question_set, tuple(models), averaging), 1.0
    else:
        table = estimates.estimates(question_set, "all", averaging).assign(baseline="")
        table, scale = table.loc[table["model"].isin(models)], math.sqrt(2)
        is_binary = [_is_binary(question_set, metrics[name]) for name in table["metric"]]
        table["n_answers"] = table["n_cases"].where(is_binary, 0)
    columns = ["metric", "baseline", "model", "n_items", "low", "high", "n_answers"]
    known = table.dropna(subset=["high"])[columns]
    n_tests = n_tests or len(known)
    rows = []
    for metric, baseline, model, n_items, low, high, n_answers in known.itertuples(index=False):
        error = scale * power.standard_error(low, high)
        least = power.detectable(error, n_items, n_tests, n_answers)
        row = [metric, metrics[metric].unit, baseline, model, n_items, error, least]
        if not math.isnan(detect):
            row.append(power.pictures_needed(detect, error, n_items, n_tests, n_answers))
        rows.append(row)
    return pd.DataFrame(rows, columns=pd.Index(COLUMNS[: 7 if math.isnan(detect) else 8]))


def _is_binary(question_set: QuestionSet, metric: Metric) -> bool:
    """Return whether each case is right or wrong in a metric: shares that are not the size of a movement."""
    kinds = map(question_set.presentation.kind, metric.kinds)
    return metric.is_share and not any(kind.is_movement for kind in kinds)
