"""One request in a child process, its state on disk, so that it outlives the page that started it.

    cache/jobs/<id>/request.json    what was asked
                    status.json     how far it is, replaced whole
                    cancel          exists: stop at the next batch
                    log.txt         what the process printed

A job waits its turn for its device. A process that is gone while its status says running was killed: that is told from
the process's start time, so a reused number is not mistaken for it.
"""

import json
import os
import re
import subprocess
import sys
import time
import traceback
import uuid
from dataclasses import asdict, dataclass
from pathlib import Path

import psutil

from vlprobe.errors import InvalidInput, JobFailed, NotFound, VlprobeError
from vlprobe.files import turn, write_bytes, write_json
from vlprobe.runner import Progress, Request, execute
from vlprobe.store import Store

ENDED = ("done", "failed", "cancelled", "dead")
_WRITE_EVERY = 0.3  # seconds between two writes of the status
_children: dict[int, subprocess.Popen] = {}


@dataclass(frozen=True)
class Job:
    """What can be said of a job now."""

    id: str
    request: Request
    state: str  # queued, running, done, failed, cancelled or dead
    label: str = ""
    done: float = 0.0
    total: float = 1.0
    created: float = 0.0
    started: float = 0.0
    updated: float = 0.0
    error: str = ""
    keys: tuple[str, ...] = ()

    @property
    def fraction(self) -> float:
        """How much of the current model's work is done, 0 to 1."""
        return min(self.done / self.total, 1.0) if self.total else 0.0

    @property
    def ended(self) -> bool:
        """Whether nothing more will happen."""
        return self.state in ENDED


class Cancelled(VlprobeError):
    """Raised in the job at the first batch after somebody asked it to stop."""


def _folder(store: Store, job_id: str) -> Path:
    folder = store.root / "jobs" / job_id
    if not job_id.isalnum() or not (folder / "request.json").exists():
        known = sorted(path.parent.name for path in store.root.glob("jobs/*/request.json"))
        raise NotFound("job", job_id, known)
    return folder


def start(request: Request, store: Store) -> str:
    """Starts a child process for the request and returns the job's id."""
    store.writable()
    job_id = f"{int(time.time()):x}{uuid.uuid4().hex[:6]}"
    folder = store.root / "jobs" / job_id
    folder.mkdir(parents=True)
    write_json(folder / "request.json", asdict(request) | {"created": time.time()})
    _spawn(store, job_id)
    return job_id


def resume(store: Store, job_id: str) -> None:
    """Starts a stopped job again; what it had finished is not done twice. Raises InvalidInput while it runs."""
    store.writable()
    folder = _folder(store, job_id)
    if not read(store, job_id).ended:
        raise InvalidInput(f"Job '{job_id}' is still going. Cancel it first, or wait.")
    (folder / "cancel").unlink(missing_ok=True)
    _spawn(store, job_id)


def _spawn(store: Store, job_id: str) -> None:
    folder = store.root / "jobs" / job_id
    (folder / "process.json").unlink(missing_ok=True)  # of an earlier try
    write_json(
        folder / "status.json", {"state": "queued", "label": "Waiting for a free device", "updated": time.time()}
    )
    with (folder / "log.txt").open("ab") as log:
        child = subprocess.Popen(
            [sys.executable, "-m", "vlprobe.jobs", str(store.root), job_id],
            stdout=log,
            stderr=subprocess.STDOUT,
            stdin=subprocess.DEVNULL,
            start_new_session=True,
        )
    _children[child.pid] = child
    write_json(folder / "process.json", {"pid": child.pid, "started": psutil.Process(child.pid).create_time()})


def cancel(store: Store, job_id: str) -> None:
    """Asks a job to stop at its next batch; its finished parts are kept."""
    store.writable()
    write_bytes(_folder(store, job_id) / "cancel", b"")


def read(store: Store, job_id: str) -> Job:
    """The state of a job; a job whose process is gone is `dead`."""
    folder = _folder(store, job_id)
    for pid, child in list(_children.items()):
        if child.poll() is not None:  # an ended child would stay visible until somebody asks
            _children.pop(pid, None)
    request, created = _asked(folder)
    status = json.loads((folder / "status.json").read_bytes())
    if status["state"] not in ENDED and not _alive(folder):
        status = json.loads((folder / "status.json").read_bytes())  # it may have ended between the two looks
        if status["state"] not in ENDED:
            status |= {"state": "dead", "error": "Its process is gone: killed, or the machine restarted. Resume it."}
    return Job(id=job_id, request=request, created=created, **status | {"keys": tuple(status.get("keys", ()))})


def _asked(folder: Path) -> tuple[Request, float]:
    """What the job was asked, and when."""
    given = json.loads((folder / "request.json").read_bytes())
    created = given.pop("created")
    return Request(**given | {"models": tuple(given["models"])}), created


def _alive(folder: Path) -> bool:
    try:
        process = json.loads((folder / "process.json").read_bytes())
    except FileNotFoundError:  # written right after the process was started
        return time.time() - (folder / "status.json").stat().st_mtime < 10
    try:
        found = psutil.Process(process["pid"])
        return abs(found.create_time() - process["started"]) < 1 and found.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def jobs(store: Store) -> list[Job]:
    """All jobs, newest first."""
    ids = sorted((path.parent.name for path in store.root.glob("jobs/*/status.json")), reverse=True)
    return [read(store, job_id) for job_id in ids]


def log(store: Store, job_id: str, lines: int = 40) -> str:
    """The end of what the job printed."""
    text = (_folder(store, job_id) / "log.txt").read_text(errors="replace")
    return "\n".join(text.splitlines()[-lines:])


class _Report(Progress):
    """Writes the status file, and stops the run when somebody asked for it."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.last, self.label, self.started = folder, 0.0, "", time.time()

    def update(self, label: str, done: float, total: float) -> None:
        if (self.folder / "cancel").exists():
            raise Cancelled("Cancelled; what was finished is kept.")
        now = time.time()
        if label != self.label and done == 0:
            self.started = now
        if label != self.label or now - self.last > _WRITE_EVERY:
            self.last, self.label = now, label
            self.write("running", label=label, done=done, total=total)

    def write(self, state: str, **facts: object) -> None:
        write_json(
            self.folder / "status.json", {"state": state, "started": self.started, "updated": time.time()} | facts
        )


def work(root: str, job_id: str) -> int:
    """What the child process does: waits for the device, runs the request, leaves its end in the status."""
    store = Store(Path(root))
    folder = _folder(store, job_id)
    request, _ = _asked(folder)
    report = _Report(folder)
    device = re.sub(r"[^A-Za-z0-9]", "-", request.device)
    lock = store.root / "jobs" / f".{device}.lock"

    def wait() -> None:
        report.write("queued", label="Waiting for a free device")
        if (folder / "cancel").exists():
            raise Cancelled("Cancelled before it began.")

    try:
        with turn(lock, wait):
            manifests = execute(request, store, report)
        report.write("done", label="Done", done=1.0, total=1.0, keys=[manifest["key"] for manifest in manifests])
        return 0
    except Cancelled as stop:
        report.write("cancelled", label=str(stop))
        return 0
    except VlprobeError as error:
        report.write("failed", error=str(error))
        return 1
    except BaseException as error:  # noqa: BLE001 - whatever kills a job is written where a person sees it
        traceback.print_exc()
        report.write("failed", error=str(JobFailed(f"{type(error).__name__}: {error}. Its log has the details.")))
        return 1


if __name__ == "__main__":
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    raise SystemExit(work(*sys.argv[1:]))
