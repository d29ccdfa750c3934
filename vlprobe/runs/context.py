"""The state of a single model's run, passed to each stage."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa

from vlprobe.errors import InvalidInput
from vlprobe.runs.request import Request
from vlprobe.scoring.inputs import RunInputs
from vlprobe.storage.store import Entry, Store
from vlprobe.types import Item, Probe, Run


@dataclass(frozen=True, eq=False)
class RunContext:
    """A run with pinned versions, and everything needed to carry it out: items, probe, request and store."""

    run: Run
    items: Sequence[Item]  # the items that the run selects from the dataset
    probe: Probe
    request: Request
    store: Store

    def __post_init__(self) -> None:
        """Raise InvalidInput if a plug-in's probe code differs from the code the run was planned with."""
        if self.run.options.get("plugin_digest", "") != self.probe.code_digest:
            raise InvalidInput(
                f"Plug-in '{self.probe.name}' is not the same on all machines. Install the "
                "same version everywhere."
            )

    @property
    def case_entry(self) -> Entry:
        """Return the cache entry for the cases, which all models share."""
        return self.store.cases(self.run.case_key)

    @property
    def run_entry(self) -> Entry:
        """Return the cache entry for this model's scores, estimates and sums."""
        return self.store.run(self.run.key)

    @property
    def label(self) -> str:
        """Return the label for the run in progress reports."""
        return f"{self.run.model} on {self.run.dataset}"

    def read_cases(self, columns: Sequence[str]) -> Iterator[pa.Table]:
        """Yield the given columns for all cases, in blocks of rows."""
        return self.case_entry.blocks("cases", columns)

    def inputs(self) -> RunInputs:
        """Return all pictures and texts that the run shows to a model, including the candidates in its galleries."""
        root = self.store.root
        candidates = self.probe.candidates(self.run, self.items, self.read_cases, root)
        return RunInputs(self.items, self.read_cases, candidates, root)
