"""A store on an object store, read and written through a folder that mirrors what was asked for.

    index/runs/<run key>.2.json           the manifest of a run (2: the form of it): it is there, so the run is complete
    index/cases/<case key>.2.json         the same for questions
    index/models/<...>.json               an examination
    runs/<run key>/scores.<sha256>.parquet    a table, named by what is in it (16 digits)
    runs/<run key>/parts/<part>.json          a finished part of a run that grows, written after its table
    embeddings/...                        as in the folder

One listing of `index/` tells all that is complete. A manifest is made only where there is none: of two machines that
end the same run the first commits, the other takes what it finds, and no manifest names the other's bytes.
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

import pyarrow as pa

from vlprobe.errors import InvalidInput
from vlprobe.storage.entry import SCHEMA, Entry, parse_file_record, parse_manifest, part_intact
from vlprobe.storage.files import REPAIR, cache_writer, parse_json, read, sha256, write_bytes, write_json
from vlprobe.storage.objects import Damaged, Remote

LISTED_SECONDS = 3.0  # between two looks at what is complete
UNREACHED_SECONDS = 30.0  # the same after one that failed, for which a page may have waited
ASKED = ("key", "n_items", "n_cases", "dropped")  # what is alike in the manifests of the same questions
_log = logging.getLogger(__name__)


class Mirror:
    """Keeps the manifests and the examinations of a folder as they are in the object store."""

    def __init__(self, remote: Remote) -> None:
        self.remote, self.root = remote, remote.root
        self.connection_error = ""  # why the last look failed
        self._refreshed = float("-inf")
        self._damaged: dict[str, str] = {}  # names and stamps of what is not read again before it changes
        self._warned: set[str] = set()
        self._turn = threading.Lock()

    def refresh(self, now: bool = False) -> None:
        """Fetches what was completed or examined elsewhere, and forgets what was removed; at most every few seconds.

        Raises:
            InvalidInput: the object store cannot be reached.
        """
        with self._turn:
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
        known = self._known()  # before the listing: what is completed meanwhile is not taken for removed
        there = {name: stamp for name, stamp in self.remote.names("index").items() if self._file(name)}
        if known and not there and self.remote.is_folder:
            raise InvalidInput(
                f"Nothing is left in '{self.remote.url}', where {len(known)} results were. Mount it again; if it was "
                f"emptied on purpose, delete listed.json, runs and cases in '{self.root}'."
            )
        for name, data in self.remote.read_all(self._fresh(known, there)).items():
            try:
                self.keep(name, self._file(name), data)
                self._damaged.pop(name, None)
            except Damaged as error:  # one that is damaged must not keep people from the others
                self._damaged[name] = there[name]
                self.warn(str(error))
        for name in set(known) - set(there):
            if path := self._file(name):
                path.unlink(missing_ok=True)
        there |= {name: "" for name in self._damaged if name in there}
        if known != there:
            self._remember(there)

    def _fresh(self, known: Mapping[str, str], there: Mapping[str, str]) -> list[str]:
        """What has changed there, but for questions, which are fetched when they are asked for."""
        return [
            name
            for name, stamp in there.items()
            if not name.startswith("index/cases/") and self._damaged.get(name) != stamp
            if known.get(name) != stamp or not self._file(name).exists()
        ]

    def warn(self, text: str) -> None:
        """Says once in this process what people should know, and goes on."""
        if text not in self._warned:
            self._warned.add(text)
            _log.warning("%s", text)

    def note(self, name: str) -> None:
        """What was just made there is known, so that it is forgotten here when it is removed before the next look."""
        self._remember(self._known() | {name: ""})

    def _remember(self, there: dict[str, str]) -> None:
        with cache_writer(self.root / "listed.json") as handle:
            handle.write(json.dumps(there).encode())

    def _known(self) -> dict[str, str]:
        try:
            return dict(parse_json((self.root / "listed.json").read_text()))
        except (OSError, ValueError, TypeError):
            return {}

    def _file(self, name: str) -> Path | None:
        """The file of a manifest or of an examination; None of what is not looked for."""
        entry = re.fullmatch(rf"index/(runs|cases)/([0-9a-z]{{1,64}})\.{SCHEMA}\.json", name)
        if entry:
            return self.root / entry[1] / entry[2] / "manifest.json"
        examination = re.fullmatch(r"index/models/([0-9A-Za-z][0-9A-Za-z_.-]{0,200}\.json)", name)
        return self.root / "models" / examination[1] if examination else None

    def keep(self, name: str, path: Path, data: bytes) -> None:
        """Keeps a file of the index. Raises Damaged where it is not what was written."""
        if not (parse_manifest(data) if path.name == "manifest.json" else _is_object(data)):
            raise Damaged(f"'{self.remote.address(name)}' is damaged. {REPAIR}")
        if not path.exists() or path.read_bytes() != data:  # what looks new is made anew by whoever shows it
            with cache_writer(path) as handle:
                handle.write(data)

    def send(self) -> None:
        """Sends what was finished here and did not get there. Raises InvalidInput where that cannot be done."""
        self.refresh(now=True)
        self.remote.make()
        self.remote.write("writable", b"")
        for pending in sorted(self.root.glob("*/*/pending.json")):
            try:
                MirroredEntry(pending.parent, self).send()
            except Damaged as error:
                self.warn(str(error))
        known = self._known()
        for path in sorted((self.root / "models").glob("*.json")):
            name = f"index/models/{path.name}"
            if name in known:
                continue
            try:
                sound = _is_object(read(path))
            except OSError:  # it is a pipe, or went meanwhile
                sound = False
            if sound:
                self.remote.put(name, path)
            else:
                self.warn(f"'{path}' is damaged and is sent to nobody. {REPAIR}")


@functools.lru_cache(maxsize=64)
def mirror(remote: Remote) -> Mirror:
    """The one mirror of an object store in this process."""
    return Mirror(remote)


class MirroredEntry(Entry):
    """An entry that is fetched when it is asked for, and sent when it is finished; `pending.json` until it is there."""

    def __init__(self, folder: Path, mirror: Mirror) -> None:
        super().__init__(folder)
        self.mirror, self.remote = mirror, mirror.remote
        self.name = self.remote.name(folder)
        self.index = f"index/{self.name}.{SCHEMA}.json"

    @property
    def complete(self) -> bool:
        """As of an entry of a folder, here or there."""
        self._ask()
        return super().complete

    def manifest(self) -> dict:
        """As of an entry of a folder, here or there."""
        self._ask()
        return super().manifest()

    def _ask(self) -> None:
        path = self.folder / "manifest.json"
        if not path.exists() and (data := self.remote.read(self.index)) is not None:
            self.mirror.keep(self.index, path, data)
            self.mirror.note(self.index)

    def table_path(self, name: str) -> Path:
        """The path of a table, fetched where it is not here or not as it was written. Raises InvalidInput."""
        self._ask()
        if (self.folder / f"{name}.parquet").exists():
            try:
                return super().table_path(name)
            except InvalidInput as error:
                _log.warning("Fetched again: %s", error)
        try:
            self._fetch(name)
        except Damaged:
            if not self._renewed():
                raise
            self._fetch(name)
        return super().table_path(name)

    def _fetch(self, name: str) -> None:
        line = next((line for line in self.manifest()["files"] if line["name"] == f"{name}.parquet"), None)
        if line is None:
            raise InvalidInput(f"'{self.remote.address(self.index)}' names no table '{name}'. {REPAIR}")
        self.remote.fetch(table_object(self.name, line), self.folder / line["name"], lambda file: _is(file, line))

    def _renewed(self) -> bool:
        """Whether the entry was made anew elsewhere since it was fetched; then that is what is here, too."""
        path = self.folder / "manifest.json"
        data = self.remote.read(self.index)
        if data is None or data == path.read_bytes():
            return False
        self.mirror.keep(self.index, path, data)
        return True

    def has_part(self, name: str) -> bool:
        """Whether the part is finished, here or there; `parts` asks once for all."""
        return super().has_part(name) or self.remote.exists(f"{self.name}/parts/{name}.json")

    def parts(self) -> set[str]:
        """Names of all finished parts, here and there; sends those that are here alone."""
        here = super().parts()
        there = {Path(name).stem for name in self.remote.names(f"{self.name}/parts") if name.endswith(".json")}
        for name in sorted(here - there):
            if part_intact(self.folder / "parts" / f"{name}.parquet"):
                self._send_part(name)
        return here | there

    def part(self, name: str) -> pa.Table | None:
        """As of an entry of a folder; fetched where it is not here."""
        if not super().has_part(name):
            try:
                self._fetch_part(name)
            except Damaged as error:
                _log.warning("Made again: %s", error)
                return None
        return super().part(name)

    def _fetch_part(self, name: str) -> None:
        own = f"{self.name}/parts/{name}.json"
        data = self.remote.read(own)
        if data is None:
            return
        try:
            line = parse_file_record(data)
        except ValueError:
            raise Damaged(f"'{self.remote.address(own)}' is damaged.") from None
        folder = self.folder / "parts"
        wanted = table_object(f"{self.name}/parts", line)
        self.remote.fetch(wanted, folder / f"{name}.parquet", lambda file: _is(file, line))
        with cache_writer(folder / f"{name}.json") as handle:
            handle.write(data)

    def write_part(self, name: str, table: pa.Table) -> None:
        """Keeps a part, here and there; the same name always holds the same rows."""
        super().write_part(name, table)
        self._send_part(name)

    def _send_part(self, name: str) -> None:
        path = self.folder / "parts" / f"{name}.parquet"
        said = path.with_suffix(".json").read_bytes()
        self.remote.put(table_object(f"{self.name}/parts", parse_file_record(said)), path)
        self.remote.write(f"{self.name}/parts/{name}.json", said)

    def _commit(self, manifest: dict) -> None:
        write_json(self.folder / "pending.json", manifest)
        self.send()

    def send(self) -> None:
        """Sends a finished entry: its tables, then its manifest, unless another machine was first.

        Raises:
            InvalidInput: the object store cannot be reached; the entry stays here, and is sent by the next run.
        """
        pending = self.folder / "pending.json"
        try:
            data = pending.read_bytes()
        except FileNotFoundError:  # sent by another process meanwhile
            return
        own = parse_manifest(data)
        if own is None or not all(_is(self.folder / line["name"], line) for line in own["files"]):
            _log.warning("'%s' is damaged and is made again.", self.folder)
            pending.unlink(missing_ok=True)
            return
        first = self.remote.read(self.index)
        if first is None:
            for line in own["files"]:
                self.remote.put(table_object(self.name, line), self.folder / line["name"])
            first = data if self.remote.create(self.index, data) else self.remote.read(self.index)
        kept = data if first == data else self._given_way(own, first or b"")
        write_bytes(self.folder / "manifest.json", kept or data)
        self.mirror.note(self.index)
        shutil.rmtree(self.folder / "parts", ignore_errors=True)
        self.remote.remove(self.remote.names(f"{self.name}/parts"))
        pending.unlink(missing_ok=True)  # last: whoever is killed before begins here again

    def _given_way(self, own: dict, first: bytes) -> bytes | None:
        """Takes what was committed before; None where these are the same questions with our paths of pictures."""
        theirs = parse_manifest(first)
        if theirs is None:
            raise Damaged(f"'{self.remote.address(self.index)}' is damaged. {REPAIR}")
        named = {line["name"]: line["sha256"] for line in theirs["files"]}
        lost = [line for line in own["files"] if named.get(line["name"]) != line["sha256"]]
        self.remote.remove(table_object(self.name, line) for line in lost)
        if "run" not in own and all(own.get(fact) == theirs.get(fact) for fact in ASKED):
            return None
        _log.warning("Another machine has completed '%s' before: its results are taken.", self.name)
        for line in lost:
            (self.folder / line["name"]).unlink(missing_ok=True)
        return first


def table_object(folder: str, line: Mapping[str, str]) -> str:
    """The name of a table's object, in which is what is in it: nobody ever replaces another's."""
    return f"{folder}/{Path(line['name']).stem}.{line['sha256'][:16]}.parquet"


def _is_object(data: bytes) -> bool:
    """Whether it is JSON of the outer form of an examination."""
    try:
        return isinstance(parse_json(data.decode()), dict)
    except ValueError:
        return False


def _is(path: Path, line: Mapping[str, str]) -> bool:
    return path.is_file() and sha256(path) == line["sha256"]
