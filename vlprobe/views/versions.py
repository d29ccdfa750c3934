"""Selection of comparable runs, whose probe and metrics have the same versions.

A version increases when numbers change. A run of an older version stays in the store and is listed
as older; no table combines it with a run of another version. Only `same_version` implements this
rule.
"""

from collections.abc import Mapping, Sequence

from vlprobe import registry
from vlprobe.types import Metric

OLDER = "older version"
LISTED_METRICS = 3  # metrics that are listed by name before the others are counted


def version(run: Mapping) -> tuple[int, frozenset[str]]:
    """Return the versions of a run's probe and metrics; runs with equal versions can be compared.

    Metrics of caption order are ignored, so a model that ran in both orders can be compared with
    one that ran once.

    Args:
        run: The `run` of a manifest.
    """
    return run["probe_version"], frozenset(run["metrics"]) - _order_metrics(run)


def _current(run: Mapping) -> tuple[int, frozenset[str]]:
    """The version of a run with these options by today's code."""
    probe = registry.load_probe(run["probe"])
    return probe.version, _named(probe.metrics_of(run.get("options", {})))


def _order_metrics(run: Mapping) -> frozenset[str]:
    return _named(registry.load_probe(run["probe"]).order_metrics)


def _named(metrics: Sequence[Metric]) -> frozenset[str]:
    return frozenset(f"{metric.name}@{metric.version}" for metric in metrics)


def describe_older(run: Mapping) -> str:
    """Describe how a run's versions differ from the versions of the current code; "" if they are
    equal.
    """
    probe_version, metrics = _current(run)
    changed = sorted(version(run)[1] - metrics)
    words = (
        [f"probe {run['probe']}@{run['probe_version']}"]
        if run["probe_version"] != probe_version
        else []
    )
    words += changed[:LISTED_METRICS]
    if len(changed) > LISTED_METRICS:
        words.append(f"{len(changed) - LISTED_METRICS} more")
    if not words and version(run) != (probe_version, metrics):
        words = ["fewer metrics"]
    return f"{OLDER}: {', '.join(words)}" if words else ""


def same_version(manifests: Sequence[dict], version_of: str = "") -> list[dict]:
    """Return the runs of one question set with the same version, in the given order.

    Args:
        manifests: Oldest first.
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
