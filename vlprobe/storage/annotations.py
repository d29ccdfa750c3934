"""What people say of single cases: tags and a note, kept in the cache beside the results.

    annotations/<case key>.jsonl    a line a change, only ever added to; of a case, its last line counts

A case keeps its number and its id under one case key for ever, so what was said of it stays true for every model.
"""

import json
import os
import re
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path

from vlprobe.errors import InvalidInput
from vlprobe.storage import access, files
from vlprobe.storage.store import Store

SUGGESTED = ("wrong label", "ambiguous", "telling", "to discuss")  # tags that are offered before there are any
TAG_LENGTH = 30
TAGS_EACH = 8  # of one case
TAGS_KNOWN = 40  # of one question set: a vocabulary that people still know
NOTE_LENGTH = 2000


@dataclass(frozen=True)
class Annotation:
    """What was said of one case; without tags and note, nothing is said of it any more."""

    case: int  # its number in the question set
    id: str
    tags: tuple[str, ...] = ()
    note: str = ""


@dataclass(frozen=True)
class Annotations:
    """What was said of the cases of a question set, latest first, and which lines of the file are damaged."""

    current: tuple[Annotation, ...] = ()
    damaged: tuple[str, ...] = ()  # file and line

    @property
    def tags(self) -> dict[str, int]:
        """All tags, by name, with how many cases have each."""
        every = [tag for own in self.current for tag in own.tags]
        return {tag: every.count(tag) for tag in sorted(set(every))}


def read(store: Store, case_key: str) -> Annotations:
    """What was said of a question set's cases. A last line that is still being written does not count yet."""
    path = _path(store, case_key)
    try:
        lines = path.read_bytes().split(b"\n")[:-1]
    except FileNotFoundError:
        lines = []
    except OSError as error:
        raise InvalidInput(files.unreadable_message(path, error)) from None
    latest: dict[int, Annotation] = {}
    damaged = []
    for place, line in enumerate(lines, 1):
        own = _parsed(line)
        if own is None:
            damaged.append(f"{path.name}, line {place}")
        else:
            latest.pop(own.case, None)
            latest[own.case] = own
    return Annotations(tuple(own for own in reversed(latest.values()) if own.tags or own.note), tuple(damaged))


def write(store: Store, case_key: str, said: Annotation) -> Annotation:
    """Keeps what is said of a case in place of what was said before; returns it as it is kept.

    Raises:
        InvalidInput: too long, too many, or nothing may be kept here.
    """
    access.refuse_writing()
    kept = Annotation(said.case, said.id, _tags(said.tags), _note(said.note))
    path = _path(store, case_key)
    with files.lock(path.with_suffix(".lock"), lambda: None):
        known = read(store, case_key).tags
        if len(every := {*known, *kept.tags}) > max(TAGS_KNOWN, len(known)):
            raise InvalidInput(f"{len(every)} different tags are too many. Use one of: {', '.join(known)}.")
        try:
            whole = not path.exists() or path.read_bytes()[-1:] in (b"", b"\n")
            with path.open("ab") as handle:
                handle.write((b"" if whole else b"\n") + json.dumps(asdict(kept)).encode() + b"\n")
                handle.flush()
                os.fsync(handle.fileno())
        except OSError as error:
            raise InvalidInput(f"Cannot write '{path}' ({error.strerror}). Free some space, then save again.") from None
    return kept


def version(store: Store, case_key: str) -> str:
    """Changes whenever something is said of a case of the question set."""
    path = _path(store, case_key)
    return f"{path.stat().st_mtime_ns}:{path.stat().st_size}" if path.exists() else ""


def _path(store: Store, case_key: str) -> Path:
    return store.root / "annotations" / f"{store.cases(case_key).folder.name}.jsonl"  # refuses what is no key


def _parsed(line: bytes) -> Annotation | None:
    try:
        given = files.parse_json(line.decode())
        own = Annotation(int(given["case"]), str(given["id"]), tuple(map(str, given["tags"])), str(given["note"]))
    except (ValueError, KeyError, TypeError):
        return None
    return own if 0 <= own.case < 2**63 else None


def _tags(given: Iterable[str]) -> tuple[str, ...]:
    """Cleaned of spaces and doubles, in the order of the alphabet."""
    tags = sorted({" ".join(tag.split()) for tag in given} - {""})
    for tag in tags:
        if len(tag) > TAG_LENGTH or re.search(r"[\x00-\x1f\x7f]", tag):
            raise InvalidInput(f"'{tag[:60]}' is no tag. Expected at most {TAG_LENGTH} letters on one line.")
    if len(tags) > TAGS_EACH:
        raise InvalidInput(f"{len(tags)} tags are too many for one case. Keep at most {TAGS_EACH}.")
    return tuple(tags)


def _note(given: str) -> str:
    note = given.strip()
    if len(note) > NOTE_LENGTH:
        raise InvalidInput(f"The note has {len(note):,} letters. Keep at most {NOTE_LENGTH:,}.")
    return note
