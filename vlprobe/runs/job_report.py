"""Status of a running job: `status.json` in its folder."""

import sys
import time
from pathlib import Path

from vlprobe.errors import VlprobeError
from vlprobe.runs.request import Progress, RunKeys
from vlprobe.storage.files import write_json

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
            raise Cancelled("Cancelled; what was finished is kept.")
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
