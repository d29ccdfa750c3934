"""Request of a run, and the receiver of its progress."""

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar, Literal


@dataclass(frozen=True)
class Request:
    """Request of a run: names of models and dataset, a probe and options; nothing is loaded."""

    kind: ClassVar[Literal["run"]] = "run"  # the tag in the union with a TrainRequest

    models: tuple[str, ...]
    dataset: str  # "": the probe's demo data
    probe: str
    options: Mapping[str, object] = field(default_factory=dict)
    seed: int = 42
    limit: int = 0  # items; 0: all
    device: str = "auto"
    precision: str = "fp32"
    batch_size: int = 64
    # Threads that read pictures, processes that make edits
    workers: int = min(16, os.cpu_count() or 1)
    memory: int = 2048  # MiB that a run may use in addition to the model's weights
    keep_embeddings: bool = True
    examine: bool = True  # put the model to the doctor's checks too, once for each dataset
    executor: str = "local"  # this process, or the machines of a "ray" cluster
    ray_address: str = ""  # of that cluster; "": only this machine
    verify: bool = False  # read all files, also those whose digests are remembered
    price: str = ""  # of a million tokens of a server, or SENT/RECEIVED; "": not known
    max_cost: str = ""  # in the money of the price; "": no limit
    # Which items, before the limit; see `runs.selection`
    item: tuple[str, ...] = ()  # ids; (): any
    where: tuple[str, ...] = ()  # TAG=VALUE
    sample: int = 0  # drawn by the seed; 0: all
    without: tuple[str, ...] = ()  # ids of cases that are left out
    without_tag: tuple[str, ...] = ()  # tags that people gave; their cases are left out, too
    errata: tuple[str, ...] = ()  # digests of questions that are left out, of `storage.errata`


@dataclass(frozen=True)
class PlanRequest:
    """Request for several probes: requests that only differ in probe, options and dataset."""

    kind: ClassVar[Literal["plan"]] = "plan"

    requests: tuple[Request, ...]

    @property
    def models(self) -> tuple[str, ...]:
        """Models of all requests."""
        return self.requests[0].models

    @property
    def device(self) -> str:
        """Device of all requests."""
        return self.requests[0].device


@dataclass(frozen=True)
class RunKeys:
    """Keys of a run and its question set in the store; empty if no run is being scored."""

    run: str = ""
    cases: str = ""
    probe: str = ""  # by name


class Progress:
    """Receives the progress of a run; the command line and jobs override `update`, which may
    raise to cancel.
    """

    def update(self, label: str, done: float, total: float) -> None:
        """Report that `done` of `total` cases or items of the stage `label` are finished."""

    def begin_run(self, keys: RunKeys) -> None:
        """Report the run that is scored next; its finished parts can be read. Empty keys are sent
        before a model's first run.
        """

    def tell(self, line: str) -> None:
        """Show a permanent line, such as the expected cost of a run."""
