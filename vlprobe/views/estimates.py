"""Estimates of stored runs, whole and in slices."""

import pandas as pd

from vlprobe.errors import InvalidInput, NotFound
from vlprobe.storage.store import Store
from vlprobe.views.runs import metrics, runs_of


def estimates(
    store: Store, case_key: str, by: str = "all", averaging: str = "macro", unit: str = "cosine", like: str = ""
) -> pd.DataFrame:
    """Means and intervals of every model over one question set, as a whole or in slices.

    Args:
        store: Where results are.
        case_key: The question set.
        by: "all", "subtype", "rule", "strength_bin" or "tag:NAME".
        averaging: "macro" (mean of each caption's mean) or "micro" (all pairs pooled); metrics that know only the other
            are given in that one.
        unit: "cosine", or "spread": cosines divided by the model's similarity spread, comparable between models.
        like: The key of a run, for runs of its version; else as of `runs_of`.

    Returns:
        model, metric, averaging, slice, value, low, high, n_items, n_cases, ties; intervals at 95 %.
    """
    own = runs_of(store, case_key, like)
    known = metrics(own["probe"].iloc[0])
    if by != "all" and by not in (parts := slices(store, case_key, like)):
        raise NotFound("way to break down", by, ["all", *parts])
    with store.cursor() as cursor:
        table = cursor.execute(
            "SELECT run AS key, metric, averaging, slice, value, low, high, n_items, n_cases, ties "
            'FROM read_parquet(?) WHERE "by" = ?',
            [store.files(own["key"].tolist(), "estimates"), by],
        ).df()
    only = {name: metric.averaging[0] for name, metric in known.items() if averaging not in metric.averaging}
    table = table[table["averaging"] == table["metric"].map(only).fillna(averaging)]
    table = table[table["metric"].isin(known)]  # a run of an older version may have others
    table = table.merge(own[["key", "model", "spread"]], on="key")
    if unit == "spread":
        cosine = table["metric"].map(lambda name: known[name].unit == "cosine")
        for column in ("value", "low", "high"):
            table[column] = table[column].where(~cosine, table[column] / table["spread"])
    elif unit != "cosine":
        raise InvalidInput(f"Unit '{unit}' is not known. Expected cosine or spread.")
    order = {name: position for position, name in enumerate(known)}
    table = table.sort_values(["metric", "model", "slice"], key=lambda c: c.map(order) if c.name == "metric" else c)
    columns = ["model", "key", "metric", "averaging", "slice", "value", "low", "high", "n_items", "n_cases", "ties"]
    return table[columns].reset_index(drop=True)


def averaging_matters(store: Store, case_key: str) -> bool:
    """Whether macro and micro means differ anywhere: they do not where each group is one case."""
    columns = ["model", "metric", "value"]
    sides = [estimates(store, case_key, "all", averaging)[columns] for averaging in ("macro", "micro")]
    both = sides[0].merge(sides[1], on=["model", "metric"]).dropna()
    return bool(((both["value_x"] - both["value_y"]).abs() > 1e-9).any())


def slices(store: Store, case_key: str, like: str = "") -> list[str]:
    """What the estimates of a question set can be broken down by; `like` as of `estimates`."""
    own = runs_of(store, case_key, like)
    with store.cursor() as cursor:
        files = store.files(own["key"].tolist()[:1], "estimates")
        rows = cursor.execute('SELECT DISTINCT "by" FROM read_parquet(?) WHERE "by" <> \'all\'', [files]).fetchall()
    fixed = ["subtype", "strength_bin", "rule"]
    names = {row[0] for row in rows}
    return [name for name in fixed if name in names] + sorted(names - set(fixed))


def choices(store: Store, case_key: str) -> pd.DataFrame:
    """Kinds, subtypes and rules of the cases of a question set, with how many cases each has."""
    with store.cursor() as cursor:
        return cursor.execute(
            "SELECT kind, subtype, rule, count(*) AS n_cases FROM read_parquet(?) GROUP BY ALL ORDER BY ALL",
            [store.files([case_key], "cases")],
        ).df()


def tag_values(store: Store, case_key: str) -> list[str]:
    """Tags of a question set as `name=value`, for tags with at most 60 values."""
    own = runs_of(store, case_key)
    with store.cursor() as cursor:
        rows = cursor.execute(
            'SELECT DISTINCT "by", slice FROM read_parquet(?) WHERE starts_with("by", \'tag:\') ORDER BY ALL',
            [store.files(own["key"].tolist()[:1], "estimates")],
        ).fetchall()
    return [f"{by.removeprefix('tag:')}={value}" for by, value in rows]
