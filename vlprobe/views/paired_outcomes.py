"""Compare two models case by case: how many cases fool both, one or neither model, and both margins for each case."""

from dataclasses import replace

import numpy as np
import pandas as pd

from vlprobe.errors import NotFound
from vlprobe.views.cases import outcomes, passing
from vlprobe.views.filter import Filter
from vlprobe.views.paired_tests import select_runs
from vlprobe.views.runs import QuestionSet
from vlprobe.views.unit_counts import BUCKETS

POINTS = 3000  # in a scatter plot: more take long to send and cover each other


def bucket(case_filter: Filter, name: str) -> Filter:
    """Return the filter for one of BUCKETS or for "all".

    If only the second model is fooled, the two models are swapped, so that the fooled one comes first.
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


def buckets(question_set: QuestionSet, case_filter: Filter) -> dict[str, int]:
    """Count a filter's cases in each of BUCKETS and in "all", ignoring the outcomes that the filter selects."""
    counts = {}
    for second_outcome in ("fooled", "held", ""):
        of_second = replace(case_filter, other_outcome=second_outcome)
        counts[second_outcome] = outcomes(question_set, of_second)
    by_bucket = {
        name: counts[second_outcome][outcome] for name, (outcome, second_outcome) in BUCKETS.items()
    }
    return by_bucket | {"all": counts[""]["all"]}


def scatter(
    question_set: QuestionSet, first_model: str, second_model: str, kind: str, limit: int = POINTS
) -> tuple[pd.DataFrame, int]:
    """Return both models' margins on the cases of a kind, and the number of cases with both margins.

    If there are more than `limit` cases, a reproducible uniform sample is returned: the cases whose
    numbers have the smallest hashes.

    Returns:
        A table of case, margin, other_margin, subtype, source and target, sorted by case; and the
        total number of cases.
    """
    select_runs(question_set, (first_model, second_model))
    paired = Filter(first_model, kind, outcome="all", other=second_model, sort="difference")
    numbers, margins, other_margins = passing(question_set, paired)
    points = pd.DataFrame({"case": numbers, "margin": margins, "other_margin": other_margins})
    points = points[np.isfinite(points["margin"]) & np.isfinite(points["other_margin"])]
    with question_set.store.cursor() as cursor:
        cursor.register("points", points)
        sample = cursor.execute(
            'SELECT "case", margin, other_margin, subtype, source, target '
            'FROM read_parquet(?) JOIN points USING ("case") ORDER BY hash("case") LIMIT ?',
            [[question_set.cases.path], limit],
        ).df()
    return sample.sort_values("case", ignore_index=True), len(points)
