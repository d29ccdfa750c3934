"""The result store: Parquet files that are written once, under keys that depend on everything that can change a
number.

    cases/<case key>/cases.parquet      the questions, shared by all models that answered them
    runs/<run key>/scores.parquet       one model's scores, one row per case
    runs/<run key>/estimates.parquet    means and intervals in a small table for pages
    runs/<run key>/sums.parquet         sums behind the means, one row per metric and item, for comparisons
    runs/<run key>/fronts.parquet       the top of each gallery, one row per case (rococo)
    runs/<run key>/comparisons.parquet  overlaps of two named wordings, one row per case (prsm)
    .../manifest.json                   files, rows, sha256; written last: its existence marks a complete entry

Each file is written under a temporary name, read back, flushed to disk and renamed; an incomplete
entry has its finished parts in `parts/`. Readers take the list of files from the manifests. Results are not in
a `.duckdb` file, because DuckDB lets either one process write or several read, and a dashboard and a job
are two processes. Entries are never migrated and never expire. The folder may mirror an object store
that several machines share (see `mirror.py`).
"""

import contextlib
import copy
import functools
import hashlib
import os
import re
import tempfile
from collections.abc import Callable, Hashable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from vlprobe.errors import NO_MEMORY, InvalidInput, NotFound, StoredDamage, printable
from vlprobe.storage import files
from vlprobe.storage.access import refuse_writing
from vlprobe.storage.entry import SCHEMA, Entry
from vlprobe.storage.files import present, unreadable
from vlprobe.storage.mirror import MirroredEntry, mirror_of, open_mirror, warn_once

if TYPE_CHECKING:
    import duckdb
    import pandas as pd

DEFAULT = os.environ.get("VLPROBE_CACHE", "cache")
FETCH_THREADS = 8
Fact = TypeVar("Fact")
DOWNLOADED = "pictures/downloaded"  # written after each download of pictures


@dataclass(frozen=True)
class Listing:
    """The complete runs in a store at one time, and values computed from them."""

    version: str
    manifests: list[dict[str, Any]]
    unread: dict[str, InvalidInput]
    facts: dict[Hashable, Any] = field(default_factory=dict)


class Store:
    """The cache, which is the only place where results are read and written.

    Args:
        root: A folder, or the URL of an object store. For a URL, `root` becomes the local folder that
            mirrors the object store.
    """

    def __init__(self, root: Path | str = DEFAULT) -> None:
        try:
            mirror = open_mirror(str(root))
            self.root = mirror.root if mirror else Path(root).expanduser().resolve()
            files.require_utf8(self.root, "the cache")
        except FileNotFoundError:  # raised by os.getcwd
            raise InvalidInput(
                f"'{root}' is relative to a working folder that no longer exists. Change "
                "to another folder."
            ) from None
        except (OSError, ValueError, RuntimeError) as error:  # NUL, a link to itself
            raise InvalidInput(
                f"Cannot use '{root}' as the cache folder ({error}). Choose another folder "
                "with --cache."
            ) from None
        self.mirror = mirror_of(self.root)
        self._listing: Listing | None = None  # set in a snapshot

    @property
    def roots(self) -> tuple[Path, ...]:
        """Return the folders that results are read from, the writable one first."""
        return (self.root,)

    @property
    def address(self) -> str:
        """Return the URL of the store, or its folder. The address works on every machine that can reach it."""
        return self.mirror.url if self.mirror else str(self.root)

    def __reduce__(self) -> tuple:
        return Store, (self.address,)

    def require_writable(self) -> None:
        """Raise InvalidInput if the store cannot be written. Call this method before long work."""
        self.require_local_writable()
        if self.mirror:
            self.mirror.upload_pending()

    def require_local_writable(self) -> None:
        """Raise InvalidInput if the local folder cannot be written, without checking the object store."""
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
        """Return the entry with the questions stored under a case key."""
        return self._entry("cases", key)

    def run(self, key: str) -> Entry:
        """Return the entry with one model's answers stored under a run key."""
        return self._entry("runs", key)

    def _entry(self, kind: str, key: str) -> Entry:
        if not re.fullmatch("[0-9a-z]{1,64}", key):
            raise InvalidInput(
                f"'{key}' is not the key of stored {kind}. `vlprobe show` lists the keys."
            )
        folder = self.root / kind / key
        return MirroredEntry(folder, self.mirror) if self.mirror else Entry(folder)

    def runs(self) -> list[dict[str, Any]]:
        """Return the manifests of all readable complete runs, oldest first. Each manifest has a `key`."""
        return self.read_runs()[0]

    def snapshot(self) -> "Store":
        """Return a copy of the store with `read_runs` and `version` frozen, so that many queries see one version of a
        large store. A snapshot returns itself.
        """
        if self._listing is not None:
            return self
        snapshot = copy.copy(self)
        snapshot._listing = Listing(self.version(), *self.read_runs())
        return snapshot

    def listing_fact(self, name: Hashable, compute: Callable[[], Fact]) -> Fact:
        """Return a value derived from the stored runs and examinations, computed once per snapshot. Callers must not
        modify the value.

        Args:
            name: The name of the value. All names of one form must have values of one type.
            compute: Called if the value is not cached, and always if the store is not a snapshot.
        """
        if self._listing is None:
            return compute()
        facts = self._listing.facts
        return facts[name] if name in facts else facts.setdefault(name, compute())

    def read_runs(self) -> tuple[list[dict[str, Any]], dict[str, InvalidInput]]:
        """Return the manifests of all complete runs, oldest first, and the errors for unreadable runs by key."""
        if self._listing is None:
            return self._read_runs()
        copies = [  # that callers may modify
            manifest | ({"run": {**manifest["run"]}} if "run" in manifest else {})
            for manifest in self._listing.manifests
        ]
        return copies, {**self._listing.unread}

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
            entry = Entry(self.root / "runs" / key)
            try:
                manifest = entry.manifest()
            except InvalidInput as error:
                # Otherwise the run is incomplete, or was removed meanwhile
                if present(entry.folder / "manifest.json"):
                    unread[key] = error.with_traceback(None)  # callers keep it
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
        """Return whether a run is bundled with vlprobe (see `storage.shipped`)."""
        return False

    @property
    def connection_error(self) -> str:
        """Return one line on why the object store could not be reached, or "" if it was reached."""
        return self.mirror.connection_error if self.mirror else ""

    def _refresh(self) -> None:
        """Update the mirror. If that fails, raises InvalidInput unless this machine already has runs to show."""
        if not self.mirror:
            return
        try:
            self.mirror.refresh()
        except InvalidInput as error:
            if not any(self.root.glob("runs/*/manifest.json")):
                raise
            warn_once(str(error))

    def find(self, key: str) -> dict[str, Any]:
        """Find a run by the first digits of its key, and return its manifest.

        Raises NotFound, or InvalidInput if several runs match or the matching run cannot be read.
        """
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
            raise NotFound("stored run", key, runs, "`vlprobe show` lists all runs.")
        return runs[matching[0]]

    def version(self) -> str:
        """Return the version of the stored results, which changes when a run is completed or removed, a model is
        examined, or pictures are downloaded.
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
        """Record that pictures were downloaded, which changes `version`."""
        files.write_bytes(self.root / DOWNLOADED, b"", durable=False)

    def files(self, keys: Sequence[str], table: str) -> list[str]:
        """Return the path to one table in each of several complete entries, for DuckDB's read_parquet.

        Runs have `scores`, `estimates`, `sums` and the probe's side tables; question sets have `cases`. Raises
        InvalidInput if a checksum differs.
        """
        entry = self.cases if table == "cases" else self.run
        if not self.mirror:
            return [str(entry(key).table_path(table)) for key in keys]
        with ThreadPoolExecutor(FETCH_THREADS) as pool:  # the threads only wait for the network
            return list(pool.map(lambda key: str(entry(key).table_path(table)), keys))

    @contextlib.contextmanager
    def cursor(self) -> Iterator["duckdb.DuckDBPyConnection"]:
        """Open a DuckDB cursor that can only read the store's folders. Raises InvalidInput if a file cannot be read."""
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

    def fetch_rows(self, statement: str, parameters: object = None) -> list[tuple]:
        """Return the rows of a SELECT statement. See `cursor`.

        Args:
            statement: SQL that reads files of `files`.
            parameters: The values of its question marks, or of its names.
        """
        with self.cursor() as cursor:
            return cursor.execute(statement, parameters).fetchall()

    def fetch_table(self, statement: str, parameters: object = None) -> "pd.DataFrame":
        """Return the rows of a SELECT statement as a table, as `fetch_rows` does."""
        with self.cursor() as cursor:
            return cursor.execute(statement, parameters).df()


def _names(folder: Path) -> list[str]:
    """Return the sorted names in a folder, or an empty list if the folder cannot be listed."""
    try:
        return sorted(os.listdir(folder))
    except OSError:
        return []


def _stamp(path: str) -> str:
    """Return a string that changes when a file or its permissions change, or "" if the file is missing."""
    try:
        status = os.stat(path)
    except (FileNotFoundError, NotADirectoryError):
        return ""
    except OSError as error:
        return str(error.errno)
    return f"{status.st_mtime_ns}:{status.st_ctime_ns}"


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
