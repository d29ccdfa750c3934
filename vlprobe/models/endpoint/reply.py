"""What every answer of an OpenAI-compatible server has, whatever was asked, read without trust."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from vlprobe.errors import InvalidInput
from vlprobe.storage import files

LONGEST_NAME = 200  # of a model and of a fingerprint


@dataclass(frozen=True, slots=True)
class Identity:
    """Which model answered, as the server says."""

    model: str
    fingerprint: str  # of the server's configuration; "" where it names none

    @property
    def words(self) -> str:
        """For a person."""
        return f"'{self.model}'" + (
            f" with fingerprint '{self.fingerprint}'" if self.fingerprint else ""
        )


@dataclass(frozen=True, slots=True)
class Reply:
    """An answer, parsed."""

    content: Mapping[str, Any]
    identity: Identity
    tokens_sent: int | None  # None where it does not say
    tokens_received: int | None


def strange(label: str, problem: str) -> InvalidInput:
    """The error about an answer that is none."""
    return InvalidInput(
        f"The answer to {label} is none: {problem}. It is not kept; the same run goes on from there."
    )


def parse(body: str, label: str) -> Reply:
    """The answer in the body of a response. Raises InvalidInput, which names the request."""
    try:
        content = files.parse_json_object(body)
    except ValueError:
        raise strange(label, f"no JSON object, it begins with '{body[:60]}'") from None
    if content.get("error"):
        raise strange(label, f"an error, {str(content['error'])[:200]}")
    model = _name(content, "model", label)
    if not model:
        raise strange(label, "it does not say which model answered ('model')")
    fingerprint = _name(content, "system_fingerprint", label)
    usage = content.get("usage")
    counts = usage if isinstance(usage, dict) else {}
    sent = _count(counts.get("prompt_tokens"))
    sent = _count(counts.get("total_tokens")) if sent is None else sent
    return Reply(
        content, Identity(model, fingerprint), sent, _count(counts.get("completion_tokens"))
    )


def _name(content: Mapping[str, Any], field: str, label: str) -> str:
    """A name that is stored with every result; "" where there is none. Raises InvalidInput."""
    name = content.get(field) or ""
    if not isinstance(name, str) or len(name) > LONGEST_NAME or not name.isprintable():
        raise strange(
            label, f"its '{field}' is not a line of at most {LONGEST_NAME} printable letters"
        )
    return name


def _count(value: object) -> int | None:
    is_count = isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 10**12
    return value if is_count else None  # type: ignore[return-value] - an int where it is a count


def entries(content: Mapping[str, Any], name: str, label: str, least: int = 1) -> list[dict]:
    """A list of objects of an answer. Raises InvalidInput."""
    listed = content.get(name)
    objects = (
        [entry for entry in listed if isinstance(entry, dict)] if isinstance(listed, list) else []
    )
    if not isinstance(listed, list) or len(objects) < max(least, len(listed)):
        raise strange(label, f"its '{name}' is no list of {least} or more objects")
    return objects


def number(value: object, noun: str, label: str) -> float:
    """A finite number. Raises InvalidInput."""
    if isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value):
        return float(value)
    raise strange(label, f"{noun} is {str(value)[:40]}, and not a finite number")


def numbers(values: Sequence[object], noun: str, label: str) -> list[float]:
    """Finite numbers. Raises InvalidInput."""
    return [number(value, noun, label) for value in values]
