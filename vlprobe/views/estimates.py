"""Read metric estimates for stored runs, overall and in slices."""

import math
from dataclasses import fields

import numpy as np
import pandas as pd
import pyarrow.parquet as pq

from vlprobe.errors import InvalidInput, NotFound
from vlprobe.metrics import blind, estimate
from vlprobe.metrics.blind import BlindAccuracy, Pair
from vlprobe.perturb.kinds import edits as kind_edits
from vlprobe.probes.prsm_ranking import COMPARISONS, MEASURES, NAMES, TABLE
from vlprobe.registry import natural_order
from vlprobe.storage.store import Store
from vlprobe.types import AVERAGINGS, POOLED
from vlprobe.views import caption_bins, named_slices
from vlprobe.views.records import EstimateRow
from vlprobe.views.runs import QuestionSet
from vlprobe.views.tables import CaseTable, remembered

BREAKDOWN = "comparison"
PROBE = "prsm"
SETTINGS = {  # by name of a comparison: the setting whose versions it compares
    "-".join(pair): setting for setting, pairs in COMPARISONS.items() for pair in pairs
}
COLUMNS = [column.name for column in fields(EstimateRow)]
# In this order; tags follow
FIXED_BREAKDOWNS = ("subtype", BREAKDOWN, "strength_bin", "rule", named_slices.BREAKDOWN)
UNITS = ("cosine", "spread")
SOLVED = 0.1  # a rule without the picture that is wrong less often solves a type of edit
SAME_MEAN = 1e-9  # macro and micro means that differ by less count as equal


def estimates(
    question_set: QuestionSet, breakdown: str = "all", averaging: str = POOLED, unit: str = "cosine"
) -> pd.DataFrame:
    """Return the mean and 95 % interval for each metric and model on one question set, overall or in
    slices.

    Args:
        breakdown: "all", "subtype", "rule", "strength_bin", "comparison", "slice",
            "changed_words", "caption_length", "word_frequency", "text_alone" or "tag:NAME".
        averaging: "micro" (all cases pooled) or "macro" (mean of each caption's mean, as in the
            papers). A metric that has only one kind of average is returned with that average.
        unit: "cosine", or "spread": cosines divided by the model's similarity spread, comparable
            between models.

    Returns:
        A table with the columns of `EstimateRow`.
    """
    metrics = question_set.metrics
    if breakdown != "all" and breakdown not in (breakdowns := slices(question_set)):
        raise NotFound("breakdown", breakdown, ["all", *breakdowns])
    if breakdown == BREAKDOWN:
        table = comparisons(question_set).drop(columns="model")
    elif breakdown == named_slices.BREAKDOWN:
        table = named_slices.estimates(question_set)
    elif breakdown in caption_bins.VALUES:
        table = caption_bins.estimates(question_set, breakdown)
    else:
        table = _read_estimates(question_set, breakdown)
    only_averaging = {
        name: metric.averaging[0]
        for name, metric in metrics.items()
        if averaging not in metric.averaging
    }
    table = table.loc[
        table["averaging"] == [only_averaging.get(name, averaging) for name in table["metric"]]
    ]
    # A run of an older version may have other metrics.
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
    ranks = {name: rank for rank, name in enumerate(question_set.presentation.value_order)}

    def slice_order(name: str) -> tuple[int, list[str | int]]:
        return ranks.get(name, len(ranks)), natural_order(name)

    orders = {
        "metric": list(metrics),
        "model": sorted(set(table["model"]), key=natural_order),
        "slice": sorted(set(table["slice"]), key=slice_order),
    }
    table = table.sort_values(
        list(orders), key=lambda column: pd.Categorical(column, orders[str(column.name)]).codes
    )
    return table[COLUMNS].reset_index(drop=True)


def _read_estimates(question_set: QuestionSet, breakdown: str) -> pd.DataFrame:
    return question_set.store.fetch_table(
        "SELECT run AS key, metric, averaging, slice, value, low, high, n_items, n_cases, ties "
        'FROM read_parquet(?) WHERE "by" = ?',
        [question_set.store.files([run.key for run in question_set.runs], "estimates"), breakdown],
    )


def averaging_matters(question_set: QuestionSet) -> bool:
    """Return whether macro and micro means differ on a question set. They are equal if each group has only one case."""
    of_both = [name for name, metric in question_set.metrics.items() if len(metric.averaging) > 1]
    table = _read_estimates(question_set, "all")
    table = table.loc[table["metric"].isin(of_both)]
    pooled, by_group = (
        table.loc[table["averaging"] == averaging].set_index(["key", "metric"])["value"]
        for averaging in AVERAGINGS
    )
    return bool(((pooled - by_group).abs() > SAME_MEAN).any())


def slices(question_set: QuestionSet) -> list[str]:
    """Return the names of the breakdowns, such as "subtype", that are available for a question set."""
    files = question_set.store.files([question_set.runs[0].key], "estimates")
    rows = question_set.store.fetch_rows(
        'SELECT DISTINCT "by" FROM read_parquet(?) WHERE "by" <> \'all\'', [files]
    )
    names = {row[0] for row in rows}
    if has_comparisons(question_set):
        names.add(BREAKDOWN)
    if named_slices.applicable(question_set.store, question_set.key)[0]:
        names.add(named_slices.BREAKDOWN)
    fixed = [name for name in FIXED_BREAKDOWNS if name in names]
    of_captions = [*caption_bins.VALUES]
    if not caption_bins.guessed_kinds(question_set):
        of_captions.remove(caption_bins.TEXT_ALONE)
    if (caption_bins.bin_codes(question_set.cases, caption_bins.CHANGED) < 0).all():
        of_captions.remove(caption_bins.CHANGED)
    return [*fixed, *of_captions, *sorted(names - set(FIXED_BREAKDOWNS))]


def choices(question_set: QuestionSet) -> pd.DataFrame:
    """Count the cases in a question set for each combination of kind, subtype and rule."""
    return question_set.store.fetch_table(
        "SELECT kind, subtype, rule, count(*) AS n_cases FROM read_parquet(?) GROUP BY ALL ORDER BY ALL",
        [[question_set.cases.path]],
    )


def count_values(question_set: QuestionSet, kind: str, column: str) -> dict[str, int]:
    """Count the cases of one kind for each "subtype" or "rule". Cases without a value are counted under ""."""
    table = choices(question_set).fillna({column: ""})
    return table.loc[table["kind"] == kind].groupby(column)["n_cases"].sum().to_dict()


def mixed_kinds(question_set: QuestionSet) -> frozenset[str]:
    """Return the kinds of cases whose totals are not those of the LGIP paper, because they include edits that the paper
    does not have, or only some types of its flips.
    """
    case_counts = choices(question_set)
    mixed = set(case_counts.loc[case_counts["subtype"].isin(list(kind_edits.NAMES)), "kind"])
    is_chosen = bool(question_set.newest_run["options"].get("flips"))
    return frozenset(mixed | ({"flip", "combined"} if is_chosen else set()))


def tag_values_by_name(question_set: QuestionSet, kind: str) -> dict[str, list[str]]:
    """Return the sorted values of each tag on cases of one kind, by tag name."""
    rows = question_set.store.fetch_rows(
        "SELECT entry.key, list(DISTINCT entry.value ORDER BY entry.value) "
        "FROM (SELECT unnest(map_entries(tags)) AS entry FROM read_parquet(?) WHERE kind = ?) "
        "GROUP BY ALL ORDER BY ALL",
        [[question_set.cases.path], kind],
    )
    return dict(rows)


def tag_values(question_set: QuestionSet) -> list[str]:
    """List all tags in a question set as `name=value`. Tags with more than 60 values are left out."""
    rows = question_set.store.fetch_rows(
        'SELECT DISTINCT "by", slice FROM read_parquet(?) WHERE starts_with("by", \'tag:\') ORDER BY ALL',
        [question_set.store.files([question_set.runs[0].key], "estimates")],
    )
    return [f"{breakdown.removeprefix('tag:')}={value}" for breakdown, value in rows]


def has_comparisons(question_set: QuestionSet) -> bool:
    """Return whether any run on a question set has stored comparisons between query versions.

    Older versions of vlprobe did not store them.
    """
    return question_set.probe == PROBE and any(
        question_set.store.run(run.key).has_table(TABLE) for run in question_set.runs
    )


def comparisons(question_set: QuestionSet, tag: str = "") -> pd.DataFrame:
    """Compute the mean and interval for each comparison between query versions, for each model on a question set.

    Each query counts once, regardless of its number of versions. Queries that belong to the same
    resampling unit are resampled together.

    Args:
        tag: "", or NAME=VALUE to use only queries whose item has this tag.

    Returns:
        A table with the columns of `views.estimates.estimates`, where `slice` names the comparison. Runs that did not
        store comparisons have no rows.
    """
    units = question_set.cases.unit_codes
    counted = np.ones(len(units), dtype=bool)
    if tag:
        name, _, value = tag.partition("=")
        numbers = question_set.cases.numbers("tags[?] = ?", [name, value])
        counted = np.isin(np.arange(len(units)), numbers)
    table = []
    for run in question_set.runs:
        if question_set.store.run(run.key).has_table(TABLE):
            table += _of_run(question_set.store, run.key, run.model, units, counted)
    return pd.DataFrame(table, columns=pd.Index(COLUMNS))


def _of_run(
    store: Store, key: str, model: str, units: np.ndarray, counted: np.ndarray
) -> list[tuple]:
    """Return one run's comparison estimates, from the cases in `counted`. `units` are resampling units by case."""
    columns = ["case", "comparison", *(f"comparison_{measure}" for measure in MEASURES)]
    lists = pq.read_table(store.files([key], TABLE)[0], columns=columns).to_pandas()
    flat = lists.dropna(subset=["comparison"]).explode(columns[1:]).dropna(subset=["comparison"])
    flat = flat.loc[counted[flat["case"].to_numpy()]]
    n_units = int(units.max()) + 1
    rows = []
    for name in [name for name in NAMES if (flat["comparison"] == name).any()]:
        of_name = flat.loc[flat["comparison"] == name]
        item = units[of_name["case"].to_numpy()]
        for measure in MEASURES:
            value = of_name[f"comparison_{measure}"].to_numpy(np.float64)
            mean = estimate.micro(value, np.ones(len(value)), item)
            (interval,) = estimate.estimates([mean], n_units, measure.startswith("local"))
            numbers = (interval.value, interval.low, interval.high, interval.n_items, len(value), 0)
            rows += [
                (model, key, f"prsm_{measure}", averaging, name, *numbers)
                for averaging in ("macro", "micro")
            ]
    return rows


def best_guess(question_set: QuestionSet, kind: str) -> BlindAccuracy | None:
    """Compute the accuracy that can be reached without pictures: the best text-only method in `metrics.blind`.

    Returns:
        None if the cases do not have one picture with a true and a wrong caption, or if there are too
        few pictures.
    """
    return _best_guess(question_set.cases, kind)


@remembered
def _best_guess(table: CaseTable, kind: str) -> BlindAccuracy | None:
    pairs = caption_bins.caption_pairs(table, kind)
    if len(pairs["unit"].unique()) < blind.FEWEST_PICTURES:
        return None
    texts = zip(pairs["unit"].astype(str), pairs["true"], pairs["wrong"], strict=True)
    texts_of_pairs = [Pair(picture, "", true, wrong) for picture, true, wrong in texts]
    return max(blind.check_pairs(texts_of_pairs), key=lambda guess: guess.accuracy.value)


LEAST_DIFFERENT = 0.05


def fewer_words(
    question_set: QuestionSet, kind: str, types: tuple[str, ...] = ()
) -> dict[str, float]:
    """Compute how often choosing the caption with fewer words is wrong, by subtype and named slice ("slice:NAME"). The
    key "" stands for all cases, or for those of the given types. If both captions have the same number of words, the
    choice counts as wrong; the value is NaN if the numbers differ in less than LEAST_DIFFERENT of the cases.

    Only cases with one picture, a true caption and a wrong caption are counted. Keys without such a case are omitted.
    """
    table = _fewer_words(question_set.cases, kind)
    parts = {str(name): part for name, part in table.groupby("subtype", observed=True)}
    for name, numbers in named_slices.of_kind(question_set, kind).items():
        parts[named_slices.PREFIX + name] = table.loc[table.index.isin(numbers)]
    parts[""] = table.loc[table["subtype"].isin(types)] if types else table
    return {
        name: float(np.mean(part["surplus"] >= 0))
        if np.mean(part["surplus"] != 0) >= LEAST_DIFFERENT
        else math.nan
        for name, part in parts.items()
        if len(part)
    }


@remembered
def _fewer_words(table: CaseTable, kind: str) -> pd.DataFrame:
    """Return `subtype` (category) and `surplus`, how many more words the true caption has than the wrong one, for each
    case, with the case numbers as index.
    """
    pairs = caption_bins.caption_pairs(table, kind).set_index("case")
    n_true, n_wrong = (pairs[name].str.split().str.len() for name in ("true", "wrong"))
    return pairs[["subtype"]].astype("category").assign(surplus=n_true - n_wrong)
