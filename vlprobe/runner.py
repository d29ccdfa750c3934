"""Plan (names to pinned Runs) and execute: the one way from a dataset, a probe and models to stored results.

The questions are written first and shared by all models; each model then answers them part by part. A part that is on
disk is not asked again, so that the same call resumes after a crash, a cancel or a full disk.
"""

import contextlib
import functools
import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from vlprobe import cluster, doctor, files, registry, scoring
from vlprobe.errors import InvalidInput
from vlprobe.runner_answers import answer
from vlprobe.runner_parts import LocalExecutor
from vlprobe.runner_questions import ask
from vlprobe.runner_ray import RayExecutor
from vlprobe.store import Store
from vlprobe.types import Dataset, DualEncoder, Item, Probe, Run

EXECUTORS = {"local": LocalExecutor, "ray": RayExecutor}
LEAST_MEMORY = 256  # MiB; what stays in memory however little is allowed


@dataclass(frozen=True)
class Request:
    """What a person asks for: names and options, nothing loaded yet."""

    models: tuple[str, ...]
    dataset: str  # "": the probe's demo data
    probe: str
    options: Mapping[str, object] = field(default_factory=dict)
    seed: int = 42
    limit: int = 0  # items; 0: all
    device: str = "auto"
    precision: str = "fp32"
    batch_size: int = 64
    workers: int = min(16, os.cpu_count() or 1)  # threads that read pictures, processes that make edits
    memory: int = 2048  # MiB that a run may take beside the model's weights
    keep_embeddings: bool = True
    examine: bool = True  # put the model to the doctor's checks too, once for each dataset
    executor: str = "local"  # this process, or the machines of a "ray" cluster
    ray_address: str = ""  # of that cluster; "": one of this machine alone


class Progress:
    """Told how far a run is; the command line and jobs override `update`, which may raise to stop."""

    def update(self, label: str, done: float, total: float) -> None:
        """`label` says what is being done; `done` of `total` cases or items."""


def execute(request: Request, store: Store, progress: Progress | None = None) -> list[dict]:
    """Runs what is asked for and is not stored yet.

    Returns:
        The manifest of each model's run, in the order of the request. What is finished stays when a later model fails.
    """
    progress = progress or Progress()
    store.writable()
    if request.limit < 0 or request.batch_size < 1 or request.workers < 1:
        raise InvalidInput("The limit must be 0 or more, batch size and workers 1 or more.")
    if request.memory < LEAST_MEMORY:
        raise InvalidInput(f"A memory of {request.memory} MiB is too little. Expected {LEAST_MEMORY} or more.")
    if request.executor not in EXECUTORS:
        raise InvalidInput(f"Executor '{request.executor}' is not known. Expected one of: {', '.join(EXECUTORS)}.")
    with cluster.joined(request.ray_address) if request.executor == "ray" else contextlib.nullcontext():
        return _execute(request, store, progress)


def _execute(request: Request, store: Store, progress: Progress) -> list[dict]:
    executor = EXECUTORS[request.executor]
    device = request.device if request.executor == "local" else "cpu"  # the workers on a cluster choose their own
    probe = registry.load_probe(request.probe)
    options = probe.pin(_options(probe, request.options), store.root)
    name = request.dataset or probe.dataset
    progress.update(f"Reading {name}", 0, 1)
    dataset = registry.load_dataset(name, store.root)
    items = [_found(item) for item in (dataset.items[: request.limit] if request.limit else dataset.items)]
    manifests = []
    for name in request.models:
        progress.update(f"Loading {name}", 0, 1)
        model = registry.load_model(name, device, request.precision)
        scoring.refuse_unfit(model, probe)
        run = plan(model, dataset, probe, options, request)
        busy = functools.partial(progress.update, f"{run.model} on {run.dataset}: another process is at it", 0, 1)
        with files.turn(store.cases(run.case_key).folder / ".lock", busy):
            ask(run, dataset, items, probe, store, progress, request.workers)
        if not store.run(run.key).complete:
            with files.turn(store.run(run.key).folder / ".lock", busy):
                if not store.run(run.key).complete:
                    with executor(run, items, probe, model, request, store, progress) as by:
                        answer(by)
        examined = any(one.dataset_digest == dataset.digest for one in doctor.load(store, model.digest))
        if request.examine and not examined and doctor.sample(dataset.items, model):
            doctor.examine(model, dataset, store.root, progress.update)
        manifests.append(store.run(run.key).manifest())
    return manifests


def _found(item: Item) -> Item:
    """The item with whole paths, so that its pictures are found from wherever the results are read."""
    whole = {
        name: replace(picture, path=picture.path.resolve())
        for name in ("image", "other")
        if (picture := getattr(item, name))
    }
    return replace(item, **whole)


def _options(probe: Probe, given: Mapping[str, object]) -> dict[str, object]:
    """The probe's options with what is given in place of the defaults, each of the type of its default."""
    unknown = sorted(set(given) - set(probe.defaults))
    if unknown:
        raise InvalidInput(f"Probe '{probe.name}' has no option '{unknown[0]}'. It has: {', '.join(probe.defaults)}.")
    return {
        name: _like(default, given[name], name) if name in given else default
        for name, default in probe.defaults.items()
    }


def _like(default: object, value: object, name: str) -> object:
    words = {"true": True, "1": True, "false": False, "0": False}
    if isinstance(default, bool):
        if str(value).lower() in words:
            return words[str(value).lower()]
        expected = "true or false"
    elif isinstance(default, int):
        if str(value).isdecimal():
            return int(str(value))
        expected = "a whole number"
    elif isinstance(default, list):
        values = list(value) if isinstance(value, list | tuple) else [value] if value not in ("", None) else []
        values = [_like(default[0], one, name) if default else str(one) for one in values]
        if repeated := [one for one in dict.fromkeys(values) if values.count(one) > 1]:
            raise InvalidInput(f"Option '{name}' names '{repeated[0]}' more than once. Name each value once.")
        return values
    else:
        return str(value)
    raise InvalidInput(f"Option '{name}' is '{value}'. Expected {expected}.")


def plan(model: DualEncoder, dataset: Dataset, probe: Probe, options: Mapping[str, object], request: Request) -> Run:
    """Pins everything that can change a number."""
    return Run(
        model=model.name,
        model_digest=model.digest,
        dataset=dataset.name,
        dataset_digest=dataset.digest,
        probe=probe.name,
        probe_version=probe.version,
        metrics=tuple(f"{metric.name}@{metric.version}" for metric in probe.metrics),
        options=dict(options),
        seed=request.seed,
        limit=request.limit if request.limit < len(dataset.items) else 0,
    )
