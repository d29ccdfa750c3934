"""Entries of a store on an object store: tables are fetched when they are read, and uploaded when the
entry is finished.

    pending.json    the manifest of a finished entry that is not uploaded yet

Tables are uploaded before the manifest that names them, so that an entry is complete for other
machines only when its tables are there.
"""

import logging
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa

from vlprobe.errors import InvalidInput, StoredDamage
from vlprobe.storage.entry import SCHEMA, Entry, parse_file_record, parse_manifest, part_intact
from vlprobe.storage.files import cache_writer, sha256, write_bytes, write_json
from vlprobe.storage.mirror import Mirror
from vlprobe.storage.objects import Damaged

QUESTION_FIELDS = (
    "key",
    "n_items",
    "n_cases",
    "dropped",
)  # equal in the manifests of the same questions
_log = logging.getLogger(__name__)


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
            raise StoredDamage(f"'{self.remote.address(self.index)}' names no table '{name}'.")
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
            raise Damaged(
                f"'{self.remote.address(record_object)}' is damaged.", remedy=""
            ) from None
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
            raise Damaged(f"'{self.remote.address(self.index)}' is damaged.")
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


def send_pending(mirror: Mirror) -> None:
    """Uploads finished entries and examinations that are not in the object store; a damaged one
    keeps none of the others back.

    Raises:
        InvalidInput: the object store cannot be reached or written.
    """
    mirror.require_writable()
    for pending in sorted(mirror.root.glob("*/*/pending.json")):
        try:
            MirroredEntry(pending.parent, mirror).send()
        except Damaged as error:
            mirror.warn(str(error))
    mirror.send_examinations()


def table_object(folder: str, line: Mapping[str, str]) -> str:
    """The name of a table's object; it has the checksum in it, so that no object is ever
    replaced by another.
    """
    return f"{folder}/{Path(line['name']).stem}.{line['sha256'][:16]}.parquet"


def _has_checksum(path: Path, line: Mapping[str, str]) -> bool:
    return path.is_file() and sha256(path) == line["sha256"]
