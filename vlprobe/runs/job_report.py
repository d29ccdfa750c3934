"""What a job says of itself while it works: `status.json` in its folder."""

import sys
import time
from pathlib import Path

from vlprobe.errors import VlprobeError
from vlprobe.runs.request import Progress, RunKeys
from vlprobe.storage.files import write_json

WRITE_EVERY = 0.3  # seconds between two writes of the status


class Cancelled(VlprobeError):
    """Raised in the job at the first batch after somebody asked it to stop."""


class JobReport(Progress):
    """Writes the status file, and stops the run when somebody asked for it.

    Args:
        folder: Of the job.
        queued: When it took its place in the queue, in seconds since 1970; None: now.
    """

    def __init__(self, folder: Path, queued: float | None = None) -> None:
        self.folder, self.last, self.label, self.started = folder, 0.0, "", time.time()
        self.queued, self.device = self.started if queued is None else queued, ""
        self.run_keys = RunKeys()
        self.left_out: tuple[str, ...] = ()  # why a probe of several is not asked, a line each

    def update(self, label: str, done: float, total: float) -> None:
        """Writes how far it is, now and then; raises Cancelled where somebody asked to stop."""
        if (self.folder / "cancel").exists():
            raise Cancelled("Cancelled; what was finished is kept.")
        now = time.monotonic()  # a clock that is set back must not silence the job
        if label != self.label and done == 0:
            self.started = time.time()
        if label != self.label or now - self.last > WRITE_EVERY:
            self.last, self.label = now, label
            self.write("running", label=label, done=done, total=total)

    def begin_run(self, keys: RunKeys) -> None:
        """Names the run in the status from now on."""
        self.run_keys = keys

    def tell(self, line: str) -> None:
        """Writes a line into the job's log."""
        sys.stderr.write(f"{line}\n")

    def write(self, state: str, **facts: object) -> None:
        """Replaces the status."""
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
