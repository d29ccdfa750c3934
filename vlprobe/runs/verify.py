"""Whether what is stored is still what was written, and away with what is not, so that the same runs make it anew.

Of a store on an object store both are read, what is there and what of it is here. What is damaged here alone is fetched
again once it is gone; what is damaged there goes in both places.
"""

import contextlib
import functools
import os
import re
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from vlprobe.errors import InvalidInput
from vlprobe.models.doctor import examine
from vlprobe.scoring import vectors
from vlprobe.storage import annotations, files, jobs
from vlprobe.storage.entry import SCHEMA, parse_file_record, parse_manifest, part_intact, verify_table
from vlprobe.storage.mirror import table_object
from vlprobe.storage.objects import Damaged, Remote
from vlprobe.storage.store import Entry, Store
from vlprobe.types import Run

LEFT_OVER = 3600  # seconds after which nobody is still writing a file
OLDER = "it is of an older version of vlprobe, and is not read any more"


@dataclass(frozen=True)
class Object:
    """Something in an object store."""

    remote: Remote
    name: str

    def __str__(self) -> str:
        return self.remote.address(self.name)


@dataclass(frozen=True)
class Damage:
    """Something in the cache that is not as it was written."""

    path: Path | Object
    why: str
    drop: tuple[Path | Object, ...]  # what goes, so that it is made anew; empty: it cannot be made anew and stays


def damages(
    store: Store,
    progress: Callable[[str, float, float], None] = lambda label, done, total: None,
    again: Sequence[Damage] | None = None,
) -> list[Damage]:
    """All that is damaged in a cache. Every byte of the results and embeddings is read.

    Args:
        store: The cache.
        progress: Called with (label, done, total) of its files.
        again: Where given, only what these would drop is looked at: is it damaged still?
    """
    found: list[Damage] = []
    looks = [
        *(
            (functools.partial(_entry, mirrored=bool(store.mirror)), path)
            for kind in ("cases", "runs")
            for path in sorted(store.root.glob(f"{kind}/*/"))
        ),
        *((_part, path) for path in sorted(store.root.glob("runs/*/parts/*.parquet"))),
        *((_block, path) for path in sorted(store.root.glob("embeddings/*/*/*.npy"))),
        *((_examination, path) for path in sorted(store.root.glob("models/*.json"))),
        *((_job, path) for path in sorted(store.root.glob("jobs/*/"))),
        *((functools.partial(_said, store), path) for path in sorted(store.root.glob("annotations/*.jsonl"))),
        *((_left_over, path) for path in sorted(store.root.rglob(".*.tmp"))),
    ]
    if store.mirror:
        looks += _there(store.mirror.remote)
    if again is not None:
        among = {one.name if isinstance(one, Object) else one for damage in again for one in damage.drop}
        among |= {one.parent for one in among if isinstance(one, Path)}  # of a job one file may go
        looks = [(look, path) for look, path in looks if path in among]
    found += [] if again is not None else _closed_folders(store.root)
    for done, (look, path) in enumerate(looks):
        progress("Reading what is stored", done, len(looks))
        found += (isinstance(path, Path) and _closed(path)) or look(path)
    return found


def _closed_folders(root: Path) -> Iterator[Damage]:
    """Folders whose content is not looked at, because nobody but their owner may list it."""
    folders = [root / kind for kind in ("cases", "runs", "embeddings", "models", "jobs", "annotations")]
    for folder in [*folders, *sorted(root.glob("embeddings/*/")), *sorted(root.glob("embeddings/*/*/"))]:
        try:
            os.listdir(folder)
        except PermissionError as error:
            yield _stays(folder, error)
        except OSError:  # it is not there
            continue


def _closed(path: Path) -> list[Damage]:
    """What nobody but its owner may read, of a file or of those in a folder: it is not damaged, and it stays."""
    closed = []
    try:
        entries = [one for one in path.iterdir() if not one.name.startswith(".")] if path.is_dir() else [path]
    except PermissionError as error:
        return [_stays(path, error)]
    lines = [one.with_suffix(".json") for one in entries if path.parent.name == "parts"]
    for file in sorted([*entries, *lines]):
        try:
            os.close(os.open(file, os.O_RDONLY | os.O_NONBLOCK))  # a pipe is not waited for
        except PermissionError as error:
            closed.append(_stays(file, error))
        except OSError:  # whoever looks at it says so
            continue
    return closed


def _stays(path: Path, error: OSError) -> Damage:
    return Damage(
        path, f"it cannot be read ({error.strerror}); whoever wrote it can let others read it, so it stays", ()
    )


def repair(found: list[Damage]) -> None:
    """Removes what is damaged and can be made anew. Raises InvalidInput where it cannot be removed."""
    for path in dict.fromkeys(path for damage in found for path in damage.drop):
        try:
            if isinstance(path, Object):
                path.remote.remove([path.name])
            elif path.is_dir() and path.parent.name in ("cases", "runs", "jobs"):
                _empty(path)
            elif path.is_dir():
                shutil.rmtree(path)
            else:
                path.unlink(missing_ok=True)
        except OSError as error:
            raise InvalidInput(f"'{path}' cannot be removed ({error.strerror}). Remove it by hand.") from None


def _empty(folder: Path) -> None:
    """Removes what is in a folder but its lock, which another process may be waiting for."""
    with files.lock(folder / ".lock", lambda: None):
        if not (folder / "manifest.json").is_dir():
            (folder / "manifest.json").unlink(missing_ok=True)  # first: half a folder must not pass for a whole one
        for path in folder.iterdir():
            if path.is_dir():
                shutil.rmtree(path)
            elif path.name != ".lock":
                path.unlink()


def _entry(folder: Path, mirrored: bool) -> Iterator[Damage]:
    if not files.present(folder / "manifest.json"):  # it grows, or was stopped: its parts are looked at one by one
        return
    try:
        manifest = Entry(folder).manifest()
    except InvalidInput:
        yield Damage(folder / "manifest.json", "it is not what was written", (folder,))
        return
    other = _other_key(manifest, folder.name)
    if other:
        yield Damage(folder / "manifest.json", other, (folder,))
    for file in manifest["files"]:
        if mirrored and not (folder / file["name"]).exists():  # nobody asked for it yet
            continue
        try:
            verify_table(folder / file["name"])
        except InvalidInput:
            there = (folder / file["name"]).is_file()
            yield Damage(folder / file["name"], "its checksum differs" if there else "it is gone", (folder,))


def _other_key(manifest: dict, key: str) -> str:
    run = manifest.get("run") if manifest["schema"] == SCHEMA else None  # what it was in another form is not known
    named = {manifest.get("key")} | ({Run(**run).key} if run else set())
    return f"it is of another key ({', '.join(map(str, named))})" if named != {key} else ""


def _part(path: Path) -> Iterator[Damage]:
    line = path.with_suffix(".json")
    if line.exists() and not part_intact(path) and line.exists():  # its run may have ended meanwhile, and dropped it
        yield Damage(path, "its checksum differs", (line, path))


def _block(path: Path) -> Iterator[Damage]:
    if not vectors.is_intact(path):
        yield Damage(path, "its checksum differs" if len(path.stem) == 32 else OLDER, (path,))


def _examination(path: Path) -> Iterator[Damage]:
    try:
        examine.read(path)
    except InvalidInput:
        yield Damage(path, "it cannot be read", (path,))


def _job(folder: Path) -> Iterator[Damage]:
    """A job that has not begun has no status and no process yet; what is damaged of one that has can be said anew."""
    if not jobs.ID.fullmatch(folder.name):
        return
    for file, read, drop in (
        ("request.json", jobs.request, folder),
        ("status.json", jobs.status, folder / "status.json"),
        ("process.json", jobs.pid, folder / "process.json"),
    ):
        try:
            read(folder)
        except FileNotFoundError:
            if file == "request.json" and any(not path.name.startswith(".") for path in folder.iterdir()):
                yield Damage(folder / file, "it is gone", (folder,))
                return
        except InvalidInput:
            yield Damage(folder / file, "it is not what was written", (drop,))
            if drop == folder:
                return


def _said(store: Store, path: Path) -> Iterator[Damage]:
    try:
        damaged = annotations.read(store, path.stem).damaged
    except InvalidInput:
        damaged = (path.name,)
    for place in damaged:
        yield Damage(path, f"{place}, cannot be read; what people said cannot be made anew, so it stays", ())


def _left_over(path: Path) -> Iterator[Damage]:
    with contextlib.suppress(FileNotFoundError):  # renamed meanwhile: nobody was killed
        if abs(time.time() - path.stat().st_mtime) > LEFT_OVER:
            yield Damage(path, "it was left by a process that was killed while it wrote", (path,))


def _there(remote: Remote) -> Iterator[tuple[Callable[[str], Iterator[Damage]], str]]:
    """What is to be looked at in an object store, each with the name to look at it by."""
    names = set(remote.names(""))
    named: set[str] = set()
    complete: set[str] = set()
    for name in sorted(names):
        if own := re.fullmatch(r"index/((?:runs|cases)/[0-9a-z]+)\.\d+\.json", name):
            complete.add(own[1])
            manifest = parse_manifest(remote.read(name) or b"") or {"files": []}
            named |= {table_object(own[1], line) for line in manifest["files"]}
            yield functools.partial(_committed, remote, own[1], complete), name
        elif name.startswith("index/models/"):
            yield functools.partial(_examined, remote), name
        elif name.startswith("embeddings/"):
            yield functools.partial(_sent_block, remote), name
    for name in sorted(names):
        folder, _, rest = name.partition("/parts/")
        unnamed = re.match("(runs|cases)/", name) and name not in named and (folder in complete or not rest)
        if rest.endswith(".json") and folder not in complete:
            yield functools.partial(_sent_part, remote), name
        elif unnamed or name.startswith("sending/"):
            yield functools.partial(_left_there, remote), name


def _differs(remote: Remote, name: str, fits: Callable[[Path], bool]) -> str:
    """What is wrong with an object, "" where nothing is; it is not kept."""
    with tempfile.TemporaryDirectory(dir=remote.root, prefix=".verify-") as folder:
        try:
            remote.fetch(name, Path(folder) / "object", fits)
        except Damaged:
            return "its checksum differs" if remote.exists(name) else "it is gone"
    return ""


def _table(remote: Remote, name: str, line: dict) -> str:
    return _differs(remote, name, lambda file: files.sha256(file) == line["sha256"])


def _committed(remote: Remote, entry: str, complete: set[str], name: str) -> Iterator[Damage]:
    own, here = Object(remote, name), remote.root / entry
    manifest = parse_manifest(remote.read(name) or b"")
    why = "it is not what was written" if manifest is None else _other_key(manifest, here.name)
    if manifest and "run" in manifest and f"cases/{manifest['case_key']}" not in complete:
        why = why or "its questions are gone"
    if why:
        yield Damage(own, why, (own, here))
    for line in manifest["files"] if manifest else ():
        table = Object(remote, table_object(entry, line))
        if why := _table(remote, table.name, line):
            yield Damage(table, why, (own, table, here))


def _examined(remote: Remote, name: str) -> Iterator[Damage]:
    def reads(file: Path) -> bool:
        with contextlib.suppress(InvalidInput):
            examine.read(file)
            return True
        return False

    if _differs(remote, name, reads):
        yield Damage(Object(remote, name), "it cannot be read", (Object(remote, name),))


def _sent_block(remote: Remote, name: str) -> Iterator[Damage]:
    if why := _differs(remote, name, lambda file: vectors.has_digest(file, Path(name).stem)):
        yield Damage(Object(remote, name), why, (Object(remote, name),))


def _sent_part(remote: Remote, name: str) -> Iterator[Damage]:
    said = remote.read(name)
    if said is None:  # its run has ended meanwhile, and dropped it
        return
    try:
        line = parse_file_record(said)
        table = table_object(name.rpartition("/")[0], line)
        why = _table(remote, table, line) if remote.exists(name) else ""
    except ValueError:
        why = "it cannot be read"
    if why and remote.exists(name):
        yield Damage(Object(remote, name), why, (Object(remote, name),))


def _left_there(remote: Remote, name: str) -> Iterator[Damage]:
    if remote.age(name) > LEFT_OVER:  # younger ones may be of an entry that is being sent
        yield Damage(Object(remote, name), "no result names it", (Object(remote, name),))
