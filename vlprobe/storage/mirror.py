"""Store under a URL that fsspec opens, read and written through a local folder.

    index/runs/<run key>.2.json           the manifest of a run (2: its schema): its existence marks a complete run
    index/cases/<case key>.2.json         the same for questions
    index/models/<...>.json               an examination
    runs/<run key>/scores.<sha256>.parquet    a table, named by 16 digits of its checksum
    runs/<run key>/parts/<part>.json          a finished part of an incomplete run, written after its table
    embeddings/...                        as in the folder

An entry is written once, under a key of everything that determines its content. Its manifest is uploaded last, so that
an interrupted upload stays invisible. The tables of a second writer do not replace any. An entry that is not uploaded
yet has `pending.json` in place of its manifest.
"""

import contextlib
import functools
import hashlib
import io
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
from vlprobe.storage.entry import SCHEMA, Entry, parse_file_record, parse_manifest, part_intact
from vlprobe.storage.file_systems import (
    missing_bucket,
    open_file_system,
    translate_errors,
    translate_write_errors,
)

MIRROR = "VLPROBE_MIRROR"  # the folder of all mirrors
MARK = ".vlprobe-remote"  # contains the URL
FOLDERS = ("file", "local")  # schemes of a folder, such as one that several machines have mounted
LOST_SLASH = re.compile("[A-Za-z][A-Za-z0-9+.-]+:/(?!/)")
LISTED_SECONDS = 3.0  # between two refreshes
UNREACHED_SECONDS = 30.0  # after a failed one, for which a page may have waited
_log = logging.getLogger(__name__)


def is_url(cache: object) -> bool:
    """Return whether a cache is a URL, not a folder. Raises InvalidInput for unsupported URLs."""
    text = str(cache)
    if "@" in text and ("://" in text or LOST_SLASH.match(text)):  # before an error repeats it
        raise InvalidInput(
            "The URL of the cache contains a user or password. Set them in the environment instead."
        )
    if LOST_SLASH.match(text):
        raise InvalidInput(
            f"'{cache}' is neither a folder nor a URL. Expected s3://BUCKET/FOLDER, with two slashes."
        )
    return "://" in text


def open_mirror(url: str) -> "Mirror":
    """Return the mirror of a URL, and make its folder on this machine. Raises InvalidInput."""
    address = url.rstrip("/")
    scheme, _, path = address.partition("://")
    if not path or scheme in ("http", "https"):
        raise InvalidInput(
            f"'{url}' has no bucket. Expected s3://BUCKET/FOLDER. Set the server's address in AWS_ENDPOINT_URL."
        )
    if scheme in FOLDERS and not path.startswith("/"):
        raise InvalidInput(f"'{url}' is a relative path. Expected file:///, with three slashes.")
    try:
        above = Path(os.environ.get(MIRROR) or Path.home() / ".cache" / "vlprobe").resolve()
    except (OSError, ValueError, RuntimeError) as error:
        raise InvalidInput(
            f"The folder for mirrors cannot be used ({error}). Set another in {MIRROR}."
        ) from None
    words = re.sub("[^A-Za-z0-9]+", "-", address)[:60].strip("-")
    root = above / f"{words}-{hashlib.sha256(address.encode()).hexdigest()[:12]}"
    mirror = _mirrors.setdefault(root, Mirror(address, root))
    mirror.write_file(root / MARK, address.encode())
    return mirror


def mirror_of(folder: Path) -> "Mirror | None":
    """Return the mirror, opened by this process, that contains a folder; None if there is none.

    Raises InvalidInput for the folder of a mirror that was not opened by its URL: a folder must not
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
    """Upload a file to the index of the cache whose mirror it is in; otherwise do nothing."""
    if mirror := mirror_of(path.parent):
        mirror.put(f"index/{mirror.name(path)}", path)


class Mirror:
    """The objects under one URL, by name: paths with slashes, as those of files below `root`."""

    def __init__(self, url: str, root: Path) -> None:
        self.url, self.root = url, root
        self.is_folder = url.partition("://")[0] in FOLDERS
        self.connection_error = ""  # why the latest refresh failed
        self._refreshed = float("-inf")
        self._index: set[str] = set()  # names of the latest listing
        self._warned: set[str] = set()
        self._lock = threading.Lock()

    @functools.cached_property
    def _opened(self) -> tuple[Any, str]:
        return open_file_system(self.url)

    def _path(self, name: str) -> str:
        """Return the path of an object. Raises OSError for a pipe, which would block."""
        path = f"{self._opened[1]}/{name}"
        if self.is_folder and os.path.exists(path):
            files.require_regular(Path(path))
        return path

    def name(self, path: Path) -> str:
        """Return the name of the object of a file."""
        return path.relative_to(self.root).as_posix()

    def address(self, name: str) -> str:
        """Return the URL of an object."""
        return f"{self.url}/{name}"

    def names(self, folder: str) -> list[str]:
        """Return the names of all objects in a folder and below."""
        with translate_errors(self.url):
            try:
                listing = self._opened[0].find(self._path(folder), detail=True)
            except FileNotFoundError as error:
                raise missing_bucket(self.url, error) from None
        start = len(self._opened[1]) + 1
        return [path[start:] for path, facts in listing.items() if facts.get("type") == "file"]

    def written(self, name: str) -> float | None:
        """Return the time an object was written, in seconds as of `time.time`; None if it is missing."""
        with translate_errors(self.url), contextlib.suppress(FileNotFoundError):
            return self._opened[0].modified(self._path(name)).timestamp()

    def read_all(self, names: Iterable[str]) -> dict[str, bytes]:
        """Download the bytes of small objects concurrently; missing objects are left out."""
        with translate_errors(self.url):
            paths = {self._path(name): name for name in names}
            contents = self._opened[0].cat(list(paths), on_error="return") if paths else {}
            for content in contents.values():
                if isinstance(content, Exception) and not isinstance(content, FileNotFoundError):
                    raise content
        return {paths[path]: data for path, data in contents.items() if isinstance(data, bytes)}

    def read(self, name: str) -> bytes | None:
        """Return the bytes of a small object; None if it is missing."""
        return self.read_all([name]).get(name)

    def fetch(self, name: str, path: Path, is_intact: Callable[[Path], bool]) -> None:
        """Copy an object to a file, which appears only if it `is_intact`. Raises StoredDamage otherwise."""
        with files.cache_writer(path) as handle:
            with translate_errors(self.url):
                try:
                    self._opened[0].get_file(self._path(name), handle.name)
                except FileNotFoundError:
                    raise StoredDamage(f"'{self.address(name)}' is gone.") from None
            if not is_intact(Path(handle.name)):
                raise StoredDamage(
                    f"'{self.address(name)}' is not what was written: its checksum differs."
                )

    def put(self, name: str, content: Path | bytes) -> None:
        """Upload a file, or the bytes of a small object."""
        refuse_writing()
        with translate_write_errors(self.url):
            file_system, root = self._opened
            if self.is_folder and not os.path.isdir(root):
                raise InvalidInput(
                    f"The folder '{root}' is not available. Mount it and run the same "
                    "command again to continue."
                )
            if self.is_folder:  # fsspec's files are visible before they are complete
                source = content.open("rb") if isinstance(content, Path) else io.BytesIO(content)
                with source, files.cache_writer(Path(self._path(name))) as target:
                    shutil.copyfileobj(source, target)
            elif isinstance(content, Path):
                file_system.put_file(str(content), self._path(name))
            else:
                file_system.pipe_file(self._path(name), content)

    def remove(self, names: Iterable[str]) -> None:
        """Remove objects; missing ones are ignored."""
        refuse_writing()
        for name in names:
            with translate_write_errors(self.url), contextlib.suppress(FileNotFoundError):
                self._opened[0].rm_file(self._path(name))

    def remove_run(self, key: str) -> None:
        """Remove a run for all machines: first its manifest, which marks it as complete."""
        self.remove([f"index/runs/{key}.{SCHEMA}.json"])
        self.remove(self.names(f"runs/{key}"))

    def refresh(self, now: bool = False) -> None:
        """Download new manifests and examinations, and delete the manifests of entries that were removed remotely, at
        most every few seconds. Raises InvalidInput if the URL cannot be reached.
        """
        with self._lock:
            pause = UNREACHED_SECONDS if self.connection_error else LISTED_SECONDS
            try:
                if now or time.monotonic() - self._refreshed >= pause:
                    self._refreshed = time.monotonic()
                    self.connection_error = ""
                    self._refresh()
                elif self.connection_error:
                    raise InvalidInput(self.connection_error)
            except InvalidInput as error:
                self.connection_error = str(error)
                raise

    def _refresh(self) -> None:
        # First, so that an entry finished in the meantime is not mistaken for a removed one.
        known = {
            path for kind in ("runs", "cases") for path in self.root.glob(f"{kind}/*/manifest.json")
        }
        paths = {name: path for name in self.names("index") if (path := self._file(name))}
        self._index = set(paths)
        if known and not paths and self.is_folder:
            raise InvalidInput(
                f"'{self.url}' is empty but had {len(known)} entries. Mount it again; if "
                "it was emptied "
                f"on purpose, delete runs and cases in '{self.root}'."
            )
        new = [
            name
            for name, path in paths.items()
            if not name.startswith("index/cases/") and not path.exists()  # questions: when needed
        ]
        for name, content in self.read_all(new).items():
            try:
                self.save(name, content)
            except StoredDamage as error:  # the others stay readable
                self.warn(str(error))
        for path in known - set(paths.values()):
            path.unlink(missing_ok=True)

    def _file(self, name: str) -> Path | None:
        """Return the file of a manifest or an examination; None for other objects."""
        if entry := re.fullmatch(rf"index/(runs|cases)/([0-9a-z]{{1,64}})\.{SCHEMA}\.json", name):
            return self.root / entry[1] / entry[2] / "manifest.json"
        examination = re.fullmatch(r"index/models/([0-9A-Za-z][0-9A-Za-z_.-]{0,200}\.json)", name)
        return self.root / "models" / examination[1] if examination else None

    def save(self, name: str, content: bytes) -> None:
        """Write the file of an index object. Raises StoredDamage if the object is damaged."""
        path = self._file(name)
        is_whole = _is_json if name.startswith("index/models/") else parse_manifest
        if path is None or not is_whole(content):
            raise StoredDamage(f"'{self.address(name)}' is damaged.")
        self.write_file(path, content)

    def write_file(self, path: Path, content: bytes) -> None:
        """Write a file unless its content is the same: a new time would invalidate the caches of pages."""
        if not path.exists() or path.read_bytes() != content:
            with files.cache_writer(path) as handle:
                handle.write(content)

    def warn(self, text: str) -> None:
        """Log a warning, each text once per process."""
        if text not in self._warned:
            self._warned.add(text)
            _log.warning("%s", text)

    def upload_pending(self) -> None:
        """Upload intact finished entries and examinations that the URL lacks. Raises InvalidInput if the URL cannot be
        reached or written.
        """
        self.refresh(now=True)
        refuse_writing()
        if self.is_folder:
            with translate_errors(self.url):
                os.makedirs(self._opened[1], exist_ok=True)
        self.put("writable", b"")
        for pending in sorted(self.root.glob("*/*/pending.json")):
            MirroredEntry(pending.parent, self).upload()
        for path in sorted((self.root / "models").glob("*.json")):
            name = f"index/models/{path.name}"
            with contextlib.suppress(OSError):  # a pipe, or deleted meanwhile
                if name not in self._index and _is_json(files.read(path)):
                    self.put(name, path)
                elif name not in self._index:
                    self.warn(f"'{path}' is damaged and is not uploaded. Delete it.")


class MirroredEntry(Entry):
    """Entry whose tables are downloaded when they are read, and uploaded when it is finished."""

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
        """Return the fields of the manifest, downloaded if it is not local."""
        self._fetch_manifest()
        return super().manifest()

    def _fetch_manifest(self, again: bool = False) -> None:
        if (self.folder / "manifest.json").exists() and not again:
            return
        if (content := self.mirror.read(self.index)) is not None:
            self.mirror.save(self.index, content)

    def table_path(self, name: str) -> Path:
        """Return the path of a table, downloaded if it is missing or damaged. Raises InvalidInput."""
        if (self.folder / f"{name}.parquet").exists():
            try:
                return super().table_path(name)
            except StoredDamage as error:
                _log.warning("Downloaded again: %s", error)
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
        self._fetch(self.name, line, self.folder / line["name"])

    def _fetch(self, folder: str, line: Mapping[str, Any], path: Path) -> None:
        self.mirror.fetch(table_object(folder, line), path, lambda file: _has_checksum(file, line))

    def parts(self) -> set[str]:
        """Return the names of all finished parts, local and remote; upload those that are only local."""
        names = self.mirror.names(f"{self.name}/parts")
        uploaded = {Path(name).stem for name in names if name.endswith(".json")}
        for name in sorted(super().parts() - uploaded):
            if part_intact(self.folder / "parts" / f"{name}.parquet"):
                self._upload_part(name)
        return super().parts() | uploaded

    def part(self, name: str) -> pa.Table | None:
        """Return a finished part, downloaded if it is not local; None if there is none or it is damaged."""
        record = f"{self.name}/parts/{name}.json"
        if not self.has_part(name) and (content := self.mirror.read(record)) is not None:
            path = self.folder / "parts" / f"{name}.parquet"
            try:
                self._fetch(f"{self.name}/parts", parse_file_record(content), path)
                self.mirror.write_file(path.with_suffix(".json"), content)
            except (StoredDamage, ValueError) as error:
                address = self.mirror.address(record)
                _log.warning("'%s' is damaged and will be recomputed (%s)", address, error)
        return super().part(name)

    def write_part(self, name: str, table: pa.Table) -> None:
        """Store a part locally and remotely; the same name always holds the same rows."""
        super().write_part(name, table)
        self._upload_part(name)

    def _upload_part(self, name: str) -> None:
        path = self.folder / "parts" / f"{name}.parquet"
        record = path.with_suffix(".json").read_bytes()
        self.mirror.put(table_object(f"{self.name}/parts", parse_file_record(record)), path)
        self.mirror.put(f"{self.name}/parts/{name}.json", record)

    def _commit(self, manifest: dict) -> None:
        files.write_json(self.folder / "pending.json", manifest)
        self.upload()

    def upload(self) -> None:
        """Upload a finished entry: its tables, then its manifest. An uploaded run replaces the local one.

        Raises InvalidInput if that fails; the entry stays local, and the next run uploads it.
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
            _log.warning("'%s' is damaged and will be recomputed.", self.folder)
            pending.unlink(missing_ok=True)
            return
        there = self.mirror.read(self.index)
        if there is None or parse_manifest(there) is None:
            for line in manifest["files"]:
                self.mirror.put(table_object(self.name, line), self.folder / line["name"])
            self.mirror.put(self.index, content)
        elif "run" in manifest:
            content = there  # questions stay, with the local paths of pictures
        files.write_bytes(self.folder / "manifest.json", content)
        shutil.rmtree(self.folder / "parts", ignore_errors=True)
        self.mirror.remove(self.mirror.names(f"{self.name}/parts"))
        pending.unlink(missing_ok=True)  # last, so that a killed process is resumed from here


def table_object(folder: str, line: Mapping[str, str]) -> str:
    """Return the object name of a table. It contains the checksum, so that tables never replace each other."""
    return f"{folder}/{Path(line['name']).stem}.{line['sha256'][:16]}.parquet"


def _has_checksum(path: Path, line: Mapping[str, str]) -> bool:
    return path.is_file() and files.sha256(path) == line["sha256"]


def _is_json(content: bytes) -> bool:
    try:
        files.parse_json_object(content.decode())
    except ValueError:
        return False
    return True


_mirrors: dict[Path, Mirror] = {}  # by folder: embeddings and examinations know only their folder
