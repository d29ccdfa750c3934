"""Parser for the common fields in the answers of OpenAI-compatible servers, which are untrusted input."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from vlprobe.errors import InvalidInput
from vlprobe.storage import files

LONGEST_NAME = 200  # most characters in the name of a model and in a fingerprint


@dataclass(frozen=True, slots=True)
class ServerIdentity:
    """The identity of the model that answered, as reported by the server."""

    model: str
    fingerprint: str  # identifies the server's configuration; "" if the server sends none

    @property
    def words(self) -> str:
        """A description of the identity for messages."""
        return f"'{self.model}'" + (
            f" with fingerprint '{self.fingerprint}'" if self.fingerprint else ""
        )


@dataclass(frozen=True, slots=True)
class Reply:
    """A parsed answer from a server."""

    content: Mapping[str, Any]
    identity: ServerIdentity
    tokens: tuple[int, int] | None  # sent and received; None if not reported


def strange(label: str, problem: str) -> InvalidInput:
    """Build the error raised when the answer to a request is not valid."""
    return InvalidInput(
        f"The answer to {label} is invalid: {problem}. It was discarded; repeat the run to "
        "continue."
    )


def parse(body: str, label: str) -> Reply:
    """Parse the body of a response. Raises InvalidInput with the label of the request."""
    try:
        content = files.parse_json_object(body)
    except ValueError:
        raise strange(label, f"it is not a JSON object, and starts with '{body[:60]}'") from None
    if content.get("error"):
        raise strange(label, f"it reports the error {str(content['error'])[:200]}")
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
    """Return a name field, which is stored with every result, or "" if there is none. Raises InvalidInput."""
    name = content.get(field) or ""
    if not isinstance(name, str) or len(name) > LONGEST_NAME or not name.isprintable():
        problem = (
            f"its '{field}' is not a single line of at most {LONGEST_NAME} printable characters"
        )
        raise strange(label, problem)
    return name


def entries(content: Mapping[str, Any], name: str, label: str) -> list[dict]:
    """Return a field that must be a list of one or more objects. Raises InvalidInput."""
    listed = content.get(name)
    if not isinstance(listed, list) or not listed or not all(isinstance(x, dict) for x in listed):
        raise strange(label, f"its '{name}' is not a list of 1 or more objects")
    return listed


def number(value: object, noun: str, label: str) -> float:
    """Return a value that must be a finite number. Raises InvalidInput."""
    if isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value):
        return float(value)
    raise strange(label, f"{noun} is {str(value)[:40]}, not a finite number")
