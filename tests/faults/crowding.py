"""Four runs and a reader use one cache at the same time."""

from pathlib import Path

from tests.faults import forks
from vlprobe.storage.store import Store

PAIRS = (("control:random", "control:constant"), ("control:constant", "control:random"))


def crowd(folder: Path, probe: str) -> dict[str, object]:
    """Run both controls in four processes, in two orders, while a fifth process reads. Compare the results with those
    of a single run."""
    requests = [forks.request(folder, probe, *models) for models in PAIRS * 2]
    forks.run(requests[0], folder / "alone")
    cache = folder / "crowd"
    cache.mkdir()
    reader = forks.forked(lambda: _read(cache, folder / "reads"))
    runners = [forks.forked(lambda own=own: forks.run(own, cache)) for own in requests]
    codes = [forks.ended(pid) for pid in runners]
    (folder / "reads.stop").touch()
    read = forks.ended(reader)
    lines = (folder / "reads").read_text().splitlines()
    same = forks.results(cache) == forks.results(folder / "alone")
    return {
        "codes": codes,
        "reader": read,
        "reads": len(lines),
        "seen": sorted(set(lines)),
        "same": same,
    }


def _read(cache: Path, out: Path) -> None:
    """Read all stored runs in a loop. Any error ends the process with exit code 1."""
    from vlprobe import views

    store = Store(cache)
    with out.open("w") as handle:
        while True:
            last = out.with_suffix(".stop").exists()
            stored = views.runs.runs(store)
            for key in stored["case_key"].unique():
                views.estimates.estimates(views.runs.question_set(store, key))
                for model in views.runs.question_set(store, key).models:
                    views.cases.failures(
                        views.runs.question_set(store, key),
                        views.filter.Filter(model=model, kind="", outcome="all"),
                    )
            handle.write(f"{len(stored)}\n")
            if last:
                return
