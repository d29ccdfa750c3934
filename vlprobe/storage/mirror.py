"""Remote result store. It has objects under a URL that fsspec can open, and a local folder that mirrors them.

    index/runs/<run key>.2.json           the manifest of a run in schema 2; its existence marks a complete run
    index/cases/<case key>.2.json         the manifest of a question set
    index/models/<...>.json               an examination of a model
    runs/<run key>/scores.<sha256>.parquet         a table; its name contains 16 digits of its checksum
    runs/<run key>/parts/<part>.<sha256>.parquet   a finished part of an incomplete run
    embeddings/...                        as in a local store

An entry is written once, under a key computed from everything that determines its content. Its manifest is uploaded
last, so that an interrupted upload stays invisible. Tables from a second writer never replace existing ones. An entry
that is not uploaded yet has a `pending.json` instead of its manifest.
"""

import contextlib
import functools
import hashlib
import logging
import os
import re
import shutil
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa

from vlprobe.errors import InvalidInput, StoredDamage
from vlprobe.storage import files
from vlprobe.storage.access import refuse_writing
from vlprobe.storage.entry import SCHEMA, Entry, parse_manifest, part_record
from vlprobe.storage.file_systems import open_file_system, translate_errors

MIRROR = "VLPROBE_MIRROR"  # the folder that contains all mirrors
MARK = ".vlprobe-remote"  # contains the URL
TABLE = re.compile(r"(.+)\.([0-9a-f]{16})\.parquet")  # object name for a table, with its checksum
LISTED_SECONDS = 3.0  # minimum time between two refreshes
UNREACHED_SECONDS = 30.0  # the same after a failed refresh, which may have kept a page waiting


def open_mirror(cache: str) -> "Mirror | None":
    """Open the local mirror of a remote store, creating its folder on this machine if needed.

    Returns None if the cache is a folder and not a URL. Raises InvalidInput for an unsupported URL.
    """
    if not re.match("[A-Za-z][A-Za-z0-9+.:-]+:/", cache):
        return None
    if "@" in cache:  # before an error repeats it
        raise InvalidInput(
            "The URL of the cache contains a user or password. Set them in the environment instead."
        )
    if "://" not in cache:
        raise InvalidInput(
            f"'{cache}' is neither a folder nor a URL. Expected s3://BUCKET/FOLDER, with two slashes."
        )
    address = cache.rstrip("/")
    scheme, _, path = address.partition("://")
    if scheme in ("file", "local"):
        raise InvalidInput(
            f"'{cache}' is a local folder. Pass its path instead: --cache {path or '/'}."
        )
    if not path or scheme in ("http", "https"):
        raise InvalidInput(
            f"'{cache}' has no bucket. Expected s3://BUCKET/FOLDER. Set the server's address in AWS_ENDPOINT_URL."
        )
    try:
        above = Path(os.environ.get(MIRROR) or Path.home() / ".cache" / "vlprobe").resolve()
    except (OSError, ValueError, RuntimeError) as error:
        raise InvalidInput(
            f"The mirror folder cannot be used ({error}). Set a different folder in {MIRROR}."
        ) from None
    words = re.sub("[^A-Za-z0-9]+", "-", address)[:60].strip("-")
    root = above / f"{words}-{hashlib.sha256(address.encode()).hexdigest()[:12]}"
    mirror = _mirrors.setdefault(root, Mirror(address, root))
    mirror.write_file(root / MARK, address.encode())
    return mirror


def mirror_of(folder: Path) -> "Mirror | None":
    """Return the mirror that a folder is in, or None if the folder is not in a mirror.

    Raises InvalidInput if the folder is in a mirror that was not opened by its URL, because a folder must not
    decide where results are sent.
    """
    for root in (folder, *folder.parents):
        if root in _mirrors:
            return _mirrors[root]
    if files.is_file(folder / MARK):
        raise InvalidInput(
            f"'{folder}' is the local mirror of a remote cache. Use the URL of that cache with --cache."
        )
    return None


def publish(path: Path) -> None:
    """Upload a file in a mirror to the index of its remote store. Does nothing if the file is not in a mirror."""
    if mirror := mirror_of(path.parent):
        mirror.put(f"index/{mirror.name(path)}", path)


@functools.cache  # each page and each refresh would repeat it
def warn_once(text: str) -> None:
    """Log a warning. The same text is logged only once per process."""
    logging.getLogger(__name__).warning("%s", text)


class Mirror:
    """The objects under one URL. An object's name is the path to its local file relative to `root`, with slashes."""

    def __init__(self, url: str, root: Path) -> None:
        self.url, self.root = url, root
        self.connection_error = ""  # why the latest refresh failed
        self._next_refresh = 0.0
        self._lock = threading.Lock()

    @functools.cached_property
    def _opened(self) -> tuple[Any, str]:
        return open_file_system(self.url)

    def _path(self, name: str) -> str:
        return f"{self._opened[1]}/{name}"

    def name(self, path: Path) -> str:
        """Return the object name for a local file."""
        return path.relative_to(self.root).as_posix()

    def address(self, name: str) -> str:
        """Return the URL for an object."""
        return f"{self.url}/{name}"

    def names(self, folder: str) -> list[str]:
        """Return the names of all objects in a folder and its subfolders."""
        with translate_errors(self.url):
            listing = self._opened[0].find(self._path(folder), detail=True)
        start = len(self._opened[1]) + 1
        return [path[start:] for path, facts in listing.items() if facts.get("type") == "file"]

    def read_all(self, names: Iterable[str]) -> dict[str, bytes]:
        """Download small objects concurrently and return their bytes by name. Missing objects are left out."""
        with translate_errors(self.url):
            paths = {self._path(name): name for name in names}
            contents = self._opened[0].cat(list(paths), on_error="return") if paths else {}
            for content in contents.values():
                if isinstance(content, Exception) and not isinstance(content, FileNotFoundError):
                    raise content
        return {paths[path]: data for path, data in contents.items() if isinstance(data, bytes)}

    def read(self, name: str) -> bytes | None:
        """Return the bytes of a small object, or None if it is missing."""
        return self.read_all([name]).get(name)

    def fetch(self, name: str, path: Path, is_intact: Callable[[Path], bool] | None = None) -> None:
        """Copy an object to a file. The file appears only if the copy is intact; otherwise raises StoredDamage.

        Args:
            name: The object name.
            path: The file to write.
            is_intact: Checks the copy. By default, its checksum must fit its name.
        """
        with files.cache_writer(path) as handle:
            with translate_errors(self.url):
                try:
                    self._opened[0].get_file(self._path(name), handle.name)
                except FileNotFoundError:
                    raise StoredDamage(f"'{self.address(name)}' no longer exists.") from None
            copy = Path(handle.name)
            if not (is_intact(copy) if is_intact else _has_checksum(copy, name)):
                raise StoredDamage(
                    f"'{self.address(name)}' has changed since it was written: its checksum differs."
                )

    def put(self, name: str, content: Path | bytes) -> None:
        """Upload a file, or the bytes of a small object."""
        refuse_writing()
        with translate_errors(self.url):
            if isinstance(content, Path):
                self._opened[0].put_file(str(content), self._path(name))
            else:
                self._opened[0].pipe_file(self._path(name), content)

    def remove(self, names: Iterable[str]) -> None:
        """Remove objects. Missing objects are ignored."""
        refuse_writing()
        for name in names:
            with translate_errors(self.url), contextlib.suppress(FileNotFoundError):
                self._opened[0].rm_file(self._path(name))

    def remove_run(self, key: str) -> None:
        """Remove a run from the remote store. The manifest, which marks the run as complete, is removed first."""
        self.remove([f"index/runs/{key}.{SCHEMA}.json"])
        self.remove(self.names(f"runs/{key}"))

    def refresh(self, now: bool = False) -> None:
        """Download new manifests and examinations, and delete local manifests whose entries were removed remotely.

        Done at most every few seconds unless `now` is set. Raises InvalidInput if the URL cannot be reached.
        """
        with self._lock:
            if now or time.monotonic() >= self._next_refresh:
                try:
                    self._refresh()
                    self.connection_error, pause = "", LISTED_SECONDS
                except InvalidInput as error:
                    self.connection_error, pause = str(error), UNREACHED_SECONDS
                self._next_refresh = time.monotonic() + pause
            if self.connection_error:
                raise InvalidInput(self.connection_error)

    def _refresh(self) -> None:
        # First, so that an entry finished in the meantime is not mistaken for a removed one.
        known = {
            path for kind in ("runs", "cases") for path in self.root.glob(f"{kind}/*/manifest.json")
        }
        paths = {name: path for name in self.names("index") if (path := self._file(name))}
        new = [
            name
            for name, path in paths.items()
            if not name.startswith("index/cases/") and not path.exists()  # questions: when needed
        ]
        for name, content in self.read_all(new).items():
            try:
                self.save(name, content)
            except StoredDamage as error:  # the others stay readable
                warn_once(str(error))
        for path in known - set(paths.values()):
            path.unlink(missing_ok=True)

    def _file(self, name: str) -> Path | None:
        """Return the local file for a manifest or an examination, or None for any other object."""
        if entry := re.fullmatch(rf"index/(runs|cases)/([0-9a-z]{{1,64}})\.{SCHEMA}\.json", name):
            return self.root / entry[1] / entry[2] / "manifest.json"
        examination = re.fullmatch(r"index/models/([0-9A-Za-z][0-9A-Za-z_.-]{0,200}\.json)", name)
        return self.root / "models" / examination[1] if examination else None

    def save(self, name: str, content: bytes) -> None:
        """Write the content of an index object to its local file. Raises StoredDamage if the content is damaged."""
        path = self._file(name)
        is_whole = _is_json if name.startswith("index/models/") else parse_manifest
        if path is None or not is_whole(content):
            raise StoredDamage(f"'{self.address(name)}' is damaged.")
        self.write_file(path, content)

    def write_file(self, path: Path, content: bytes) -> None:
        """Write a file unless it already has the content, because a new modification time invalidates page caches."""
        if not path.exists() or path.read_bytes() != content:
            with files.cache_writer(path) as handle:
                handle.write(content)

    def upload_pending(self) -> None:
        """Upload finished entries and examinations that are intact and missing remotely.

        Raises InvalidInput if the URL cannot be reached or written.
        """
        self.refresh(now=True)
        self.put("writable", b"")
        for pending in sorted(self.root.glob("*/*/pending.json")):
            MirroredEntry(pending.parent, self).upload()
        local = {f"index/models/{path.name}": path for path in self.root.glob("models/*.json")}
        for name in sorted(local.keys() - set(self.names("index/models") if local else ())):
            if _is_json(files.read(local[name])):
                self.put(name, local[name])
            else:
                warn_once(f"'{local[name]}' is damaged and is not uploaded. Delete it.")


class MirroredEntry(Entry):
    """Cache entry whose tables are downloaded when they are read, and uploaded when the entry is finished."""

    def __init__(self, folder: Path, mirror: Mirror) -> None:
        super().__init__(folder)
        self.mirror, self.name = mirror, mirror.name(folder)
        self.index = f"index/{self.name}.{SCHEMA}.json"

    @property
    def complete(self) -> bool:
        """Return whether the entry is complete, locally or remotely."""
        self._fetch_manifest()
        return super().complete

    def manifest(self) -> dict[str, Any]:
        """Return the fields in the manifest, after downloading it if it is not local."""
        self._fetch_manifest()
        return super().manifest()

    def _fetch_manifest(self, again: bool = False) -> None:
        if (self.folder / "manifest.json").exists() and not again:
            return
        if (content := self.mirror.read(self.index)) is not None:
            self.mirror.save(self.index, content)

    def table_path(self, name: str) -> Path:
        """Return the path to a table, after downloading it if it is missing or damaged. Raises InvalidInput."""
        if (self.folder / f"{name}.parquet").exists():
            with contextlib.suppress(StoredDamage):
                return super().table_path(name)
        try:
            self._fetch_table(name)
        except StoredDamage:  # another machine may have made the entry again
            self._fetch_manifest(again=True)
            self._fetch_table(name)
        return super().table_path(name)

    def _fetch_table(self, name: str) -> None:
        lines = {line["name"]: line for line in self.manifest()["files"]}
        if (line := lines.get(f"{name}.parquet")) is None:
            raise StoredDamage(f"'{self.mirror.address(self.index)}' has no table '{name}'.")
        self.mirror.fetch(table_object(self.name, line), self.folder / line["name"])

    def parts(self) -> set[str]:
        """Return the names of all finished parts. Parts that are only local are uploaded, and all others downloaded."""
        objects = self.mirror.names(f"{self.name}/parts")
        tables = {name: TABLE.fullmatch(Path(name).name) for name in objects}
        uploaded = {table[1]: name for name, table in tables.items() if table}
        local = super().parts()
        for name in sorted(local - set(uploaded)):
            self._upload_part(name)
        for name in sorted(set(uploaded) - local):
            path = self.folder / "parts" / f"{name}.parquet"
            try:
                self.mirror.fetch(uploaded[name], path)
                record = {"name": path.name, "sha256": files.sha256(path)}
                files.write_json(path.with_suffix(".json"), record)
            except StoredDamage as error:
                warn_once(f"{error.problem} It will be recomputed.")
        return super().parts()

    def part(self, name: str) -> pa.Table | None:
        """Return a finished part, or None if it is missing or damaged."""
        if not self.has_part(name):
            self.parts()  # another machine may have written it
        return super().part(name)

    def write_part(self, name: str, table: pa.Table) -> None:
        """Store a part locally and remotely. Parts with the same name always hold the same rows."""
        super().write_part(name, table)
        self._upload_part(name)

    def _upload_part(self, name: str) -> None:
        path = self.folder / "parts" / f"{name}.parquet"
        if record := part_record(path):
            self.mirror.put(table_object(f"{self.name}/parts", record), path)

    def _commit(self, manifest: dict) -> None:
        files.write_json(self.folder / "pending.json", manifest)
        self.upload()

    def upload(self) -> None:
        """Upload a finished entry: first its tables, then its manifest. An existing remote run replaces the local one.

        Raises InvalidInput if the upload fails; the entry then stays local, and the next run uploads it.
        """
        pending = self.folder / "pending.json"
        try:
            content = pending.read_bytes()
        except FileNotFoundError:  # uploaded by another process meanwhile
            return
        manifest = parse_manifest(content)
        tables = [(self.folder / line["name"], line) for line in (manifest or {}).get("files", ())]
        if not manifest or not all(
            path.is_file() and files.sha256(path) == line["sha256"] for path, line in tables
        ):
            warn_once(f"'{self.folder}' is damaged and will be recomputed.")
            pending.unlink(missing_ok=True)
            return
        there = self.mirror.read(self.index)
        if there is None or parse_manifest(there) is None:
            for path, line in tables:
                self.mirror.put(table_object(self.name, line), path)
            self.mirror.put(self.index, content)
        elif "run" in manifest:
            content = there  # questions stay, with the local paths of pictures
        files.write_bytes(self.folder / "manifest.json", content)
        shutil.rmtree(self.folder / "parts", ignore_errors=True)
        self.mirror.remove(self.mirror.names(f"{self.name}/parts"))
        pending.unlink(missing_ok=True)  # last, so that a killed process is resumed from here


def table_object(folder: str, line: Mapping[str, str]) -> str:
    """Return the object name for a table. It contains the checksum, so that no table replaces another."""
    return f"{folder}/{Path(line['name']).stem}.{line['sha256'][:16]}.parquet"


def _has_checksum(copy: Path, name: str) -> bool:
    """Return whether a copy has the checksum in its object's name: BLAKE2b of embeddings, or SHA-256 of a table."""
    if name.startswith("embeddings/"):
        return files.blake2b(copy) == Path(name).stem
    return files.sha256(copy).startswith(name.split(".")[-2])


def _is_json(content: bytes) -> bool:
    try:
        files.parse_json_object(content.decode())
    except ValueError:
        return False
    return True


_mirrors: dict[Path, Mirror] = {}  # by folder: embeddings and examinations only know their folder
