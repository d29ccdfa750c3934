"""Prompts and answers of a writer, in the form of OpenAI's chat completions."""

import datetime
import hashlib
import json
from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Protocol

from vlprobe.errors import InvalidInput
from vlprobe.models.endpoint import reply
from vlprobe.models.endpoint.budget import Budget, estimated_tokens
from vlprobe.models.endpoint.reply import Reply
from vlprobe.models.endpoint.served import Reporter
from vlprobe.perturb.instructions import Message
from vlprobe.storage import files
from vlprobe.storage.answer_log import AnswerLog


@dataclass(frozen=True)
class Prompt:
    """One question in words."""

    messages: Sequence[Message]
    temperature: float
    seed: int  # of the draw of words, where the temperature is above 0
    max_tokens: int  # of the answer
    label: str  # its name in an error

    @property
    def name(self) -> str:
        """Key of its answer in the log of a writer: 32 hex digits of everything that can change it."""
        identifying = [list(map(dict, self.messages)), self.temperature, self.seed, self.max_tokens]
        content = json.dumps(identifying, sort_keys=True).encode("utf-8", "surrogatepass")
        return hashlib.blake2b(content, digest_size=16).hexdigest()

    @property
    def tokens(self) -> int:
        """Estimated number of tokens that are sent."""
        return sum(estimated_tokens(message["content"]) for message in self.messages)


@dataclass(frozen=True)
class WriterAnswer:
    """Answer of a writer."""

    text: str
    is_cut: bool  # whether it was stopped before its end
    day: (
        str  # date on which it was written, such as 2026-11-23; "" if the server does not report it
    )


class WriterLog(AnswerLog):
    """The answers of a writer, each kept under the name of its prompt; read from the disk once."""

    @cached_property  # the file is read once for all prompts
    def answers(self) -> dict[str, WriterAnswer]:
        """Return the stored answers by the name of the prompt. Raises InvalidInput if a stored one is not valid."""
        return {answer.questions[0]: _kept(answer.body) for answer in self}

    def reread(self) -> None:
        """Discard the cached answers: another process may have written since."""
        self.__dict__.pop("answers", None)

    def append(self, questions: Sequence[str], body: str) -> None:
        """Keep an answer. Raises InvalidInput if it cannot be written."""
        answers = self.answers
        super().append(questions, body)
        answers[questions[0]] = _kept(body)


class Writer(Protocol):
    """A model that writes text. Each prompt is sent once, and its answer is stored in `log`."""

    name: str
    maker: str  # who wrote, for a file of edits; known once it is opened

    @property
    def log(self) -> WriterLog:
        """Its answers; known once it is opened."""
        ...

    def open(self, cache: Path, budget: Budget, reporter: Reporter) -> None:
        """Prepare the writer. Raises InvalidInput if it gives no answer."""
        ...

    def ask(self, prompts: Sequence[Prompt]) -> None:
        """Send prompts; each answer goes to the log as soon as it is complete."""
        ...


def asked(writer: Writer, prompts: Sequence[Prompt]) -> dict[str, WriterAnswer]:
    """Return the answers to prompts, by name; prompts without a stored answer are sent."""
    answers = writer.log.answers
    lacking = {prompt.name: prompt for prompt in prompts if prompt.name not in answers}
    if lacking:
        writer.ask(list(lacking.values()))
    return {prompt.name: answers[prompt.name] for prompt in prompts}


def locked(writer: Writer) -> AbstractContextManager[None]:
    """Return the lock that a process holds while it sends prompts to a writer; it raises InvalidInput if another
    process does."""

    def refuse() -> None:
        raise InvalidInput(
            f"'{writer.name}' is being asked for edits by another process with the same cache, and what both ask would "
            "be paid for twice. Wait for it, or choose another folder with --cache."
        )

    return files.lock(writer.log.file.parent / ".writing.lock", refuse)


def _kept(body: str) -> WriterAnswer:
    label = "a kept request"
    return answer_in(reply.parse(body, label), label)


def answer_in(parsed: Reply, label: str) -> WriterAnswer:
    """Return the text of a chat completion. Raises InvalidInput if it has none."""
    choice = reply.entries(parsed.content, "choices", label)[0]
    message = choice.get("message")
    text = message.get("content") if isinstance(message, dict) else None
    refusal = message.get("refusal") if isinstance(message, dict) else None
    if text is None and (isinstance(refusal, str) or choice.get("finish_reason") is not None):
        text = ""  # it refuses, or its answer was filtered: an answer, and an empty one
    if not isinstance(text, str) or files.SURROGATE.search(text):
        raise reply.strange(label, "its message has no text ('content')")
    created = parsed.content.get("created")
    day = ""
    if isinstance(created, int) and 0 < created < 2**33:
        day = datetime.datetime.fromtimestamp(created, datetime.UTC).date().isoformat()
    return WriterAnswer(text, choice.get("finish_reason") == "length", day)
