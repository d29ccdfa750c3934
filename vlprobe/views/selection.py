"""Runs that the user selected for comparison, on the same questions and of one version."""

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import replace

from vlprobe.errors import InvalidInput, NotFound
from vlprobe.storage.store import Store
from vlprobe.views import runs, versions
from vlprobe.views.records import RunRow
from vlprobe.views.runs import QuestionSet

KEY_LETTERS = 8  # of a run's key, that tell it from others of its model


def select(
    store: Store, names: Sequence[str], probes: Collection[str] | None = None
) -> QuestionSet:
    """Return the given runs as one question set, in order.

    Two runs of one model, such as two training states, are distinguished by a key prefix after the
    name.

    Args:
        names: Run keys, key prefixes or model names. A model name selects its newest run on the
            questions of the first key or, without a key, on the newest question set that all of
            these models answered.
        probes: Probes to search for models; None: all.

    Raises:
        NotFound: no run has this key prefix.
        InvalidInput: fewer than two runs, runs on different questions or of different versions, or
            models without common questions.
    """
    manifests = runs.known_manifests(store)
    of_version = {manifest["key"]: versions.version(manifest["run"]) for manifest in manifests}
    rows = [row for row in runs.run_rows(store) if row.key in of_version]  # newest first
    models = {row.model for row in rows}
    by_key = {row.key: row for row in rows}
    keyed = {name: by_key[_key(store, name, by_key)] for name in names if name not in models}
    eligible = [row for row in rows if probes is None or row.probe in probes]
    questions = _questions(eligible, of_version, names, keyed)
    selected = [
        keyed.get(name) or next(row for row in questions if row.model == name)
        for name in dict.fromkeys(names)
    ]
    selected = list({row.key: row for row in selected}.values())
    if len(selected) < 2:
        raise InvalidInput(
            f"A comparison needs two runs. Given: {', '.join(names) or 'none'}. `vlprobe "
            "show` lists them."
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
            "These runs used different versions of the probe or metrics, so they cannot "
            "be compared. Run the older one again."
        )
    counts = Counter(row.model for row in selected)
    labels = [
        replace(row, model=f"{row.model} ({row.key[:KEY_LETTERS]})")
        if counts[row.model] > 1
        else row
        for row in selected
    ]
    return QuestionSet(selected[0].case_key, selected[0].probe, tuple(labels))


def _key(store: Store, name: str, by_key: dict[str, RunRow]) -> str:
    try:
        key = store.find(name)["key"]
    except NotFound:
        names_here = [*dict.fromkeys(row.model for row in by_key.values()), *by_key]
        raise NotFound(
            "stored run or model", name, names_here, "`vlprobe show` lists them."
        ) from None
    if key not in by_key:
        raise InvalidInput(
            f"The probe of run '{name}' is unknown. Allow its plug-in with --plugin."
        )
    return key


def _questions(
    rows: Sequence[RunRow], of_version: dict, names: Sequence[str], keyed: dict[str, RunRow]
) -> list[RunRow]:
    """The runs, newest first, of the one question set and version that models are looked up in."""
    models = {name for name in names if name not in keyed}
    if not models:
        return []
    reference = next(iter(keyed.values()), None)
    groups: dict[tuple, list[RunRow]] = {}
    for row in rows:
        groups.setdefault((row.case_key, of_version[row.key]), []).append(row)
    if reference is not None:
        groups = {
            identity: group
            for identity, group in groups.items()
            if identity == (reference.case_key, of_version[reference.key])
        }
    for group in groups.values():  # in the order of their newest run
        if models <= {row.model for row in group}:
            return group
    where = (
        f"the questions of run {reference.key[:KEY_LETTERS]}" if reference else "the same questions"
    )
    raise InvalidInput(
        f"{' and '.join(sorted(models))} did not answer {where}. `vlprobe show` lists what is stored; "
        "run them on the same data first."
    )
