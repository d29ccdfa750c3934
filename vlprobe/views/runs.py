"""Which runs and question sets are stored, and what is known of them."""

from collections.abc import Mapping, Sequence

import pandas as pd

from vlprobe import registry
from vlprobe.errors import InvalidInput, NotFound
from vlprobe.models.doctor import examine
from vlprobe.storage.store import Store
from vlprobe.types import Metric
from vlprobe.views import published as tables
from vlprobe.views import versions

RUN_COLUMNS = [
    *("key", "case_key", "model", "dataset", "probe", "limit", "seed", "options"),
    *("n_items", "n_cases", "spread", "seconds", "finished", "older", "note"),
]


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
    warnings = examine.warnings(store)
    rows = [
        {
            "key": manifest["key"],
            "case_key": manifest["case_key"],
            **{name: manifest["run"][name] for name in ("model", "dataset", "probe", "limit", "seed")},
            "options": _describe(manifest["run"]),
            **{name: manifest[name] for name in ("n_items", "n_cases", "spread", "seconds", "finished")},
            "older": versions.older(manifest["run"]),
            "note": "; ".join(filter(None, [manifest["note"], *warnings.get(_digests(manifest), ())])),
        }
        for manifest in reversed(manifests)
    ]
    return pd.DataFrame(rows, columns=RUN_COLUMNS)


def unread(store: Store) -> list[str]:
    """One line for each stored run or examination that cannot be read: what other views leave out."""
    return [*store.read_runs()[1].values(), *examine.unread(store)]


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
        own = versions.alike(by_key[key])
        first, run = own[-1], own[-1]["run"]
        label = f"{run['dataset']} · {run['probe']} · {first['n_items']:,} pictures{_describe(run)}"
        label += f" · {versions.OLDER}" if versions.older(run) else ""
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
    own = _listed(store, versions.alike(_asked_of(store, case_key), like))
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
    together = {manifest["key"] for manifest in versions.alike(every)}
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
    own = versions.alike(every)
    if model not in {manifest["run"]["model"] for manifest in own}:
        of_model = [manifest["key"] for manifest in every if manifest["run"]["model"] == model]
        own = versions.alike(every, of_model[-1]) if of_model else own
    return {manifest["run"]["model"]: manifest["key"] for manifest in own}


def examinations(store: Store) -> list[examine.Examination]:
    """What the doctor found, latest first: passport, checks and erased edits of each model on each dataset."""
    return examine.load(store)


def facts(store: Store, case_key: str) -> dict:
    """What is known of the questions themselves: sizes, what was dropped and why, defects of the data, notes."""
    return store.cases(case_key).manifest()


def published(probe: str) -> pd.DataFrame:
    """What the probe's paper prints, one row a cell; see `vlprobe.views.published` for the columns."""
    table = tables.load()
    return table[table["paper"] == probe].reset_index(drop=True)
