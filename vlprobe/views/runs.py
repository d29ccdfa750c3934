"""Stored runs and question sets. Defines the QuestionSet object that all other views use."""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from operator import attrgetter
from typing import Any, TypedDict, cast

import pandas as pd

from vlprobe import registry
from vlprobe.errors import InvalidInput, NotFound, VlprobeError
from vlprobe.models.doctor import examine
from vlprobe.storage.store import Store
from vlprobe.types import Metric, Publication, selection
from vlprobe.types.presentation import Presentation
from vlprobe.views.records import QuestionSetRow, RunRow
from vlprobe.views.tables import AnswerTable, CaseTable

RUN_COLUMNS = [
    *("key", "case_key", "model", "dataset", "probe", "limit", "seed", "options"),
    *("n_items", "n_cases", "spread", "seconds", "finished", "older", "note"),
]
# Fields of `RunRow` that a manifest, and the entry `run` in it, have under the same name
OF_MANIFEST = ("key", "case_key", "n_items", "n_cases", "spread", "seconds", "finished")
OF_RUN = ("model", "model_digest", "dataset", "dataset_digest", "probe", "limit", "seed")
DEFAULT_SEED = 42
SHIPPED = "Bundled results"
OLDER = "older version"
LISTED_METRICS = 3  # metrics listed by name; the others are only counted
KEY_LETTERS = 8  # letters of a run's key that distinguish it from other runs of its model


@dataclass(frozen=True)
class QuestionSet:
    """A question set with one run per model. All runs have the same version of the probe and the metrics.

    It is created once by `question_set` and passed to all views, so that they use the same runs.
    """

    key: str
    probe: str
    # Newest first, one per model; hashing the key is enough.
    runs: tuple[RunRow, ...] = field(hash=False)
    store: Store = field(compare=False, repr=False)  # where the runs were read

    @property
    def models(self) -> tuple[str, ...]:
        """Names of the models, the one with the newest run first."""
        return tuple(run.model for run in self.runs)

    @property
    def ordered_models(self) -> tuple[str, ...]:
        """Names of the models in page order: bundled models first, then others by name, controls last."""
        return tuple(sorted(self.models, key=registry.model_order))

    @property
    def rated_models(self) -> tuple[str, ...]:
        """Names of the models that are not controls, in page order. If there are only controls, they are returned."""
        models = self.ordered_models
        return tuple(name for name in models if not registry.is_control(name)) or models

    @property
    def metrics(self) -> dict[str, Metric]:
        """The probe's metrics by name. Metrics that depend on options are included only if the runs have them."""
        optional = {metric.name for metric in registry.load_probe(self.probe).optional_metrics}
        measured = {name for run in self.runs for name in run.metrics}
        return {
            name: metric
            for name, metric in metrics(self.probe).items()
            if name not in optional or name in measured
        }

    @property
    def presentation(self) -> Presentation:
        """The probe's texts and settings for display."""
        return registry.load_probe(self.probe).presentation

    @property
    def shipped(self) -> bool:
        """Return whether all runs are bundled with vlprobe."""
        return all(run.shipped for run in self.runs)

    @property
    def is_scored(self) -> bool:
        """Return whether any model's answers have scores, instead of being only right or wrong."""
        return any(run.is_scored for run in self.runs)

    @property
    def label(self) -> str:
        """Label for pickers, with the dataset, probe, size and options."""
        newest = self.runs[0]
        size = extent(newest.n_items, newest.n_units)
        label = f"{newest.dataset} · {newest.probe} · {size}{newest.options}"
        label = f"{label} · {OLDER}" if newest.older else label
        return f"{SHIPPED} · {label}" if self.shipped else label

    @property
    def newest_run(self) -> dict[str, Any]:
        """The entry `run` in the manifest of the newest run, such as its options."""
        return self.store.run(self.runs[0].key).manifest()["run"]

    @property
    def cases(self) -> CaseTable:
        """The stored cases."""
        return CaseTable(self.store, self.key)

    def answers(self, model: str) -> AnswerTable:
        """Return the stored answers of a model. Raises NotFound if the model is not in the question set."""
        return AnswerTable(self.store, self.run(model).key)

    def run(self, model: str) -> RunRow:
        """Return the run of the given model. Raises NotFound if the model is not in the question set."""
        for run in self.runs:
            if run.model == model:
                return run
        raise NotFound("model in this question set", model, self.models)


def metrics(probe: str) -> dict[str, Metric]:
    """Return a probe's metrics by name, including metrics that exist only with some options."""
    loaded = registry.load_probe(probe)
    return {metric.name: metric for metric in (*loaded.metrics, *loaded.optional_metrics)}


def kinds(probe: str) -> dict[str, str]:
    """Return the display labels for a probe's kinds of cases, by kind, in display order."""
    return dict(registry.load_probe(probe).kinds)


def known_manifests(store: Store) -> list[dict]:
    """Return the manifests of all stored runs whose probe is known, oldest first.

    Reading stored runs never imports a plug-in. Runs that need a plug-in that is not allowed are
    omitted here and reported by `unread`.
    """

    def find() -> list[dict]:
        manifests = store.runs()
        probes = {str(manifest["run"]["probe"]) for manifest in manifests}
        known = {probe for probe in probes if registry.has_probe(probe)}
        return [manifest for manifest in manifests if str(manifest["run"]["probe"]) in known]

    return list(store.listing_fact("known_manifests", find))


def _manifests_by_case_key(store: Store) -> dict[str, list[dict]]:
    """Group run manifests by question set key, oldest first."""
    manifests_by_key: dict[str, list[dict]] = {}
    for manifest in known_manifests(store):
        manifests_by_key.setdefault(manifest["case_key"], []).append(manifest)
    return manifests_by_key


def _of_unknown_probes(store: Store) -> dict[str, VlprobeError]:
    """Return the errors for probes that are not known, by probe name. All views leave out the runs of these probes."""
    errors: dict[str, VlprobeError] = {}
    for probe in dict.fromkeys(str(manifest["run"]["probe"]) for manifest in store.runs()):
        if not registry.has_probe(probe):
            try:
                registry.load_probe(probe)
            except VlprobeError as error:
                errors[probe] = error
    return errors


def run_rows(store: Store) -> list[RunRow]:
    """Return all stored runs, newest first."""
    return _run_rows(store, known_manifests(store))


def runs(store: Store) -> pd.DataFrame:
    """Return all stored runs as a table with the columns RUN_COLUMNS, newest first."""
    # pandas would copy each value of a dataclass
    rows = map(attrgetter(*RUN_COLUMNS), run_rows(store))
    return pd.DataFrame(list(rows), columns=pd.Index(RUN_COLUMNS))


def default_model(store: Store, models: Sequence[str]) -> str:
    """Return the model that a page selects by default: next to bundled results, the one that the user ran last, else
    the one that has answered the most cases. Controls come last.
    """
    n_cases: dict[str, dict[str, int]] = {model: {} for model in models}  # by question set
    places = dict.fromkeys(models, 0)
    for place, manifest in enumerate(known_manifests(store), 1):
        model = manifest["run"]["model"]
        if model in places:
            n_cases[model][manifest["case_key"]] = manifest["n_cases"]
            places[model] = places[model] if store.is_shipped(manifest["key"]) else place
    has_bundled = 0 in places.values()

    def order(model: str) -> tuple[object, ...]:
        place, n_asked = places[model] if has_bundled else 0, sum(n_cases[model].values())
        return registry.is_control(model), -place, -n_asked, registry.model_order(model)

    return min(models, key=order)


def _run_rows(store: Store, manifests: Sequence[dict]) -> list[RunRow]:
    """Convert manifests (oldest first) to rows (newest first)."""
    warnings = store.listing_fact("warnings", lambda: examine.warnings(store))
    rows = []
    for manifest in reversed(manifests):
        run, publication = manifest["run"], None
        if isinstance(source := manifest.get("publication"), dict):  # not computed here
            publication = Publication(
                *(str(source.get(column.name, "")) for column in fields(Publication))
            )
        checks = warnings.get((run["model_digest"], run["dataset_digest"]), ())
        rows.append(
            RunRow(
                **{name: manifest[name] for name in OF_MANIFEST},
                **{name: run[name] for name in OF_RUN},
                options=_describe_options(run),
                n_units=manifest.get("n_units", manifest["n_items"]),
                older=describe_older(run),
                note="; ".join(filter(None, [manifest["note"], *checks])),
                shipped=store.is_shipped(manifest["key"]),
                selection=run.get("selection", {}),
                metrics=tuple(name.partition("@")[0] for name in run["metrics"]),
                score_type=str(manifest.get("score_type", "cosine")),
                n_orders=int(manifest.get("n_orders", 1)),
                publication=publication,
            )
        )
    return rows


def unread(store: Store) -> list[VlprobeError]:
    """Return the errors for runs, model checks and probes that cannot be read and that other views therefore omit."""
    unknown = _of_unknown_probes(store).values()
    return [*store.read_runs()[1].values(), *examine.read_errors(store), *unknown]


def models(store: Store) -> dict[str, str]:
    """Return the digest of each model that has results, by model name, oldest first."""
    digests: dict[str, str] = {}
    for manifest in known_manifests(store):
        digests.setdefault(manifest["run"]["model"], manifest["run"]["model_digest"])
    return digests


def question_set_rows(store: Store) -> list[QuestionSetRow]:
    """Return all question sets, the most complete comparison first. The first one is the default on all pages.

    Question sets are ranked by the number of pictures times the number of models, not counting
    controls and models that failed a check on these pictures; ties are sorted newest first. Bundled
    sets follow: published answers of real models, then drawn scenes, both in the order of the probes.
    Sets with only controls are last. Each row counts the same models as `question_set`, and the label marks answers
    from an older version.
    """

    def find() -> list[QuestionSetRow]:
        warnings = store.listing_fact("warnings", lambda: examine.warnings(store))
        ranked = []
        newest_first = sorted(
            _manifests_by_case_key(store).items(),
            key=lambda keyed: (keyed[1][-1]["finished"], keyed[1][-1]["key"]),
            reverse=True,
        )
        for key, manifests in newest_first:
            questions = _question_set(store, key, same_version(manifests))
            newest = questions.runs[0]
            rated = [run for run in questions.runs if not registry.is_control(run.model)]
            n_failed = sum(
                bool(warnings.get((run.model_digest, run.dataset_digest))) for run in rated
            )
            # Published answers of real models come first
            rank = (1, newest.publication is None, questions.presentation.position)
            if not questions.shipped:
                size = (len(rated) - n_failed) * newest.n_items, len(rated) * newest.n_items
                rank = (0 if rated else 2, -size[0], -size[1])
            name = key, questions.label, newest.dataset, newest.probe
            counts = newest.n_items, newest.n_cases
            finished = manifests[-1]["finished"]
            row = QuestionSetRow(
                *name, list(questions.models), *counts, questions.shipped, finished
            )
            ranked.append((rank, row))
        return [row for _, row in sorted(ranked, key=lambda pair: pair[0])]

    return list(store.listing_fact("question_set_rows", find))


def case_keys(store: Store) -> list[str]:
    """Return the keys of all question sets, in the order of `question_set_rows`. Raises InvalidInput for none."""
    keys = [row.case_key for row in question_set_rows(store)]
    if not keys:
        raise InvalidInput(
            "There are no stored results yet. Run a probe first: vlprobe run --help."
        )
    return keys


def question_sets(store: Store) -> pd.DataFrame:
    """Return all question sets as a table, in the order of `question_set_rows`."""
    columns = [column.name for column in fields(QuestionSetRow)]
    rows = map(attrgetter(*columns), question_set_rows(store))
    return pd.DataFrame(list(rows), columns=pd.Index(columns))


def extent(n_items: int, n_units: int) -> str:
    """Describe the size of a question set in pictures, or in questions if several questions share a
    picture.

    >>> extent(500, 500), extent(7512, 1561), extent(1, 1)
    ('500 pictures', '7,512 questions', '1 picture')
    """
    noun = "picture" if n_items == n_units else "question"
    return f"{n_items:,} {noun}{'s' * (n_items != 1)}"


def _describe_options(run: dict) -> str:
    """Return the options and the seed that differ from the defaults, in the form " · name value", lists in words."""
    probe = registry.load_probe(run["probe"])
    defaults, presentation = probe.defaults, probe.presentation
    words = {name: text.lower() for name, text in presentation.value_labels.items()}
    words |= {
        name: kind.edit_label.lower()
        for name, kind in presentation.kinds.items()
        if kind.edit_label
    }
    changed = []
    for name, value in sorted(run["options"].items()):
        if defaults.get(name, value) == value:
            continue
        values = list(map(str, value)) if isinstance(value, list | tuple) else []
        text = ", ".join(words.get(each) or each for each in values)
        # Lists of values with a label of their own need no name
        is_clear = values and presentation.value_labels.keys() >= {*values}
        changed.append(text if is_clear else f"{name} {text or value}")
    if run["seed"] != DEFAULT_SEED:
        changed.append(f"seed {run['seed']}")
    changed += selection.describe(run.get("selection", {}))
    return "".join(f" · {text}" for text in changed)


def question_set(store: Store, key: str, version_of: str = "", model: str = "") -> QuestionSet:
    """Return a question set with the newest run of each model. All runs have the same version (see
    `same_version`).

    Args:
        version_of: Key of a run whose version to use.
        model: A model that must be included. If the model has no run of the selected version, the
            newest version that it has is used.

    Raises:
        NotFound: no run has this key.
        InvalidInput: the text is not a key, or no run with it can be read.
    """
    manifests = _manifests(store, key)
    selected = same_version(manifests, version_of)
    if model and model not in {manifest["run"]["model"] for manifest in selected}:
        of_model = [each["key"] for each in manifests if each["run"]["model"] == model]
        selected = same_version(manifests, of_model[-1]) if of_model else selected
    return _question_set(store, key, selected)


def _question_set(store: Store, key: str, manifests: Sequence[dict]) -> QuestionSet:
    rows = _run_rows(store, manifests)
    newest = {row.model: row for row in reversed(rows)}
    runs = tuple(row for row in rows if newest[row.model] is row)
    return QuestionSet(key, rows[0].probe, runs, store)


def _manifests(store: Store, key: str) -> list[dict]:
    """Return the manifests of all runs on one question set, oldest first. Raises NotFound if there are none."""
    store.cases(key)  # rejects a text that is not a key
    by_key = store.listing_fact("manifests_by_case_key", lambda: _manifests_by_case_key(store))
    manifests = by_key.get(key, [])
    if not manifests:
        for error in [*store.read_runs()[1].values(), *_of_unknown_probes(store).values()]:
            raise error  # it may hide runs on this question set
        raise NotFound(
            "question set", key, question_sets(store)["case_key"], "Run the probe first."
        )
    return manifests


def command(question_set: QuestionSet, models: Sequence[str], subset: str = "") -> list[str]:
    """Return the words after `vlprobe` that run models on a question set, from the manifest of its first run.

    Args:
        models: Names of models, which may be others than those of the question set.
        subset: End of the dataset's name, such as "+available".
    """
    run = question_set.store.run(question_set.runs[0].key).manifest()["run"]
    words = [word for model in models for word in ("--model", model)]
    words += ["--dataset", f"{run['dataset']}{subset}", "--probe", run["probe"]]
    defaults = registry.load_probe(run["probe"]).defaults
    for name, option in run["options"].items():
        if name in defaults:
            value = ",".join(map(str, option)) if isinstance(option, list) else option
            words += ["--option", f"{name}={value}"]
    words += ["--seed", str(run["seed"])] if run["seed"] != DEFAULT_SEED else []
    words += ["--limit", str(run["limit"])] if run["limit"] else []
    for name, choice in run.get("selection", {}).items():
        for value in choice if isinstance(choice, list) else [choice]:
            words += [f"--{name}", str(value)]
    return ["run", *words]


def version_notes(question_set: QuestionSet) -> list[str]:
    """Return notes about versions for the user: which displayed runs are older than the code, and which are hidden."""
    notes = [
        f"{run.model} was run with an {run.older}. Repeat the run for current numbers."
        for run in question_set.runs
        if run.older
    ]
    manifests = _manifests(question_set.store, question_set.key)
    current = same_version(manifests, question_set.runs[0].key)
    others = _run_rows(question_set.store, [each for each in manifests if each not in current])
    newest: dict[str, RunRow] = {}
    for run in others:
        newest.setdefault(run.model, run)
    for run in newest.values():
        reason = run.older or "a newer version"
        notes.append(
            f"Run {run.key} of {run.model} is not listed with these runs ({reason}). To see it: "
            f"vlprobe show {run.key}"
        )
    return notes


class Defect(TypedDict):
    """A type of defect found in a dataset, and how often it occurs."""

    meaning: str
    count: int
    of: int


class QuestionFacts(TypedDict):
    """Facts about a question set, as stored in its manifest."""

    n_items: int
    n_cases: int
    dropped: dict[str, int]  # by reason
    findings: list[Defect]
    notes: list[str]


def facts(question_set: QuestionSet) -> QuestionFacts:
    """Return the facts about a question set: sizes, dropped items with reasons, data defects and notes."""
    return cast(QuestionFacts, question_set.store.cases(question_set.key).manifest())


# Versions: a version increases when numbers change. A run of an older version stays in the store and is listed as
# older; no table combines it with a run of another version. Only `same_version` implements this rule.


def version(run: Mapping) -> tuple[int, frozenset[str]]:
    """Return the versions of a run's probe and metrics. Only runs with equal versions can be
    compared.

    Metrics on caption order are ignored, so a model that ran in both orders can be compared with
    one that ran once.

    Args:
        run: The `run` entry of a manifest.
    """
    ignored = _named(registry.load_probe(run["probe"]).order_metrics)
    return run["probe_version"], frozenset(run["metrics"]) - ignored


def _current(run: Mapping) -> tuple[int, frozenset[str]]:
    """Return the version that the current code would give to a run with the same options."""
    probe = registry.load_probe(run["probe"])
    return probe.version, _named(probe.metrics_of(run.get("options", {})))


def _named(metrics: Sequence[Metric]) -> frozenset[str]:
    return frozenset(f"{metric.name}@{metric.version}" for metric in metrics)


def describe_older(run: Mapping) -> str:
    """Describe how a run's versions differ from those in the current code, or return "" if they are equal."""
    probe_version, metrics = _current(run)
    changed = sorted(version(run)[1] - metrics)
    words = changed[:LISTED_METRICS]
    if run["probe_version"] != probe_version:
        words.insert(0, f"probe {run['probe']}@{run['probe_version']}")
    if len(changed) > LISTED_METRICS:
        words.append(f"{len(changed) - LISTED_METRICS} more")
    if not words and version(run) != (probe_version, metrics):
        words = ["fewer metrics"]
    return f"{OLDER}: {', '.join(words)}" if words else ""


def same_version(manifests: Sequence[dict], version_of: str = "") -> list[dict]:
    """Select the runs on one question set that share one version, keeping their order.

    Args:
        manifests: Manifests of the runs, oldest first.
        version_of: Key of a run whose version to use; by default the current version, or else the
            version of the newest run.
    """
    if not manifests:
        return []
    versions = {manifest["key"]: version(manifest["run"]) for manifest in manifests}
    selected = versions.get(version_of)
    if selected is None:
        current = _current(manifests[0]["run"])
        selected = current if current in versions.values() else versions[manifests[-1]["key"]]
    return [manifest for manifest in manifests if versions[manifest["key"]] == selected]


# Runs that the user selected for a comparison.


def select(
    store: Store,
    names: Sequence[str],
    probes: Collection[str] | None = None,
    preferred: Collection[str] = (),
) -> QuestionSet:
    """Combine the runs that the user names into one question set, in the given order.

    If two runs have the same model name, such as two training states, a key prefix is added to the
    name.

    Args:
        names: Run keys, key prefixes or model names. A model name selects the model's newest run on
            the question set of the first key or, without a key, on the newest question set that all
            named models answered.
        probes: Probes to search for models; None means all.
        preferred: Keys of question sets in which models are looked up first.

    Raises:
        NotFound: no run has this key prefix.
        InvalidInput: fewer than two runs, runs on different questions or of different versions, or
            models without common questions.
    """
    of_version = {each["key"]: version(each["run"]) for each in known_manifests(store)}
    rows = run_rows(store)
    models = {row.model for row in rows}
    by_key = {row.key: row for row in rows}
    keyed = {name: by_key[_run_key(store, name, by_key)] for name in names if name not in models}
    eligible = [row for row in rows if probes is None or row.probe in probes]
    eligible.sort(key=lambda row: row.case_key not in preferred)
    questions = _common_questions(eligible, of_version, names, keyed)
    selected = [
        keyed.get(name) or next(row for row in questions if row.model == name)
        for name in dict.fromkeys(names)
    ]
    selected = list({row.key: row for row in selected}.values())
    if len(selected) < 2:
        raise InvalidInput(
            f"A comparison needs two runs. Given: {', '.join(names) or 'none'}. `vlprobe show` "
            "lists all runs."
        )
    if len({row.case_key for row in selected}) > 1:
        subjects = ", ".join(
            f"{row.key[:KEY_LETTERS]} {row.probe} on {row.dataset}" for row in selected
        )
        raise InvalidInput(
            f"These runs answered different questions ({subjects}). Run the same probe with the same options on the "
            "same data."
        )
    if len({of_version[row.key] for row in selected}) > 1:
        raise InvalidInput(
            "These runs used different versions of the probe or metrics, so they cannot be "
            "compared. Repeat the older run."
        )
    counts = Counter(row.model for row in selected)
    for index, row in enumerate(selected):
        if counts[row.model] > 1:
            selected[index] = replace(row, model=f"{row.model} ({row.key[:KEY_LETTERS]})")
    return QuestionSet(selected[0].case_key, selected[0].probe, tuple(selected), store)


def _run_key(store: Store, name: str, by_key: dict[str, RunRow]) -> str:
    try:
        key = store.find(name)["key"]
    except NotFound:
        names_here = [*dict.fromkeys(row.model for row in by_key.values()), *by_key]
        raise NotFound(
            "stored run or model", name, names_here, "`vlprobe show` lists all runs."
        ) from None
    if key not in by_key:
        raise InvalidInput(
            f"The probe of run '{name}' is unknown. Allow its plug-in with --plugin."
        )
    return key


def _common_questions(
    rows: Sequence[RunRow], of_version: dict, names: Sequence[str], keyed: dict[str, RunRow]
) -> list[RunRow]:
    """Return the runs on the question set and version that is used to look up all named models, newest first."""
    models = {name for name in names if name not in keyed}
    if not models:
        return []
    reference = next(iter(keyed.values()), None)
    groups: dict[tuple, list[RunRow]] = {}  # in the order of their newest run
    for row in rows:
        identity = row.case_key, of_version[row.key]
        if not reference or identity == (reference.case_key, of_version[reference.key]):
            groups.setdefault(identity, []).append(row)
    for group in groups.values():
        if models <= {row.model for row in group}:
            return group
    where = (
        f"the questions of run {reference.key[:KEY_LETTERS]}" if reference else "the same questions"
    )
    raise InvalidInput(
        f"{' and '.join(sorted(models))} did not answer {where}. `vlprobe show` lists what is "
        "stored; run these models on the same data first."
    )


# Kinds of cases.


def list_kinds(store: Store, case_key: str, probe: str) -> list[str]:
    """Return the kinds of cases that a question set contains, in the probe's order."""
    rows = store.fetch_rows(
        "SELECT DISTINCT kind FROM read_parquet(?)", [store.files([case_key], "cases")]
    )
    names = {row[0] for row in rows}
    return [kind for kind in registry.load_probe(probe).kinds if kind in names]


def default_kind(question_set: QuestionSet, models: Sequence[str] = ()) -> str:
    """Return the first kind that has a case answered by every model. If there is none, return the first kind that has
    cases.

    Args:
        models: Models that must have answers; by default, all.

    Raises:
        NotFound: No kind of the probe has cases.
    """
    kinds = list_kinds(question_set.store, question_set.key, question_set.probe)
    if not kinds:
        raise NotFound(f"kind of {question_set.probe} case", "", kinds)
    run_keys = [question_set.run(model).key for model in models or question_set.models]
    # isfinite, not isnan: see `showcase.lie_counts`
    statement = "SELECT 1 FROM read_parquet(?) WHERE kind = ? AND isfinite(margin) LIMIT 1"
    for kind in kinds:
        parameters = ([question_set.store.files([key], "scores"), kind] for key in run_keys)
        if all(question_set.store.fetch_rows(statement, values) for values in parameters):
            return kind
    return kinds[0]


def choose_kind(question_set: QuestionSet, kind: str = "", models: Sequence[str] = ()) -> str:
    """Check that a kind has cases and return it. If no kind is given, return the `default_kind`.

    Raises:
        NotFound: The question set has no cases of the given kind.
    """
    if not kind:
        return default_kind(question_set, models)
    kinds = list_kinds(question_set.store, question_set.key, question_set.probe)
    if kind not in kinds:
        raise NotFound(f"kind of {question_set.probe} case in this question set", kind, kinds)
    return kind
