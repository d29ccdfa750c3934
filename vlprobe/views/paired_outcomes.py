"""Outcomes of two models on the same cases: which of the two is fooled, with a p-value, and their
margins.

They come from the scores that each run stores, case by case; `views.compare` compares metrics.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from vlprobe.errors import NotFound
from vlprobe.metrics import estimate, estimate_cache
from vlprobe.storage.store import Store
from vlprobe.types import Measure
from vlprobe.views.cases import outcomes
from vlprobe.views.compare import select_runs
from vlprobe.views.filter import Filter
from vlprobe.views.runs import QuestionSet
from vlprobe.views.unit_counts import BUCKETS, unit_counts

POINTS = 3000  # of a scatter: more take long to send and cover each other


@dataclass(frozen=True)
class PairedOutcomes:
    """Outcomes of two models on the cases of one kind, and whether one is fooled more often than
    the other.
    """

    counts: dict[str, int]  # by the names of BUCKETS
    tied_first: int  # ties, which are among the fooled
    tied_second: int
    unknown: int  # cases that a model could not answer: in no bucket
    difference: float  # of the shares of wrong answers, first minus second
    p: float
    # One answer of each model to an item, so that McNemar's exact test holds; else items are
    # exchanged.
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
    """Count how many cases that pass a filter fool both of its models, one or none, whatever outcomes it
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
    table = unit_counts(store, question_set.key, runs, kind)
    unit_codes, _ = pd.factorize(table["unit"], sort=True)
    by_unit = {name: np.bincount(unit_codes, table[f"{name}_1"]) for name in BUCKETS}
    counts = {name: int(values.sum()) for name, values in by_unit.items()}
    answered = np.sum(list(by_unit.values()), axis=0)
    has_answers = answered > 0
    answered = answered[has_answers]
    asked_once = all(run.n_orders == 1 for run in runs)
    independent = _is_independent(answered) and asked_once
    wrong = [float(np.sum(table[f"{name}_1"])) for name in ("base_believes", "model_believes")]
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
        first, second = (
            Measure(
                np.bincount(unit_codes, table[f"{name}_1"])[has_answers] / answered,
                answered,
                np.arange(len(answered)),
            )
            for name in ("base_believes", "model_believes")
        )
        p = estimate_cache.differences([(first, second)], len(answered))[0].p
    n_cases, tied_first, tied_second = (
        int(np.sum(table[name])) for name in ("n_cases", "tied_0", "tied_1")
    )
    return PairedOutcomes(
        counts,
        tied_first=tied_first,
        tied_second=tied_second,
        unknown=n_cases - sum(counts.values()),
        difference=(wrong[0] - wrong[1]) / max(sum(counts.values()), 1),
        p=p,
        independent=independent,
    )


def _is_independent(answered: np.ndarray) -> bool:
    """Return whether no item has two cases: then McNemar's exact test holds."""
    return bool((answered == 1).all())


def paired_differences(
    pairs: Sequence[tuple[Measure, Measure]], n_items: int, are_rates: bool
) -> list[estimate.Difference]:
    """`estimate.differences` with McNemar's exact p where it holds, as in `paired_outcomes`.

    Args:
        pairs: Two models' shares of lies believed, or movements, a row an item that both answered;
            the weight is the number of its cases.
        n_items: Number of items in the question set.
        are_rates: Whether the values are shares.
    """
    if not n_items:
        return [estimate.Difference() for _ in pairs]
    differences = estimate_cache.differences(pairs, n_items, [are_rates] * len(pairs))
    for index, (measure, second_measure) in enumerate(pairs):
        values = np.concatenate([measure.value, second_measure.value])
        is_binary = are_rates and bool(np.isin(values, (0.0, 1.0)).all())
        if is_binary and differences[index].n_items > 1 and _is_independent(measure.weight):
            difference = measure.value - second_measure.value
            p = estimate.mcnemar(int((difference > 0).sum()), int((difference < 0).sum()))
            differences[index] = replace(differences[index], p=p)
    return differences


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
    joined = (  # isfinite, not isnan: see `showcase.lie_counts`
        "read_parquet(?) AS one POSITIONAL JOIN (SELECT margin AS other_margin FROM read_parquet(?)) AS two "
        "WHERE kind = ? AND isfinite(margin) AND isfinite(other_margin)"
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
