"""Every table that a page or the command line shows. All SQL of the package is here, but for the store's own settings.

Runs can be compared only where they answered the same questions: a *question set* is one dataset, probe and options,
named by its case key. Each view takes a Store and plain values and returns a DataFrame.
"""

import uuid
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pandas as pd

from vlprobe import annotations, doctor, registry
from vlprobe import published as tables
from vlprobe.errors import InvalidInput, NotFound
from vlprobe.store import Store
from vlprobe.types import Metric
from vlprobe.views_filter import OUTCOMES, SORTS, Filter, condition

RUN_COLUMNS = [
    *("key", "case_key", "model", "dataset", "probe", "limit", "seed", "options"),
    *("n_items", "n_cases", "spread", "seconds", "finished", "note"),
]


def metrics(probe: str) -> dict[str, Metric]:
    """The probe's metrics by name."""
    return {metric.name: metric for metric in registry.load_probe(probe).metrics}


def kinds(probe: str) -> dict[str, str]:
    """The kinds of the probe's cases in plain words; the first is shown first."""
    return dict(registry.load_probe(probe).kinds)


def runs(store: Store) -> pd.DataFrame:
    """Stored runs, newest first: key, question set, model, dataset, probe, options, sizes, spread, time."""
    manifests = store.runs()
    warnings = {digest: doctor.warnings(store, digest) for digest in {one["run"]["model_digest"] for one in manifests}}
    rows = [
        {
            "key": manifest["key"],
            "case_key": manifest["case_key"],
            **{name: manifest["run"][name] for name in ("model", "dataset", "probe", "limit", "seed")},
            "options": _describe(manifest["run"]),
            **{name: manifest[name] for name in ("n_items", "n_cases", "spread", "seconds", "finished")},
            "note": "; ".join(filter(None, [manifest["note"], *warnings[manifest["run"]["model_digest"]]])),
        }
        for manifest in reversed(manifests)
    ]
    return pd.DataFrame(rows, columns=RUN_COLUMNS)


def question_sets(store: Store) -> pd.DataFrame:
    """What models were asked, newest first: case key, a label, dataset, probe, models and sizes."""
    stored = runs(store)
    rows = []
    for key, own in stored.groupby("case_key", sort=False):
        first = own.iloc[0]
        label = f"{first['dataset']} · {first['probe']} · {first['n_items']:,} pictures{first['options']}"
        sizes = {"n_items": first["n_items"], "n_cases": first["n_cases"]}
        names = list(dict.fromkeys(own["model"]))
        rows.append(
            {"case_key": key, "label": label, "dataset": first["dataset"], "probe": first["probe"], "models": names}
            | sizes
        )
    return pd.DataFrame(rows, columns=["case_key", "label", "dataset", "probe", "models", "n_items", "n_cases"])


def _describe(run: dict) -> str:
    defaults = registry.load_probe(run["probe"]).defaults
    changed = [
        f"{name} {value}" for name, value in sorted(run["options"].items()) if defaults.get(name, value) != value
    ]
    if run["seed"] != 42:
        changed.append(f"seed {run['seed']}")
    return "".join(f" · {text}" for text in changed)


def runs_of(store: Store, case_key: str) -> pd.DataFrame:
    """The newest run of each model name over one question set."""
    store.cases(case_key)  # refuses what is no key
    stored = runs(store)
    own = stored[stored["case_key"] == case_key].drop_duplicates("model")
    if own.empty:
        raise NotFound("question set", case_key, question_sets(store)["case_key"], "Run the probe first.")
    return own


def estimates(
    store: Store, case_key: str, by: str = "all", averaging: str = "macro", unit: str = "cosine"
) -> pd.DataFrame:
    """Means and intervals of every model over one question set, as a whole or in slices.

    Args:
        store: Where results are.
        case_key: The question set.
        by: "all", "subtype", "rule", "strength_bin" or "tag:NAME".
        averaging: "macro" (mean of each caption's mean) or "micro" (all pairs pooled); metrics that know only the other
            are given in that one.
        unit: "cosine", or "spread": cosines divided by the model's similarity spread, comparable between models.

    Returns:
        model, metric, averaging, slice, value, low, high, n_items, n_cases, ties; intervals at 95 %.
    """
    own = runs_of(store, case_key)
    known = metrics(own["probe"].iloc[0])
    if by != "all" and by not in (parts := slices(store, case_key)):
        raise NotFound("way to break down", by, ["all", *parts])
    with store.cursor() as cursor:
        table = cursor.execute(
            "SELECT run AS key, metric, averaging, slice, value, low, high, n_items, n_cases, ties "
            'FROM read_parquet(?) WHERE "by" = ?',
            [store.files(own["key"].tolist(), "estimates"), by],
        ).df()
    only = {name: metric.averaging[0] for name, metric in known.items() if averaging not in metric.averaging}
    table = table[table["averaging"] == table["metric"].map(only).fillna(averaging)]
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


def slices(store: Store, case_key: str) -> list[str]:
    """What the estimates of a question set can be broken down by."""
    own = runs_of(store, case_key)
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


def _chosen(store: Store, case_key: str, chosen: Filter) -> tuple[str, str, list[object]]:
    """What to select a filter's cases from, the condition that they meet, and the values of both."""
    own = runs_of(store, case_key).set_index("model")["key"]
    for name in filter(None, [chosen.model, chosen.other]):
        if name not in own:
            raise NotFound("model in this question set", name, own.index)
    where, values = condition(chosen)
    joined = "read_parquet(?) AS answered"
    files: list[object] = [store.files([own[chosen.model]], "scores")]
    if chosen.paired:
        # row by row: both tables have every case in its order, and a join by number takes six times as long
        joined += " POSITIONAL JOIN (SELECT margin AS other_margin FROM read_parquet(?)) AS beside"
        files.append(store.files([own[chosen.other]], "scores"))
    if chosen.tag or chosen.contains:
        joined += ' JOIN (SELECT "case", tags, texts FROM read_parquet(?)) AS asked USING ("case")'
        files.append(store.files([case_key], "cases"))
    if chosen.tagged:
        said = annotations.read(store, case_key).said
        where += ' AND "case" IN (SELECT unnest(?::BIGINT[]))'
        values.append([one.case for one in said if chosen.tagged in one.tags])
    return joined, where, files + values


def failures(store: Store, case_key: str, chosen: Filter, page: int = 1, size: int = 12) -> tuple[pd.DataFrame, int]:
    """One page of the cases that pass a filter, and how many pass it.

    Returns:
        case, id, item, kind, subtype, rule, source, target, images, texts, roles, tags, margin, scores; and the total.
        Ties count as failures.
    """
    joined, where, given = _chosen(store, case_key, chosen)
    margins = "margin, other_margin" if chosen.paired else "margin"
    own = runs_of(store, case_key).set_index("model")["key"]
    with store.cursor() as cursor:
        # the cursor's own table: what is slow is done once for the count and the page
        cursor.execute(
            f'CREATE TEMP TABLE passing AS SELECT "case" AS case_number, {margins} FROM {joined} WHERE {where}', given
        )
        total = cursor.execute("SELECT count(*) FROM passing").fetchall()[0][0]
        found = cursor.execute(
            f'SELECT case_number AS "case", margin FROM passing ORDER BY {SORTS[chosen.sort]} LIMIT ? OFFSET ?',
            [size, max(page - 1, 0) * size],
        ).df()
        scores = cursor.execute(
            'SELECT "case", scores FROM read_parquet(?) WHERE "case" IN (SELECT unnest(?::BIGINT[]))',
            [store.files([own[chosen.model]], "scores"), found["case"].tolist()],
        ).df()
    found = found.merge(scores, on="case")
    return found.merge(questions(store, case_key, found["case"].tolist()), on="case"), total


def questions(store: Store, case_key: str, cases: Sequence[int]) -> pd.DataFrame:
    """Of these cases: case, id, item, kind, subtype, rule, source, target, images, texts, roles, tags."""
    with store.cursor() as cursor:
        return cursor.execute(
            'SELECT "case", id, item, kind, subtype, rule, source, target, images, texts, roles, tags '
            'FROM read_parquet(?) WHERE "case" IN (SELECT unnest(?::BIGINT[]))',
            [store.files([case_key], "cases"), [int(case) for case in cases]],
        ).df()


def numbered(store: Store, case_key: str, case_id: str) -> int | None:
    """The number of the case with this id; None where there is none."""
    with store.cursor() as cursor:
        found = cursor.execute(
            'SELECT "case" FROM read_parquet(?) WHERE id = ? LIMIT 1', [store.files([case_key], "cases"), case_id]
        ).fetchall()
    return found[0][0] if found else None


def outcomes(store: Store, case_key: str, chosen: Filter) -> dict[str, int]:
    """How many cases pass a filter with each outcome, whatever outcome it names; ties are among the fooled, too."""
    joined, where, given = _chosen(store, case_key, replace(chosen, outcome="all"))
    counted = ", ".join(f"count(*) FILTER ({condition})" for condition in OUTCOMES.values())
    with store.cursor() as cursor:
        found = cursor.execute(f"SELECT {counted} FROM {joined} WHERE {where}", given).fetchall()[0]
    return dict(zip(OUTCOMES, found, strict=True))


def answers(store: Store, case_key: str, cases: Sequence[int]) -> pd.DataFrame:
    """What every stored model said to these cases: case, model, margin, scores and what else the probe stores."""
    own = runs_of(store, case_key)
    with store.cursor() as cursor:
        table = cursor.execute(
            "SELECT run AS key, * EXCLUDE (run, item, kind, subtype, rule, strength_bin) FROM read_parquet(?) "
            'WHERE "case" IN (SELECT unnest(?::BIGINT[]))',
            [store.files(own["key"].tolist(), "scores"), [int(case) for case in cases]],
        ).df()
    return table.merge(own[["key", "model"]], on="key").drop(columns="key").sort_values(["case", "model"])


def examinations(store: Store) -> list[doctor.Examination]:
    """What the doctor found, latest first: passport, checks and erased edits of each model on each dataset."""
    return doctor.load(store)


def facts(store: Store, case_key: str) -> dict:
    """What is known of the questions themselves: sizes, what was dropped and why, defects of the data, notes."""
    return store.cases(case_key).manifest()


def published(probe: str) -> pd.DataFrame:
    """What the probe's paper prints, one row a cell; see `vlprobe.published` for the columns."""
    table = tables.load()
    return table[table["paper"] == probe].reset_index(drop=True)


def export(store: Store, output: Path) -> int:
    """Writes cases, scores, estimates and runs as tables of one DuckDB file; returns how many scores.

    The file is written by a connection of its own: the store's can only read the cache folder.
    """
    import duckdb

    stored = runs(store)
    if stored.empty:
        raise InvalidInput(
            "Nothing is stored yet, so there is nothing to export. Run a probe first: vlprobe run --help."
        )
    if output.exists():
        raise InvalidInput(f"'{output}' exists. Name a new file, or delete that one first.")
    keys = stored["key"].tolist()
    growing = output.with_name(f".{output.name}.{uuid.uuid4().hex}.tmp")
    try:
        with duckdb.connect(str(growing)) as connection:
            connection.execute("CREATE TABLE runs AS SELECT * FROM stored")
            for name in ("scores", "estimates"):
                files = store.files(keys, name)
                connection.execute(f"CREATE TABLE {name} AS SELECT * FROM read_parquet(?, union_by_name=true)", [files])
            for position, key in enumerate(stored["case_key"].unique()):
                verb = "INSERT INTO cases" if position else "CREATE TABLE cases AS"
                files = store.files([key], "cases")
                connection.execute(f"{verb} SELECT ? AS case_key, * FROM read_parquet(?)", [key, files])
            count = connection.execute("SELECT count(*) FROM scores").fetchall()[0][0]
        growing.replace(output)
        return count
    except (duckdb.IOException, OSError) as error:
        first = str(error).splitlines()[0]
        raise InvalidInput(f"Cannot write '{output}' ({first}). Choose another place or free some space.") from None
    finally:
        growing.unlink(missing_ok=True)
