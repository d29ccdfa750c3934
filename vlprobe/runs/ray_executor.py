"""Scores the cases of a run on a Ray cluster: its workers write parts into the same store as one
process would.

To a worker go the run and names; it loads the model itself, and reads its cases from the store, and
of the items the blocks that it needs. Before a gallery is searched, its pictures and texts are
embedded by all workers, each a share, and kept in the store. Each worker then reads the gallery
block by block and searches it for the cases of its parts.
"""

import contextlib
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from vlprobe import __version__, registry
from vlprobe.errors import InvalidInput, StoredDamage, VlprobeError
from vlprobe.runs import ray_pool
from vlprobe.runs.context import RunContext
from vlprobe.runs.executor import CaseRange, Executor, LocalExecutor
from vlprobe.runs.item_blocks import ItemBlocks
from vlprobe.runs.request import Progress, Request
from vlprobe.storage.store import Store
from vlprobe.types import Item, Run

ENCODED = 2048  # candidates of a gallery that a worker embeds at a time


@dataclass(frozen=True)
class Job:
    """What a worker is sent once."""

    run: Run
    items: Sequence[Item]  # where they are read, a block at a time
    request: Request  # with the worker's device and threads that read pictures
    store: Store
    threads: int  # of torch; 0: the model needs none


class Worker:
    """An actor of the cluster: one model that scores part by part. All its VlprobeErrors are of
    one message.
    """

    def __init__(self) -> None:
        self._loaded: LocalExecutor | None = None
        self._stale = False  # whether other workers have stored embeddings since this one read them

    def hello(self) -> str:
        """The version of vlprobe that it has."""
        return __version__

    def load(self, job: Job) -> None:
        """Loads the model. Raises InvalidInput where it is not the same as on the machine that
        requests the run.
        """
        with translate_errors():
            if job.threads:
                import torch

                torch.set_num_threads(job.threads)
            model = registry.load_model(job.run.model, job.request.device, job.request.precision)
            if model.digest != job.run.model_digest:
                raise InvalidInput(
                    f"Model '{job.run.model}' is not the same on all machines: its digest is {model.digest} on a "
                    f"worker and {job.run.model_digest} here. Give all machines the same weights and packages."
                )
            context = RunContext(
                job.run, job.items, registry.load_probe(job.run.probe), job.request, job.store
            )
            self._loaded = LocalExecutor(context, model, Progress())
            self._stale = False

    def encode(self, case_range: CaseRange) -> None:
        """Embeds what a part names."""
        with translate_errors():
            self._stale = True
            self._executor.encode(case_range)

    def encode_candidates(self, start: int, stop: int) -> None:
        """Embeds these candidates of the galleries."""
        with translate_errors():
            self._stale = True
            self._executor.encode_candidates(start, stop)

    def spread(self, item_codes: Sequence[int]) -> float:
        """The model's similarity spread over these items."""
        with translate_errors():
            executor = self._refreshed()
            return executor.spread([executor.context.items[code] for code in item_codes])

    def score(self, case_range: CaseRange) -> None:
        """Scores a part and writes it to the store."""
        with translate_errors():
            self._refreshed().score([case_range])

    def close(self) -> None:
        """Writes embeddings that are still in memory."""
        with translate_errors():
            self._executor.close()

    @property
    def _executor(self) -> LocalExecutor:
        if self._loaded is None:
            raise RuntimeError("a worker is sent tasks after its job")
        return self._loaded

    def _refreshed(self) -> LocalExecutor:
        """The executor, with the embeddings that all workers have stored."""
        if self._stale:
            self._executor.reopen()
            self._stale = False
        return self._executor


@contextlib.contextmanager
def translate_errors() -> Iterator[None]:
    """Turns every VlprobeError that Ray cannot send into one that is made of a message alone."""
    try:
        yield
    except StoredDamage:
        raise
    except VlprobeError as error:
        raise InvalidInput(str(error)) from None


class RayExecutor(Executor):
    """Has the parts scored by the workers of a cluster, each of which loads its own model.

    All write to the store, which has the same address on each machine.

    Raises:
        InvalidInput: no machine of the cluster has what a worker needs.
    """

    def __init__(self, context: RunContext, progress: Progress) -> None:
        probe, request = context.probe, context.request
        if probe.needs == "gallery" and not request.keep_embeddings:
            raise InvalidInput(
                f"Probe '{probe.name}' on Ray shares its gallery through kept embeddings. Leave out "
                "--no-embedding-cache, or choose --executor local."
            )
        gpus = int(takes_gpu(request.device))
        super().__init__(context, progress, large_parts=bool(gpus))
        threads = sys.modules["torch"].get_num_threads() if "torch" in sys.modules else 0
        cpus = 1 if gpus else max(threads, 1)
        if not ray_pool.room(cpus, gpus):
            largest = int(
                max((resources.get("CPU", 0) for resources in ray_pool.machines()), default=0)
            )
            raise InvalidInput(
                f"A worker takes as many CPU slots as torch has threads, {cpus}, and the largest machine of the Ray "
                f"cluster has {largest}. Choose --threads {max(largest, 1)}, or `ray start --num-cpus {cpus}`."
            )
        worker_request = replace(
            request, device="cuda" if gpus else "cpu", workers=ray_pool.readers(cpus, gpus)
        )
        items = ItemBlocks.write(context.store, context.run.key, context.items)
        job = Job(context.run, items, worker_request, context.store, threads)
        self._reported = ("", 0.0, 1.0)  # to the progress: label, done, total
        self._crew = ray_pool.Crew(Worker, job, cpus, gpus, max(threads, 1), self._repeat_report)

    def spread(self, sample: Sequence[Item]) -> float:
        """The model's similarity spread over the pictures and captions of these items of the run."""
        return self._do(sample, [])

    def score(self, case_ranges: Sequence[CaseRange]) -> None:
        """Scores these parts and keeps each in the store."""
        self._crew.do(
            [("score", (case_range,)) for case_range in case_ranges], lambda task, returned: None
        )

    def spread_and_score(self, sample: Sequence[Item], case_ranges: Sequence[CaseRange]) -> float:
        """Both at once, by different workers; the embeddings of a gallery before."""
        if self.context.probe.needs == "gallery" and case_ranges:
            self._encode(case_ranges)
        return self._do(sample, case_ranges)

    def _do(self, sample: Sequence[Item], case_ranges: Sequence[CaseRange]) -> float:
        label, total = self.context.label, self.n_cases
        scored = total - sum(stop - start for start, stop in case_ranges)
        spread = float("nan")

        def done(task: ray_pool.Task, returned: float) -> None:
            nonlocal scored, spread
            if task[0] == "spread":
                spread = returned
            else:
                (start, stop), *_ = task[1]
                scored += stop - start
                self._report(label, scored, total)

        self._report(label, scored, total)
        code_of_item = {id(item): code for code, item in enumerate(self.context.items)}
        codes = tuple(code_of_item[id(item)] for item in sample)
        self._crew.do(
            [
                ("spread", (codes,)),
                *(("score", (case_range,)) for case_range in case_ranges),
            ],
            done,
        )
        return spread

    def _encode(self, case_ranges: Sequence[CaseRange]) -> None:
        """Has everything embedded that these parts and the galleries name, each worker a share."""
        context = self.context
        images, texts = context.probe.candidates(
            context.run, context.items, context.read_cases, context.store.root
        )
        n = len(images) + len(texts)
        tasks: list[ray_pool.Task] = [("encode", (case_range,)) for case_range in case_ranges]
        tasks += [
            ("encode_candidates", (start, min(start + ENCODED, n)))
            for start in range(0, n, ENCODED)
        ]
        self._stage("embeddings", tasks)

    def _stage(self, noun: str, tasks: Sequence[ray_pool.Task]) -> None:
        """Has tasks done that come before the scores, and reports how many are."""
        label, n_done = f"{self.context.label}: {noun}", 0

        def done(task: ray_pool.Task, returned: None) -> None:
            nonlocal n_done
            n_done += 1
            self._report(label, n_done, len(tasks))

        self._report(label, 0, len(tasks))
        self._crew.do(tasks, done)

    def _report(self, label: str, done: float, total: float) -> None:
        self._reported = (label, done, total)
        self.progress.update(label, done, total)

    def _repeat_report(self) -> None:
        """Reports the same again while nothing is finished, so that a cancel is noticed."""
        self.progress.update(*self._reported)

    def close(self, failed: bool = False) -> None:
        """Ends the workers: after a failure at once, else when they have written what they hold."""
        self._crew.end(at_once=failed)


def takes_gpu(device: str) -> bool:
    """Whether each worker takes a GPU. Raises InvalidInput for a device that Ray does not deal out."""
    if device not in ("auto", "cpu", "cuda"):
        raise InvalidInput(
            f"Device '{device}' cannot be had on Ray, which deals out GPUs. Choose auto, cpu or cuda."
        )
    has_gpu = bool(ray_pool.room(1, 1))
    if device == "cuda" and not has_gpu:
        raise InvalidInput(
            "No machine of the Ray cluster has a GPU. Choose --device cpu, or `ray start --num-gpus 1`."
        )
    return has_gpu and device != "cpu"
