"""What the scenes of this folder share: a short run, what it leaves, and processes that are forked to be harmed.

They run in a process of their own (`python -m tests.faults.scenes FOLDER`) that has no threads while it forks.
"""

import builtins
import gc
import hashlib
import io
import json
import os
from collections.abc import Callable
from pathlib import Path

from tests.probes.test_common import make
from vlprobe import registry
from vlprobe.metrics import estimate, resampling
from vlprobe.runs import answers
from vlprobe.runs.request import Request
from vlprobe.runs.run import execute
from vlprobe.storage.store import Store

ITEMS = 2
TIMES = ("finished", "seconds", "sha256")  # the last is the manifest's own checksum, times included


def quick(probe: str) -> None:
    """Small parts, one metric and few resamples, so that a run is short; in every process alike."""
    for module, name, value in (
        (answers, "PART_CASES", 1),
        (answers, "JUDGED_CASES", 2),
        (estimate, "RESAMPLES", 20),
        (resampling, "RESAMPLES", 20),
    ):
        assert hasattr(module, name)
        setattr(module, name, value)
    asked = registry.load_probe(probe)
    asked.metrics = asked.metrics[:1]


def request(folder: Path, probe: str, *models: str) -> Request:
    """A run over pictures and texts in two parts or more, without examination."""
    return Request(
        models or ("control:random",), make(probe, folder / "data", ITEMS), probe, examine=False
    )


def run(request: Request, cache: Path) -> None:
    """What a person asked for."""
    execute(request, Store(cache))


def results(cache: Path) -> dict[str, object]:
    """The digest of every table of a cache, and the manifests without what tells the time."""
    found: dict[str, object] = {}
    for path in sorted(cache.glob("*/*/*.parquet")):
        found[str(path.relative_to(cache))] = hashlib.sha256(path.read_bytes()).hexdigest()
    for path in sorted(cache.glob("*/*/manifest.json")):
        manifest = json.loads(path.read_bytes())
        found[str(path.relative_to(cache))] = {
            name: said for name, said in manifest.items() if name not in TIMES
        }
    return found


def state(cache: Path) -> str:
    """Names what a resumed run can see: all files and their bytes; of temporary files only that they are there."""
    hasher = hashlib.sha256()
    for path in sorted(cache.rglob("*")):
        temporary = path.suffix == ".tmp"
        hasher.update(path.suffix.encode() if temporary else str(path.relative_to(cache)).encode())
        if path.is_file() and not temporary:
            hasher.update(path.read_bytes())
    return hasher.hexdigest()


def forked(what: Callable[[], object]) -> int:
    """The number of a child that does this and ends."""
    if pid := os.fork():
        return pid
    gc.disable()
    code = 1
    try:
        what()
        code = 0
    finally:
        os._exit(code)


def ended(pid: int) -> int:
    """How a child ended: 0, an exit code, or minus the number of a signal."""
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


class Operations:
    """Counts what this process does to the disk, and at the n-th of it does something else first.

    Args:
        at: The operation, from 0; -1 only counts.
        instead: Called before operation `at`, of a write after half of it is written. Where it returns, the operation
            is done after all.
        lasting: Whether it is called at every later operation, too.
    """

    NAMES = ("open", "fsync", "replace", "rename", "mkdir", "unlink", "rmdir")

    def __init__(
        self, at: int, instead: Callable[[], object], lasting: bool = False, names: tuple = NAMES
    ) -> None:
        self.at, self.instead, self.lasting, self.names = at, instead, lasting, names
        self.count = 0
        self.kept = {name: getattr(os, name) for name in names}
        self.io_open = io.open

    def __enter__(self) -> "Operations":
        for name, operation in self.kept.items():
            setattr(os, name, self._counted(operation))
        io.open = builtins.open = self._opened
        return self

    def __exit__(self, *_: object) -> None:
        for name, operation in self.kept.items():
            setattr(os, name, operation)
        io.open = builtins.open = self.io_open

    def due(self) -> bool:
        """Counts an operation, and whether it is the one."""
        self.count += 1
        place = self.count - 1
        return place == self.at or (self.lasting and 0 <= self.at < place)

    def _counted(self, operation: Callable) -> Callable:
        def counted(*given, **named):
            if self._changes(operation, *given) and self.due():
                self.instead()
            return operation(*given, **named)

        return counted

    def _changes(self, operation: Callable, place: object, *given: object) -> bool:
        if operation is self.kept.get("open"):
            return bool(given and given[0] & os.O_CREAT)
        return operation is not self.kept.get("mkdir") or not os.path.isdir(place)

    def _opened(self, file, mode="r", *given, **named):
        handle = self.io_open(file, mode, *given, **named)
        return _Writer(handle, self) if "w" in mode and "b" in mode else handle


class _Writer:
    """A file to write to, of which the chosen write is cut in the middle."""

    def __init__(self, handle, operations: Operations) -> None:
        self._handle, self._operations = handle, operations

    def write(self, data) -> int:
        if self._operations.due():
            self._handle.write(bytes(data)[: len(bytes(data)) // 2])
            self._handle.flush()
            self._operations.instead()
        return self._handle.write(data)

    def __enter__(self) -> "_Writer":
        return self

    def __exit__(self, *_: object) -> None:
        self._handle.close()

    def __getattr__(self, name: str):
        return getattr(self._handle, name)
