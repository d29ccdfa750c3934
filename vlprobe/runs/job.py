"""Files that describe a job. They are validated when read: a value with an unexpected type counts as damage.

    cache/jobs/<id>/request.json    the fields of a run or training request, or several run
                                    requests as `requests`; and `created`
                    status.json     the job's state and progress; absent before the first start
                    process.json    {"pid": ...}

Folders whose names are not job ids, such as copies made by a file manager, are not read.
"""

import dataclasses
import json
import re
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

import msgspec

from vlprobe.errors import JobFailed, StoredDamage, VlprobeError
from vlprobe.runs.request import PlanRequest, Progress, Request, RunKeys
from vlprobe.storage.files import convert, parse_json_object, present, read, unreadable, write_json
from vlprobe.training.request import TrainRequest

ID = re.compile("[0-9a-f]{1,40}")
ENDED = ("done", "failed", "cancelled", "dead")
MAX_NUMBER = 10**11  # also limits seconds since 1970, because datetime has no later year

JobRequest = Request | PlanRequest | TrainRequest  # distinguished by `kind`
Number = Annotated[float, msgspec.Meta(gt=-MAX_NUMBER, lt=MAX_NUMBER)]
Key = Annotated[str, msgspec.Meta(pattern=r"^[0-9a-z]{0,64}\Z")]
Content = TypeVar("Content")


class Status(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The state and progress that a job's process last wrote to the status file."""

    state: Literal["queued", "running", "done", "failed", "cancelled", "dead"]
    label: str = ""
    done: Number = 0.0
    total: Number = 1.0
    queued: Number = 0.0  # when the job last entered the queue
    started: Number = 0.0  # when the stage in the label started
    updated: Number = 0.0
    device: str = ""  # the device it waits for or uses; "": not known yet
    error: str = ""  # why the job failed, in one line
    remedy: str = ""  # the remedy for stored damage; the end of `error`
    run_key: Key = ""  # the run that is scored now, if any
    case_key: Key = ""  # that run's question set
    probe: str = ""  # that run's probe
    keys: tuple[str, ...] = ()
    left_out: tuple[str, ...] = ()  # reasons why probes are skipped, one line each


class _Created(msgspec.Struct):
    created: Number  # seconds since 1970


class _Plan(_Created, forbid_unknown_fields=True):
    requests: Annotated[list[dict[str, Any]], msgspec.Meta(min_length=1)]


class _Process(msgspec.Struct, forbid_unknown_fields=True):
    pid: Annotated[int, msgspec.Meta(gt=0, lt=2**31)]


class Job(Status, frozen=True, kw_only=True):
    """A job with its current state."""

    id: str
    request: JobRequest
    created: float = 0.0

    @property
    def requests(self) -> tuple[Request, ...]:
        """Return the run requests, one per probe; empty for a training job."""
        return () if self.request.kind == "training" else run_requests(self.request)

    @property
    def models(self) -> tuple[str, ...]:
        """Return the names of the models to test, or of the model to fine-tune."""
        request = self.request
        return (request.model,) if request.kind == "training" else request.models

    @property
    def dataset(self) -> str:
        """Return the names of the datasets for the runs or the fine-tuning, separated by commas."""
        if self.request.kind == "training":
            return ", ".join(self.request.datasets)
        return ", ".join(dict.fromkeys(request.dataset for request in self.requests))

    @property
    def probes(self) -> tuple[str, ...]:
        """Return the names of the job's probes, in order."""
        return tuple(request.probe for request in self.requests)

    @property
    def task(self) -> str:
        """Return the names of the probes, separated by commas, or "training"."""
        return ", ".join(self.probes) or self.request.kind

    @property
    def probes_begun(self) -> int:
        """Return the number of probes that the current model has finished."""
        return self.probes.index(self.probe) if self.probe in self.probes else 0

    @property
    def fraction(self) -> float:
        """Return the finished fraction of the current model's work, 0 to 1. All probes count equally."""
        share = min(self.done / self.total, 1.0) if self.total else 0.0
        return (self.probes_begun + share) / max(len(self.probes), 1)

    @property
    def ended(self) -> bool:
        """Return whether the job has ended."""
        return self.state in ENDED

    @property
    def failure(self) -> VlprobeError:
        """Return the error for a failed job: StoredDamage if damaged files stopped it, otherwise JobFailed."""
        if self.remedy:
            return StoredDamage(self.error.removesuffix(f" {self.remedy}"), self.remedy)
        return JobFailed(self.error)


def run_requests(request: Request | PlanRequest) -> tuple[Request, ...]:
    """Return the run requests in a job's request, one per probe."""
    return request.requests if request.kind == "plan" else (request,)


def folders(root: Path) -> list[Path]:
    """Return the folders of all jobs that have a request, sorted by job id."""
    try:
        paths = sorted((root / "jobs").iterdir())
    except OSError:
        return []
    return [path for path in paths if ID.fullmatch(path.name) and is_job(path)]


def is_job(folder: Path) -> bool:
    """Return whether a folder has a request file, readable or not."""
    return present(folder / "request.json")


def read_request(folder: Path) -> tuple[JobRequest, float]:
    """Return a job's request and its creation time in seconds since 1970.

    Raises InvalidInput if the file is damaged or unreadable, and FileNotFoundError if it was deleted.
    """
    return _read(folder / "request.json", _parse_request)


def _parse_request(content: dict[str, Any]) -> tuple[JobRequest, float]:
    if "requests" in content:
        plan = convert(content, _Plan)
        requests = [_convert_request(fields, Request) for fields in plan.requests]
        return PlanRequest(tuple(requests)), plan.created
    created = convert(content, _Created).created
    del content["created"]
    kind = TrainRequest if "datasets" in content else Request
    return _convert_request(content, kind), created


def _convert_request(content: dict[str, Any], kind: type[Content]) -> Content:
    """Convert JSON fields to a request. Raises ValueError for an unknown field, a wrong type or too large a number."""
    content.pop("ray_address", None)  # of version 0.2; only VLPROBE_RAY names a cluster
    if unknown := content.keys() - {field.name for field in dataclasses.fields(kind)}:  # type: ignore[arg-type] - a dataclass
        raise ValueError(f"'{min(unknown)}' is not a field of a request")
    for value in content.values():
        if isinstance(value, int | float) and not abs(value) < MAX_NUMBER:
            raise ValueError(f"{value} is out of bounds")
    return convert(content, kind)


def read_status(folder: Path) -> Status:
    """Return the job's latest status. Raises the same errors as `read_request`."""
    return _read(folder / "status.json", lambda content: convert(content, Status))


def read_pid(folder: Path) -> int:
    """Return the process id of the job. Raises the same errors as `read_request`."""
    return _read(folder / "process.json", lambda content: convert(content, _Process)).pid


def _read(path: Path, parse: Callable[[dict[str, Any]], Content]) -> Content:
    try:
        content = parse_json_object(read(path).decode())
        json.dumps(content, ensure_ascii=False).encode()  # raises for half a surrogate pair
        return parse(content)
    except FileNotFoundError:
        raise
    except OSError as error:
        raise unreadable(path, error) from None
    except (ValueError, RecursionError):
        raise StoredDamage(
            f"'{path}' is damaged.", "Run `vlprobe verify --repair`, then start the run again."
        ) from None


WRITE_EVERY = 0.3  # seconds between two writes of the status


class Cancelled(VlprobeError):
    """Raised in a job at its next batch after a user asked it to stop."""


class JobReport(Progress):
    """Progress receiver that writes the status file and stops the run on request.

    Args:
        queued: When the job entered the queue, in seconds since 1970; None means now.
    """

    def __init__(self, folder: Path, queued: float | None = None) -> None:
        self.folder, self.last, self.label, self.started = folder, 0.0, "", time.time()
        self.queued, self.device = self.started if queued is None else queued, ""
        self.run_keys = RunKeys()
        self.left_out: tuple[str, ...] = ()  # reasons why probes are skipped, one line each

    def update(self, label: str, done: float, total: float) -> None:
        """Write the progress to the status file from time to time. Raises Cancelled after a request to stop."""
        if (self.folder / "cancel").exists():
            raise Cancelled("Canceled; finished work is stored.")
        now = time.monotonic()  # a clock that is set back must not silence the job
        if label != self.label and done == 0:
            self.started = time.time()
        if label != self.label or now - self.last > WRITE_EVERY:
            self.last, self.label = now, label
            self.write("running", label=label, done=done, total=total)

    def begin_run(self, keys: RunKeys) -> None:
        """Remember the keys for the run that starts now, to include them in the next status."""
        self.run_keys = keys

    def tell(self, line: str) -> None:
        """Write a line to the job's log."""
        sys.stderr.write(f"{line}\n")

    def write(self, state: str, **facts: object) -> None:
        """Replace the status file with one that has the given state and fields."""
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
