"""The cache folder `mine`, for data that people wrote or paid for and that no run can recompute.

    cache/mine/annotations/         tags and notes on cases
               verdicts/            people's verdicts on edits
               answers/             server answers, which may have cost money
               kept/                pictures kept in the Playground
               display_names.json   names that people gave to models and datasets
               bookmarks.json       saved views of the dashboard

Versions before 24 November 2026 kept these files directly in the cache.
"""

import contextlib
import os
import shutil
from pathlib import Path

from vlprobe.errors import InvalidInput
from vlprobe.storage import access, files

FOLDER = "mine"


def path(root: Path, name: str) -> Path:
    """Return `root/mine/name`. Data that an older version stored at `root/name` is moved there first.

    The old path is returned if the data cannot be moved: the server or the disk is read-only, or the
    old path is a link.
    """
    old, new = root / name, root / FOLDER / name
    if not files.present(old):
        return new
    if not access.read_only() and not old.is_symlink():
        # A read-only disk is not an error here: the old path is read instead.
        with (
            contextlib.suppress(OSError, InvalidInput),
            files.lock(root / FOLDER / ".lock", lambda: None),
        ):
            if files.present(old):  # otherwise another process has just moved it
                _move(old, new)
    return new if files.present(new) else old


def _move(old: Path, new: Path) -> None:
    """Rename a file or folder, or merge it into the new one if an older version was used in the meantime.

    Raises OSError or InvalidInput on failure; the content is then at one of the two paths.
    """
    if not files.present(new):
        os.rename(old, new)
    elif old.is_dir():
        for child in sorted(old.iterdir()):
            _move(child, new / child.name)
        old.rmdir()
    elif old.suffix == ".jsonl":
        with old.open("rb") as source, new.open("ab") as target:
            shutil.copyfileobj(source, target)
            target.flush()
            os.fsync(target.fileno())
        old.unlink()
    elif old.suffix == ".json":
        merged = files.read_texts(new, "so it cannot be merged")
        files.write_json(new, files.read_texts(old, "so it cannot be merged") | merged)
        old.unlink()
    elif old.name.endswith(".lock"):
        old.unlink()
