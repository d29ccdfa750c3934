"""What people said of the edits of a file, in Lab.

    mine/verdicts/<digest of the file>.jsonl    append-only, a line a verdict; the latest of a judge on an edit counts

The digest is that of the file's content: verdicts hold wherever the file lies, and for no other content.
"""

import datetime
import re
from pathlib import Path
from typing import NamedTuple

from vlprobe.errors import InvalidInput
from vlprobe.storage import access, files, mine
from vlprobe.storage.store import Store

DIGEST = re.compile(r"[0-9a-f]{32,64}")
JUDGE_LENGTH = 60


class StoredVerdict(NamedTuple):
    """One that counts."""

    judge: str
    edit: str  # its id
    verdict: str


def read(store: Store, digest: str) -> list[StoredVerdict]:
    """The verdicts on a file of edits, by judge and then as they were given; those withdrawn are left out."""
    path = _path(store, digest)
    try:
        lines = files.read(path).split(b"\n")[:-1]
    except FileNotFoundError:
        return []
    except OSError as error:
        raise files.unreadable(path, error) from None
    latest: dict[tuple[str, str], StoredVerdict] = {}
    for line in lines:
        verdict = _parse(line)
        if verdict:
            latest[verdict.judge, verdict.edit] = verdict
    return sorted(
        (verdict for verdict in latest.values() if verdict.verdict),
        key=lambda verdict: verdict.judge,
    )


def write(store: Store, digest: str, judge: str, edit: str, verdict: str) -> None:
    """Keeps a verdict in place of an earlier one; "" withdraws it.

    Raises:
        InvalidInput: the judge has no name, or the cache is read-only.
    """
    access.refuse_writing()
    path = _path(store, digest)
    fields = {"judge": clean_name(judge), "edit": edit, "verdict": verdict}
    now = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
    with files.lock(path.with_suffix(".lock"), lambda: None):
        files.append_json(path, fields | {"when": now})


def clean_name(judge: str) -> str:
    """A judge's name without surplus blanks. Raises InvalidInput where it is none."""
    name = " ".join(judge.split())
    if not name or len(name) > JUDGE_LENGTH or not name.isprintable():
        raise InvalidInput(
            f"'{name[:80]}' is no name of a judge. Expected 1 to {JUDGE_LENGTH} letters, to tell verdicts apart."
        )
    return name


def version(store: Store, digest: str) -> str:
    """Changes whenever a verdict on the file does; "" where there is none."""
    path = _path(store, digest)
    return f"{path.stat().st_mtime_ns}:{path.stat().st_size}" if path.exists() else ""


def _path(store: Store, digest: str) -> Path:
    if not DIGEST.fullmatch(digest):
        raise InvalidInput(f"'{digest[:80]}' is no digest of a file of edits.")
    return mine.path(store.root, "verdicts") / f"{digest}.jsonl"


def _parse(line: bytes) -> StoredVerdict | None:
    try:
        fields = files.parse_json_object(line.decode())
        return StoredVerdict(*(str(fields[name]) for name in StoredVerdict._fields))
    except (ValueError, KeyError):
        return None
