"""Fields that every answer of an OpenAI-compatible server has, read as untrusted input."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from vlprobe.errors import InvalidInput
from vlprobe.storage import files

LONGEST_NAME = 200  # of a model and of a fingerprint


@dataclass(frozen=True, slots=True)
class ServerIdentity:
    """Identity of the model that answered, as reported by the server."""

    model: str
    fingerprint: str  # of the server's configuration; "" if it names none

    @property
    def words(self) -> str:
        """Describe the identity for a person."""
        return f"'{self.model}'" + (
            f" with fingerprint '{self.fingerprint}'" if self.fingerprint else ""
        )


@dataclass(frozen=True, slots=True)
class Reply:
    """An answer, parsed."""

    content: Mapping[str, Any]
    identity: ServerIdentity
    tokens: tuple[int, int] | None  # sent and received; None if not reported


def strange(label: str, problem: str) -> InvalidInput:
    """Return the error about an answer that is none."""
    return InvalidInput(
        f"The answer to {label} is invalid: {problem}. It was discarded; repeat the run to "
        "continue."
    )


def parse(body: str, label: str) -> Reply:
    """Return the answer in the body of a response. Raises InvalidInput, which names the request."""
    try:
        content = files.parse_json_object(body)
    except ValueError:
        raise strange(label, f"not a JSON object; it starts with '{body[:60]}'") from None
    if content.get("error"):
        raise strange(label, f"an error, {str(content['error'])[:200]}")
    model = _name(content, "model", label)
    if not model:
        raise strange(label, "it does not name the model ('model')")
    fingerprint = _name(content, "system_fingerprint", label)
    usage = content.get("usage")
    counts = {
        name: count
        for name, count in (usage if isinstance(usage, dict) else {}).items()
        if type(count) is int and 0 <= count < 10**12
    }
    sent = counts.get("prompt_tokens", counts.get("total_tokens"))
    tokens = None if sent is None else (sent, counts.get("completion_tokens", 0))
    return Reply(content, ServerIdentity(model, fingerprint), tokens)


def _name(content: Mapping[str, Any], field: str, label: str) -> str:
    """A name that is stored with every result; "" if there is none. Raises InvalidInput."""
    name = content.get(field) or ""
    if not isinstance(name, str) or len(name) > LONGEST_NAME or not name.isprintable():
        raise strange(
            label,
            (f"its '{field}' is not a single line of at most {LONGEST_NAME} printable characters"),
        )
    return name


def entries(content: Mapping[str, Any], name: str, label: str, least: int = 1) -> list[dict]:
    """A list of objects of an answer. Raises InvalidInput."""
    listed = content.get(name)
    objects = (
        [entry for entry in listed if isinstance(entry, dict)] if isinstance(listed, list) else []
    )
    if not isinstance(listed, list) or len(objects) < max(least, len(listed)):
        raise strange(label, f"its '{name}' is not a list of {least} or more objects")
    return objects


def number(value: object, noun: str, label: str) -> float:
    """A finite number. Raises InvalidInput."""
    if isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value):
        return float(value)
    raise strange(label, f"{noun} is {str(value)[:40]}, not a finite number")
