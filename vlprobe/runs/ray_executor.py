"""Scoring of a run on a Ray cluster. The workers write parts to the store, as a single process does.

A worker receives the run and the items, loads the model itself and reads its cases from the store. Ray
assigns the tasks, reuses worker processes, and repeats the tasks of lost workers. Before a
gallery is searched, the workers share the work of encoding its pictures and texts and store the embeddings.
Tasks are Ray's own and not those of Ray Data, whose results have no timeout, so that a canceled run left a thread.
"""

import functools
import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

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


# What to do ("score", "spread", "images" or "texts"); a range of cases, items, picture names or texts;
# and how much progress it counts for
Task = tuple[str, Sequence, int]


class RayJob(NamedTuple):
    """The run and settings that every worker receives."""

    run: Run
    items: Sequence[Item]
    request: Request  # with the worker's device and number of picture-reading threads
    store: Store
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
        run, request = self.run, self.request
        model = registry.load_model(run.model, request.device, request.precision)
        if model.digest != run.model_digest:
            raise InvalidInput(
                f"Model '{run.model}' differs between machines: its digest is {model.digest} on a worker and "
                f"{run.model_digest} here. Install the same weights and packages on all machines."
            )
        context = RunContext(run, self.items, registry.load_probe(run.probe), request, self.store)
        return LocalExecutor(context, model, Progress())


@functools.lru_cache(maxsize=1)  # a worker gets many tasks from one run
def _loaded(job_ref: Any) -> LocalExecutor:
    import ray

    job: RayJob = ray.get(job_ref)
    return job.load()


@plugin_errors()
def do_task(job_refs: Sequence[Any], kind: str, values: Sequence) -> float:
    """Do a task on a worker. Returns the similarity spread, or NaN for other tasks.

    `job_refs` is a list with the reference to a RayJob; in a list, Ray does not fetch the job for each task.
    """
    executor, spread = _loaded(job_refs[0]), float("nan")
    if kind == "spread":
        spread = executor.spread(values)
    elif kind == "score":
        executor.score([(values[0], values[1])])
    elif kind == "images":
        executor.encoder.images([Picture.from_name(name) for name in values])
    else:
        executor.encoder.texts(values, keep=True)
    executor.encoder.flush()  # Ray may end this process at any time
    return spread


class RayExecutor(Executor):
    """Executor that scores parts on Ray workers. Raises InvalidInput if no machine has enough resources."""

    def __init__(self, context: RunContext, progress: Progress) -> None:
        import ray

        request = context.request
        machines = [node["Resources"] for node in ray.nodes() if node["Alive"]]
        gpus = int(takes_gpu(request.device, machines))
        super().__init__(context, progress, large_parts=bool(gpus))
        threads = sys.modules["torch"].get_num_threads() if "torch" in sys.modules else 1
        cpus = 1 if gpus else threads
        if not any(each.get("CPU", 0) >= cpus and each.get("GPU", 0) >= gpus for each in machines):
            raise InvalidInput(
                f"A worker needs a machine with {cpus} CPUs (one per PyTorch thread) and "
                f"{gpus} GPUs, but the Ray cluster has none. Use --threads 1 or --device cpu, "
                "or run `ray start` with higher --num-cpus and --num-gpus."
            )
        request = (
            replace(request, device="cuda")
            if gpus
            else replace(request, device="cpu", workers=cpus)
        )
        self._job = ray.put(RayJob(context.run, context.items, request, context.store))
        self._options = {
            "num_cpus": cpus,
            "num_gpus": gpus,
            "max_retries": TRIES - 1,
            "scheduling_strategy": "SPREAD",  # not the first machine alone, as by default while it is half free
            "max_calls": 0,  # a process with a GPU is kept, too
            "runtime_env": {"env_vars": worker_environment(threads)},
        }

    def score(self, case_ranges: Sequence[CaseRange]) -> None:
        """Score the given parts and write each part to the store."""
        self.spread_and_score([], case_ranges)

    def spread_and_score(self, sample: Sequence[Item], case_ranges: Sequence[CaseRange]) -> float:
        """Compute the spread and the scores at the same time on different workers, after the gallery is encoded."""
        context = self.context
        tasks = [("score", part, part[1] - part[0]) for part in case_ranges]
        shares_gallery = context.probe.needs == "gallery" and context.request.keep_embeddings
        if sample and tasks and shares_gallery:
            inputs = context.inputs()
            names = {
                "images": [picture.name for picture, _ in inputs.pictures()],
                "texts": [text for text, _ in inputs.texts()],
            }
            encoding = [
                (kind, distinct[start : start + ENCODED], 1)
                for kind, distinct in names.items()
                for start in range(0, len(distinct), ENCODED)
            ]
            self._do(f"{context.label}: embeddings", encoding, len(encoding))
        return self._do(
            context.label, [("spread", sample, 0), *tasks] if sample else tasks, self.n_cases
        )

    def _do(self, label: str, tasks: Sequence[Task], total: int) -> float:
        """Run tasks on the cluster. Returns the similarity spread if it is one of them, or NaN.

        Progress is reported at least twice a second, so that a cancellation is noticed. However this ends, no
        task keeps running.

        Raises:
            VlprobeError: a worker raised it.
            JobFailed: TRIES workers were lost on the same task.
        """
        import ray
        from ray.exceptions import RayError, RayTaskError

        n_done, spread = total - sum(size for _, _, size in tasks), float("nan")
        self.progress.update(label, n_done, total)
        remote: Any = ray.remote(**self._options)(do_task)
        task_of = {
            remote.remote([self._job], kind, values): (kind, size) for kind, values, size in tasks
        }
        try:
            while task_of:
                for reference in ray.wait(list(task_of), timeout=POLL)[0]:
                    result = ray.get(reference)
                    kind, size = task_of.pop(reference)
                    n_done += size
                    spread = result if kind == "spread" else spread
                self.progress.update(label, n_done, total)
        except RayTaskError as error:
            if isinstance(error.cause, VlprobeError):
                raise error.cause from None
            raise  # a defect of this program
        except RayError as error:
            raise JobFailed(
                f"{TRIES} workers in the Ray cluster died on the same task "
                f"({type(error).__name__}). Finished parts are kept; to continue, run the same "
                "command again."
            ) from None
        finally:
            for reference in task_of:
                ray.cancel(reference, force=True)
        return spread


def takes_gpu(device: str, machines: Sequence[Mapping[str, float]]) -> bool:
    """Return whether each worker uses a GPU. Raises InvalidInput for a device that Ray does not assign."""
    if device not in ("auto", "cpu", "cuda"):
        raise InvalidInput(
            f"Device '{device}' is not available on Ray, which assigns GPUs itself. Choose "
            "auto, cpu or cuda."
        )
    has_gpu = any(machine.get("GPU", 0) >= 1 and machine.get("CPU", 0) >= 1 for machine in machines)
    return device == "cuda" or (device == "auto" and has_gpu)


def worker_environment(threads: int) -> dict[str, str]:
    """Return workers' environment variables: torch threads, and the plug-ins and servers allowed in this process."""
    return {
        "OMP_NUM_THREADS": str(threads),
        **{name: os.environ.get(name, "") for name in (PLUGINS, APIS)},
    }
