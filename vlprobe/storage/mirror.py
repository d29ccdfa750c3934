"""A store on an object store, read and written through a local folder that caches the entries in
use (`mirrored_entry.py`).

    index/runs/<run key>.2.json           the manifest of a run (2: its schema): its existence means complete
    index/cases/<case key>.2.json         the same for questions
    index/models/<...>.json               an examination
    runs/<run key>/scores.<sha256>.parquet    a table, named by 16 digits of its checksum
    runs/<run key>/parts/<part>.json          a finished part of an incomplete run, written after its table
    embeddings/...                        as in the folder

One listing of `index/` names everything that is complete. A manifest is created only if absent: of
two machines that finish the same run the first commits and the other adopts its results, so that no
manifest names the other's bytes.
"""

import functools
import json
import logging
import re
import threading
import time
from collections.abc import Mapping
from pathlib import Path

from vlprobe.errors import InvalidInput, StoredDamage
from vlprobe.storage.entry import SCHEMA, parse_manifest
from vlprobe.storage.files import cache_writer, parse_json_object, read
from vlprobe.storage.objects import Damaged, Remote

LISTED_SECONDS = 3.0  # between two refreshes
UNREACHED_SECONDS = 30.0  # after a failed one, for which a page may have waited
_log = logging.getLogger(__name__)


class Mirror:
    """Keeps the manifests and the examinations of a folder equal to those in the object store."""

    def __init__(self, remote: Remote) -> None:
        self.remote, self.root = remote, remote.root
        self.connection_error = ""  # why the latest refresh failed
        self._refreshed = float("-inf")
        self._damaged: dict[
            str, str
        ] = {}  # names and stamps of objects that are not read again before they change
        self._warned: set[str] = set()
        self._lock = threading.Lock()

    def refresh(self, now: bool = False) -> None:
        """Fetches new manifests and examinations, and deletes those that were removed there; at
        most every few seconds.

        Raises:
            InvalidInput: the object store cannot be reached.
        """
        with self._lock:
            pause = UNREACHED_SECONDS if self.connection_error else LISTED_SECONDS
            if now or time.monotonic() - self._refreshed >= pause:
                try:
                    self._refresh()
                    self.connection_error = ""
                except InvalidInput as error:
                    self.connection_error = str(error)
                    raise
                finally:
                    self._refreshed = time.monotonic()
            elif self.connection_error:
                raise InvalidInput(self.connection_error)

    def _refresh(self) -> None:
        self.remote.mark()
        previous = (
            self._read_listing()
        )  # before the listing: what is completed meanwhile is not taken for removed
        listing = {
            name: stamp for name, stamp in self.remote.names("index").items() if self._file(name)
        }
        if previous and not listing and self.remote.is_folder:
            raise InvalidInput(
                f"Nothing is left in '{self.remote.url}', where {len(previous)} results were. Mount it again; if it "
                f"was emptied on purpose, delete listed.json, runs and cases in '{self.root}'."
            )
        changed = self._changed(previous, listing)
        for name, content in self.remote.read_all(changed).items():
            try:
                self.save(name, changed[name], content)
                self._damaged.pop(name, None)
            except Damaged as error:  # the others stay readable
                self._damaged[name] = listing[name]
                self.warn(str(error))
        for name in set(previous) - set(listing):
            if path := self._file(name):
                path.unlink(missing_ok=True)
        listing |= {name: "" for name in self._damaged if name in listing}
        if previous != listing:
            self._write_listing(listing)

    def _changed(self, previous: Mapping[str, str], listing: Mapping[str, str]) -> dict[str, Path]:
        """Names and local files of changed objects, without questions, which are fetched when
        they are needed.
        """
        changed = {}
        for name, stamp in listing.items():
            if name.startswith("index/cases/") or self._damaged.get(name) == stamp:
                continue
            path = self._file(name)
            if path and (previous.get(name) != stamp or not path.exists()):
                changed[name] = path
        return changed

    def warn(self, text: str) -> None:
        """Logs a warning, each text once in a process."""
        if text not in self._warned:
            self._warned.add(text)
            _log.warning("%s", text)

    def add_to_listing(self, name: str) -> None:
        """Records a new object as listed: the next refresh then deletes its local file if the
        object is gone.
        """
        self._write_listing(self._read_listing() | {name: ""})

    def _write_listing(self, listing: dict[str, str]) -> None:
        with cache_writer(self.root / "listed.json") as handle:
            handle.write(json.dumps(listing).encode())

    def _read_listing(self) -> dict[str, str]:
        """Names and stamps of the previous refresh; empty where the file is missing or damaged."""
        try:
            return parse_json_object((self.root / "listed.json").read_text())
        except (OSError, ValueError):
            return {}

    def _file(self, name: str) -> Path | None:
        """The local file of a manifest or of an examination; None for other objects."""
        entry = re.fullmatch(rf"index/(runs|cases)/([0-9a-z]{{1,64}})\.{SCHEMA}\.json", name)
        if entry:
            return self.root / entry[1] / entry[2] / "manifest.json"
        examination = re.fullmatch(r"index/models/([0-9A-Za-z][0-9A-Za-z_.-]{0,200}\.json)", name)
        return self.root / "models" / examination[1] if examination else None

    def save(self, name: str, path: Path, content: bytes) -> None:
        """Writes the local copy of an object of the index. Raises Damaged where it is not what
        was written.
        """
        if not (
            parse_manifest(content) if path.name == "manifest.json" else _is_json_object(content)
        ):
            raise Damaged(f"'{self.remote.address(name)}' is damaged.")
        if (
            not path.exists() or path.read_bytes() != content
        ):  # a new time would invalidate caches of pages
            with cache_writer(path) as handle:
                handle.write(content)

    def require_writable(self) -> None:
        """Refreshes, and writes an object. Raises InvalidInput where the object store refuses it."""
        self.refresh(now=True)
        self.remote.make()
        self.remote.write("writable", b"")

    def remove_run(self, key: str) -> None:
        """Removes a run for all machines: first its manifest, without which it is none, then its tables. Raises
        InvalidInput.
        """
        self.remote.remove([f"index/runs/{key}.{SCHEMA}.json"])
        self.remote.remove(self.remote.names(f"runs/{key}"))

    def send_examinations(self) -> None:
        """Uploads examinations that are not in the object store; damaged ones are left out with a
        warning. Raises InvalidInput.
        """
        listing = self._read_listing()
        for path in sorted((self.root / "models").glob("*.json")):
            name = f"index/models/{path.name}"
            if name in listing:
                continue
            try:
                valid = _is_json_object(read(path))
            except OSError:  # a pipe, or deleted meanwhile
                valid = False
            if valid:
                self.remote.put(name, path)
            else:
                self.warn(str(StoredDamage(f"'{path}' is damaged and is sent to nobody.")))


@functools.lru_cache(maxsize=64)
def mirror(remote: Remote) -> Mirror:
    """The one mirror of an object store in this process."""
    return Mirror(remote)


def _is_json_object(content: bytes) -> bool:
    try:
        parse_json_object(content.decode())
    except ValueError:
        return False
    return True
