"""Time profile for a run: the time of each stage, and the share spent in the model.

Stages are identified by their progress labels.
Wall time is unreliable on a busy machine. CPU time includes this process and finished edit
processes. Model time covers the probe; model checks are counted in their own stage.
"""

import os
import time

import numpy as np

from vlprobe.runs.request import Progress, RunKeys
from vlprobe.scoring import device

STAGES = {  # stage by the beginning or end of a label
    "Reading ": "read the dataset",
    "Checking the data": "check the data",
    "Making edits": "make questions",
    "Loading ": "load models",
    "Examining ": "doctor",
    ": intervals": "judge, intervals, write",
    "similarity spread": "similarity spread",
}
SCORING = "encode and score"


class Profile(Progress):
    """Progress receiver that records the time of each stage and forwards all reports."""

    def __init__(self, progress: Progress) -> None:
        self._progress = progress
        self.stages: dict[str, np.ndarray] = {}  # time by `_clocks` that each stage took
        self._name, self._since = "start", _clocks()

    def update(self, label: str, done: float, total: float) -> None:
        """Forward the report. If the label belongs to a new stage, first record the end of the previous one."""
        name = stage_of(label)
        if name != self._name:
            self._end_stage(name)
        self._progress.update(label, done, total)

    def begin_run(self, keys: RunKeys) -> None:
        """Forward the start of a run. The time from here on counts as scoring, because the first
        batch is reported only after the model has answered.
        """
        if keys.run:
            self._end_stage(SCORING)
        self._progress.begin_run(keys)

    def tell(self, line: str) -> None:
        """Forward a line that stays visible while the progress changes."""
        self._progress.tell(line)

    def _end_stage(self, name: str) -> None:
        now = _clocks()
        self.stages[self._name] = self.stages.get(self._name, np.zeros(3)) + now - self._since
        self._name, self._since = name, now

    def report(self) -> str:
        """Format a table of the finished stages and their total."""
        self._end_stage("start")
        every = np.sum([*self.stages.values()], axis=0)
        lines = [f"{'stage':26}{'wall s':>9}{'share':>8}{'CPU s':>9}{'model s':>9}{'at work':>9}"]
        for name, (wall, cpu, model) in [*self.stages.items(), ("all", every)]:
            share, busy = wall / max(every[0], 1e-9), model / max(wall, 1e-9)
            lines.append(f"{name:26}{wall:9.2f}{share:8.1%}{cpu:9.2f}{model:9.2f}{busy:9.1%}")
        return "\n".join(lines)


def stage_of(label: str) -> str:
    """Return the stage that a progress label belongs to.

    >>> stage_of("Loading demo:weak"), stage_of("m on d"), stage_of("m on d: intervals")
    ('load models', 'encode and score', 'judge, intervals, write')
    """
    for words, name in STAGES.items():
        if label.startswith(words) or label.endswith(words) or f": {words} (" in label:
            return name
    return SCORING


def _clocks() -> np.ndarray:
    """Return wall-clock seconds, CPU seconds, and seconds between calls to models and their answers: shape (3,)."""
    return np.array([time.perf_counter(), sum(os.times()[:4]), device.model_seconds()])
