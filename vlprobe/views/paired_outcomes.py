"""Outcomes of two models on the same cases: which of the two is fooled, with a p-value, and their
margins.

They come from the scores that each run stores, case by case; `views.compare` compares metrics.
"""

from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from vlprobe.errors import NotFound
from vlprobe.metrics import estimate
from vlprobe.storage.store import Store
from vlprobe.types import Measure
from vlprobe.views import rows as views_rows
from vlprobe.views.cases import outcomes
from vlprobe.views.compare import select_runs
from vlprobe.views.filter import Filter
from vlprobe.views.runs import QuestionSet

POINTS = 3000  # of a scatter: more take long to send and cover each other
BUCKETS = {  # outcome of the first model, outcome of the second
    "both_fooled": ("fooled", "fooled"),
    "only_first": ("fooled", "held"),
    "only_second": ("held", "fooled"),
    "both_held": ("held", "held"),
}


@dataclass(frozen=True)
class PairedOutcomes:
    """Outcomes of two models on the cases of one kind, and whether one is fooled more often than
    the other.
    """

    counts: dict[str, int]  # by the names of BUCKETS
    tied_first: int  # ties, which are among the fooled
    tied_second: int
    unknown: int  # cases that a model could not answer: in no bucket
    p: float
    # One case an item, so that McNemar's exact test holds; else items are exchanged, not cases.
    independent: bool


def bucket(case_filter: Filter, name: str) -> Filter:
    """The filter of one of BUCKETS, or of "all"; its `model` is the fooled one, where only one of
    the two is.
    """
    if name == "all":
        return replace(case_filter, outcome="all", other_outcome="")
    if name not in BUCKETS:
        raise NotFound("bucket", name, ["all", *BUCKETS])
    outcome, second_outcome = BUCKETS[name]
    if name != "only_second":
        return replace(case_filter, outcome=outcome, other_outcome=second_outcome)
    return replace(
        case_filter,
        model=case_filter.other,
        other=case_filter.model,
        within=tuple((y, x) for x, y in case_filter.within),
        outcome=second_outcome,
        other_outcome=outcome,
    )


def buckets(store: Store, question_set: QuestionSet, case_filter: Filter) -> dict[str, int]:
    """How many cases that pass a filter fool both of its models, one or none, whatever outcomes it
    names; and "all".
    """
    counts = {
        second_outcome: outcomes(
            store,
            question_set,
            replace(case_filter, other_outcome=second_outcome),
        )
        for second_outcome in ("fooled", "held", "")
    }
    by_bucket = {
        name: counts[second_outcome][outcome] for name, (outcome, second_outcome) in BUCKETS.items()
    }
    return by_bucket | {"all": counts[""]["all"]}


def paired_outcomes(
    store: Store, question_set: QuestionSet, first_model: str, second_model: str, kind: str
) -> PairedOutcomes:
    """Two models' outcomes on the cases of one kind, and whether they differ by more than chance.

    Cases of one picture are not independent. So McNemar's exact test is for sets in which every
    item has one case of this kind; else the p-value is that of `estimate.differences`, in which
    items exchange all their answers at once.
    """
    runs = select_runs(question_set, (first_model, second_model))
    unit, files = "item", [store.files([run.key], "scores") for run in runs]
    joined = "read_parquet(?) AS one POSITIONAL JOIN (SELECT margin AS other FROM read_parquet(?)) AS two"
    # Items that share a picture are one observation, as in the estimates.
    if runs[0].n_units < runs[0].n_items:
        expression = views_rows.unit_expression(store, question_set.key)
        unit = "unit"
        joined = (
            f"{joined} POSITIONAL JOIN (SELECT {expression} AS unit FROM read_parquet(?)) AS three"
        )
        files.append(store.files([question_set.key], "cases"))
    conditions = {"fooled": "{} <= 0", "held": "{0} > 0 AND NOT isnan({0})"}
    bucket_counts = [
        f"count(*) FILTER ({conditions[outcome].format('margin')} AND {conditions[second_outcome].format('other')}) "
        f"AS {name}"
        for name, (outcome, second_outcome) in BUCKETS.items()
    ]
    with store.cursor() as cursor:
        table = cursor.execute(
            f"SELECT {', '.join(bucket_counts)}, count(*) AS cases, count(*) FILTER (margin = 0) AS tied_first, "
            f"count(*) FILTER (other = 0) AS tied_second FROM {joined} WHERE kind = ? GROUP BY {unit} ORDER BY {unit}",
            [*files, kind],
        ).df()
    totals = {
        name: int(table[name].to_numpy().sum())
        for name in (*BUCKETS, "cases", "tied_first", "tied_second")
    }
    counts = {name: totals[name] for name in BUCKETS}
    answered = table[list(BUCKETS)].sum(axis=1).to_numpy(dtype=np.float64)
    has_answers = answered > 0
    answered = answered[has_answers]
    independent = bool((answered == 1).all())
    if independent:
        p = (
            estimate.mcnemar(
                counts["only_first"],
                counts["only_second"],
            )
            if len(answered)
            else np.nan
        )
    else:
        held = {
            name: table[name].to_numpy()[has_answers]
            for name in ("only_first", "only_second", "both_held")
        }
        first_held, second_held = (  # what only the other gets wrong, a model holds
            Measure((held[name] + held["both_held"]) / answered, answered, np.arange(len(answered)))
            for name in ("only_second", "only_first")
        )
        p = estimate.differences([(first_held, second_held)], len(answered))[0].p
    return PairedOutcomes(
        counts,
        tied_first=totals["tied_first"],
        tied_second=totals["tied_second"],
        unknown=totals["cases"] - sum(counts.values()),
        p=p,
        independent=independent,
    )


def scatter(
    store: Store,
    question_set: QuestionSet,
    first_model: str,
    second_model: str,
    kind: str,
    limit: int = POINTS,
) -> tuple[pd.DataFrame, int]:
    """Margins of two models on the cases of one kind, and how many cases have both.

    With more cases than `limit`, those with the smallest hash of their number: the same ones every
    time, and none is more likely to be among them than another.

    Returns:
        case, margin, other_margin, subtype, source, target, by case; and the number of all.
    """
    files = [
        store.files([run.key], "scores")
        for run in select_runs(question_set, (first_model, second_model))
    ]
    joined = (
        "read_parquet(?) AS one POSITIONAL JOIN (SELECT margin AS other_margin FROM read_parquet(?)) AS two "
        "WHERE kind = ? AND NOT isnan(margin) AND NOT isnan(other_margin)"
    )
    with store.cursor() as cursor:
        total = cursor.execute(f"SELECT count(*) FROM {joined}", [*files, kind]).fetchall()[0][0]
        points = cursor.execute(
            f'SELECT one."case", margin, other_margin, subtype FROM {joined} ORDER BY hash(one."case") LIMIT ?',
            [*files, kind, limit],
        ).df()
        words = cursor.execute(
            'SELECT "case", source, target FROM read_parquet(?) WHERE "case" IN (SELECT unnest(?::BIGINT[]))',
            [store.files([question_set.key], "cases"), points["case"].tolist()],
        ).df()
    return points.merge(words, on="case").sort_values("case", ignore_index=True), total
