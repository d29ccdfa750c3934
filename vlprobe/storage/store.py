"""Results as Parquet files, written once, under keys that depend on everything that can change a
number.

    cases/<case key>/cases.parquet      the questions, shared by all models that answered them
    runs/<run key>/scores.parquet       one model's scores, one row per case
    runs/<run key>/estimates.parquet    means and intervals, a small table for pages
    runs/<run key>/sums.parquet         sums behind the means, one row per metric and item, for comparisons
    runs/<run key>/fronts.parquet       the top of each gallery, one row per case (rococo)
    runs/<run key>/comparisons.parquet  overlaps of two named wordings, one row per case (prsm)
    .../manifest.json                   files, rows, sha256; written last: its existence marks a complete entry

A file is written under a temporary name, read back, flushed to the disk and renamed; an incomplete
entry has its finished parts in `parts/`. Readers take the list of files from the manifests. Results are not in
a `.duckdb` file, because DuckDB lets either one process write or several read, and a dashboard and a job
are two processes. Entries are never migrated and never expire. The folder may be a mirror of an object store
that several machines share: `mirror.py`.
"""

import contextlib
import copy
import functools
import hashlib
import os
import re
import tempfile
import time
from collections.abc import Callable, Hashable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from vlprobe.errors import NO_MEMORY, InvalidInput, NotFound, StoredDamage, printable
from vlprobe.storage import files, memo
from vlprobe.storage.access import refuse_writing
from vlprobe.storage.entry import SCHEMA, Entry
from vlprobe.storage.files import present, unreadable
from vlprobe.storage.mirror import MirroredEntry, is_url, mirror_of, open_mirror, warn_once

if TYPE_CHECKING:
    import duckdb

DEFAULT = os.environ.get("VLPROBE_CACHE", "cache")
FETCH_THREADS = 8
Fact = TypeVar("Fact")
DOWNLOADED = "pictures/downloaded"  # written after each download of pictures
MANIFESTS = 4096  # kept in memory, some kilobytes each


@dataclass(frozen=True)
class Listing:
    """The complete runs of a store at one time, and values computed from them."""

    version: str
    manifests: list[dict[str, Any]]
    unread: dict[str, InvalidInput]
    facts: dict[Hashable, Any] = field(default_factory=dict)


class Store:
    """The cache: the only place that results are written to and read from.

    Args:
        root: A folder, or the URL of an object store; its folder is then the mirror on this
            machine.
    """

    def __init__(self, root: Path | str = DEFAULT) -> None:
        try:
            self.root = (
                open_mirror(str(root)).root if is_url(root) else Path(root).expanduser().resolve()
            )
            files.require_utf8(self.root, "the cache")
        except FileNotFoundError:  # of os.getcwd
            raise InvalidInput(
                f"'{root}' is relative to a working folder that no longer exists. Change "
                "to another folder."
            ) from None
        except (OSError, ValueError, RuntimeError) as error:  # NUL, a link to itself
            raise InvalidInput(
                f"Cannot use '{root}' as the cache folder ({error}). Choose another with --cache."
            ) from None
        self.mirror = mirror_of(self.root)
        self._listing: Listing | None = None  # of a snapshot

    @property
    def roots(self) -> tuple[Path, ...]:
        """Folders that results are read from, the writable one first."""
        return (self.root,)

    @property
    def address(self) -> str:
        """URL of the store, or its folder: valid on every machine that can reach it."""
        return self.mirror.url if self.mirror else str(self.root)

    def __reduce__(self) -> tuple:
        return Store, (self.address,)

    def require_writable(self) -> None:
        """Raise InvalidInput if the store cannot be written. Call this before long work."""
        self.require_local_writable()
        if self.mirror:
            self.mirror.upload_pending()

    def require_local_writable(self) -> None:
        """Check the folder as `require_writable` does, without the object store."""
        refuse_writing()
        try:
            self.root.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryFile(dir=self.root):
                pass
        except OSError as error:
            raise InvalidInput(
                f"Cannot write to the cache '{self.root}' ({error.strerror}). Choose another folder with --cache."
            ) from None

    def cases(self, key: str) -> Entry:
        """Return the questions under this key."""
        return self._entry("cases", key)

    def run(self, key: str) -> Entry:
        """Return one model's answers under this key."""
        return self._entry("runs", key)

    def _entry(self, kind: str, key: str) -> Entry:
        if not re.fullmatch("[0-9a-z]{1,64}", key):
            raise InvalidInput(
                f"'{key}' is not the key of stored {kind}. `vlprobe show` lists the keys."
            )
        folder = self.root / kind / key
        return MirroredEntry(folder, self.mirror) if self.mirror else Entry(folder)

    def runs(self) -> list[dict[str, Any]]:
        """Return the manifests of all complete runs that can be read, oldest first; each has `key`."""
        return self.read_runs()[0]

    def snapshot(self) -> "Store":
        """Return the same store with `read_runs` and `version` frozen at their current values, for many queries on
        one version of a large store.
        """
        snapshot = copy.copy(self)
        snapshot._listing = Listing(self.version(), *self.read_runs())
        return snapshot

    def listing_fact(self, name: Hashable, compute: Callable[[], Fact]) -> Fact:
        """Return a value derived from the stored runs and examinations, computed once per snapshot; callers must not
        modify it.

        Args:
            name: The name of the fact; all facts with names of one form have one type.
            compute: Called if the value is not cached, and always if this is not a snapshot.
        """
        if self._listing is None:
            return compute()
        facts = self._listing.facts
        return facts[name] if name in facts else facts.setdefault(name, compute())

    def read_runs(self) -> tuple[list[dict[str, Any]], dict[str, InvalidInput]]:
        """Return the manifests of all complete runs, oldest first, and the errors of unreadable ones by key."""
        if self._listing is None:
            return self._read_runs()
        return [_manifest_copy(manifest) for manifest in self._listing.manifests], {
            **self._listing.unread
        }

    def _read_runs(self) -> tuple[list[dict[str, Any]], dict[str, InvalidInput]]:
        self._refresh()
        manifests: list[dict[str, Any]] = []
        unread: dict[str, InvalidInput] = {}
        try:
            keys = os.listdir(self.root / "runs")
        except OSError as error:
            keys = []
            if not isinstance(error, FileNotFoundError):
                unread[""] = unreadable(self.root / "runs", error)
        for key in keys:
            try:
                manifest = _manifest(os.path.join(self.root, "runs", key))
            except InvalidInput as error:
                if present(self.root / "runs" / key / "manifest.json"):  # not removed meanwhile
                    unread[key] = error.with_traceback(None)  # callers keep it
                continue
            if manifest is None:  # incomplete
                continue
            # Made by a file manager; reported by `vlprobe verify`
            is_copy = manifest.get("key") != key
            if manifest["schema"] != SCHEMA:
                unread[key] = InvalidInput(
                    f"Run {key} was stored in format {printable(str(manifest['schema']))}; "
                    f"this version of vlprobe reads format {SCHEMA}. Repeat the run, or "
                    "export it with the version that wrote it."
                )
            elif "run" in manifest and not is_copy:
                manifests.append(manifest)
        return sorted(
            manifests, key=lambda manifest: (manifest["finished"], manifest["key"])
        ), unread

    def is_shipped(self, run_key: str) -> bool:
        """Return whether a run is bundled with vlprobe: see `storage.shipped`."""
        return False

    @property
    def connection_error(self) -> str:
        """Reason why the object store could not be reached, in one line; "" if it was reached."""
        return self.mirror.connection_error if self.mirror else ""

    def _refresh(self) -> None:
        """Update the mirror. Raises InvalidInput if that fails and this machine lacks a run to show instead."""
        if not self.mirror:
            return
        try:
            self.mirror.refresh()
        except InvalidInput as error:
            if not any(self.root.glob("runs/*/manifest.json")):
                raise
            warn_once(str(error))

    def find(self, key: str) -> dict[str, Any]:
        """Return the manifest of the run whose key begins with these digits. Raises NotFound."""
        manifests, unread = self.read_runs()
        runs = {manifest["key"]: manifest for manifest in manifests}
        matching = [full for full in runs if key and full.startswith(key)]
        if len(matching) > 1:
            raise InvalidInput(
                f"'{key}' matches {len(matching)} runs. Use more digits of the key: "
                f"{', '.join(matching)}."
            )
        if not matching:
            for full, error in unread.items():
                if key and full.startswith(key):
                    raise error
            raise NotFound("stored run", key, runs, "`vlprobe show` lists them.")
        return runs[matching[0]]

    def version(self) -> str:
        """Return the version of cached tables: it changes when a run is completed or removed, a model is
        examined, or a picture is downloaded.
        """
        return self._listing.version if self._listing else self._read_version()

    def _read_version(self) -> str:
        self._refresh()
        runs = [f"runs/{key}/manifest.json" for key in _names(self.root / "runs")]
        models = [
            f"models/{name}" for name in _names(self.root / "models") if name.endswith(".json")
        ]
        stamps = [
            f"{name}:{stamp}"
            for name in (*runs, *models, DOWNLOADED)
            if (stamp := _stamp(os.path.join(self.root, name)))
        ]
        return hashlib.sha256("\n".join(stamps).encode()).hexdigest()[:16]

    def note_downloads(self) -> None:
        """Change the version of cached tables after a download of pictures."""
        files.write_bytes(self.root / DOWNLOADED, b"", durable=False)

    def files(self, keys: Sequence[str], table: str) -> list[str]:
        """Return the paths of one table of complete entries, for read_parquet: `scores`, `estimates`, `sums`
        or a probe's side table (runs), or `cases`.

        Raises InvalidInput if a checksum differs.
        """
        entry = self.cases if table == "cases" else self.run
        if not self.mirror:
            return [str(entry(key).table_path(table)) for key in keys]
        with ThreadPoolExecutor(FETCH_THREADS) as pool:  # the threads only wait for the network
            return list(pool.map(lambda key: str(entry(key).table_path(table)), keys))

    @contextlib.contextmanager
    def cursor(self) -> Iterator["duckdb.DuckDBPyConnection"]:
        """Open a DuckDB cursor that can only read the store's folders. Raises InvalidInput if a file is missing."""
        import duckdb

        cursor = _connection(tuple(map(str, self.roots))).cursor()
        try:
            yield cursor
        except duckdb.OutOfMemoryException:
            raise InvalidInput(NO_MEMORY) from None
        except duckdb.IOException as error:
            raise StoredDamage(f"A stored result cannot be read ({error}).") from None
        finally:
            cursor.close()


def _names(folder: Path) -> list[str]:
    """List the names in a folder, in order; empty if it cannot be listed."""
    try:
        return sorted(os.listdir(folder))
    except OSError:
        return []


def _stamp(path: str) -> str:
    """Return a version that changes with the file and its permissions; "" if the file is missing."""
    try:
        status = os.stat(path)
    except (FileNotFoundError, NotADirectoryError):
        return ""
    except OSError as error:
        return str(error.errno)
    return f"{status.st_mtime_ns}:{status.st_ctime_ns}"


def _manifest(folder: str) -> dict[str, Any] | None:
    """Return the fields of a run's manifest, read again if its file has changed; None if there is
    none. Raises InvalidInput as `Entry.manifest`.
    """
    began = time.time_ns()
    try:
        stamp = memo.stamp(os.path.join(folder, "manifest.json"))
    except (FileNotFoundError, NotADirectoryError):
        return Entry(Path(folder)).manifest() if present(Path(folder, "manifest.json")) else None
    except OSError:  # `Entry` reports the problem
        return Entry(Path(folder)).manifest()
    if not (memo.is_used() and memo.is_settled(stamp, began)):
        return Entry(Path(folder)).manifest()
    return _manifest_copy(_settled_manifest(folder, tuple(stamp)))


def _manifest_copy(manifest: dict[str, Any]) -> dict[str, Any]:
    """Return a copy that callers may modify."""
    return {**manifest, "run": {**manifest["run"]}} if "run" in manifest else {**manifest}


@functools.lru_cache(maxsize=MANIFESTS)
def _settled_manifest(folder: str, _stamp: tuple[int, ...]) -> dict[str, Any]:
    """Return the manifest of a file with this stamp; cached, because each page reads all of them (0.1 ms per run)."""
    return Entry(Path(folder)).manifest()


@functools.lru_cache(maxsize=8)  # opening DuckDB takes 14 ms; a page has several queries
def _connection(roots: tuple[str, ...]) -> "duckdb.DuckDBPyConnection":
    import duckdb

    connection = duckdb.connect(":memory:", config={"threads": min(4, os.cpu_count() or 1)})
    folders = ", ".join("'{}/'".format(root.replace("'", "''")) for root in roots)
    connection.execute(
        "SET autoinstall_known_extensions=false; SET autoload_known_extensions=false"
    )
    # Files never change, and parsing their footers is slow
    connection.execute("SET parquet_metadata_cache=true")
    connection.execute(f"SET allowed_directories=[{folders}]")
    connection.execute("SET enable_external_access=false")
    connection.execute("SET lock_configuration=true")
    return connection
