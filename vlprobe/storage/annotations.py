"""Annotations for single cases: tags and a note, stored in the cache folder `mine`.

    mine/annotations/<case key>.jsonl    append-only, one line per change; the latest line for a case counts

A case keeps its number and id as long as the case key is the same, so one annotation applies to every model.
"""

import functools
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from vlprobe.errors import InvalidInput
from vlprobe.storage import access, files, mine
from vlprobe.storage.store import Store

FOLDER = "annotations"
# Tags offered while none exist; the drawer gives them the keys 1 to 4
SUGGESTED = ("ambiguous", "wrong label", "telling", "to discuss")
FORMER = {"label wrong": "wrong label"}  # former names of tags, in files of older versions
# In filters: cases with a tag, and with a note. No tag begins with a space.
ANY, NOTE = " any", " note"
TAG_LENGTH = 30
MAX_CASE_TAGS = 8
MAX_VOCABULARY = 40  # different tags in one question set
NOTE_LENGTH = 2000


@dataclass(frozen=True)
class Annotation:
    """Tags and a note for one case. An annotation without tags and note counts as removed."""

    case: int  # the case's number in the question set
    id: str
    tags: tuple[str, ...] = ()
    note: str = ""


@dataclass(frozen=True)
class Annotations:
    """The current annotations for a question set, latest first, and the lines of the file that are damaged."""

    current: tuple[Annotation, ...] = ()
    damaged: tuple[str, ...] = ()  # file name and line number

    @property
    def tags(self) -> dict[str, int]:
        """Count the cases for each tag. The result is sorted by tag."""
        counts = Counter(tag for annotation in self.current for tag in annotation.tags)
        return dict(sorted(counts.items()))

    @property
    def cases(self) -> dict[str, list[int]]:
        """List the numbers of the cases with ANY tag, with a NOTE and with each tag. Empty lists are left out."""
        listed = {
            ANY: [each.case for each in self.current if each.tags],
            NOTE: [each.case for each in self.current if each.note],
        }
        for name in self.tags:
            listed[name] = [each.case for each in self.current if name in each.tags]
        return {name: numbers for name, numbers in listed.items() if numbers}


def read(store: Store, case_key: str) -> Annotations:
    """Return the annotations for a question set. An unfinished line at the end of the file is skipped."""
    path = _path(store, case_key)
    return _read(path, files.version(path))


# Explore reads them four times: 50 ms each with 5,000 tagged cases
@functools.lru_cache(maxsize=4)
def _read(path: Path, version: tuple[int, int]) -> Annotations:
    """Read a file of annotations. `version` changes with the file."""
    try:
        lines = path.read_bytes().split(b"\n")[:-1]
    except FileNotFoundError:
        lines = []
    except OSError as error:
        raise files.unreadable(path, error) from None
    latest: dict[int, Annotation] = {}
    damaged = []
    for line_number, line in enumerate(lines, 1):
        annotation = _parse(line)
        if annotation is None:
            damaged.append(f"{path.name}, line {line_number}")
        else:
            latest.pop(annotation.case, None)
            latest[annotation.case] = annotation
    current = [
        annotation for annotation in reversed(latest.values()) if annotation.tags or annotation.note
    ]
    return Annotations(tuple(current), tuple(damaged))


def write(store: Store, case_key: str, annotation: Annotation) -> Annotation:
    """Store an annotation, replacing the previous one for the case. Returns it with cleaned tags and note.

    Raises:
        InvalidInput: a tag or the note is too long, there are too many tags, or the cache is read-only.
    """
    return write_all(store, case_key, [annotation])[0]


def write_all(store: Store, case_key: str, changed: Sequence[Annotation]) -> list[Annotation]:
    """Store annotations for several cases, or none if one is not valid. See `write`."""
    access.refuse_writing()
    cleaned = []
    for annotation in changed:
        note = annotation.note.strip()
        if len(note) > NOTE_LENGTH:
            raise InvalidInput(
                f"The note has {len(note):,} characters. The maximum is {NOTE_LENGTH:,}."
            )
        tags = _clean_tags(annotation.tags)
        cleaned.append(Annotation(annotation.case, annotation.id, tags, note))
    path = _path(store, case_key)
    with files.lock(path.with_suffix(".lock"), lambda: None):
        vocabulary = read(store, case_key).tags
        extended = {*vocabulary, *(tag for each in cleaned for tag in each.tags)}
        if len(extended) > max(MAX_VOCABULARY, len(vocabulary)):
            raise InvalidInput(
                f"Too many different tags ({len(extended)}). Use an existing tag: "
                f"{', '.join(vocabulary)}."
            )
        files.append_json(path, *map(asdict, cleaned))
    return cleaned


def current_name(tag: str) -> str:
    """Return the name that a tag has today; tags of older versions may have another."""
    return FORMER.get(tag, tag)


def version(store: Store, case_key: str) -> str:
    """Return a string that changes whenever an annotation is written for a question set, or "" if there are none."""
    path = _path(store, case_key)
    return f"{path.stat().st_mtime_ns}:{path.stat().st_size}" if path.exists() else ""


def _path(store: Store, case_key: str) -> Path:
    name = store.cases(case_key).folder.name  # raises for an invalid key
    return mine.path(store.root, FOLDER) / f"{name}.jsonl"


def _parse(line: bytes) -> Annotation | None:
    try:
        fields = files.parse_json_object(line.decode())
        tags = tuple(dict.fromkeys(current_name(str(name)) for name in fields["tags"]))
        annotation = Annotation(int(fields["case"]), str(fields["id"]), tags, str(fields["note"]))
    except (ValueError, KeyError, TypeError):
        return None
    return annotation if 0 <= annotation.case < 2**63 else None


def _clean_tags(texts: Iterable[str]) -> tuple[str, ...]:
    """Sort tags, and remove duplicates and surplus spaces. Raises InvalidInput for invalid tags."""
    tags = sorted({" ".join(tag.split()) for tag in texts} - {""})
    for tag in tags:
        if len(tag) > TAG_LENGTH or re.search(r"[\x00-\x1f\x7f]", tag):
            raise InvalidInput(
                f"'{tag[:60]}' is not a valid tag. Expected at most {TAG_LENGTH} "
                "characters on one line."
            )
    if len(tags) > MAX_CASE_TAGS:
        raise InvalidInput(
            f"Too many tags for one case: {len(tags)}. The maximum is {MAX_CASE_TAGS}."
        )
    return tuple(tags)
