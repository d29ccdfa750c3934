"""Tables that set two to four models side by side on the same cases: differences with their chance, and who is fooled.

Differences of metrics come from the sums that each run keeps, item by item; differences of outcomes from the scores.
"""

from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from vlprobe.errors import InvalidInput, NotFound
from vlprobe.metrics import estimate
from vlprobe.storage.store import Store
from vlprobe.types import Measure, Metric
from vlprobe.views import rows as views_rows
from vlprobe.views.cases import outcomes
from vlprobe.views.filter import Filter
from vlprobe.views.runs import metrics, runs_of

REAL = 0.05  # what Holm's p must stay below, or the two models are tied
POINTS = 3000  # of a scatter: more take long to send and cover each other
NOT_OF_MODELS = ("words_t2t_accuracy",)  # a property of the texts: the same for every model
BUCKETS = {  # outcome of the first model, outcome of the second
    "both_fooled": ("fooled", "fooled"),
    "only_first": ("fooled", "held"),
    "only_second": ("held", "fooled"),
    "both_held": ("held", "held"),
}
COMPARED = [
    *("metric", "averaging", "baseline", "model", "base", "value", "difference", "low", "high"),
    *("p", "p_holm", "verdict", "n_items", "left_out", "base_alone", "base_items"),
]


@dataclass(frozen=True)
class Outcomes:
    """Who of two models is fooled by the cases of one kind, and whether one is fooled more often than the other."""

    counts: dict[str, int]  # by the names of BUCKETS
    tied_first: int  # ties, which are among the fooled
    tied_second: int
    unknown: int  # cases that a model could not answer: in no bucket
    p: float
    independent: bool  # one case an item, so that McNemar's exact test holds; else items are exchanged, not cases


def compare(
    store: Store,
    case_key: str,
    models: tuple[str, ...],
    averaging: str = "macro",
    unit: str = "cosine",
    only: tuple[str, ...] = (),
) -> pd.DataFrame:
    """Every metric of each model against the first of them, over the items that both answered alike.

    Both sides rest on the same items: one of which the two models answered different numbers of cases is left out, and
    so is one that only one of them could answer. Else a model that gives no answer to the harder half would look better
    than itself. Where both answered as many of an item's cases, they are taken to be the same ones.

    Args:
        store: Where results are.
        case_key: The question set.
        models: The baseline, then the models that are compared with it.
        averaging: "macro" or "micro"; metrics that know only the other are given in that one.
        unit: "cosine", or "spread": each model's cosines divided by its own spread, which counts as known exactly; in
            spreads of 0 nothing is known.
        only: Metrics that are compared; without any, all.

    Returns:
        A row a metric and model: metric, averaging, baseline, model, base (the baseline's value on these items), value
        (the model's), difference (value minus base), low, high (95 %), p (two-sided), p_holm (adjusted for all rows),
        verdict (of the model: "better", "worse", "differs" where no direction is better, "tied", or "" where nothing is
        known), n_items (that count for both), left_out (items that one of them answered and that do not take part),
        base_alone and base_items (the baseline's value and items, whatever the model answered).
    """
    if unit not in ("cosine", "spread"):
        raise InvalidInput(f"Unit '{unit}' is not known. Expected cosine or spread.")
    own = _runs(store, case_key, models)
    known = {name: metric for name, metric in metrics(own["probe"].iloc[0]).items() if name not in NOT_OF_MODELS}
    chosen_metrics = {name: one for name, one in known.items() if not only or name in only}
    by = {name: averaging if averaging in one.averaging else one.averaging[0] for name, one in chosen_metrics.items()}
    n_items = store.run(own["key"].iloc[0]).manifest()["n_units"]
    measures, counts = _measures(store, own, by), _counts(store, own, known, tuple(chosen_metrics), n_items)
    rows, pairs, more = [], [], []
    for name, metric in chosen_metrics.items():
        scaled = unit == "spread" and metric.unit == "cosine"
        scale = own["spread"].replace(0, np.nan) if scaled else dict.fromkeys(models, 1.0)
        whole = measures[own.loc[models[0], "key"], name]
        alone = (_mean(whole) / scale[models[0]], int((np.bincount(whole.item, whole.weight, n_items) > 0).sum()))
        for model in models[1:]:
            both = (model, models[0])
            answered = np.array([counts[own.loc[one, "key"], name] for one in both])
            alike = (answered[0] == answered[1]) & (answered[0] > 0)
            sides = tuple(_cut(measures[own.loc[one, "key"], name], alike, scale[one]) for one in both)
            rows.append((name, by[name], models[0], model, _mean(sides[1]), _mean(sides[0])))
            pairs.append(sides)
            more.append((int(answered.any(axis=0).sum() - alike.sum()), *alone))
    found = estimate.differences(pairs, n_items, [known[row[0]].unit == "rate" for row in rows])
    table = pd.DataFrame(rows, columns=COMPARED[:6])
    for column, name in (("difference", "value"), ("low", "low"), ("high", "high"), ("p", "p"), ("n_items", "n_items")):
        table[column] = [getattr(one, name) for one in found]
    table[COMPARED[-3:]] = pd.DataFrame(more, columns=COMPARED[-3:])
    table["p_holm"] = estimate.holm(table["p"])
    table["verdict"] = [verdict(known[row.metric], row.difference, row.p_holm) for row in table.itertuples()]
    return table[COMPARED]


def _runs(store: Store, case_key: str, models: tuple[str, ...]) -> pd.DataFrame:
    own = runs_of(store, case_key).set_index("model")
    for name in models:
        if name not in own.index:
            raise NotFound("model in this question set", name, own.index)
    if len(set(models)) < 2:
        raise InvalidInput(f"To compare takes two models. Given: {', '.join(models) or 'none'}.")
    return own.loc[list(dict.fromkeys(models))]


def _measures(store: Store, own: pd.DataFrame, by: dict[str, str]) -> dict[tuple[str, str], Measure]:
    """What each run's means rest on, a row an item, by run and metric."""
    measures = {}
    with store.cursor() as cursor:
        for run in own["key"]:
            files = store.files([run], "sums")
            for metric, averaging in by.items():  # one at a time: the names would be read for millions of rows
                found = cursor.execute(
                    "SELECT total / weight AS mean, weight, item_code FROM read_parquet(?) "
                    "WHERE metric = ? AND averaging = ?",
                    [files, metric, averaging],
                ).fetchnumpy()
                measures[run, metric] = Measure(found["mean"], found["weight"], found["item_code"])
    return measures


def _counts(
    store: Store, own: pd.DataFrame, known: dict[str, Metric], chosen_metrics: tuple[str, ...], n_items: int
) -> dict[tuple[str, str], np.ndarray]:
    """How many cases of each item a run answered that a metric judges, shape (n_items,), by run and metric.

    A metric that weighs cases does not tell an answer of weight 0 from none, so another of its kinds is asked.
    """
    plain = {metric.kinds: name for name, metric in reversed(known.items()) if metric.weight is None}
    by = {name: name if known[name].weight is None else plain[known[name].kinds] for name in chosen_metrics}
    pooled = _measures(store, own, dict.fromkeys(by.values(), "micro"))
    dense = {key: np.bincount(one.item, one.weight, n_items) for key, one in pooled.items()}
    return {(run, name): dense[run, by[name]] for run in own["key"] for name in chosen_metrics}


def _cut(measure: Measure, alike: np.ndarray, scale: float) -> Measure:
    """A row for each of the items that two models answered alike, in units of `scale`; none if that is unknown."""
    items = np.flatnonzero(alike & ~np.isnan(scale))
    value, weight = np.zeros((2, len(alike)))
    value[measure.item], weight[measure.item] = measure.value / scale, measure.weight
    return Measure(value[items], weight[items], items)


def _mean(measure: Measure) -> float:
    return float(np.average(measure.value, weights=measure.weight)) if measure.weight.any() else np.nan


def verdict(metric: Metric, difference: float, p: float) -> str:
    """What an adjusted p says of a model that is so far from another: one of the words of `compare`."""
    if np.isnan(p):
        return ""
    if p >= REAL:
        return "tied"
    if metric.direction == "none":
        return "differs"
    return "better" if (difference > 0) == (metric.direction == "up") else "worse"


def bucket(chosen: Filter, name: str) -> Filter:
    """The filter of one of BUCKETS, or of "all"; its `model` is who is fooled, where only one of the two is."""
    if name == "all":
        return replace(chosen, outcome="all", other_outcome="")
    if name not in BUCKETS:
        raise NotFound("bucket", name, ["all", *BUCKETS])
    first, second = BUCKETS[name]
    if name != "only_second":
        return replace(chosen, outcome=first, other_outcome=second)
    turned = tuple((y, x) for x, y in chosen.within)
    return replace(chosen, model=chosen.other, other=chosen.model, within=turned, outcome=second, other_outcome=first)


def buckets(store: Store, case_key: str, chosen: Filter) -> dict[str, int]:
    """How many cases that pass a filter fool both of its models, one or none, whatever outcomes it names; and "all"."""
    sides = {
        second: outcomes(store, case_key, replace(chosen, other_outcome=second)) for second in ("fooled", "held", "")
    }
    return {name: sides[second][first] for name, (first, second) in BUCKETS.items()} | {"all": sides[""]["all"]}


def who_is_fooled(store: Store, case_key: str, first: str, second: str, kind: str) -> Outcomes:
    """Two models' outcomes on the cases of one kind, and whether they differ by more than chance.

    Cases of one picture are not independent. So McNemar's exact test is for sets in which every item has one case of
    this kind; else the p-value is that of `estimate.differences`, in which items exchange all their answers at once.
    """
    own = _runs(store, case_key, (first, second))
    facts = store.run(own["key"].iloc[0]).manifest()
    item, files = "item", [store.files([key], "scores") for key in own["key"]]
    joined = "read_parquet(?) AS one POSITIONAL JOIN (SELECT margin AS other FROM read_parquet(?)) AS two"
    if facts["n_units"] < facts["n_items"]:  # items that share a picture are one observation, as in the estimates
        unit = views_rows.unit(store, case_key)
        item, joined = "unit", f"{joined} POSITIONAL JOIN (SELECT {unit} AS unit FROM read_parquet(?)) AS three"
        files.append(store.files([case_key], "cases"))
    words = {"fooled": "{} <= 0", "held": "{0} > 0 AND NOT isnan({0})"}
    counted = [
        f"count(*) FILTER ({words[one].format('margin')} AND {words[two].format('other')}) AS {name}"
        for name, (one, two) in BUCKETS.items()
    ]
    with store.cursor() as cursor:
        table = cursor.execute(
            f"SELECT {', '.join(counted)}, count(*) AS cases, count(*) FILTER (margin = 0) AS tied_first, "
            f"count(*) FILTER (other = 0) AS tied_second FROM {joined} WHERE kind = ? GROUP BY {item} ORDER BY {item}",
            [*files, kind],
        ).df()
    counts = {name: int(table[name].sum()) for name in BUCKETS}
    unknown = int(table["cases"].sum()) - sum(counts.values())
    tied = [int(table[name].sum()) for name in ("tied_first", "tied_second")]
    known = table[list(BUCKETS)].sum(axis=1).to_numpy(dtype=np.float64)
    table, known = table[known > 0], known[known > 0]
    independent = bool((known == 1).all())
    if independent:
        p = estimate.mcnemar(counts["only_first"], counts["only_second"]) if len(known) else np.nan
    else:
        p = estimate.differences(
            [
                tuple(
                    Measure((table[name] + table["both_held"]).to_numpy() / known, known, np.arange(len(known)))
                    for name in ("only_second", "only_first")  # what only the other gets wrong, a model holds
                )
            ],
            len(known),
        )[0].p
    return Outcomes(counts, *tied, unknown, p, independent)


def scatter(
    store: Store, case_key: str, first: str, second: str, kind: str, most: int = POINTS
) -> tuple[pd.DataFrame, int]:
    """Margins of two models on the cases of one kind, and how many cases have both.

    With more cases than `most`, those with the smallest hash of their number: the same ones every time, and none is
    more likely to be among them than another.

    Returns:
        case, margin, other_margin, subtype, source, target, by case; and the number of all.
    """
    own = _runs(store, case_key, (first, second))
    files = [store.files([key], "scores") for key in own["key"]]
    chosen = (
        "read_parquet(?) AS one POSITIONAL JOIN (SELECT margin AS other_margin FROM read_parquet(?)) AS two "
        "WHERE kind = ? AND NOT isnan(margin) AND NOT isnan(other_margin)"
    )
    with store.cursor() as cursor:
        total = cursor.execute(f"SELECT count(*) FROM {chosen}", [*files, kind]).fetchall()[0][0]
        points = cursor.execute(
            f'SELECT one."case", margin, other_margin, subtype FROM {chosen} ORDER BY hash(one."case") LIMIT ?',
            [*files, kind, most],
        ).df()
        words = cursor.execute(
            'SELECT "case", source, target FROM read_parquet(?) WHERE "case" IN (SELECT unnest(?::BIGINT[]))',
            [store.files([case_key], "cases"), points["case"].tolist()],
        ).df()
    return points.merge(words, on="case").sort_values("case", ignore_index=True), total
