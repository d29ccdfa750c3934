"""Whether what is stored is still what was written, and away with what is not, so that the same runs make it anew."""

import contextlib
import json
import shutil
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from vlprobe import annotations, doctor, embeddings_kept, files
from vlprobe.errors import InvalidInput
from vlprobe.store import Entry, Store
from vlprobe.store_entry import part_intact, whole
from vlprobe.types import Run

LEFT_OVER = 3600  # seconds after which nobody is still writing a file


@dataclass(frozen=True)
class Damage:
    """Something in the cache that is not as it was written."""

    path: Path
    why: str
    drop: tuple[Path, ...]  # what goes, so that it is made anew; empty: it cannot be made anew and stays


def damages(
    store: Store, progress: Callable[[str, float, float], None] = lambda label, done, total: None
) -> list[Damage]:
    """All that is damaged in a cache. Every byte of the results and embeddings is read.

    Args:
        store: The cache.
        progress: Called with (label, done, total) of its files.
    """
    found: list[Damage] = []
    looks = [
        *((_entry, path) for kind in ("cases", "runs") for path in sorted(store.root.glob(f"{kind}/*/"))),
        *((_part, path) for path in sorted(store.root.glob("runs/*/parts/*.parquet"))),
        *((_block, path) for path in sorted(store.root.glob("embeddings/*/*/*.npy"))),
        *((_examination, path) for path in sorted(store.root.glob("models/*.json"))),
        *((_job, path) for path in sorted(store.root.glob("jobs/*/"))),
        *((_said, path) for path in sorted(store.root.glob("annotations/*.jsonl"))),
        *((_left_over, path) for path in sorted(store.root.rglob(".*.tmp"))),
    ]
    for done, (look, path) in enumerate(looks):
        progress("Reading what is stored", done, len(looks))
        found += look(path)
    return found


def repair(found: list[Damage]) -> None:
    """Removes what is damaged and can be made anew. Raises InvalidInput where it cannot be removed."""
    for path in dict.fromkeys(path for damage in found for path in damage.drop):
        try:
            if path.is_dir():
                _empty(path)
            else:
                path.unlink(missing_ok=True)
        except OSError as error:
            raise InvalidInput(f"'{path}' cannot be removed ({error.strerror}). Remove it by hand.") from None


def _empty(folder: Path) -> None:
    """Removes what is in a folder but its lock, which another process may be waiting for."""
    with files.turn(folder / ".lock", lambda: None):
        (folder / "manifest.json").unlink(missing_ok=True)  # first: half a folder must not pass for a whole one
        for path in folder.iterdir():
            if path.is_dir():
                shutil.rmtree(path)
            elif path.name != ".lock":
                path.unlink()


def _entry(folder: Path) -> Iterator[Damage]:
    if not (folder / "manifest.json").exists():  # it grows, or was stopped: its parts are looked at one by one
        return
    try:
        manifest = Entry(folder).manifest()
    except InvalidInput:
        yield Damage(folder / "manifest.json", "it is not what was written", (folder,))
        return
    run = manifest.get("run")
    named = {manifest.get("key")} | ({Run(**run).key} if run else set())
    if named != {folder.name}:
        yield Damage(folder / "manifest.json", f"it is of another key ({', '.join(map(str, named))})", (folder,))
    for file in manifest["files"]:
        try:
            whole(folder / file["name"])
        except InvalidInput:
            there = (folder / file["name"]).is_file()
            yield Damage(folder / file["name"], "its checksum differs" if there else "it is gone", (folder,))


def _part(path: Path) -> Iterator[Damage]:
    line = path.with_suffix(".json")
    if line.exists() and not part_intact(path) and line.exists():  # its run may have ended meanwhile, and dropped it
        yield Damage(path, "its checksum differs", (line, path))


def _block(path: Path) -> Iterator[Damage]:
    if not embeddings_kept.intact(path):
        yield Damage(path, "its checksum differs", (path,))


def _examination(path: Path) -> Iterator[Damage]:
    try:
        doctor.read(path)
    except InvalidInput:
        yield Damage(path, "it cannot be read", (path,))


def _job(folder: Path) -> Iterator[Damage]:
    for name in ("request.json", "status.json"):
        try:
            json.loads((folder / name).read_bytes())
        except (OSError, ValueError):
            yield Damage(folder / name, "it cannot be read", (folder,))
            return


def _said(path: Path) -> Iterator[Damage]:
    for place in annotations.read(Store(path.parents[1]), path.stem).damaged:
        yield Damage(path, f"{place}, cannot be read; what people said cannot be made anew, so it stays", ())


def _left_over(path: Path) -> Iterator[Damage]:
    with contextlib.suppress(FileNotFoundError):  # renamed meanwhile: nobody was killed
        if abs(time.time() - path.stat().st_mtime) > LEFT_OVER:
            yield Damage(path, "it was left by a process that was killed while it wrote", (path,))
