"""Leaderboard of models on several question sets, with the headline metric of each set."""

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import pandas as pd

from vlprobe import registry
from vlprobe.errors import NotFound
from vlprobe.metrics.tie_groups import group_letters
from vlprobe.storage.store import Store
from vlprobe.types import POOLED, Metric
from vlprobe.views import estimates
from vlprobe.views.paired_tests import fit_models, metric_tie_groups
from vlprobe.views.records import EstimateRow, records
from vlprobe.views.runs import QuestionSet

NOT_RUN, NO_VALUE = "not run", "no value"
CONTROL, FAILED = "control", "failed a check"


@dataclass(frozen=True)
class LeaderboardCell:
    """The headline metric of one model on one question set.

    Attributes:
        estimate: Value and 95% interval; None if the model has no value.
        group: Letters of the groups of tied models; models that share a letter are tied.
        note: Why the value or the group is missing; "" if both are present.
    """

    estimate: EstimateRow | None = None
    group: str = ""
    note: str = ""


@dataclass(frozen=True)
class LeaderboardColumn:
    """A column of the leaderboard: a question set, and the metric that ranks its models."""

    question_set: QuestionSet
    metric: Metric
    cells: Mapping[str, LeaderboardCell]  # by model

    def rank(self, model: str) -> tuple[bool, float]:
        """Return a sort key for a model: the best model sorts first, models without a tie group or a value last."""
        cell = self.cells[model]
        sign = -1 if self.metric.direction == "up" else 1
        return bool(cell.note), sign * cell.estimate.value if cell.estimate else 0.0


def leaderboard(
    store: Store,
    question_sets: Sequence[QuestionSet],
    models: Collection[str] = (),
    averaging: str = POOLED,
) -> list[LeaderboardColumn]:
    """Return one leaderboard column per question set, with a cell for every model that answered any of the question
    sets.

    The metric of a question set is the first headline metric of its probe that has a value for some model. Ties are
    computed among all models on the question set, even if only some models are listed.

    Args:
        store: The store with the results.
        question_sets: The question sets, in the order of the columns.
        models: Models to include; empty means all.
        averaging: As in `estimates.estimates`.

    Raises:
        NotFound: A model answered none of the question sets.
    """
    known = dict.fromkeys(name for each in question_sets for name in each.ordered_models)
    for model in models:
        if model not in known:
            raise NotFound("model on these question sets", model, known)
    listed = list(models or known)
    columns = []
    for question_set in question_sets:
        rows = records(EstimateRow, estimates.estimates(store, question_set, averaging=averaging))
        metric = _headline_metric(question_set, rows)
        groups = metric_tie_groups(store, question_set, averaging, only=(metric.name,))
        letters = group_letters(groups.get(metric.name, []))
        fit = fit_models(store, question_set)
        estimate_of = {
            row.model: row
            for row in rows
            if row.metric == metric.name and not math.isnan(row.value)
        }
        cells = {}
        for model in listed:
            if model not in question_set.models:
                cells[model] = LeaderboardCell(note=NOT_RUN)
            elif model not in estimate_of:
                cells[model] = LeaderboardCell(note=NO_VALUE)
            else:
                unfit = CONTROL if registry.is_control(model) else FAILED
                note = "" if model in fit else unfit
                cells[model] = LeaderboardCell(estimate_of[model], letters.get(model, ""), note)
        columns.append(LeaderboardColumn(question_set, metric, cells))
    return columns


def _headline_metric(question_set: QuestionSet, rows: Sequence[EstimateRow]) -> Metric:
    metrics = question_set.metrics
    known = {row.metric for row in rows if not math.isnan(row.value)}
    names = [*question_set.presentation.main_metrics, *metrics]
    names = [name for name in names if name in metrics and metrics[name].direction != "none"]
    return metrics[next((name for name in names if name in known), names[0])]


def ranked_models(columns: Sequence[LeaderboardColumn]) -> list[str]:
    """Sort models, best first, by the first question set. The next sets decide between ties and missing values."""
    models = list(columns[0].cells) if columns else []
    return sorted(models, key=lambda model: [column.rank(model) for column in columns])


def table(columns: Sequence[LeaderboardColumn]) -> pd.DataFrame:
    """Return one row per model and question set. Unknown numbers are NaN, and `note` has the reason."""
    rows = []
    for model in ranked_models(columns):
        for column in columns:
            cell, question_set = column.cells[model], column.question_set
            numbers = ("value", "low", "high", "n_items", "n_cases")
            rows.append(
                {
                    "model": model,
                    "set": question_set.key,
                    "dataset": question_set.runs[0].dataset,
                    "probe": question_set.probe,
                    "metric": column.metric.name,
                    "better": column.metric.direction,
                    **{
                        name: getattr(cell.estimate, name) if cell.estimate else math.nan
                        for name in numbers
                    },
                    "group": cell.group,
                    "note": cell.note,
                }
            )
    return pd.DataFrame(rows)
