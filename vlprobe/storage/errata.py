"""Errata: verdicts by reviewers on whether questions are labeled correctly, in a file that other users can apply.

    {"digest": "6f0c...", "verdict": "wrong", "reviewer": "Ann", "pictures": ["000000290843.jpg"],
     "texts": ["A woman ...", "A cat ..."], "note": ""}

A question's digest is computed from the file names of its pictures and from its texts, so that it is
the same on every machine and under every run key. In the cache, a verdict is stored as a tag on the case.
"""

import hashlib
import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal, get_args

from vlprobe.errors import InvalidInput
from vlprobe.storage import files

Verdict = Literal["wrong", "both", "right", "unsure"]
TAGS: dict[Verdict, str] = {
    "wrong": "wrong label",
    "both": "both acceptable",
    "right": "label right",
    "unsure": "label unsure",
}
REJECTING: tuple[Verdict, ...] = ("wrong", "both")  # verdicts that leave a question out
MAX_FILE_BYTES = 64 << 20


@dataclass(frozen=True, slots=True)
class Erratum:
    """One reviewer's verdict on one question. Pictures, texts and note are only for people who read the file."""

    digest: str
    verdict: Verdict
    reviewer: str
    pictures: tuple[str, ...] = ()
    texts: tuple[str, ...] = ()
    note: str = ""


def question_digest(pictures: Sequence[str], texts: Sequence[str]) -> str:
    """Return the digest of a question: 32 hexadecimal digits.

    Args:
        pictures: Paths to the question's pictures; only the file names count.
        texts: The question's texts, in order.

    >>> question_digest(["photos/1.jpg"], ["a", "b"]) == question_digest(["/mnt/1.jpg"], ["a", "b"])
    True
    """
    content = json.dumps([[Path(name).name for name in pictures], list(texts)])
    return hashlib.sha256(content.encode()).hexdigest()[:32]


def read(path: Path) -> list[Erratum]:
    """Read an errata file.

    Raises:
        InvalidInput: the file cannot be read, or a line is not an erratum.
    """
    try:
        files.require_regular(path)
        if path.stat().st_size > MAX_FILE_BYTES:
            raise InvalidInput(
                f"'{path}' is larger than {MAX_FILE_BYTES >> 20} MiB. Expected a file "
                "written by `vlprobe errata export`."
            )
        lines = files.read(path).decode("utf-8").splitlines()
    except OSError as error:
        raise InvalidInput(f"'{path}' cannot be read ({error.strerror}). Check its path.") from None
    except UnicodeDecodeError:
        raise InvalidInput(f"'{path}' is not UTF-8. Export the errata again.") from None
    return [_parse(path, number, line) for number, line in enumerate(lines, 1) if line.strip()]


def _parse(path: Path, number: int, line: str) -> Erratum:
    try:
        erratum = files.convert(files.parse_json_object(line), Erratum)
    except ValueError as error:
        raise InvalidInput(
            f"'{path}', line {number}, is not an erratum ({str(error)[:120]}). "
            f"Expected digest, verdict ({', '.join(get_args(Verdict))}) and reviewer."
        ) from None
    if len(erratum.digest) != 32 or set(erratum.digest) - set("0123456789abcdef"):
        raise InvalidInput(
            f"'{path}', line {number}: the digest is '{erratum.digest[:40]}'. Expected 32 hexadecimal digits."
        )
    return erratum


def rejected(errata: Iterable[Erratum]) -> frozenset[str]:
    """Return the digests of questions whose label at least one reviewer rejects and no reviewer confirms."""
    by_verdict: dict[str, set[str]] = {}
    for erratum in errata:
        by_verdict.setdefault(erratum.digest, set()).add(erratum.verdict)
    return frozenset(
        digest
        for digest, verdicts in by_verdict.items()
        if verdicts & set(REJECTING) and "right" not in verdicts
    )


def lines(errata: Iterable[Erratum]) -> str:
    """Format errata as JSON lines."""
    return "".join(json.dumps(asdict(erratum), ensure_ascii=False) + "\n" for erratum in errata)
