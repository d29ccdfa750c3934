"""Every table that a page or the command line shows. All SQL of the package is here, but for the store's own settings.

Runs can be compared only where they answered the same questions: a *question set* is one dataset, probe and options,
named by its case key. Each view takes a Store and plain values and returns a DataFrame.
"""

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd

from vlprobe import annotations, doctor, registry, views_filter, views_rows, views_versions
from vlprobe import published as tables
from vlprobe.errors import InvalidInput, NotFound
from vlprobe.files import REPAIR
from vlprobe.store import Store
from vlprobe.types import Metric
from vlprobe.views_filter import Filter

RUN_COLUMNS = [
    *("key", "case_key", "model", "dataset", "probe", "limit", "seed", "options"),
    *("n_items", "n_cases", "spread", "seconds", "finished", "older", "note"),
]
QUESTION_COLUMNS = ("run", "item", "kind", "subtype", "rule", "strength_bin")  # of answers, or the same for all of them


def metrics(probe: str) -> dict[str, Metric]:
    """The probe's metrics by name."""
    return {metric.name: metric for metric in registry.load_probe(probe).metrics}


def kinds(probe: str) -> dict[str, str]:
    """The kinds of the probe's cases in plain words; the first is shown first."""
    return dict(registry.load_probe(probe).kinds)


def runs(store: Store) -> pd.DataFrame:
    """Stored runs, newest first: key, question set, model, dataset, probe, options, sizes, spread, time.

    `older` says in what a run is of an older version than today's code; nothing compares it with runs of today's.
    """
    return _listed(store, store.runs())


def _listed(store: Store, manifests: Sequence[dict]) -> pd.DataFrame:
    """Manifests, oldest first, as `runs` has them."""
    warnings = doctor.warnings(store)
    rows = [
        {
            "key": manifest["key"],
            "case_key": manifest["case_key"],
            **{name: manifest["run"][name] for name in ("model", "dataset", "probe", "limit", "seed")},
            "options": _describe(manifest["run"]),
            **{name: manifest[name] for name in ("n_items", "n_cases", "spread", "seconds", "finished")},
            "older": views_versions.older(manifest["run"]),
            "note": "; ".join(filter(None, [manifest["note"], *warnings.get(_digests(manifest), ())])),
        }
        for manifest in reversed(manifests)
    ]
    return pd.DataFrame(rows, columns=RUN_COLUMNS)


def unread(store: Store) -> list[str]:
    """One line for each stored run or examination that cannot be read: what other views leave out."""
    return [*store.read_runs()[1].values(), *doctor.unread(store)]


def _digests(manifest: Mapping[str, Mapping]) -> tuple[str, str]:
    """Of a run's model and dataset: what examinations are joined by."""
    return manifest["run"]["model_digest"], manifest["run"]["dataset_digest"]


def models(store: Store) -> dict[str, str]:
    """Names of all models that ever answered, the first stored first, with the digest that each had then."""
    digests: dict[str, str] = {}
    for manifest in store.runs():
        digests.setdefault(manifest["run"]["model"], manifest["run"]["model_digest"])
    return digests


def question_sets(store: Store) -> pd.DataFrame:
    """What models were asked, newest first: case key, a label, dataset, probe, models and sizes.

    The models are those of `runs_of`: the label says so where their answers are of an older version.
    """
    by_key: dict[str, list[dict]] = {}
    for manifest in store.runs():
        by_key.setdefault(manifest["case_key"], []).append(manifest)
    rows = []
    for key in sorted(by_key, key=lambda key: (by_key[key][-1]["finished"], by_key[key][-1]["key"]), reverse=True):
        own = views_versions.alike(by_key[key])
        first, run = own[-1], own[-1]["run"]
        label = f"{run['dataset']} · {run['probe']} · {first['n_items']:,} pictures{_describe(run)}"
        label += f" · {views_versions.OLDER}" if views_versions.older(run) else ""
        sizes = {"n_items": first["n_items"], "n_cases": first["n_cases"]}
        names = list(dict.fromkeys(manifest["run"]["model"] for manifest in reversed(own)))
        rows.append(
            {"case_key": key, "label": label, "dataset": run["dataset"], "probe": run["probe"], "models": names} | sizes
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


def runs_of(store: Store, case_key: str, like: str = "") -> pd.DataFrame:
    """The newest run of each model name over one question set, all of one version: see `views_versions.alike`."""
    own = _listed(store, views_versions.alike(_asked_of(store, case_key), like))
    return own.drop_duplicates("model")


def _asked_of(store: Store, case_key: str) -> list[dict]:
    """The manifests of all runs over one question set, oldest first. Raises NotFound where there is none."""
    store.cases(case_key)  # refuses what is no key
    found = [manifest for manifest in store.runs() if manifest["case_key"] == case_key]
    if not found:
        for line in store.read_runs()[1].values():  # its runs may be among these
            raise InvalidInput(line)
        raise NotFound("question set", case_key, question_sets(store)["case_key"], "Run the probe first.")
    return found


def older_runs(store: Store, case_key: str) -> pd.DataFrame:
    """Runs over one question set that `runs_of` leaves out because they are of another version, as `runs` has them."""
    every = _asked_of(store, case_key)
    together = {manifest["key"] for manifest in views_versions.alike(every)}
    return _listed(store, [manifest for manifest in every if manifest["key"] not in together])


def version_notes(store: Store, case_key: str) -> list[str]:
    """Sentences on versions: that what is shown is of an older one, and which runs are not shown beside it."""
    shown = runs_of(store, case_key)
    notes = [
        f"{row.model} was asked by an {row.older}. Ask it again for the numbers of today."
        for row in shown[shown["older"] != ""].itertuples()
    ]
    for row in older_runs(store, case_key).drop_duplicates("model").itertuples():
        why = row.older or "a newer version"
        notes.append(
            f"Run {row.key} of {row.model} is not beside these ({why}). It is shown by: vlprobe show {row.key}"
        )
    return notes


def _keys(store: Store, case_key: str, model: str = "") -> dict[str, str]:
    """The key of the newest run of each model over one question set, all of one version.

    That is the one in which runs are shown, or where it lacks this model, the newest that has it.
    """
    every = _asked_of(store, case_key)
    own = views_versions.alike(every)
    if model not in {manifest["run"]["model"] for manifest in own}:
        of_model = [manifest["key"] for manifest in every if manifest["run"]["model"] == model]
        own = views_versions.alike(every, of_model[-1]) if of_model else own
    return {manifest["run"]["model"]: manifest["key"] for manifest in own}


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


def _asked(
    store: Store, case_key: str, own: Mapping[str, str], chosen: Filter
) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
    """The cases whose questions pass a filter, whatever the answers; the margins of its model and of the other.

    `own` are the `_keys` of this question set.
    """
    for name in filter(None, [chosen.model, chosen.other]):
        if name not in own:
            raise NotFound("model in this question set", name, own)
    views_filter.check(chosen)
    cases = views_rows.cases(store, case_key, *views_filter.condition(chosen))
    if chosen.tagged:
        said = annotations.read(store, case_key).said
        cases = np.intersect1d(cases, [one.case for one in said if chosen.tagged in one.tags]).astype(np.int64)
    margin = _margins(store, own[chosen.model], cases)
    return cases, margin, _margins(store, own[chosen.other], cases) if chosen.paired else None


def _margins(store: Store, run: str, cases: np.ndarray) -> np.ndarray:
    found = views_rows.margins(store, run)
    if len(cases) and cases[-1] >= len(found):
        raise InvalidInput(f"Run {run} has answers to {len(found):,} cases only, and more were asked. {REPAIR}")
    return found[cases]


def failures(store: Store, case_key: str, chosen: Filter, page: int = 1, size: int = 12) -> tuple[pd.DataFrame, int]:
    """One page of the cases that pass a filter, and how many pass it.

    Returns:
        case, margin, scores, id, item, kind, subtype, rule, source, target, images, texts, roles, tags; and the total.
        Ties count as failures.
    """
    own = _keys(store, case_key, chosen.model)
    cases, margin, other = _asked(store, case_key, own, chosen)
    passing = views_filter.answered(chosen, margin, other)
    margin, other = margin[passing], other[passing] if chosen.paired else None
    start = max(page - 1, 0) * size
    places = views_filter.first(chosen, margin, other, start, start + size)
    shown = cases[passing][places]
    found = questions(store, case_key, shown)
    found.insert(1, "margin", margin[places])
    scores = _answered(store, own[chosen.model], shown)
    found.insert(2, "scores", scores["scores"])
    return found, len(margin)


def questions(store: Store, case_key: str, cases: Sequence[int]) -> pd.DataFrame:
    """Of these cases: case, id, item, kind, subtype, rule, source, target, images, texts, roles, tags."""
    return views_rows.rows(store, store.files([case_key], "cases")[0], cases, without=("item_code", "cluster", "group"))


def numbered(store: Store, case_key: str, case_id: str) -> int | None:
    """The number of the case with this id; None where there is none."""
    with store.cursor() as cursor:
        found = cursor.execute(
            'SELECT "case" FROM read_parquet(?) WHERE id = ? LIMIT 1', [store.files([case_key], "cases"), case_id]
        ).fetchall()
    return found[0][0] if found else None


def outcomes(store: Store, case_key: str, chosen: Filter) -> dict[str, int]:
    """How many cases pass a filter with each outcome, whatever outcome it names; ties are among the fooled, too."""
    _, margin, other = _asked(store, case_key, _keys(store, case_key, chosen.model), chosen)
    margin = margin[views_filter.answered(replace(chosen, outcome="all"), margin, other)]
    return {name: int(np.count_nonzero(has(margin))) for name, has in views_filter.OUTCOMES.items()}


def answers(store: Store, case_key: str, cases: Sequence[int], models: Sequence[str] = ()) -> pd.DataFrame:
    """What stored models said to these cases: case, margin, scores, what else the probe stores, and the model.

    Args:
        store: Where results are.
        case_key: The question set.
        cases: Numbers of cases.
        models: Those that are asked for; without any, all.
    """
    own = _keys(store, case_key, models[0] if models else "")
    tables = [_answered(store, own[model], cases).assign(model=model) for model in models or own]
    return pd.concat(tables, ignore_index=True).sort_values(["case", "model"], ignore_index=True)


def _answered(store: Store, run: str, cases: Sequence[int]) -> pd.DataFrame:
    """What one run stores of these cases, but for what the questions say, too."""
    return views_rows.rows(store, store.files([run], "scores")[0], cases, without=QUESTION_COLUMNS)


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
