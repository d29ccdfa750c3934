"""Estimates of stored runs, overall and in slices."""

import pandas as pd

from vlprobe.errors import InvalidInput, NotFound
from vlprobe.perturb.kinds import edits as kind_edits
from vlprobe.registry import natural_order
from vlprobe.storage.store import Store
from vlprobe.types import AVERAGINGS, POOLED
from vlprobe.views import caption_bins, comparisons
from vlprobe.views.runs import QuestionSet

COLUMNS = [
    "model",
    "key",
    "metric",
    "averaging",
    "slice",
    "value",
    "low",
    "high",
    "n_items",
    "n_cases",
    "ties",
]
FIXED_BREAKDOWNS = (
    "subtype",
    comparisons.BREAKDOWN,
    "strength_bin",
    "rule",
)  # in this order; tags follow
UNITS = ("cosine", "spread")
SAME_MEAN = 1e-9  # macro and micro means that differ by less are the same number


def estimates(
    store: Store,
    question_set: QuestionSet,
    breakdown: str = "all",
    averaging: str = POOLED,
    unit: str = "cosine",
) -> pd.DataFrame:
    """Return the mean and interval of each metric and model on one question set, overall or in
    slices.

    Args:
        breakdown: "all", "subtype", "rule", "strength_bin", "comparison", "caption_length",
            "word_frequency" or "tag:NAME".
        averaging: "micro" (all cases pooled) or "macro" (mean of each caption's mean, as the papers
            average); metrics with only one kind of average are returned with that one.
        unit: "cosine", or "spread": cosines divided by the model's similarity spread, comparable
            between models.

    Returns:
        The columns of `EstimateRow`; intervals at 95 %.
    """
    metrics = question_set.metrics
    if breakdown != "all" and breakdown not in (breakdowns := slices(store, question_set)):
        raise NotFound("way to break down", breakdown, ["all", *breakdowns])
    if breakdown == comparisons.BREAKDOWN:
        table = comparisons.comparisons(store, question_set).drop(columns="model")
    elif breakdown in caption_bins.VALUES:
        table = caption_bins.estimates(store, question_set, breakdown)
    else:
        table = _stored(store, question_set, breakdown)
    only_averaging = {
        name: metric.averaging[0]
        for name, metric in metrics.items()
        if averaging not in metric.averaging
    }
    table = table.loc[
        table["averaging"] == [only_averaging.get(name, averaging) for name in table["metric"]]
    ]
    # A run of an older version may have others.
    table = table.loc[table["metric"].isin(list(metrics))]
    runs = pd.DataFrame(
        {
            name: [getattr(run, name) for run in question_set.runs]
            for name in ("key", "model", "spread")
        }
    )
    table = table.merge(runs, on="key")
    if unit == "spread":
        is_cosine = table["metric"].isin(
            [name for name, metric in metrics.items() if metric.unit == "cosine"]
        )
        for column in ("value", "low", "high"):
            table[column] = table[column].where(~is_cosine, table[column] / table["spread"])
    elif unit not in UNITS:
        raise InvalidInput(f"Unknown unit '{unit}'. Expected {' or '.join(UNITS)}.")
    position = {name: index for index, name in enumerate(metrics)}
    own_order = question_set.presentation.value_order

    def slice_order(name: str) -> tuple[int, list[str | int]]:
        known = name in own_order
        return own_order.index(name) if known else len(own_order), natural_order(name)

    places = {
        f"place of {column}": table[column].map(
            {name: place for place, name in enumerate(sorted(set(table[column]), key=order))}
        )
        for column, order in (("model", natural_order), ("slice", slice_order))
    }
    table = table.assign(position=table["metric"].map(position), **places)
    return table.sort_values(["position", *places])[COLUMNS].reset_index(drop=True)


def _stored(store: Store, question_set: QuestionSet, breakdown: str) -> pd.DataFrame:
    with store.cursor() as cursor:
        return cursor.execute(
            "SELECT run AS key, metric, averaging, slice, value, low, high, n_items, n_cases, ties "
            'FROM read_parquet(?) WHERE "by" = ?',
            [store.files([run.key for run in question_set.runs], "estimates"), breakdown],
        ).df()


def averaging_matters(store: Store, question_set: QuestionSet) -> bool:
    """Return whether macro and micro means differ anywhere; they are equal if each group is one
    case.
    """
    of_both = [name for name, metric in question_set.metrics.items() if len(metric.averaging) > 1]
    table = _stored(store, question_set, "all")
    table = table.loc[table["metric"].isin(of_both)]
    pooled, by_group = (
        table.loc[table["averaging"] == averaging].set_index(["key", "metric"])["value"]
        for averaging in AVERAGINGS
    )
    return bool(((pooled - by_group).abs() > SAME_MEAN).any())


def slices(store: Store, question_set: QuestionSet) -> list[str]:
    """List the breakdowns available for the estimates of a question set."""
    with store.cursor() as cursor:
        files = store.files([question_set.runs[0].key], "estimates")
        rows = cursor.execute(
            'SELECT DISTINCT "by" FROM read_parquet(?) WHERE "by" <> \'all\'', [files]
        ).fetchall()
    names = {row[0] for row in rows}
    if comparisons.has_comparisons(store, question_set):
        names.add(comparisons.BREAKDOWN)
    fixed = [name for name in FIXED_BREAKDOWNS if name in names]
    return [*fixed, *caption_bins.VALUES, *sorted(names - set(FIXED_BREAKDOWNS))]


def choices(store: Store, question_set: QuestionSet) -> pd.DataFrame:
    """Return the kinds, subtypes and rules of the cases of a question set, with their numbers of
    cases.
    """
    with store.cursor() as cursor:
        return cursor.execute(
            "SELECT kind, subtype, rule, count(*) AS n_cases FROM read_parquet(?) GROUP BY ALL ORDER BY ALL",
            [store.files([question_set.key], "cases")],
        ).df()


def subtype_counts(store: Store, question_set: QuestionSet, kind: str) -> dict[str, int]:
    """Count the cases of a kind by subtype."""
    counts: dict[str, int] = {}
    for case_kind, subtype, _, n_cases in _counted(store, question_set):
        if case_kind == kind:
            counts[subtype] = counts.get(subtype, 0) + n_cases
    return dict(sorted(counts.items()))


def rule_counts(
    store: Store, question_set: QuestionSet, kind: str, subtype: str = ""
) -> dict[str, int]:
    """Count the cases of a kind, optionally of one subtype, by rule."""
    counts: dict[str, int] = {}
    for case_kind, of_subtype, rule, n_cases in _counted(store, question_set):
        if case_kind == kind and subtype in ("", of_subtype):
            counts[rule] = counts.get(rule, 0) + n_cases
    return dict(sorted(counts.items()))


def _counted(store: Store, question_set: QuestionSet) -> list[tuple[str, str, str, int]]:
    """The rows of `choices`; an unnamed one is called ""."""
    table = choices(store, question_set).fillna({"subtype": "", "rule": ""})
    columns = (table[name].tolist() for name in ("kind", "subtype", "rule", "n_cases"))
    return list(zip(*columns, strict=True))


def mixed_kinds(store: Store, question_set: QuestionSet) -> frozenset[str]:
    """List the kinds of cases that have edits of `perturb.kinds` in addition to LGIP's edits; their
    overall numbers cannot be compared with the paper's.
    """
    asked = choices(store, question_set)
    return frozenset(asked.loc[asked["subtype"].isin(list(kind_edits.NAMES)), "kind"])


def tag_values_by_name(store: Store, question_set: QuestionSet, kind: str) -> dict[str, list[str]]:
    """Return all values of each tag of the cases of a kind, sorted."""
    with store.cursor() as cursor:
        rows = cursor.execute(
            "SELECT entry.key, list(DISTINCT entry.value ORDER BY entry.value) "
            "FROM (SELECT unnest(map_entries(tags)) AS entry FROM read_parquet(?) WHERE kind = ?) "
            "GROUP BY ALL ORDER BY ALL",
            [store.files([question_set.key], "cases"), kind],
        ).fetchall()
    return dict(rows)


def tag_values(store: Store, question_set: QuestionSet) -> list[str]:
    """List the tags of a question set as `name=value`, for tags with at most 60 values."""
    with store.cursor() as cursor:
        rows = cursor.execute(
            'SELECT DISTINCT "by", slice FROM read_parquet(?) WHERE starts_with("by", \'tag:\') ORDER BY ALL',
            [store.files([question_set.runs[0].key], "estimates")],
        ).fetchall()
    return [f"{breakdown.removeprefix('tag:')}={value}" for breakdown, value in rows]
