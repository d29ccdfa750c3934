"""Requests for runs, and the interface that receives their progress."""

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar, Literal


@dataclass(frozen=True)
class Request:
    """A request for a run: model and dataset names, a probe and options. Nothing is loaded."""

    kind: ClassVar[Literal["run"]] = "run"  # tells a run request from a TrainRequest

    models: tuple[str, ...]
    dataset: str  # "": the probe's demo data
    probe: str
    options: Mapping[str, object] = field(default_factory=dict)
    seed: int = 42
    limit: int = 0  # items; 0: all
    device: str = "auto"
    precision: str = "fp32"
    batch_size: int = 64
    # Number of threads that read pictures, and of processes that make edits
    workers: int = min(16, os.cpu_count() or 1)
    memory: int = 2048  # MiB that a run may use in addition to the model's weights
    keep_embeddings: bool = True
    examine: bool = True  # also run the model checks, once for each dataset
    executor: str = "local"  # this process, or "ray": the machines of the cluster in VLPROBE_RAY
    verify: bool = False  # read all files, including those with cached digests
    price: str = ""  # server price per million tokens, or SENT/RECEIVED; "": not known
    max_cost: str = ""  # in the currency of the price; "": no limit
    # Which items, before the limit; see `runs.selection`
    item: tuple[str, ...] = ()  # ids; (): any
    where: tuple[str, ...] = ()  # TAG=VALUE
    sample: int = 0  # number of items drawn with the seed; 0: all
    without: tuple[str, ...] = ()  # ids of excluded cases
    without_tag: tuple[str, ...] = ()  # tags whose cases are excluded, too
    errata: tuple[str, ...] = ()  # digests of excluded questions, see `storage.errata`


@dataclass(frozen=True)
class PlanRequest:
    """A request to run several probes. Its run requests differ only in the probe, the options and the dataset."""

    kind: ClassVar[Literal["plan"]] = "plan"

    requests: tuple[Request, ...]

    @property
    def models(self) -> tuple[str, ...]:
        """Return the model names, which are the same in all requests."""
        return self.requests[0].models

    @property
    def device(self) -> str:
        """Return the device, which is the same in all requests."""
        return self.requests[0].device


@dataclass(frozen=True)
class RunKeys:
    """Keys in the store for the run being scored and its question set. Both are empty if no run is being scored."""

    run: str = ""
    cases: str = ""
    probe: str = ""  # probe name


class Progress:
    """Receiver for the progress of a run. The command line and jobs override `update`, which may
    raise an error to cancel the run.
    """

    def update(self, label: str, done: float, total: float) -> None:
        """Report that `done` of `total` cases or items in the stage `label` are finished."""

    def begin_run(self, keys: RunKeys) -> None:
        """Report which run is scored next, so that its finished parts can be read. Empty keys are reported
        before a model's first run.
        """

    def tell(self, line: str) -> None:
        """Show a line that stays visible while the progress changes, such as the expected cost of a run."""
