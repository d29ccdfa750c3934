"""Log of the raw answers from model servers. The answers may have cost money, so they are stored unchanged.

    cache/mine/answers/<digest of questions and settings>/answers.jsonl

Each line holds one answer: the questions it answers, the text of the response body, and a checksum of both. Lines are
only ever appended. A line with a wrong checksum, such as the last line after a process was killed, is skipped, and its
questions are sent again.
"""

import contextlib
import hashlib
import json
import os
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import BinaryIO, NamedTuple

from vlprobe.errors import InvalidInput
from vlprobe.storage import files
from vlprobe.storage.access import refuse_writing

BLOCK = 1 << 16
FOLDER, FILE = "answers", "answers.jsonl"


class KeptAnswer(NamedTuple):
    """One line in the log: an answer and the questions it answers."""

    questions: tuple[str, ...]  # question names
    body: str  # response body, unchanged


class AnswerLog:
    """Log of the answers that one server gave for one model. Several threads may append at the same time.

    Args:
        folder: The folder for the log, created by the first write.
    """

    def __init__(self, folder: Path) -> None:
        self.file = folder / FILE
        self._append_lock = threading.Lock()

    def locked(self, on_wait: Callable[[], None]) -> AbstractContextManager[None]:
        """Return the lock a process holds while it sends questions, so that no other process sends the same ones."""
        return files.lock(self.file.parent / ".lock", on_wait)

    def __iter__(self) -> Iterator[KeptAnswer]:
        """Yield the intact answers, oldest first."""
        for answer in self.lines():
            if answer is not None:
                yield answer

    def lines(self) -> Iterator[KeptAnswer | None]:
        """Yield each line in the log, or None for a damaged line."""
        try:
            files.require_regular(self.file)
            with self.file.open("rb") as handle:
                for line in handle:
                    yield _parsed(line)
        except FileNotFoundError:
            return
        except OSError as error:
            raise files.unreadable(self.file, error) from None

    def append(self, questions: Sequence[str], body: str) -> None:
        """Append an answer to the log. Raises InvalidInput if it cannot be written."""
        refuse_writing()
        fields = {"questions": list(questions), "body": body}
        line = json.dumps(fields | {"digest": _digest(questions, body)}, ensure_ascii=False)
        try:
            with self._append_lock:
                self.file.parent.mkdir(parents=True, exist_ok=True)
                with self.file.open("a+b") as handle:
                    handle.truncate(_end_of_lines(handle))
                    handle.write(line.encode() + b"\n")
                    handle.flush()
                    os.fsync(handle.fileno())
        except OSError as error:
            raise InvalidInput(
                f"Cannot write '{self.file}' ({error.strerror}). Free space or choose another folder with --cache; "
                "stored answers are not requested again."
            ) from None


def _digest(questions: Sequence[str], body: str) -> str:
    return hashlib.blake2b(json.dumps([*questions, body]).encode(), digest_size=16).hexdigest()


def _end_of_lines(handle: BinaryIO) -> int:
    """Find where the last complete line ends. Anything after it was left by a process killed while writing."""
    end = handle.seek(0, os.SEEK_END)
    while end:
        start = max(0, end - BLOCK)
        handle.seek(start)
        newline = handle.read(end - start).rfind(b"\n")
        if newline >= 0:
            return start + newline + 1
        end = start
    return 0


def _parsed(line: bytes) -> KeptAnswer | None:
    with contextlib.suppress(ValueError):
        fields = files.parse_json_object(line.decode())
        questions, body = fields.get("questions"), fields.get("body")
        if isinstance(questions, list) and isinstance(body, str):
            names = tuple(map(str, questions))
            if fields.get("digest") == _digest(names, body):
                return KeptAnswer(names, body)
    return None
