"""State of one model's run, passed to each of its stages."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa

from vlprobe.errors import InvalidInput
from vlprobe.runs.request import Request
from vlprobe.storage.store import Entry, Store
from vlprobe.types import Item, Probe, Run


@dataclass(frozen=True, eq=False)
class RunContext:
    """A pinned run with its items, its probe and the store for its cases and scores."""

    run: Run
    items: Sequence[Item]  # of the dataset, those that the run chooses
    probe: Probe
    request: Request
    store: Store

    def __post_init__(self) -> None:
        """Raise InvalidInput if the run was planned with other code of a plug-in's probe, as on another machine."""
        if self.run.options.get("plugin_digest", "") != self.probe.code_digest:
            raise InvalidInput(
                f"Plug-in '{self.probe.name}' is not the same on all machines. Install one version."
            )

    @property
    def case_entry(self) -> Entry:
        """The stored cases, shared by all models."""
        return self.store.cases(self.run.case_key)

    @property
    def run_entry(self) -> Entry:
        """The stored scores, estimates and sums of this model."""
        return self.store.run(self.run.key)

    @property
    def label(self) -> str:
        """Label of the run in progress reports."""
        return f"{self.run.model} on {self.run.dataset}"

    def read_cases(self, columns: Sequence[str]) -> Iterator[pa.Table]:
        """Yield these columns of all cases in blocks of rows."""
        return self.case_entry.blocks("cases", columns)
