"""A store on an object store, read and written through a local folder that caches the entries in
use.

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
import shutil
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa

from vlprobe.errors import InvalidInput
from vlprobe.storage.entry import SCHEMA, Entry, parse_file_record, parse_manifest, part_intact
from vlprobe.storage.files import (
    REPAIR,
    cache_writer,
    parse_json_object,
    read,
    sha256,
    write_bytes,
    write_json,
)
from vlprobe.storage.objects import Damaged, Remote

LISTED_SECONDS = 3.0  # between two refreshes
UNREACHED_SECONDS = 30.0  # after a failed one, for which a page may have waited
QUESTION_FIELDS = (
    "key",
    "n_items",
    "n_cases",
    "dropped",
)  # equal in the manifests of the same questions
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
            raise Damaged(f"'{self.remote.address(name)}' is damaged. {REPAIR}")
        if (
            not path.exists() or path.read_bytes() != content
        ):  # a new time would invalidate caches of pages
            with cache_writer(path) as handle:
                handle.write(content)

    def send(self) -> None:
        """Uploads finished entries and examinations that are not in the object store. Raises
        InvalidInput.
        """
        self.refresh(now=True)
        self.remote.make()
        self.remote.write("writable", b"")
        for pending in sorted(self.root.glob("*/*/pending.json")):
            try:
                MirroredEntry(pending.parent, self).send()
            except Damaged as error:
                self.warn(str(error))
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
                self.warn(f"'{path}' is damaged and is sent to nobody. {REPAIR}")


@functools.lru_cache(maxsize=64)
def mirror(remote: Remote) -> Mirror:
    """The one mirror of an object store in this process."""
    return Mirror(remote)


class MirroredEntry(Entry):
    """An entry that is fetched on demand and uploaded when it is finished; it has `pending.json`
    until then.
    """

    def __init__(self, folder: Path, mirror: Mirror) -> None:
        super().__init__(folder)
        self.mirror, self.remote = mirror, mirror.remote
        self.name = self.remote.name(folder)
        self.index = f"index/{self.name}.{SCHEMA}.json"

    @property
    def complete(self) -> bool:
        """Whether the entry is complete, here or in the object store."""
        self._fetch_manifest()
        return super().complete

    def manifest(self) -> dict[str, Any]:
        """The fields of the manifest, fetched where it is not here."""
        self._fetch_manifest()
        return super().manifest()

    def _fetch_manifest(self) -> None:
        path = self.folder / "manifest.json"
        if not path.exists() and (content := self.remote.read(self.index)) is not None:
            self.mirror.save(self.index, path, content)
            self.mirror.add_to_listing(self.index)

    def table_path(self, name: str) -> Path:
        """The path of a table, fetched where it is missing or damaged. Raises InvalidInput."""
        self._fetch_manifest()
        if (self.folder / f"{name}.parquet").exists():
            try:
                return super().table_path(name)
            except InvalidInput as error:
                _log.warning("Fetched again: %s", error)
        try:
            self._fetch(name)
        except Damaged:
            if not self._adopt_newer():
                raise
            self._fetch(name)
        return super().table_path(name)

    def _fetch(self, name: str) -> None:
        line = next(
            (line for line in self.manifest()["files"] if line["name"] == f"{name}.parquet"), None
        )
        if line is None:
            raise InvalidInput(
                f"'{self.remote.address(self.index)}' names no table '{name}'. {REPAIR}"
            )
        self.remote.fetch(
            table_object(self.name, line),
            self.folder / line["name"],
            lambda file: _has_checksum(file, line),
        )

    def _adopt_newer(self) -> bool:
        """Replaces the local manifest where the entry was computed anew elsewhere; returns
        whether it was.
        """
        path = self.folder / "manifest.json"
        content = self.remote.read(self.index)
        if content is None or content == path.read_bytes():
            return False
        self.mirror.save(self.index, path, content)
        return True

    def has_part(self, name: str) -> bool:
        """Whether the part is finished, here or in the object store; `parts` needs one request
        for all.
        """
        return super().has_part(name) or self.remote.exists(f"{self.name}/parts/{name}.json")

    def parts(self) -> set[str]:
        """Names of all finished parts, here and in the object store; uploads those that are here
        alone.
        """
        local = super().parts()
        uploaded = {
            Path(name).stem
            for name in self.remote.names(f"{self.name}/parts")
            if name.endswith(".json")
        }
        for name in sorted(local - uploaded):
            if part_intact(self.folder / "parts" / f"{name}.parquet"):
                self._send_part(name)
        return local | uploaded

    def part(self, name: str) -> pa.Table | None:
        """A finished part, fetched where it is not here; None where there is none or it is damaged."""
        if not super().has_part(name):
            try:
                self._fetch_part(name)
            except Damaged as error:
                _log.warning("Made again: %s", error)
                return None
        return super().part(name)

    def _fetch_part(self, name: str) -> None:
        record_object = f"{self.name}/parts/{name}.json"
        content = self.remote.read(record_object)
        if content is None:
            return
        try:
            line = parse_file_record(content)
        except ValueError:
            raise Damaged(f"'{self.remote.address(record_object)}' is damaged.") from None
        folder = self.folder / "parts"
        source = table_object(f"{self.name}/parts", line)
        self.remote.fetch(
            source, folder / f"{name}.parquet", lambda file: _has_checksum(file, line)
        )
        with cache_writer(folder / f"{name}.json") as handle:
            handle.write(content)

    def write_part(self, name: str, table: pa.Table) -> None:
        """Stores a part, here and in the object store; the same name always holds the same rows."""
        super().write_part(name, table)
        self._send_part(name)

    def _send_part(self, name: str) -> None:
        path = self.folder / "parts" / f"{name}.parquet"
        record = path.with_suffix(".json").read_bytes()
        self.remote.put(table_object(f"{self.name}/parts", parse_file_record(record)), path)
        self.remote.write(f"{self.name}/parts/{name}.json", record)

    def _commit(self, manifest: dict) -> None:
        write_json(self.folder / "pending.json", manifest)
        self.send()

    def send(self) -> None:
        """Uploads a finished entry: its tables, then its manifest, unless another machine has
        committed before.

        Raises:
            InvalidInput: the object store cannot be reached; the entry stays here, and the next run
                uploads it.
        """
        pending = self.folder / "pending.json"
        try:
            content = pending.read_bytes()
        except FileNotFoundError:  # uploaded by another process meanwhile
            return
        manifest = parse_manifest(content)
        if manifest is None or not all(
            _has_checksum(self.folder / line["name"], line) for line in manifest["files"]
        ):
            _log.warning("'%s' is damaged and is made again.", self.folder)
            pending.unlink(missing_ok=True)
            return
        committed = self.remote.read(self.index)
        if committed is None:
            for line in manifest["files"]:
                self.remote.put(table_object(self.name, line), self.folder / line["name"])
            committed = (
                content if self.remote.create(self.index, content) else self.remote.read(self.index)
            )
        adopted = None if committed == content else self._adopt(manifest, committed or b"")
        write_bytes(self.folder / "manifest.json", adopted or content)
        self.mirror.add_to_listing(self.index)
        shutil.rmtree(self.folder / "parts", ignore_errors=True)
        self.remote.remove(self.remote.names(f"{self.name}/parts"))
        pending.unlink(missing_ok=True)  # at the end, so that a killed process is resumed from here

    def _adopt(self, manifest: Mapping[str, Any], committed: bytes) -> bytes | None:
        """Drops local tables in favour of a committed manifest, which is returned.

        Returns None where both are the same questions: these stay, with the paths that pictures
        have here.
        """
        committed_manifest = parse_manifest(committed)
        if committed_manifest is None:
            raise Damaged(f"'{self.remote.address(self.index)}' is damaged. {REPAIR}")
        checksums = {line["name"]: line["sha256"] for line in committed_manifest["files"]}
        superseded = [
            line for line in manifest["files"] if checksums.get(line["name"]) != line["sha256"]
        ]
        self.remote.remove(table_object(self.name, line) for line in superseded)
        same_questions = all(
            manifest.get(field) == committed_manifest.get(field) for field in QUESTION_FIELDS
        )
        if "run" not in manifest and same_questions:
            return None
        _log.warning("Another machine has completed '%s' before: its results are taken.", self.name)
        for line in superseded:
            (self.folder / line["name"]).unlink(missing_ok=True)
        return committed


def table_object(folder: str, line: Mapping[str, str]) -> str:
    """The name of a table's object; it has the checksum in it, so that no object is ever
    replaced by another.
    """
    return f"{folder}/{Path(line['name']).stem}.{line['sha256'][:16]}.parquet"


def _is_json_object(content: bytes) -> bool:
    try:
        parse_json_object(content.decode())
    except ValueError:
        return False
    return True


def _has_checksum(path: Path, line: Mapping[str, str]) -> bool:
    return path.is_file() and sha256(path) == line["sha256"]
