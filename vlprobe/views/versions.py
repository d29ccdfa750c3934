"""Which stored runs may stand beside each other: those whose probe and metrics have the same versions.

Versions rise when numbers move. A run of an older version stays in the store and is listed, marked as such; no table
has it beside a run of another version. `alike` is that rule, and the only place of it.
"""

from collections.abc import Mapping, Sequence

from vlprobe import registry

OLDER = "older version"
NAMED = 3  # metrics that are named before the others are counted


def version(run: Mapping) -> tuple[int, frozenset[str]]:
    """The versions of a run's probe and metrics; equal versions can be compared.

    Args:
        run: The `run` of a manifest.
    """
    return run["probe_version"], frozenset(run["metrics"])


def _today(probe: str) -> tuple[int, frozenset[str]]:
    loaded = registry.load_probe(probe)
    return loaded.version, frozenset(f"{metric.name}@{metric.version}" for metric in loaded.metrics)


def older(run: Mapping) -> str:
    """In what a run is of another version than today's code, in words: "" where in nothing."""
    probe, metrics = _today(run["probe"])
    moved = sorted(set(run["metrics"]) - metrics)
    words = [f"probe {run['probe']}@{run['probe_version']}"] if run["probe_version"] != probe else []
    words += moved[:NAMED] + ([f"{len(moved) - NAMED} more"] if len(moved) > NAMED else [])
    if not words and version(run) != (probe, metrics):
        words = ["fewer metrics"]
    return f"{OLDER}: {', '.join(words)}" if words else ""


def alike(manifests: Sequence[dict], like: str = "") -> list[dict]:
    """Of the runs of one question set those that are shown together, in the order given.

    Args:
        manifests: Oldest first.
        like: The key of the run whose version is wanted; without one it is today's, and where no run has that, the
            version of the newest run.
    """
    if not manifests:
        return []
    versions = {manifest["key"]: version(manifest["run"]) for manifest in manifests}
    today = _today(manifests[0]["run"]["probe"])
    chosen = versions.get(like) or (today if today in versions.values() else versions[manifests[-1]["key"]])
    return [manifest for manifest in manifests if versions[manifest["key"]] == chosen]
