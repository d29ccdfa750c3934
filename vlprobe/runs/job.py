"""A job: its request, its progress, and the status that its process writes (`status.json` in its folder)."""

import sys
import time
from dataclasses import dataclass
from pathlib import Path

from vlprobe.errors import JobFailed, StoredDamage, VlprobeError
from vlprobe.runs.request import PlanRequest, Progress, Request, RunKeys
from vlprobe.storage import job_files
from vlprobe.storage.files import write_json
from vlprobe.training.request import TrainRequest

JobRequest = Request | PlanRequest | TrainRequest  # distinguished by `kind`


@dataclass(frozen=True)
class Job:
    """Current state of a job."""

    id: str
    request: JobRequest
    state: str  # queued, running, done, failed, cancelled or dead
    label: str = ""
    done: float = 0.0
    total: float = 1.0
    created: float = 0.0
    queued: float = 0.0  # when it last took its place in the queue
    started: float = 0.0  # start of the stage in the label
    updated: float = 0.0
    device: str = ""  # whose turn it waits for or has; "": not known yet
    error: str = ""  # the line of why it failed
    remedy: str = ""  # of what is stored and damaged; the end of `error`
    run_key: str = ""  # of the run that is scored now, if any
    case_key: str = ""  # of its questions
    probe: str = ""  # that it belongs to
    keys: tuple[str, ...] = ()
    left_out: tuple[str, ...] = ()  # reasons why probes are skipped, one line each

    @property
    def requests(self) -> tuple[Request, ...]:
        """A request a probe; none of a training."""
        return () if self.request.kind == "training" else run_requests(self.request)

    @property
    def models(self) -> tuple[str, ...]:
        """The models that are probed, or the one that is tuned."""
        request = self.request
        return (request.model,) if request.kind == "training" else request.models

    @property
    def dataset(self) -> str:
        """Datasets of the runs, or those that a model is tuned on."""
        if self.request.kind == "training":
            return ", ".join(self.request.datasets)
        return ", ".join(dict.fromkeys(request.dataset for request in self.requests))

    @property
    def probes(self) -> tuple[str, ...]:
        """Probes of the job, in their order."""
        return tuple(request.probe for request in self.requests)

    @property
    def task(self) -> str:
        """The probes, or "training"."""
        return ", ".join(self.probes) or self.request.kind

    @property
    def probes_begun(self) -> int:
        """Count the probes before the one that the current model runs."""
        return self.probes.index(self.probe) if self.probe in self.probes else 0

    @property
    def fraction(self) -> float:
        """Compute how much of the current model's work is done, 0 to 1; probes count equally."""
        share = min(self.done / self.total, 1.0) if self.total else 0.0
        return (self.probes_begun + share) / max(len(self.probes), 1)

    @property
    def ended(self) -> bool:
        """Return whether the job has ended."""
        return self.state in job_files.ENDED

    @property
    def failure(self) -> VlprobeError:
        """Error of a failed job: StoredDamage if stored damage stopped it."""
        if self.remedy:
            return StoredDamage(self.error.removesuffix(f" {self.remedy}"), self.remedy)
        return JobFailed(self.error)


def run_requests(request: Request | PlanRequest) -> tuple[Request, ...]:
    """A request a probe."""
    return request.requests if request.kind == "plan" else (request,)


WRITE_EVERY = 0.3  # seconds between two writes of the status


class Cancelled(VlprobeError):
    """Raised in the job at the first batch after a stop request."""


class JobReport(Progress):
    """Writer of the status file that stops the run on request.

    Args:
        folder: The folder of the job.
        queued: The time of entering the queue, in seconds since 1970; None: now.
    """

    def __init__(self, folder: Path, queued: float | None = None) -> None:
        self.folder, self.last, self.label, self.started = folder, 0.0, "", time.time()
        self.queued, self.device = self.started if queued is None else queued, ""
        self.run_keys = RunKeys()
        self.left_out: tuple[str, ...] = ()  # reasons why probes are skipped, one line each

    def update(self, label: str, done: float, total: float) -> None:
        """Write the progress from time to time; raises Cancelled after a stop request."""
        if (self.folder / "cancel").exists():
            raise Cancelled("Cancelled; finished work is kept.")
        now = time.monotonic()  # a clock that is set back must not silence the job
        if label != self.label and done == 0:
            self.started = time.time()
        if label != self.label or now - self.last > WRITE_EVERY:
            self.last, self.label = now, label
            self.write("running", label=label, done=done, total=total)

    def begin_run(self, keys: RunKeys) -> None:
        """Name the run in the status from now on."""
        self.run_keys = keys

    def tell(self, line: str) -> None:
        """Write a line into the job's log."""
        sys.stderr.write(f"{line}\n")

    def write(self, state: str, **facts: object) -> None:
        """Replace the status."""
        turn = {
            "queued": self.queued,
            "device": self.device,
            "started": self.started,
            "updated": time.time(),
            "run_key": self.run_keys.run,
            "case_key": self.run_keys.cases,
            "probe": self.run_keys.probe,
            "left_out": self.left_out,
        }
        write_json(self.folder / "status.json", {"state": state} | turn | facts)
