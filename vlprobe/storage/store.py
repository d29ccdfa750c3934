"""Results as Parquet files, written once, under keys that name everything that can change a number.

    cases/<case key>/cases.parquet      the questions, shared by all models that were asked them
    runs/<run key>/scores.parquet       one model's answers, a row a case
    runs/<run key>/estimates.parquet    means and intervals, small: what pages draw
    runs/<run key>/sums.parquet         what the means rest on, a row a metric and item: what comparisons are made from
    .../manifest.json                   files, rows, sha256; written last: its existence means complete

A file is written beside its name, read back, flushed to the disk and renamed; an entry in progress keeps its finished
parts in `parts/`. Readers take the list of files from the manifests. There is no live `.duckdb` file: DuckDB lets one
process write or several read, and a dashboard and a job are two processes. Nothing is migrated, nothing expires.
The folder may be a mirror of an object store that several machines share: `store_mirror.py`.
"""

import contextlib
import functools
import hashlib
import os
import re
import tempfile
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

from vlprobe.errors import InvalidInput, NotFound
from vlprobe.storage import files, objects
from vlprobe.storage.access import refuse_writing
from vlprobe.storage.entry import SCHEMA, Entry
from vlprobe.storage.files import REPAIR, present, unreadable_message
from vlprobe.storage.mirror import MirroredEntry, mirror

if TYPE_CHECKING:
    import duckdb

DEFAULT = os.environ.get("VLPROBE_CACHE", "cache")
FETCH_THREADS = 8  # tables at once


class Store:
    """The cache: the only place that results are written to and read from.

    Args:
        root: A folder, or the URL of an object store; its folder is then the mirror on this machine.
    """

    def __init__(self, root: Path | str = DEFAULT) -> None:
        try:
            self.root = objects.open_remote(root).root if objects.is_url(root) else Path(root).expanduser().resolve()
            files.require_utf8(self.root, "the cache")
        except FileNotFoundError:  # of os.getcwd
            raise InvalidInput(f"'{root}' is relative to a working folder that is gone. Change to another.") from None
        except (OSError, ValueError, RuntimeError) as error:  # NUL, a link to itself
            raise InvalidInput(f"'{root}' can be no folder ({error}). Choose another with --cache.") from None
        there = objects.remote_of(self.root)
        self.mirror = mirror(there) if there else None

    @property
    def address(self) -> str:
        """What names this store on any machine that can reach it: its URL, or its folder."""
        return self.mirror.remote.url if self.mirror else str(self.root)

    def __reduce__(self) -> tuple:
        return Store, (self.address,)

    def require_writable(self) -> None:
        """Raises InvalidInput where nothing can or may be written: better now than after an hour of work."""
        self.require_local_writable()
        if self.mirror:
            self.mirror.send()

    def require_local_writable(self) -> None:
        """As `require_writable`, for what is written on this machine alone."""
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
        """The questions under this key."""
        return self._entry("cases", key)

    def run(self, key: str) -> Entry:
        """One model's answers under this key."""
        return self._entry("runs", key)

    def _entry(self, kind: str, key: str) -> Entry:
        if not re.fullmatch("[0-9a-z]{1,64}", key):
            raise InvalidInput(f"'{key}' is no key of stored {kind}. `vlprobe show` lists what is stored.")
        folder = self.root / kind / key
        return MirroredEntry(folder, self.mirror) if self.mirror else Entry(folder)

    def runs(self) -> list[dict]:
        """Manifests of all complete runs that can be read, oldest first; each has `key`."""
        return self.read_runs()[0]

    def read_runs(self) -> tuple[list[dict], dict[str, str]]:
        """Manifests of all complete runs, oldest first, and of those that cannot be read one line each by their key."""
        self._refresh()
        manifests, unread = [], {}
        try:
            keys = os.listdir(self.root / "runs")
        except OSError as error:
            keys = []
            if not isinstance(error, FileNotFoundError):
                unread[""] = unreadable_message(self.root / "runs", error)
        for key in keys:
            path = self.root / "runs" / key / "manifest.json"
            if not present(path):  # it grows
                continue
            try:
                manifest = Entry(path.parent).manifest()
            except InvalidInput as error:
                if present(path):  # it was not removed meanwhile
                    unread[key] = str(error)
                continue
            is_copy = manifest.get("key") != key  # made by a file manager: `vlprobe verify` tells of it
            if manifest["schema"] == SCHEMA and "run" in manifest and not is_copy:
                manifests.append(manifest)
        return sorted(manifests, key=lambda manifest: (manifest["finished"], manifest["key"])), unread

    @property
    def connection_error(self) -> str:
        """Why what is complete elsewhere cannot be told now, in one line; "" where it can."""
        return self.mirror.connection_error if self.mirror else ""

    def _refresh(self) -> None:
        """Raises InvalidInput where nothing can be told of what is there, and nothing is here to be shown instead."""
        if not self.mirror:
            return
        try:
            self.mirror.refresh()
        except InvalidInput as error:
            if not any(self.root.glob("runs/*/manifest.json")):
                raise
            self.mirror.warn(str(error))

    def find(self, key: str) -> dict:
        """The manifest of the run whose key begins with these digits. Raises NotFound."""
        manifests, unread = self.read_runs()
        runs = {manifest["key"]: manifest for manifest in manifests}
        matching = [full for full in runs if key and full.startswith(key)]
        if len(matching) > 1:
            raise InvalidInput(
                f"'{key}' begins the keys of {len(matching)} runs. Type more of it: {', '.join(matching)}."
            )
        if not matching:
            for line in (line for own, line in unread.items() if key and own.startswith(key)):
                raise InvalidInput(line)
            raise NotFound("stored run", key, runs, "`vlprobe show` lists them.")
        return runs[matching[0]]

    def version(self) -> str:
        """Changes whenever a run is completed or removed, or a model examined: what cached tables depend on."""
        self._refresh()
        stamps = [
            f"{path.relative_to(self.root)}:{_stamp(path)}"
            for pattern in ("runs/*/manifest.json", "models/*.json")
            for path in sorted(self.root.glob(pattern))
        ]
        return hashlib.sha256("\n".join(stamps).encode()).hexdigest()[:16]

    def files(self, keys: Sequence[str], table: str) -> list[str]:
        """Paths of one table of complete entries, for read_parquet: `scores`, `estimates`, `sums` (runs) or `cases`.

        Raises InvalidInput where one of them is not what was written.
        """
        entry = self.cases if table == "cases" else self.run
        if not self.mirror:
            return [str(entry(key).table_path(table)) for key in keys]
        with ThreadPoolExecutor(FETCH_THREADS) as pool:
            return list(pool.map(lambda key: str(entry(key).table_path(table)), keys))

    @contextlib.contextmanager
    def cursor(self) -> Iterator["duckdb.DuckDBPyConnection"]:
        """A DuckDB cursor that can read this folder and nothing else. Raises InvalidInput where a file is gone."""
        import duckdb

        cursor = _connection(str(self.root)).cursor()
        try:
            yield cursor
        except duckdb.IOException as error:
            raise InvalidInput(f"A stored result cannot be read ({error}). {REPAIR}") from None
        finally:
            cursor.close()


def _stamp(path: Path) -> str:
    """Changes whenever a file is written anew, or who may read it changes."""
    try:
        status = path.stat()
    except OSError as error:
        return str(error.errno)
    return f"{status.st_mtime_ns}:{status.st_ctime_ns}"


@functools.lru_cache(maxsize=8)
def _connection(root: str) -> "duckdb.DuckDBPyConnection":
    import duckdb

    connection = duckdb.connect(":memory:", config={"threads": min(4, os.cpu_count() or 1)})
    quoted = root.replace("'", "''")
    connection.execute("SET autoinstall_known_extensions=false; SET autoload_known_extensions=false")
    connection.execute("SET parquet_metadata_cache=true")  # a file never changes; its footer takes longer than a page
    connection.execute(f"SET allowed_directories=['{quoted}/']")
    connection.execute("SET enable_external_access=false")
    connection.execute("SET lock_configuration=true")
    return connection
