"""Shared helpers of the scenes: a short run, digests of its files, and forked processes for faults.

The scenes run in a separate process (`python -m tests.faults.scenes FOLDER`) that has no threads when it forks.
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
TIMES = ("finished", "seconds", "sha256")  # the checksum covers the times


def quick(probe: str) -> None:
    """Use small parts, one metric and few resamples in every process, to make runs short."""
    for module, name, value in (
        (answers, "PART_CASES", 1),
        (answers, "JUDGED_CASES", 2),
        (estimate, "RESAMPLES", 20),
        (resampling, "RESAMPLES", 20),
    ):
        assert hasattr(module, name)
        setattr(module, name, value)
    probe_module = registry.load_probe(probe)
    probe_module.metrics = probe_module.metrics[:1]


def request(folder: Path, probe: str, *models: str) -> Request:
    """Return a request for a run of at least two parts over pictures and texts, without model checks."""
    return Request(
        models or ("control:random",), make(probe, folder / "data", ITEMS), probe, examine=False
    )


def run(request: Request, cache: Path) -> None:
    """Execute the request on a cache."""
    execute(request, Store(cache))


def results(cache: Path) -> dict[str, object]:
    """Return the digest of every table in a cache, and the manifests without times."""
    digests: dict[str, object] = {}
    for path in sorted(cache.glob("*/*/*.parquet")):
        digests[str(path.relative_to(cache))] = hashlib.sha256(path.read_bytes()).hexdigest()
    for path in sorted(cache.glob("*/*/manifest.json")):
        manifest = json.loads(path.read_bytes())
        digests[str(path.relative_to(cache))] = {
            name: value for name, value in manifest.items() if name not in TIMES
        }
    return digests


def state(cache: Path) -> str:
    """Return a digest of everything that a resumed run can see: all files and their bytes; of temporary files only the
    suffix."""
    hasher = hashlib.sha256()
    for path in sorted(cache.rglob("*")):
        temporary = path.suffix == ".tmp"
        hasher.update(path.suffix.encode() if temporary else str(path.relative_to(cache)).encode())
        if path.is_file() and not temporary:
            hasher.update(path.read_bytes())
    return hasher.hexdigest()


def forked(what: Callable[[], object]) -> int:
    """Fork a child that calls `what` and exits. Return its process id."""
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
    """Wait for a child and return its exit code, or the negative number of the signal that ended it."""
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


class Operations:
    """Count the file operations of this process, and call a function before the n-th.

    Args:
        at: The operation, from 0; -1 only counts.
        instead: Called before operation `at`; for a write, after half of the bytes. If it returns, the operation is
            executed.
        lasting: Whether to call it at every later operation, too.
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
        """Count an operation, and return whether to call `instead` at it."""
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
    """A writable file that interrupts the chosen write in the middle."""

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
