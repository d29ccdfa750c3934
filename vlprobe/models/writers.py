"""Models that write texts, behind a server (http:URL#MODEL, chat completions) or on this machine.

hf-gen:OWNER/NAME and hf-gen:FOLDER can be any transformers model that generates text and has a chat template, with
or without picture input. It receives one prompt at a time, so that neighbors in a batch cannot change an answer.
Prompts and answers have the form of OpenAI's chat completions.
"""

import datetime
import hashlib
import json
import time
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, cast

from vlprobe import registry
from vlprobe.errors import InvalidInput
from vlprobe.models import api, frozen, hub
from vlprobe.models.endpoint import reply
from vlprobe.models.endpoint.budget import Budget, estimated_tokens
from vlprobe.models.endpoint.reply import Reply
from vlprobe.models.endpoint.served import (
    EndpointName,
    Reporter,
    ServedModel,
    ServedQuestion,
    parse,
)
from vlprobe.models.modules import TransformersModel
from vlprobe.perturb.instructions import Message
from vlprobe.registry import endpoints
from vlprobe.scoring import pictures
from vlprobe.storage import files, mine
from vlprobe.storage.answer_log import FOLDER, AnswerLog
from vlprobe.types import Capabilities


@dataclass(frozen=True)
class Prompt:
    """One prompt for a writer."""

    messages: Sequence[Message]
    temperature: float
    seed: int  # the seed for sampling words if the temperature is above 0
    max_tokens: int  # the maximum length of the answer
    label: str  # its name in error messages

    @property
    def name(self) -> str:
        """The key of the answer in a writer's log: 32 hex digits that depend on everything that can change it."""
        identifying = [list(map(dict, self.messages)), self.temperature, self.seed, self.max_tokens]
        content = json.dumps(identifying, sort_keys=True).encode("utf-8", "surrogatepass")
        return hashlib.blake2b(content, digest_size=16).hexdigest()

    @property
    def tokens(self) -> int:
        """The estimated number of tokens in the prompt."""
        return sum(estimated_tokens(message["content"]) for message in self.messages)


@dataclass(frozen=True)
class WriterAnswer:
    """An answer from a writer."""

    text: str
    is_cut: bool  # whether it was stopped before its end
    day: str  # when it was written, such as 2026-11-23; "" if the server does not report it


class WriterLog(AnswerLog):
    """A log with the answers from a writer, stored by the name of the prompt. It is read from disk only once."""

    @cached_property  # the file is read once for all prompts
    def answers(self) -> dict[str, WriterAnswer]:
        """The stored answers by the name of the prompt. Raises InvalidInput if a stored answer is not valid."""
        return {answer.questions[0]: _kept(answer.body) for answer in self}

    def reread(self) -> None:
        """Discard the cached answers, because another process may have added some."""
        self.__dict__.pop("answers", None)

    def append(self, questions: Sequence[str], body: str) -> None:
        """Store an answer. Raises InvalidInput if it cannot be written."""
        answers = self.answers
        super().append(questions, body)
        answers[questions[0]] = _kept(body)


def _kept(body: str) -> WriterAnswer:
    label = "a kept request"
    return answer_in(reply.parse(body, label), label)


def answer_in(parsed: Reply, label: str) -> WriterAnswer:
    """Return the answer in a chat completion. Raises InvalidInput if it has no text."""
    choice = reply.entries(parsed.content, "choices", label)[0]
    message = choice.get("message")
    text = message.get("content") if isinstance(message, dict) else None
    refusal = message.get("refusal") if isinstance(message, dict) else None
    if text is None and (isinstance(refusal, str) or choice.get("finish_reason") is not None):
        text = ""  # the model refused or the answer was filtered, which counts as an empty answer
    if not isinstance(text, str) or files.SURROGATE.search(text):
        raise reply.strange(label, "its message has no 'content'")
    created = parsed.content.get("created")
    day = ""
    if isinstance(created, int) and 0 < created < 2**33:
        day = datetime.datetime.fromtimestamp(created, datetime.UTC).date().isoformat()
    return WriterAnswer(text, choice.get("finish_reason") == "length", day)


VERSION = 1  # changes with the way in which a local writer is prompted


class LocalWriter:
    """A transformers model that writes texts on this machine.

    Args:
        source: The name, folder and settings of the model; the weights have its precision.
        model: The model on the CPU; it is moved to the device.
        tokenizer: The tokenizer, with or without the chat template.
        template: The processor or the tokenizer, whichever has the chat template.
    """

    def __init__(
        self, source: hub.ModelSource, model: TransformersModel, tokenizer: Any, template: Any
    ) -> None:
        self.name, self._device, self._precision = source.name, source.device, source.precision
        self._tokenizer, self._template = tokenizer, template
        if not getattr(template, "chat_template", None):
            raise InvalidInput(
                f"'{self.name}' has no chat template, so no prompts can be built for it. Choose a "
                "model with a chat template."
            )
        words = tokenizer(list(frozen.FINGERPRINT_TEXTS))["input_ids"]
        unused = ("_name_or_path", "transformers_version")
        config = {key: x for key, x in model.config.to_dict().items() if key not in unused}
        described = ["writes", VERSION, config, template.chat_template, words, source.precision]
        self.digest = frozen.digest({"described": described}, model)
        self.maker = f"{self.name}, weights {self.digest[:12]}"
        self._model = model.to(self._device)

    def open(self, cache: Path, budget: Budget, reporter: Reporter) -> None:
        """Open the log with stored answers. The budget is ignored, because a local writer costs no money."""
        self._reporter = reporter
        folder = mine.path(cache, FOLDER) / pictures.digest(f"writes {self.digest}".encode())
        self.log = WriterLog(folder)

    def ask(self, prompts: Sequence[Prompt]) -> None:
        """Answer the prompts one after another, and store the answers in the log."""
        for number, prompt in enumerate(prompts):
            self._reporter.update(f"Asking {self.name}", number, len(prompts))
            self.log.append((prompt.name,), self._answered(prompt))

    def _answered(self, prompt: Prompt) -> str:
        """Generate an answer, in the JSON format that a server would return."""
        import torch
        from transformers import GenerationConfig

        ids = self._tokenizer(
            self._written(prompt), return_tensors="pt", add_special_tokens=False
        ).to(self._device)
        settings = self._model.generation_config
        how: dict[str, Any] = {"do_sample": False}
        if prompt.temperature > 0:
            how = {"do_sample": True, "temperature": prompt.temperature, "top_k": 0, "top_p": 1.0}
        generation = GenerationConfig(
            max_new_tokens=prompt.max_tokens,
            eos_token_id=settings.eos_token_id or self._tokenizer.eos_token_id,
            pad_token_id=settings.pad_token_id or self._tokenizer.pad_token_id,
            **how,
        )
        devices = [self._device] if self._device.startswith("cuda") else []
        with (
            torch.random.fork_rng(devices=devices),
            frozen.arithmetic(self._device, self._precision),
        ):
            torch.manual_seed(prompt.seed)
            ids.pop("token_type_ids", None)
            rows = self._model.generate(**ids, generation_config=generation)
        new = rows[0, ids["input_ids"].shape[1] :]
        content = self._tokenizer.decode(new, skip_special_tokens=True)
        choice = {
            "index": 0,
            "message": {"role": "assistant", "content": content},
            "finish_reason": "length" if len(new) >= prompt.max_tokens else "stop",
        }
        usage = {"prompt_tokens": ids["input_ids"].shape[1], "completion_tokens": len(new)}
        body = {"model": self.name, "created": int(time.time()), "choices": [choice]}
        return json.dumps(body | {"usage": usage}, ensure_ascii=False)

    def _written(self, prompt: Prompt) -> str:
        """Format a prompt with the chat template."""
        messages: list[dict[str, Any]] = [dict(message) for message in prompt.messages]
        if self._template is not self._tokenizer:  # a processor's template expects parts
            for message in messages:
                message["content"] = [{"type": "text", "text": message["content"]}]
        return self._template.apply_chat_template(
            messages, add_generation_prompt=True, tokenize=False
        )


def load_local(name: str, device: str = "auto", precision: str = "fp32") -> LocalWriter:
    """Load a local writer by name. Raises InvalidInput or MissingDependency."""
    source = hub.locate(name, device, precision)
    import transformers
    from transformers.models.auto.modeling_auto import (
        MODEL_FOR_CAUSAL_LM_MAPPING_NAMES as TEXT_KINDS,
    )
    from transformers.models.auto.modeling_auto import (
        MODEL_FOR_IMAGE_TEXT_TO_TEXT_MAPPING_NAMES as PICTURE_KINDS,
    )

    kind, folder = source.model_type, source.folder
    architecture = PICTURE_KINDS.get(kind) or TEXT_KINDS.get(kind)
    if not architecture:
        raise InvalidInput(
            f"'{name}' has model type '{kind}' and cannot generate text. Expected a generative "
            "model such as llama, qwen2, llava or smolvlm."
        )
    with hub.opening(name):
        tokenizer: Any = hub.tokenizer(folder)
        template = hub.processor(folder) if kind in PICTURE_KINDS else tokenizer
        dtype = hub.DTYPES[source.precision]
        model = hub.load(name, getattr(transformers, architecture), folder, dtype)
        return LocalWriter(source, model, tokenizer, template)


FIRST = Prompt(
    ({"role": "user", "content": "Answer with one word: ready."},), 0.0, 0, 16, "the first request"
)
LOCAL = "hf-gen"
FORM = "http:URL#MODEL with +timeout=SECONDS, +parallel=N, +fingerprint=TEXT or nothing after it"


class ServedWriter(ServedModel):
    """A writer behind a server."""

    log_type = WriterLog

    def __init__(self, parsed: EndpointName) -> None:
        names = ("sees_pictures", "normalise", "gives_probability", "dimensions", "template")
        if any(getattr(parsed, name) for name in names):
            raise InvalidInput(
                f"'{parsed.name}' has options for scores or embeddings, but this model "
                f"writes text. Expected {FORM}."
            )
        super().__init__(replace(parsed, is_chat=True), "chat/completions", "writing")
        self.maker = parsed.address.line

    @property
    def capabilities(self) -> Capabilities:
        """The capabilities of a writer, which cannot be used by a probe."""
        return Capabilities(asks_server=True)

    def first_question(self) -> ServedQuestion:
        """Build the first request, which asks for a single word to identify the model."""
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
        """Raise InvalidInput unless the answer has a text."""
        answer_in(answer, question.label)

    def open(self, cache: Path, budget: Budget, reporter: Reporter) -> None:
        """Open the log, and find out which model answers."""
        super().open(cache, budget, reporter)
        self.maker = f"{self.parsed.address.line}, answered by {self.facts()['answered by']}"

    @property
    def log(self) -> WriterLog:
        """The log of stored answers. Raises InvalidInput before `open` is called."""
        return cast(WriterLog, super().log)

    def ask(self, prompts: Sequence[Prompt]) -> None:
        """Send several prompts at the same time, and store the answers in the log."""
        self._ask([self._question(prompt) for prompt in prompts])


Writer = LocalWriter | ServedWriter


def answers_to(writer: Writer, prompts: Sequence[Prompt]) -> dict[str, WriterAnswer]:
    """Return the answers to prompts, by prompt name. Prompts without a stored answer are sent to the writer."""
    answers = writer.log.answers
    unanswered = {prompt.name: prompt for prompt in prompts if prompt.name not in answers}
    if unanswered:
        writer.ask(list(unanswered.values()))
    return {prompt.name: answers[prompt.name] for prompt in prompts}


def locked(writer: Writer) -> AbstractContextManager[None]:
    """Return the lock that a process holds while it sends prompts to a writer. It raises InvalidInput if another
    process holds the lock."""

    def refuse() -> None:
        raise InvalidInput(
            f"'{writer.name}' is in use by another process with the same cache, so edits could be "
            "paid for twice. Wait for that process, or choose another folder with --cache."
        )

    return files.lock(writer.log.file.parent / ".writing.lock", refuse)


def load(name: str, device: str = "auto", precision: str = "fp32") -> Writer:
    """Load a writer by name, without sending a request.

    Raises:
        InvalidInput: The model cannot write texts, or may not be used here.
        MissingDependency: transformers is not installed.
    """
    prefix = name.partition(":")[0]
    if prefix in (api.PREFIX, LOCAL):
        registry.parse_name("models", name).check()
        if prefix == LOCAL:
            return load_local(name, device, precision)
        return ServedWriter(parse(name))
    raise InvalidInput(
        f"'{name[:200]}' cannot write texts. Expected {endpoints.FORM}, or hf-gen:FOLDER or hf-gen:OWNER/NAME."
    )
