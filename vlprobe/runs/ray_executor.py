"""Scoring of a run on a Ray cluster. The workers write parts to the store, as a single process does.

A worker receives the run and the items, loads the model itself and reads its cases from the store. Ray
assigns the tasks, reuses worker processes, and repeats the tasks of lost workers. Before a
gallery is searched, the workers share the work of encoding its pictures and texts and store the embeddings.
"""

import functools
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

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

Task = tuple[str, Sequence]  # kind, and the range of cases, items, pictures or texts


@dataclass(frozen=True)
class RayJob:
    """The run and settings that every worker receives."""

    run: Run
    items: Sequence[Item]
    request: Request  # with the worker's device and number of picture-reading threads
    store: Store
    threads: int  # torch threads; 0: the model does not need torch
    version: str = __version__

    def load(self) -> LocalExecutor:
        """Load the model on a worker. Raises InvalidInput if the model or the vlprobe version differs from the one on
        the requesting machine.
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


@functools.lru_cache(maxsize=1)  # a worker gets many tasks from one run
def _loaded(job_ref: Any) -> LocalExecutor:
    import ray

    job: Any = ray.get(job_ref)
    return job.load()


def do_task(job_refs: Sequence[Any], kind: str, values: Sequence) -> tuple[float, str]:
    """Do a task on a worker. Returns the similarity spread (NaN for other tasks) and the message of a VlprobeError, or
    "".

    Errors are returned as messages because Ray would wrap an exception in its own.

    Args:
        job_refs: A list with the reference to a RayJob; in a list, Ray does not fetch the job for each task.
        kind: "spread", "score", "images" or "texts".
        values: Item numbers, a range of cases, picture names, or texts.
    """
    spread = float("nan")
    try:
        with plugin_errors():
            executor = _loaded(job_refs[0])
            if kind == "spread":
                spread = executor.spread([executor.context.items[code] for code in values])
            elif kind == "score":
                executor.score([(values[0], values[1])])
            elif kind == "images":
                executor.encoder.images([Picture.from_name(name) for name in values])
            else:
                executor.encoder.texts(values, keep=True)
            executor.encoder.flush()  # Ray may end this process at any time
    except VlprobeError as error:
        return spread, str(error)
    return spread, ""


class RayExecutor(Executor):
    """Executor that scores parts on Ray workers. Raises InvalidInput if no machine has enough resources."""

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
        if not any(each.get("CPU", 0) >= cpus and each.get("GPU", 0) >= gpus for each in machines):
            raise InvalidInput(
                "No machine in the Ray cluster has what a worker needs: CPUs for its torch "
                f"threads ({cpus}), and {gpus} GPUs. Choose --threads 1 or --device cpu, or `ray "
                "start` with --num-cpus and --num-gpus."
            )
        readers = picture_readers(machines) if gpus else cpus
        request = replace(request, device="cuda" if gpus else "cpu", workers=readers)
        self._job = ray.put(RayJob(context.run, context.items, request, context.store, threads))
        self._options = {
            "num_cpus": cpus,
            "num_gpus": gpus,
            "max_retries": TRIES - 1,
            "scheduling_strategy": "SPREAD",  # not the first machine alone, as by default while it is half free
            "max_calls": 0,  # a process with a GPU is kept, too
            "runtime_env": {"env_vars": worker_environment(max(threads, 1))},
        }

    def score(self, case_ranges: Sequence[CaseRange]) -> None:
        """Score the given parts and write each part to the store."""
        self.spread_and_score([], case_ranges)

    def spread_and_score(self, sample: Sequence[Item], case_ranges: Sequence[CaseRange]) -> float:
        """Compute the spread and the scores at the same time on different workers, after the gallery is encoded."""
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
        """Return the tasks that embed the pictures and texts in the galleries and in the given parts."""
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
        """Run tasks on the cluster, and yield the kind and the similarity spread of each task when it is finished.

        Progress is reported at least twice a second, so that a cancellation is noticed. However the generator ends, no
        task keeps running.

        Raises:
            InvalidInput: a worker raised a VlprobeError; the message is the same.
            JobFailed: TRIES workers were lost on the same task.
        """
        import ray
        from ray.exceptions import RayError, RayTaskError

        n_done = total - sum(map(_size, tasks))
        self.progress.update(label, n_done, total)
        remote: Any = ray.remote(**self._options)(do_task)
        task_of = {remote.remote([self._job], *task): task for task in tasks}
        try:
            while task_of:
                for reference in ray.wait(list(task_of), timeout=POLL)[0]:
                    spread, error = ray.get(reference)
                    if error:
                        raise InvalidInput(error)
                    task = task_of.pop(reference)
                    n_done += _size(task)
                    yield task[0], spread
                self.progress.update(label, n_done, total)
        except RayTaskError:  # a defect of this program
            raise
        except RayError as error:
            raise JobFailed(
                f"{TRIES} workers in the Ray cluster died on the same task "
                f"({type(error).__name__}). Finished parts are kept; to continue, run the same "
                "command again."
            ) from None
        finally:
            for reference in task_of:
                ray.cancel(reference, force=True)

    def close(self, failed: bool = False) -> None:
        """Do nothing: workers store embeddings after each task, and end with this process."""


def _size(task: Task) -> int:
    """Return how much progress a task counts for: its number of cases, 1 for a gallery task, or 0 for the spread."""
    kind, values = task
    return values[1] - values[0] if kind == "score" else int(kind != "spread")


def takes_gpu(device: str, machines: Sequence[Mapping[str, float]]) -> bool:
    """Return whether each worker uses a GPU. Raises InvalidInput for a device that Ray does not assign."""
    if device not in ("auto", "cpu", "cuda"):
        raise InvalidInput(
            f"Device '{device}' is not available on Ray, which assigns GPUs itself. Choose "
            "auto, cpu or cuda."
        )
    has_gpu = any(machine.get("GPU", 0) >= 1 and machine.get("CPU", 0) >= 1 for machine in machines)
    return device == "cuda" or (device == "auto" and has_gpu)


def picture_readers(machines: Sequence[Mapping[str, float]]) -> int:
    """Return the number of picture-reading threads for a GPU worker: its share of the CPUs."""
    shares = [
        int(each.get("CPU", 0) // each["GPU"]) for each in machines if each.get("GPU", 0) >= 1
    ]
    return max(1, min(shares, default=1))


def worker_environment(threads: int) -> dict[str, str]:
    """Return the environment variables for workers: the number of library threads, and the
    plug-ins and servers that are allowed in this process.
    """
    return {
        "OMP_NUM_THREADS": os.environ.get("OMP_NUM_THREADS", str(threads)),
        PLUGINS: os.environ.get(PLUGINS, ""),
        APIS: os.environ.get(APIS, ""),
    }
