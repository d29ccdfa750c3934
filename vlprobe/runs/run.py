"""Plan (names to pinned Runs) and execute: the one way from a dataset, a probe and models to stored results.

The questions are written first and shared by all models; each model then answers them part by part. A part that is on
disk is not asked again, so that the same call resumes after a crash, a cancel or a full disk.
"""

import contextlib
import functools
from collections.abc import Mapping
from dataclasses import replace

from vlprobe import registry
from vlprobe.errors import InvalidInput
from vlprobe.models import frozen
from vlprobe.models.doctor import examine as doctor_examine
from vlprobe.probes.fit import check_fit
from vlprobe.runs import ray_pool
from vlprobe.runs.answers import answer
from vlprobe.runs.executor import LocalExecutor
from vlprobe.runs.questions import ask
from vlprobe.runs.ray_executor import RayExecutor
from vlprobe.runs.request import Progress, Request
from vlprobe.storage import files
from vlprobe.storage.access import refuse_writing
from vlprobe.storage.store import Store
from vlprobe.types import Dataset, Item, Model, Probe, Run
from vlprobe.types.options import Option, parse_options

EXECUTORS = {"local": LocalExecutor, "ray": RayExecutor}


LEAST_MEMORY = 256  # MiB; what stays in memory however little is allowed


SETTINGS = (  # how a run is made, whatever the probe
    Option(
        name="limit",
        default=Request.limit,
        label="Only the first pictures, 0: all",
        help="So many items of the dataset, from its beginning.",
        minimum=0,
    ),
    Option(
        name="seed",
        default=Request.seed,
        label="Seed",
        help="Of every draw: the same seed makes the same questions.",
    ),
    Option(
        name="device",
        default=Request.device,
        label="Device",
        help="auto takes cuda, then mps, then cpu.",
        choices=("auto", "cpu", "cuda", "mps"),
        pattern="cuda:[0-9]{1,3}",
        expected="auto, cpu, cuda, cuda:N or mps",
    ),
    Option(
        name="precision",
        default=Request.precision,
        label="Precision",
        help="Of the model's arithmetic; another one is another model to all results.",
        choices=frozen.PRECISIONS,
    ),
    Option(
        name="batch_size",
        default=Request.batch_size,
        label="Batch size",
        help="Pictures or texts that a model embeds at once: changes the speed, and the memory of the device.",
        minimum=1,
        maximum=65_536,
    ),
    Option(
        name="workers",
        default=Request.workers,
        label="Workers",
        help="Threads that open pictures, processes that edit captions.",
        minimum=1,
        maximum=1024,
    ),
    Option(
        name="memory",
        default=Request.memory,
        label="Memory in MiB",
        help="What a run may take beside the model's weights.",
        minimum=LEAST_MEMORY,
    ),
    Option(
        name="keep_embeddings",
        default=Request.keep_embeddings,
        label="Keep embeddings",
        help="Later runs over the same pictures and texts are then faster.",
    ),
    Option(
        name="examine",
        default=Request.examine,
        label="Examine the models",
        help="Puts each model to the checks that a healthy model passes, once for each dataset.",
    ),
    Option(
        name="executor",
        default=Request.executor,
        label="Runs on",
        help="local: this machine; ray: the machines of a Ray cluster.",
        choices=tuple(EXECUTORS),
    ),
    Option(
        name="ray_address",
        default=Request.ray_address,
        label="Address of the Ray cluster",
        help="HOST:PORT, or auto; empty: a cluster of this machine alone.",
    ),
)


def execute(request: Request, store: Store, progress: Progress | None = None) -> list[dict]:
    """Runs what is asked for and is not stored yet.

    Returns:
        The manifest of each model's run, in the order of the request. What is finished stays when a later model fails.
    """
    progress = progress or Progress()
    parse_options(SETTINGS, {option.name: getattr(request, option.name) for option in SETTINGS}, "A run")
    with ray_pool.joined(request.ray_address) if request.executor == "ray" else contextlib.nullcontext():
        return _execute(request, store, progress)


def _execute(request: Request, store: Store, progress: Progress) -> list[dict]:
    unwritable = _unwritable(store)
    executor = EXECUTORS[request.executor]
    device = request.device if request.executor == "local" else "cpu"  # the workers on a cluster choose their own
    probe = registry.load_probe(request.probe)
    options = parse_options(probe.options, request.options, f"Probe '{probe.name}'")
    probe.check_options(options)
    options = probe.pin(options, store.root)
    name = request.dataset or probe.dataset
    progress.update(f"Reading {name}", 0, 1)
    dataset = registry.load_dataset(name, store.root)
    items = [_found(item) for item in (dataset.items[: request.limit] if request.limit else dataset.items)]
    manifests = []
    for name in request.models:
        progress.update(f"Loading {name}", 0, 1)
        model = registry.load_model(name, device, request.precision)
        check_fit(model, probe)
        run = plan(model, dataset, probe, options, request)
        if unwritable:
            if not store.run(run.key).complete:
                raise unwritable
            manifests.append(store.run(run.key).manifest())
            continue
        busy = functools.partial(progress.update, f"{run.model} on {run.dataset}: another process is at it", 0, 1)
        with files.lock(store.cases(run.case_key).folder / ".lock", busy):
            ask(run, dataset, items, probe, store, progress, request.workers)
        if not store.run(run.key).complete:
            with files.lock(store.run(run.key).folder / ".lock", busy):
                if not store.run(run.key).complete:
                    with executor(run, items, probe, model, request, store, progress) as by:
                        answer(by)
        examined = any(one.dataset_digest == dataset.digest for one in doctor_examine.load(store, model.digest))
        if request.examine and not examined and doctor_examine.sample(dataset.items, model):
            doctor_examine.examine(model, dataset, store.root, progress.update)
        manifests.append(store.run(run.key).manifest())
    return manifests


def _unwritable(store: Store) -> InvalidInput | None:
    """Why nothing can be written to the store, which may still hold every run that is asked for; None where it can be.

    Raises InvalidInput where it holds no run at all: better now than after a model was loaded.
    """
    refuse_writing()
    try:
        store.require_writable()
    except InvalidInput as error:
        if not any(store.root.glob("runs/*/manifest.json")):
            raise
        return error
    return None


def _found(item: Item) -> Item:
    """The item with whole paths, so that its pictures are found from wherever the results are read."""
    whole = {
        name: replace(picture, path=picture.path.resolve())
        for name in ("image", "foil_image")
        if (picture := getattr(item, name))
    }
    return replace(item, **whole)


def plan(model: Model, dataset: Dataset, probe: Probe, options: Mapping[str, object], request: Request) -> Run:
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
