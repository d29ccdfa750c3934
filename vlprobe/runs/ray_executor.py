"""Many processes at a run's questions: workers on a Ray cluster write its parts into the same store as one would.

To a worker go the run, the items and names; it loads the model itself and reads its cases from the store. Before a
gallery is searched, its pictures and texts are encoded by all workers, each a share, and kept in the store.
"""

import contextlib
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from vlprobe import __version__, registry
from vlprobe.errors import InvalidInput, VlprobeError
from vlprobe.runs import ray_pool
from vlprobe.runs.executor import Executor, LocalExecutor, Part
from vlprobe.storage.store import Store
from vlprobe.types import Item, Run

if TYPE_CHECKING:
    from vlprobe.runs.request import Request

ENCODED = 2048  # candidates of a gallery that a worker encodes at a time


@dataclass(frozen=True)
class Job:
    """What a worker is told once."""

    run: Run
    items: Sequence[Item]
    request: "Request"  # with the worker's device and threads that read pictures
    store: Store
    threads: int  # of torch; 0: the model needs none


class Worker:
    """An actor of the cluster: one model, asked part by part. All its errors for people are of one message."""

    def hello(self) -> str:
        """The version of vlprobe that it has."""
        return __version__

    def load(self, job: Job) -> None:
        """Loads the model. Raises InvalidInput where it is not the same as on the machine that asks."""
        from vlprobe.runs.request import Progress

        with _told():
            if job.threads:
                import torch

                torch.set_num_threads(job.threads)
            model = registry.load_model(job.run.model, job.request.device, job.request.precision)
            if model.digest != job.run.model_digest:
                raise InvalidInput(
                    f"Model '{job.run.model}' is not the same on all machines: its digest is {model.digest} on a "
                    f"worker and {job.run.model_digest} here. Give all machines the same weights and packages."
                )
            probe = registry.load_probe(job.run.probe)
            self.own = LocalExecutor(job.run, job.items, probe, model, job.request, job.store, Progress())
            self.stale = False  # whether others have encoded meanwhile what is to be found

    def encode(self, part: Part) -> None:
        """Encodes what a part names."""
        with _told():
            self.stale = True
            self.own.encode(part)

    def encode_candidates(self, first: int, last: int) -> None:
        """Encodes these candidates of the galleries."""
        with _told():
            self.stale = True
            self.own.encode_candidates(first, last)

    def spread(self, sample: Sequence[int]) -> float:
        """The model's similarity spread over the items of these places."""
        with _told():
            own = self._fresh()
            return own.spread([own.items[place] for place in sample])

    def score(self, part: Part) -> None:
        """Scores a part and writes it to the store."""
        with _told():
            self._fresh().score([part])

    def close(self) -> None:
        """Writes what waits to be kept."""
        with _told():
            self.own.close()

    def _fresh(self) -> LocalExecutor:
        if self.stale:
            self.own.reopen()
            self.stale = False
        return self.own


@contextlib.contextmanager
def _told() -> Iterator[None]:
    """Errors made of one message, which is what can be sent."""
    try:
        yield
    except VlprobeError as error:
        raise InvalidInput(str(error)) from None


class RayExecutor(Executor):
    """The workers of a cluster that answer parts of a run, as long as the block runs; each loads its own model.

    All write to the store, which has the same address on each machine.
    """

    def __enter__(self) -> "RayExecutor":
        """Gets ready to hire. Raises InvalidInput where no machine of the cluster has what a worker needs."""
        probe, request = self.probe, self.request
        if probe.needs == "gallery" and not request.keep_embeddings:
            raise InvalidInput(
                f"Probe '{probe.name}' on Ray shares its gallery through kept embeddings. Leave out "
                "--no-embedding-cache, or choose --executor local."
            )
        self.total = self.cases.manifest()["n_cases"]
        threads = sys.modules["torch"].get_num_threads() if "torch" in sys.modules else 0
        self.fast = takes_gpu(request.device)
        cpus = 1 if self.fast else max(threads, 1)
        if not ray_pool.room(cpus, int(self.fast)):
            most = int(max((own.get("CPU", 0) for own in ray_pool.machines()), default=0))
            raise InvalidInput(
                f"A worker takes as many CPU slots as torch has threads, {cpus}, and the largest machine of the Ray "
                f"cluster has {most}. Choose --threads {max(most, 1)}, or `ray start --num-cpus {cpus}`."
            )
        self.told = ("", 0.0, 1.0)
        device, readers = "cuda" if self.fast else "cpu", ray_pool.readers(cpus, int(self.fast))
        job = Job(self.run, self.items, replace(request, device=device, workers=readers), self.store, threads)
        self.crew = ray_pool.Crew(
            Worker, job, cpus, int(self.fast), max(threads, 1), lambda: self.progress.update(*self.told)
        )
        return self

    def work(self, sample: Sequence[Item], parts: Sequence[Part]) -> float:
        """Scores these parts, and returns the model's similarity spread over a sample of items."""
        if self.probe.needs == "gallery" and parts:
            self._encode(parts)
        finished = self.total - sum(last - first for first, last in parts)
        found = []

        def done(task: ray_pool.Task, answer: object) -> None:
            nonlocal finished
            if task[0] == "spread":
                found.append(answer)
            else:
                (first, last), *_ = task[1]
                finished += last - first
                self._tell(self.label, finished, self.total)

        self._tell(self.label, finished, self.total)
        place = {id(item): number for number, item in enumerate(self.items)}
        sampled = tuple(place[id(item)] for item in sample)
        self.crew.do([("spread", (sampled,)), *(("score", (part,)) for part in parts)], done)
        return found[0]

    def score(self, parts: Sequence[Part]) -> None:
        """Scores these parts and keeps each in the store."""
        self.crew.do([("score", (part,)) for part in parts], lambda task, answer: None)

    def _encode(self, parts: Sequence[Part]) -> None:
        images, texts = self.probe.candidates(self.run, self.items, self.blocks, self.store.root)
        n = len(images) + len(texts)
        tasks: list[ray_pool.Task] = [("encode", (part,)) for part in parts]
        tasks += [("encode_candidates", (start, min(start + ENCODED, n))) for start in range(0, n, ENCODED)]
        label, finished = f"{self.label}: embeddings", 0

        def done(task: ray_pool.Task, answer: object) -> None:
            nonlocal finished
            finished += 1
            self._tell(label, finished, len(tasks))

        self._tell(label, 0, len(tasks))
        self.crew.do(tasks, done)

    def _tell(self, label: str, done: float, total: float) -> None:
        self.told = (label, done, total)
        self.progress.update(label, done, total)

    def __exit__(self, *failed: object) -> None:
        """Ends the workers: at once where something failed, else when they have written what they hold."""
        self.crew.end(at_once=failed[0] is not None)


def takes_gpu(device: str) -> bool:
    """Whether each worker takes a GPU. Raises InvalidInput for a device that Ray does not deal out."""
    if device not in ("auto", "cpu", "cuda"):
        raise InvalidInput(f"Device '{device}' cannot be had on Ray, which deals out GPUs. Choose auto, cpu or cuda.")
    has = bool(ray_pool.room(1, 1))
    if device == "cuda" and not has:
        raise InvalidInput("No machine of the Ray cluster has a GPU. Choose --device cpu, or `ray start --num-gpus 1`.")
    return has and device != "cpu"
