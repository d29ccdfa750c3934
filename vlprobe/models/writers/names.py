"""Writers by name: at a server, POST URL/chat/completions with only texts, or on this machine."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import cast

from vlprobe import registry
from vlprobe.errors import InvalidInput
from vlprobe.models import api
from vlprobe.models.endpoint.budget import Budget
from vlprobe.models.endpoint.reply import Reply
from vlprobe.models.endpoint.served import (
    EndpointName,
    Reporter,
    ServedModel,
    ServedQuestion,
    parse,
)
from vlprobe.models.writers import local
from vlprobe.models.writers.prompts import Prompt, Writer, WriterLog, answer_in
from vlprobe.registry import endpoints
from vlprobe.types import Capabilities

FIRST = Prompt(
    ({"role": "user", "content": "Answer with one word: ready."},), 0.0, 0, 16, "the first request"
)
LOCAL = "hf-gen"
FORM = "http:URL#MODEL with +timeout=SECONDS, +parallel=N, +fingerprint=TEXT or nothing after it"


class ServedWriter(ServedModel):
    """A writer behind a server."""

    log_type = WriterLog

    def __init__(self, parsed: EndpointName) -> None:
        if (
            parsed.sees_pictures
            or parsed.normalise
            or parsed.gives_probability
            or parsed.dimensions
        ):
            raise InvalidInput(
                f"'{parsed.name}' says how a model's numbers are read, and here it writes. Expected {FORM}."
            )
        super().__init__(replace(parsed, is_chat=True), "chat/completions", "writing")
        self.maker = parsed.address.line

    @property
    def capabilities(self) -> Capabilities:
        """None of the capabilities that a probe needs."""
        return Capabilities(asks_server=True)

    def first_question(self) -> ServedQuestion:
        """A word."""
        return self._question(FIRST)

    def _question(self, prompt: Prompt) -> ServedQuestion:
        def payload() -> Mapping[str, object]:
            return {
                "model": self.parsed.address.model,
                "messages": list(map(dict, prompt.messages)),
                "max_tokens": prompt.max_tokens,
                "temperature": prompt.temperature,
                "seed": prompt.seed,
            }

        received = max(1, prompt.max_tokens // 4)
        return ServedQuestion((prompt.name,), payload, prompt.tokens, prompt.label, received)

    def check(self, answer: Reply, question: ServedQuestion) -> None:
        """Raise InvalidInput unless it has a text."""
        answer_in(answer, question.label)

    def open(self, cache: Path, budget: Budget, reporter: Reporter) -> None:
        """Gets ready, and learns which model answers."""
        super().open(cache, budget, reporter)
        self.maker = f"{self.parsed.address.line}, answered by {self.facts()['answered by']}"

    @property
    def log(self) -> WriterLog:
        """The kept answers. Raises InvalidInput before `open`."""
        return cast(WriterLog, super().log)

    def ask(self, prompts: Sequence[Prompt]) -> None:
        """Ask for answers, several at the same time."""
        self._ask([self._question(prompt) for prompt in prompts])


def load(name: str, device: str = "auto", precision: str = "fp32") -> Writer:
    """Return the writer of that name without sending a request.

    Raises:
        InvalidInput: it cannot write, or may not be used here.
        MissingDependency: transformers is not installed.
    """
    prefix = name.partition(":")[0]
    if prefix in (api.PREFIX, LOCAL):
        registry.parse_name("models", name).check()
        if prefix == LOCAL:
            return local.load(name, device, precision)
        return ServedWriter(parse(name))
    raise InvalidInput(
        f"'{name[:200]}' cannot write texts. Expected {endpoints.FORM}, or hf-gen:FOLDER or hf-gen:OWNER/NAME."
    )
