"""Scoring of a run on a Ray cluster; workers write parts to the same store as a single process.

A worker is an actor of Ray Data's `map_batches`. It receives the run and the items, loads the model
itself and reads its cases from the store. Ray places the workers, replaces lost ones and repeats their
tasks. Before a gallery is searched, the workers share the encoding of its pictures and texts and
store the embeddings.
"""

import json
import logging
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from vlprobe import __version__, registry
from vlprobe.errors import InvalidInput, JobFailed, VlprobeError, plugin_errors
from vlprobe.runs.context import RunContext
from vlprobe.runs.executor import CaseRange, Executor, LocalExecutor
from vlprobe.runs.ray_cluster import POLL
from vlprobe.runs.request import Progress, Request
from vlprobe.storage.access import APIS, PLUGINS
from vlprobe.storage.store import Store
from vlprobe.types import Item, Picture, Run

ENCODED = 2048  # pictures or texts of a gallery that a worker embeds at a time
TRIES = 3  # workers that one task may lose
PATIENCE = 120  # seconds without room for any worker after which a run fails
KEPT = "Finished parts are kept; the same command continues from there."

Task = tuple[str, Sequence]  # what to do, and with which range of cases, items, pictures or texts


@dataclass(frozen=True)
class RayJob:
    """The run and the settings that every worker receives."""

    run: Run
    items: Sequence[Item]
    request: Request  # with the worker's device and threads that read pictures
    store: Store
    threads: int  # of torch; 0: the model needs none
    version: str = __version__

    def load(self) -> LocalExecutor:
        """Load the model. Raises InvalidInput if the model or vlprobe differs from that of the
        requesting machine.
        """
        if self.version != __version__:
            raise InvalidInput(
                f"A worker of the Ray cluster has vlprobe {__version__}, but this machine "
                f"has {self.version}. Install the same version on all machines."
            )
        if self.threads:
            import torch

            torch.set_num_threads(self.threads)
        run, request = self.run, self.request
        model = registry.load_model(run.model, request.device, request.precision)
        if model.digest != run.model_digest:
            raise InvalidInput(
                f"Model '{run.model}' differs between machines: its digest is "
                f"{model.digest} on a worker and "
                f"{run.model_digest} here. Install the same weights and packages on all machines."
            )
        context = RunContext(run, self.items, registry.load_probe(run.probe), request, self.store)
        return LocalExecutor(context, model, Progress())


class Worker:
    """An actor that runs one task at a time. It returns the message of a VlprobeError as a value:
    Ray would wrap an exception in its own.
    """

    def __init__(self, job_ref: Any) -> None:
        self._job_ref = job_ref
        self._executor: LocalExecutor | None = None

    def __call__(self, batch: Mapping[str, np.ndarray]) -> dict[str, list]:
        """Do the task in a batch of one row; return it with the similarity spread and the message."""
        task, spread, error = str(batch["task"][0]), float("nan"), ""
        try:
            with plugin_errors():
                spread = self._do(*json.loads(task))
        except VlprobeError as raised:
            error = str(raised)
        return {"task": [task], "spread": [spread], "error": [error]}

    def _do(self, kind: str, values: Sequence) -> float:
        import ray

        job: Any = None if self._executor else ray.get(self._job_ref)
        executor = self._executor = self._executor or job.load()
        spread = float("nan")
        if kind == "spread":
            spread = executor.spread([executor.context.items[code] for code in values])
        elif kind == "score":
            executor.score([(values[0], values[1])])
        elif kind == "images":
            executor.encoder.images([Picture.from_name(name) for name in values])
        else:
            executor.encoder.texts(values, keep=True)
        executor.encoder.flush()  # Ray may end this process at any time
        return spread


@dataclass(frozen=True)
class Result:
    """A finished task, or the reason that no more tasks can be finished."""

    task: str = ""  # as JSON
    spread: float = float("nan")
    error: str = ""  # the message of a VlprobeError of a worker
    failure: str = ""


def run_tasks(
    worker: type, tasks: Sequence[str], options: Mapping[str, Any], patience: int
) -> Iterator[Result]:
    """Run the tasks on workers and yield each result; runs as a Ray task on this machine.

    Ray Data has neither a timeout for the next result nor a way to cancel. In a separate process it
    can be stopped at any time, together with its workers.

    Args:
        worker: Actor class, such as Worker.
        tasks: Tasks as JSON.
        options: Arguments of `map_batches`.
        patience: Seconds to wait for resources for a worker before failing.
    """
    import ray.data
    from ray.exceptions import GetTimeoutError, RayError, RayTaskError

    logging.getLogger("ray.data").setLevel(logging.CRITICAL)  # errors are raised
    context = ray.data.DataContext.get_current()
    context.enable_progress_bars = context.print_on_execution_start = False
    context.wait_for_min_actors_s = patience
    pool = ray.data.ActorPoolStrategy(min_size=1, max_size=len(tasks))
    dataset = ray.data.from_items(
        [{"task": task} for task in tasks], override_num_blocks=len(tasks)
    ).map_batches(worker, batch_size=1, compute=pool, **options)
    try:
        for row in dataset.iter_rows():
            yield Result(row["task"], row["spread"], row["error"])
    except GetTimeoutError:
        yield Result(failure=f"The Ray cluster could not place a worker for {patience} s.")
    except RayTaskError:  # a defect of this program
        raise
    except RayError as error:
        reason = type(error).__name__
        yield Result(
            failure=f"{TRIES} workers of the Ray cluster died on the same task ({reason})."
        )


class RayExecutor(Executor):
    """Scores parts on the workers of a cluster. Raises InvalidInput if none has the required resources."""

    def __init__(self, context: RunContext, progress: Progress) -> None:
        import ray

        probe, request = context.probe, context.request
        if probe.needs == "gallery" and not request.keep_embeddings:
            raise InvalidInput(
                f"Probe '{probe.name}' on Ray needs stored embeddings for its gallery. "
                "Remove --no-embedding-cache, or use --executor local."
            )
        machines = [node["Resources"] for node in ray.nodes() if node["Alive"]]
        gpus = int(takes_gpu(request.device, machines))
        super().__init__(context, progress, large_parts=bool(gpus))
        threads = sys.modules["torch"].get_num_threads() if "torch" in sys.modules else 0
        cpus = 1 if gpus else max(threads, 1)
        largest = int(max((machine.get("CPU", 0) for machine in machines), default=0))
        if largest < cpus:
            raise InvalidInput(
                f"A worker needs one CPU per torch thread ({cpus}), but the largest "
                f"machine of the Ray cluster has {largest}. Choose --threads "
                f"{max(largest, 1)}, or `ray start --num-cpus {cpus}`."
            )
        readers = picture_readers(machines) if gpus else cpus
        request = replace(request, device="cuda" if gpus else "cpu", workers=readers)
        job = RayJob(context.run, context.items, request, context.store, threads)
        self._options = {
            "fn_constructor_args": [ray.put(job)],
            "num_cpus": cpus,
            "num_gpus": gpus,
            "max_task_retries": TRIES - 1,
            "runtime_env": {"env_vars": worker_environment(max(threads, 1))},
        }

    def score(self, case_ranges: Sequence[CaseRange]) -> None:
        """Score these parts and store each."""
        self.spread_and_score([], case_ranges)

    def spread_and_score(self, sample: Sequence[Item], case_ranges: Sequence[CaseRange]) -> float:
        """Compute both at once, on different workers, after the gallery is encoded."""
        if sample and case_ranges and self.context.probe.needs == "gallery":
            tasks = self._gallery_tasks(case_ranges)
            for _ in self._map(f"{self.context.label}: embeddings", tasks, len(tasks)):
                pass
        code_of_item = {id(item): code for code, item in enumerate(self.context.items)}
        codes = [code_of_item[id(item)] for item in sample]
        tasks = [("spread", codes)] if codes else []
        tasks += [("score", case_range) for case_range in case_ranges]
        spreads = dict(self._map(self.context.label, tasks, self.n_cases))
        return spreads.get("spread", float("nan"))

    def _gallery_tasks(self, case_ranges: Sequence[CaseRange]) -> list[Task]:
        """Return tasks that embed the pictures and texts of the galleries and of these cases."""
        context = self.context
        images, texts = context.probe.candidates(
            context.run, context.items, context.read_cases, context.store.root
        )
        names = {
            "images": dict.fromkeys(image.name for image in images),
            "texts": dict.fromkeys(texts),
        }
        for cases in context.case_entry.slices("cases", case_ranges, ["images", "texts"]):
            for kind, distinct in names.items():
                distinct |= dict.fromkeys(cases[kind].combine_chunks().flatten().to_pylist())
        return [
            (kind, list(distinct)[start : start + ENCODED])
            for kind, distinct in names.items()
            for start in range(0, len(distinct), ENCODED)
        ]

    def _map(self, label: str, tasks: Sequence[Task], total: int) -> Iterator[tuple[str, float]]:
        """Yield the kind of each finished task and its similarity spread; report progress, also twice a second if no
        task finishes, so that a cancel is noticed. Whatever ends this, no worker is left.

        Raises:
            InvalidInput: A worker raised a VlprobeError of this message.
            JobFailed: No worker can be had, or TRIES workers were lost with the same task.
        """
        n_done = total - sum(map(_size, tasks))
        self.progress.update(label, n_done, total)
        if not tasks:
            return
        import ray
        from ray.exceptions import RayError, RayTaskError
        from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

        here = NodeAffinitySchedulingStrategy(ray.get_runtime_context().get_node_id(), soft=False)
        results: Any = (
            ray.remote(run_tasks)
            .options(num_returns="streaming", num_cpus=0, max_retries=0, scheduling_strategy=here)
            .remote(Worker, [json.dumps(task) for task in tasks], self._options, PATIENCE)
        )
        try:
            while True:
                if not ray.wait([results], timeout=POLL)[0]:
                    self.progress.update(label, n_done, total)
                    continue
                if (reference := next(results, None)) is None:
                    return
                result: Result = ray.get(reference)
                if result.error:
                    raise InvalidInput(result.error)
                if result.failure:
                    raise JobFailed(f"{result.failure} {KEPT}")
                kind, values = json.loads(result.task)
                n_done += _size((kind, values))
                self.progress.update(label, n_done, total)
                yield kind, result.spread
        except RayTaskError:  # a defect of this program
            raise
        except RayError as error:
            raise JobFailed(
                "The Ray cluster lost the process that assigns tasks "
                f"({type(error).__name__}). {KEPT}"
            ) from None
        finally:
            ray.cancel(results, force=True)  # the workers end with the process that started them

    def close(self, failed: bool = False) -> None:
        """Do nothing: workers store embeddings after each task, and end with the last one."""


def _size(task: Task) -> int:
    """Return the progress of a task: its cases, one for a task of a gallery, or 0."""
    kind, values = task
    return values[1] - values[0] if kind == "score" else int(kind != "spread")


def takes_gpu(device: str, machines: Sequence[Mapping[str, float]]) -> bool:
    """Return whether each worker uses a GPU. Raises InvalidInput for a device that Ray does not
    assign.
    """
    if device not in ("auto", "cpu", "cuda"):
        raise InvalidInput(
            f"Device '{device}' is not available on Ray, which assigns GPUs itself. Choose "
            "auto, cpu or cuda."
        )
    has_gpu = any(machine.get("GPU", 0) >= 1 and machine.get("CPU", 0) >= 1 for machine in machines)
    if device == "cuda" and not has_gpu:
        raise InvalidInput(
            "No machine of the Ray cluster has a GPU. Choose --device cpu, or `ray start --num-gpus 1`."
        )
    return has_gpu and device != "cpu"


def picture_readers(machines: Sequence[Mapping[str, float]]) -> int:
    """Return the number of threads that read pictures for a GPU worker: its share of the CPUs."""
    shares = [
        int(each.get("CPU", 0) // each["GPU"]) for each in machines if each.get("GPU", 0) >= 1
    ]
    return max(1, min(shares, default=1))


def worker_environment(threads: int) -> dict[str, str]:
    """Return the variables that workers receive from this process: threads of libraries, and the
    plug-ins and servers that were allowed here.
    """
    return {
        "OMP_NUM_THREADS": os.environ.get("OMP_NUM_THREADS", str(threads)),
        PLUGINS: os.environ.get(PLUGINS, ""),
        APIS: os.environ.get(APIS, ""),
    }
