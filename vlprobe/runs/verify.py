"""Detection and removal of damaged stored files, which repeating the same runs creates again, and removal of runs.

For an object store, both the objects and their local copies are checked. A damaged copy is
downloaded again after its removal; a damaged object is removed in both places.
"""

import contextlib
import functools
import os
import re
import shutil
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Sequence, Set
from dataclasses import dataclass
from pathlib import Path

from vlprobe.errors import InvalidInput, StoredDamage
from vlprobe.models.doctor import examine
from vlprobe.runs import job as job_files
from vlprobe.scoring import vectors
from vlprobe.storage import annotations, answer_log, files, mine
from vlprobe.storage.entry import SCHEMA, parse_manifest, part_record, verify_table
from vlprobe.storage.mirror import TABLE, Mirror, table_object
from vlprobe.storage.store import Entry, Store
from vlprobe.types import Run

DROPPED = "dropped"  # folder of the cache with pictures dropped on the Run page
DROPPED_SECONDS = (
    86_400  # after which pictures that no run uses are removed: a form may still name them
)
LEFT_OVER = 3600  # seconds after which no process is still writing a file
INDEX = re.compile(r"index/((?:runs|cases)/[0-9a-z]+)\.\d+\.json")  # object name for a manifest
OLDER = "it was written by an older version of vlprobe and is no longer read"


@dataclass(frozen=True)
class Object:
    """An object in an object store."""

    remote: Mirror
    name: str

    def __str__(self) -> str:
        return self.remote.address(self.name)


@dataclass(frozen=True)
class Damage:
    """A damaged entry in the cache."""

    path: Path | Object
    why: str
    # Paths to remove so that they are created again; empty: the entry cannot be recreated and stays
    drop: tuple[Path | Object, ...]


def damages(
    store: Store,
    progress: Callable[[str, float, float], None] = lambda label, done, total: None,
    again: Sequence[Damage] | None = None,
) -> list[Damage]:
    """Find all damaged entries in a cache by reading every byte of the results and
    embeddings.

    Args:
        progress: Called with (label, done, total), which count files.
        again: If given, check only the files of these entries again.
    """
    checks: list[tuple[Callable[..., Iterable[Damage]], Path | str]] = [
        *(
            (functools.partial(_entry, mirrored=bool(store.mirror)), path)
            for kind in ("cases", "runs")
            for path in sorted(store.root.glob(f"{kind}/*/"))
        ),
        *((_part, path) for path in sorted(store.root.glob("runs/*/parts/*.parquet"))),
        *((_block, path) for path in sorted(store.root.glob("embeddings/*/*/*.npy"))),
        *((_answers, path) for path in sorted(mine.path(store.root, answer_log.FOLDER).glob("*/"))),
        *((_examination, path) for path in sorted(store.root.glob("models/*.json"))),
        *((_job, path) for path in sorted(store.root.glob("jobs/*/"))),
        *(
            (functools.partial(_annotations, store), path)
            for path in sorted(mine.path(store.root, annotations.FOLDER).glob("*.jsonl"))
        ),
        *((_left_over, path) for path in sorted(store.root.rglob(".*.tmp"))),
    ]
    if store.mirror:
        checks += _remote_checks(store.mirror)
    if again is not None:
        dropped = [target for damage in again for target in damage.drop]
        targets = {target.name if isinstance(target, Object) else target for target in dropped}
        # A single file may be dropped from a job
        targets |= {target.parent for target in dropped if isinstance(target, Path)}
        checks = [(check, path) for check, path in checks if path in targets]
    found_damages = _unreadable(store.root)
    closed = {damage.path for damage in found_damages if isinstance(damage.path, Path)}
    closed |= {path.with_suffix(".parquet") for path in closed}  # the table of a part's record
    for done, (check, path) in enumerate(checks):
        progress("Reading stored results", done, len(checks))
        if not any(file.is_relative_to(path) for file in closed):
            found_damages += check(path)
    return found_damages


def _unreadable(root: Path) -> list[Damage]:
    """Find files and folders that this process may not read. They are not damaged and are not removed."""
    errors: list[OSError] = []
    folders = [root / kind for kind in ("cases", "runs", "embeddings", "models", "jobs")]
    for top in (*folders, mine.path(root, annotations.FOLDER)):
        for folder, _, names in os.walk(top, onerror=errors.append):
            for name in names:
                try:
                    # Do not wait for a pipe
                    os.close(os.open(os.path.join(folder, name), os.O_RDONLY | os.O_NONBLOCK))
                except OSError as error:  # their readers report other errors
                    errors.append(error)
    return [
        Damage(
            Path(error.filename),
            f"it cannot be read ({error.strerror}); ask its owner for access; not deleted",
            (),
        )
        for error in errors
        if isinstance(error, PermissionError) and not Path(error.filename).name.startswith(".")
    ]


def repair(to_remove: Sequence[Damage]) -> None:
    """Remove damaged files that can be created again. Raises InvalidInput if a file cannot be removed."""
    for path in dict.fromkeys(path for damage in to_remove for path in damage.drop):
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
            raise InvalidInput(
                f"'{path}' cannot be removed ({error.strerror}). Remove it manually."
            ) from None


def _empty(folder: Path) -> None:
    """Remove everything in a folder except its lock, because another process may be waiting for the lock."""
    with files.lock(folder / ".lock", lambda: None):
        if not (folder / "manifest.json").is_dir():
            # First, because a partial folder must not pass for a complete one
            (folder / "manifest.json").unlink(missing_ok=True)
        for path in folder.iterdir():
            if path.is_dir():
                shutil.rmtree(path)
            elif path.name != ".lock":
                path.unlink()


def _entry(folder: Path, mirrored: bool) -> Iterator[Damage]:
    # Without a manifest it is still growing or was stopped; its parts are checked one by one
    if not files.present(folder / "manifest.json"):
        return
    try:
        manifest = Entry(folder).manifest()
    except InvalidInput:
        yield Damage(folder / "manifest.json", "it differs from what was written", (folder,))
        return
    if wrong_key := _wrong_key(manifest, folder.name):
        yield Damage(folder / "manifest.json", wrong_key, (folder,))
    for file in manifest["files"]:
        if mirrored and not (folder / file["name"]).exists():  # not requested yet
            continue
        try:
            verify_table(folder / file["name"])
        except InvalidInput:
            exists = (folder / file["name"]).is_file()
            yield Damage(
                folder / file["name"],
                "its checksum differs" if exists else "it is missing",
                (folder,),
            )


def _wrong_key(manifest: dict, key: str) -> str:
    # The content of other schemas is unknown
    run = manifest.get("run") if manifest["schema"] == SCHEMA else None
    keys = {manifest.get("key")} | ({Run(**run).key} if run else set())
    return f"it has another key ({', '.join(map(str, keys))})" if keys != {key} else ""


def _part(path: Path) -> Iterator[Damage]:
    line = path.with_suffix(".json")
    # The run may have ended in the meantime and deleted the part
    if line.exists() and not part_record(path) and line.exists():
        yield Damage(path, "its checksum differs", (line, path))


def _block(path: Path) -> Iterator[Damage]:
    if not vectors.is_intact(path):
        yield Damage(path, "its checksum differs" if len(path.stem) == 32 else OLDER, (path,))


def _examination(path: Path) -> Iterator[Damage]:
    if not _is_examination(path):
        yield Damage(path, "it cannot be read", (path,))


def _job(folder: Path) -> Iterator[Damage]:
    """Find damaged files in a job folder. A status or process file may be missing, because it is written when the job
    starts. If it is damaged, only that file needs to be removed.
    """
    if not job_files.ID.fullmatch(folder.name):
        return
    for file, read, drop in (
        ("request.json", job_files.read_request, folder),
        ("status.json", job_files.read_status, folder / "status.json"),
        ("process.json", job_files.read_pid, folder / "process.json"),
    ):
        try:
            read(folder)
        except FileNotFoundError:
            if file == "request.json" and any(
                not path.name.startswith(".") for path in folder.iterdir()
            ):
                yield Damage(folder / file, "it is missing", (folder,))
                return
        except InvalidInput:
            yield Damage(folder / file, "it differs from what was written", (drop,))
            if drop == folder:
                return


def _annotations(store: Store, path: Path) -> Iterator[Damage]:
    try:
        damaged = annotations.read(store, path.stem).damaged
    except InvalidInput:
        damaged = (path.name,)
    for line in damaged:
        yield Damage(
            path,
            f"{line}, cannot be read; not deleted, because human verdicts cannot be recreated",
            (),
        )


def _answers(folder: Path) -> Iterator[Damage]:
    lines = list(answer_log.AnswerLog(folder).lines())
    if n_damaged := lines.count(None):
        why = f"{n_damaged} of {len(lines)} answers of a server are damaged: the next run requests them again"
        yield Damage(folder / answer_log.FILE, why, ())


def _left_over(path: Path) -> Iterator[Damage]:
    if _is_older(path, LEFT_OVER):
        yield Damage(path, "it was left by a process that was killed while writing", (path,))


def _is_older(path: Path, seconds: float) -> bool:
    """Return whether a file or folder was changed longer ago. One with a time in the future was, too."""
    try:
        return abs(time.time() - path.stat().st_mtime) > seconds
    except FileNotFoundError:  # another process renamed or removed it
        return False


def _remote_checks(remote: Mirror) -> Iterator[tuple[Callable[[str], Iterator[Damage]], str]]:
    """Yield the checks for an object store, each with the name of the object to check."""
    names = sorted(remote.names(""))
    entries = {name: index[1] for name in names if (index := INDEX.fullmatch(name))}
    for name, content in remote.read_all(entries).items():
        entry, manifest = entries[name], parse_manifest(content)
        yield functools.partial(_committed, remote, entry, manifest, set(entries.values())), name
        for line in manifest["files"] if manifest else ():
            table = table_object(entry, line)
            drop = (Object(remote, name), Object(remote, table), remote.root / entry)
            yield functools.partial(_object, remote, None, "its checksum differs", drop), table
    for name in names:
        if name.startswith("index/models/"):
            yield functools.partial(_object, remote, _is_examination, "it cannot be read", ()), name
        elif name.startswith("embeddings/") or ("/parts/" in name and TABLE.fullmatch(name)):
            yield functools.partial(_object, remote, None, "its checksum differs", ()), name


def _committed(
    remote: Mirror, entry: str, manifest: dict | None, complete: Set[str], name: str
) -> Iterator[Damage]:
    why = "it differs from what was written"
    if manifest:
        why = _wrong_key(manifest, Path(entry).name)
        if "run" in manifest and f"cases/{manifest['case_key']}" not in complete:
            why = why or "its question set is missing"
    if why:
        yield Damage(Object(remote, name), why, (Object(remote, name), remote.root / entry))


def _object(
    remote: Mirror,
    is_intact: Callable[[Path], bool] | None,
    why: str,
    drop: tuple[Path | Object, ...],
    name: str,
) -> Iterator[Damage]:
    """Download an object to check it, without keeping the copy. If `drop` is given, a missing object is damage too."""
    with tempfile.TemporaryDirectory(dir=remote.root, prefix=".verify-") as folder:
        try:
            remote.fetch(name, Path(folder) / "object", is_intact)
        except StoredDamage:
            is_missing = not remote.names(name)
            if drop or not is_missing:  # a part is deleted when its run ends
                target = Object(remote, name)
                yield Damage(target, "it is missing" if is_missing else why, drop or (target,))


def _is_examination(file: Path) -> bool:
    with contextlib.suppress(InvalidInput):
        examine.read(file)
        return True
    return False


def removable(store: Store, keys: Sequence[str]) -> list[dict]:
    """Return the manifests of the runs to remove, without duplicates. Does not remove anything.

    Args:
        keys: Run keys, or unique prefixes of them.

    Raises:
        NotFound: no run has one of the keys.
        InvalidInput: the store is not writable, a prefix matches several runs, a run cannot be read, or a run is
            bundled with vlprobe.
    """
    store.require_local_writable()
    manifests = {manifest["key"]: manifest for manifest in map(store.find, keys)}
    for key in manifests:
        if store.is_shipped(key):
            raise InvalidInput(
                f"Run {key} is bundled with vlprobe and cannot be removed. Set "
                "VLPROBE_SHIPPED= (empty) to hide bundled results."
            )
    return list(manifests.values())


def _unfinished(store: Store) -> list[str]:
    """Return the requests of jobs that are not done, as text: they may be resumed and need their pictures."""
    from vlprobe.runs import jobs  # imports all that a run needs; the checks need none of it

    return [repr(job.request) for job in jobs.jobs(store) if job.state != "done"]


def remove(store: Store, manifests: Sequence[dict]) -> int:
    """Remove runs, along with the question sets and dropped pictures that no other run uses. Pictures that were dropped
    more than a day ago and are not used by any run or unfinished job are removed, too. Tags and notes are kept.

    Returns the number of removed question sets, which is 0 for a shared store because another machine
    may use them.

    Raises InvalidInput if a file or an object cannot be removed.
    """
    keys = {manifest["key"] for manifest in manifests}
    case_keys = {manifest["case_key"] for manifest in manifests}
    current, unread = store.read_runs()  # unreadable runs may use the same question sets
    answered = {manifest["case_key"] for manifest in current if manifest["key"] not in keys}
    unanswered = set() if unread or store.mirror else case_keys - answered
    if store.mirror:
        for key in sorted(keys):
            store.mirror.remove_run(key)
    folders = [store.root / "runs" / key for key in sorted(keys)]
    folders += [store.root / "cases" / key for key in sorted(unanswered)]
    folders += unused_drops(store, manifests)
    repair([Damage(folder, "", (folder,)) for folder in folders if folder.is_dir()])
    return len(unanswered)


def unused_drops(store: Store, removed: Sequence[dict] = ()) -> list[Path]:
    """Return the folders of dropped pictures that are not used by any run or unfinished job. Folders that
    were not used by a removed run are returned only if they were dropped more than a day ago.

    Args:
        removed: Manifests of runs that are being removed.
    """
    used = [manifest["run"]["dataset"] for manifest in removed]
    folders = [
        folder
        for folder in (store.root / DROPPED).glob("*")
        if _names_drop(folder, used) or _is_older(folder, DROPPED_SECONDS)
    ]
    if not folders:
        return []
    current, unread = store.read_runs()
    if unread:  # an unreadable run may use any of them
        return []
    keys = {manifest["key"] for manifest in removed}
    needed = [run["run"]["dataset"] for run in current if run["key"] not in keys]
    needed += _unfinished(store)
    return [folder for folder in folders if not _names_drop(folder, needed)]


def remove_unused_drops(store: Store) -> None:
    """Remove pictures that were dropped more than a day ago and are not used by any run or unfinished job.

    Raises InvalidInput if a folder cannot be removed.
    """
    repair([Damage(folder, "", (folder,)) for folder in unused_drops(store)])


def _names_drop(folder: Path, names: Sequence[str]) -> bool:
    return any(f"/{DROPPED}/{folder.name}" in name for name in names)
