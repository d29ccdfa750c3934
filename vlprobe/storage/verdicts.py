"""Verdicts on edits that versions before 0.3 stored from a page of the dashboard; `vlprobe verdicts` still counts them.

    mine/verdicts/<digest of the file>.jsonl    one line per verdict; the latest of a judge on an edit counts

The digest is that of the file's content: verdicts hold for this content under any name.
"""

from typing import NamedTuple

from vlprobe.storage import files, mine
from vlprobe.storage.store import Store


class StoredVerdict(NamedTuple):
    """A judge's latest verdict on an edit."""

    judge: str
    edit: str  # its id
    verdict: str


def read(store: Store, digest: str) -> list[StoredVerdict]:
    """Return the verdicts on a file of edits by judge, without those withdrawn."""
    path = mine.path(store.root, "verdicts") / f"{digest}.jsonl"
    try:
        lines = files.read(path).split(b"\n")[:-1]
    except FileNotFoundError:
        return []
    except OSError as error:
        raise files.unreadable(path, error) from None
    parsed = filter(None, map(_parse, lines))
    latest = {(verdict.judge, verdict.edit): verdict for verdict in parsed}
    return sorted(
        (verdict for verdict in latest.values() if verdict.verdict),
        key=lambda verdict: verdict.judge,
    )


def _parse(line: bytes) -> StoredVerdict | None:
    try:
        fields = files.parse_json_object(line.decode())
        return StoredVerdict(*(str(fields[name]) for name in StoredVerdict._fields))
    except (ValueError, KeyError):
        return None
