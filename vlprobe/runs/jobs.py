"""Jobs: child processes whose state is on disk, so that they outlive the page that started them.

    cache/jobs/<id>/request.json    the request
                    status.json     the progress, replaced atomically
                    process.json    the id of the job's process
                    cancel          if this file exists, the job stops at the next batch
                    log.txt         output from the process

Jobs for the same device run one after another, in order of submission. A process that has ended
while its status is "running" was killed. A job's process is recognized by the job id on its command line:
another process that reuses the process id does not have the job id, and a change of the clock
cannot confuse the two.
"""

import contextlib
import os
import re
import subprocess
import sys
import time
import traceback
import uuid
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path

import msgspec
import psutil

from vlprobe.errors import InvalidInput, JobFailed, Misfit, NotFound, StoredDamage, VlprobeError
from vlprobe.models.frozen import pick_device
from vlprobe.runs import job as job_files
from vlprobe.runs import processes
from vlprobe.runs.job import ENDED, Cancelled, Job, JobReport, JobRequest, Status, run_requests
from vlprobe.runs.run import execute_plan
from vlprobe.storage.access import refuse_writing
from vlprobe.storage.files import lock, write_bytes, write_json
from vlprobe.storage.store import Store

NEWEST = 50  # jobs searched for unfinished ones; job ids begin with the time
_LOOK_EVERY = 0.5  # seconds between two checks for jobs ahead
_SPAWNED = 10  # seconds within which a new process reports its start
_LOG_BYTES = 65_536  # bytes read from the end of a log
_children: dict[int, subprocess.Popen] = {}


def _folder(store: Store, job_id: str) -> Path:
    folder = store.root / "jobs" / job_id
    if not job_files.ID.fullmatch(job_id) or not job_files.is_job(folder):
        raise NotFound(
            "job", job_id, [job_folder.name for job_folder in job_files.folders(store.root)]
        )
    return folder


def start(request: JobRequest, store: Store) -> str:
    """Start a child process for a request and return the job id."""
    job_id = write(request, store)
    _spawn(store, job_id)
    return job_id


def write(request: JobRequest, store: Store) -> str:
    """Store a request without starting it, and return the job id. `resume` starts the job."""
    store.require_writable()
    job_id = f"{int(time.time()):x}{uuid.uuid4().hex[:6]}"
    folder = store.root / "jobs" / job_id
    write_json(folder / "request.json", asdict(request) | {"created": time.time()})
    return job_id


def resume(store: Store, job_id: str) -> None:
    """Restart a stopped job. Finished work is not repeated. Raises InvalidInput if the job is still running."""
    store.require_writable()
    folder = _folder(store, job_id)
    # If two people click at the same time, one gets an error
    with lock(folder / ".lock", lambda: None):
        if not read(store, job_id).ended:
            raise InvalidInput(f"Job '{job_id}' is still running. Cancel the job or wait.")
        (folder / "cancel").unlink(missing_ok=True)
        _spawn(store, job_id)


def _spawn(store: Store, job_id: str) -> None:
    folder = store.root / "jobs" / job_id
    (folder / "process.json").unlink(missing_ok=True)  # left by an earlier try
    now = time.time()
    write_json(
        folder / "status.json",
        {"state": "queued", "label": "Starting", "queued": now, "updated": now},
    )
    try:
        with (folder / "log.txt").open("ab") as log:
            child = processes.start(
                "vlprobe.runs.jobs",
                store.address,
                job_id,
                stdout=log,
                stderr=subprocess.STDOUT,
                stdin=subprocess.DEVNULL,
            )
    except OSError as error:
        raise InvalidInput(
            f"Job '{job_id}' cannot be started ({error.strerror}). Free memory or disk space, "
            "then resume the job."
        ) from None
    _children[child.pid] = child
    write_json(folder / "process.json", {"pid": child.pid})


def cancel(store: Store, job_id: str) -> None:
    """Ask a job to stop at its next batch. Finished parts are kept."""
    refuse_writing()
    write_bytes(_folder(store, job_id) / "cancel", b"")


def read(store: Store, job_id: str) -> Job:
    """Read the state of a job. The state is `dead` if the process ended without a final status."""
    folder = _folder(store, job_id)
    for pid, child in list(_children.items()):
        if child.poll() is not None:  # an ended child would stay visible until its status is read
            _children.pop(pid, None)
    request, created = _read_request(folder)
    status = _status(folder)
    if status.state not in ENDED and (reason := _reason_of_death(folder)):
        status = _status(folder)  # the job may have ended between the two checks
        if status.state not in ENDED:
            status = msgspec.structs.replace(status, state="dead", error=reason)
    return Job(id=job_id, request=request, created=created, **msgspec.structs.asdict(status))


def _read_request(folder: Path) -> tuple[JobRequest, float]:
    """Read a job's request and creation time. Raises InvalidInput if it is damaged or NotFound if it was deleted."""
    try:
        return job_files.read_request(folder)
    except FileNotFoundError:
        raise NotFound("job", folder.name, []) from None


def _status(folder: Path) -> Status:
    """Read a job's last status. A job whose status file is missing or damaged counts as ended."""
    try:
        return job_files.read_status(folder)
    except FileNotFoundError:  # its creator was killed before starting it
        return Status(state="dead", error="The job never started. Resume it.")
    except InvalidInput:
        return Status(state="dead", error="The job's state file is damaged. Resume it.")


def _reason_of_death(folder: Path) -> str:
    """Explain in one line why an unfinished job has no running process, or return "" if the process is running."""
    no_process = "The process no longer exists (killed, or the machine restarted). Resume the job."
    try:
        arguments = psutil.Process(job_files.read_pid(folder)).cmdline()
        # A process that is just starting has no arguments yet.
        is_at_it = folder.name in arguments or (not arguments and _is_new(folder))
        return "" if is_at_it else no_process
    except FileNotFoundError:  # written right after the process was started
        return "" if _is_new(folder) else no_process
    except InvalidInput:
        return (
            "The process record (process.json) is damaged, so the job counts as stopped. Resume it."
        )
    except (psutil.NoSuchProcess, psutil.AccessDenied):  # also a zombie, or another user's process
        return no_process


def _is_new(folder: Path) -> bool:
    """Return whether a job's status was written a few seconds ago, for example at the start."""
    with contextlib.suppress(FileNotFoundError):
        return abs(time.time() - (folder / "status.json").stat().st_mtime) < _SPAWNED
    return False


def jobs(store: Store) -> list[Job]:
    """Return all jobs with a readable request, newest first."""
    readable = []
    for folder in job_files.folders(store.root):
        # See `damaged`; or deleted in the meantime
        with contextlib.suppress(InvalidInput, NotFound):
            readable.append(read(store, folder.name))
    return sorted(readable, key=lambda job: (job.created, job.id), reverse=True)


def unfinished_jobs(store: Store) -> list[Job]:
    """Return the unfinished jobs among the NEWEST ones. Only unfinished jobs are read completely."""
    current = []
    for folder in job_files.folders(store.root)[-NEWEST:]:
        with contextlib.suppress(InvalidInput, NotFound, FileNotFoundError):
            if job_files.read_status(folder).state not in ENDED:
                current.append(read(store, folder.name))
    return [job for job in current if not job.ended]


def damaged(store: Store) -> list[InvalidInput]:
    """Return the errors for jobs whose requests cannot be read."""
    errors: list[InvalidInput] = []
    for folder in job_files.folders(store.root):
        try:
            _read_request(folder)
        except InvalidInput as error:
            errors.append(error)
        except NotFound:  # deleted in the meantime
            continue
    return errors


def jobs_ahead(store: Store, job: Job) -> list[Job]:
    """Return the unfinished jobs that come before a job on the same device, including running ones."""
    return [
        rival
        for rival in jobs(store)
        if not rival.ended
        and (rival.device == job.device and rival.id != job.id)
        and (rival.state == "running" or (rival.queued, rival.id) < (job.queued, job.id))
    ]


def log(store: Store, job_id: str, lines: int = 40) -> str:
    """Return the last lines of the job's output, or "" if it never started."""
    path = _folder(store, job_id) / "log.txt"
    if not path.exists():
        return ""
    with path.open("rb") as log_file:
        log_file.seek(max(path.stat().st_size - _LOG_BYTES, 0))
        return "\n".join(log_file.read().decode(errors="replace").splitlines()[-lines:])


def work(address: str, job_id: str) -> int:
    """Run a job in the child process: wait for the device, run the request, and write the final status."""
    store = Store(address)
    folder = _folder(store, job_id)
    # the process that started it may have been killed since
    write_json(folder / "process.json", {"pid": os.getpid()})
    report = JobReport(folder, _status(folder).queued or None)
    try:
        request, _ = _read_request(folder)
        report.device = _device(request)
        with _turn(store, job_id, report):
            keys = _work(request, store, report)
        report.write("done", label="Done", done=1.0, total=1.0, keys=keys)
        return 0
    except Cancelled as stop:
        report.write("cancelled", label=str(stop))
        return 0
    except VlprobeError as error:
        remedy = error.remedy if isinstance(error, StoredDamage) else ""
        report.write("failed", error=str(error), remedy=remedy)
        return 1
    except BaseException as error:  # noqa: BLE001 - whatever kills a job is written where a person sees it
        traceback.print_exc()
        report.write(
            "failed",
            error=str(JobFailed(f"{type(error).__name__}: {error}. See the log for details.")),
        )
        return 1


def _work(request: JobRequest, store: Store, report: JobReport) -> list[str]:
    """Run a request and return the keys of the runs that can be shown. A fine-tuning job has none."""
    if request.kind == "training":
        from vlprobe.training.trainer import train

        train(request, store.root, report.update)
        return []
    plan = execute_plan(run_requests(request), store, report, leaves_out=request.kind == "plan")
    report.left_out = tuple(dict.fromkeys(plan.left_out))
    for reason in report.left_out:
        report.tell(f"Left out {reason}")
    if not any(plan.manifests):
        raise Misfit(" ".join(report.left_out))
    return [manifest["key"] for manifests in plan.manifests for manifest in manifests]


def _device(request: JobRequest) -> str:
    """Return the device that a job needs, with one name for all aliases, so that jobs on the same device wait for each
    other. Jobs on a Ray cluster only wait for each other.
    """
    if request.kind != "training" and run_requests(request)[0].executor == "ray":
        return "Ray cluster"
    # "cpu" needs no torch to be known
    device = request.device if request.device == "cpu" else pick_device(request.device)
    return "cuda:0" if device == "cuda" else device


@contextlib.contextmanager
def _turn(store: Store, job_id: str, report: JobReport) -> Iterator[None]:
    """Hold the device while the block runs. While waiting, report how many jobs are ahead."""

    def wait() -> None:
        if (report.folder / "cancel").exists():
            raise Cancelled("Canceled before it started.")
        ahead = len(jobs_ahead(store, read(store, job_id)))
        queue = f", {ahead} job{'s' if ahead > 1 else ''} before this one" if ahead else ""
        label = f"Waiting for {report.device}{queue}"
        if label != report.label:
            report.label = label
            report.write("queued", label=label)

    wait()
    while jobs_ahead(store, read(store, job_id)):
        time.sleep(_LOOK_EVERY)
        wait()
    with lock(store.root / "jobs" / f".{re.sub('[^a-z0-9]', '-', report.device)}.lock", wait):
        yield


if __name__ == "__main__":
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    raise SystemExit(work(*sys.argv[1:]))
