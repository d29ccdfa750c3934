"""Base class and name parser for models behind a server.

`open` looks up in the log which model answered before, or sends the first request to find out. The run key depends on
this model. Requests that a run needs and that have no answer in the log are counted, reported and then sent. Each
complete answer is appended to the log, from which scores are computed. A damaged answer, or an answer from another
model, stops the run. A request whose answer is in the log is never sent again.
"""

import base64
import io
import json
import re
from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn, Protocol

from PIL import Image

from vlprobe.errors import InvalidInput, MissingDependency, printable
from vlprobe.models.endpoint import reply
from vlprobe.models.endpoint.budget import Budget
from vlprobe.models.endpoint.reply import Reply, ServerIdentity
from vlprobe.registry import endpoints
from vlprobe.registry.endpoints import Address
from vlprobe.scoring import pictures
from vlprobe.storage import mine
from vlprobe.storage.answer_log import FOLDER, AnswerLog
from vlprobe.types import Capabilities, Model, Picture

if TYPE_CHECKING:
    from vlprobe.models.endpoint.client import Client

VERSION = 1  # changes with the way in which requests are built or answers are read
LOOK_EVERY = 0.5  # seconds between two checks for a stop request
PIXELS_PER_TOKEN = 750  # a rough value for several services
FLAGS = ("chat", "pictures", "normalise", "probability")
BOUNDS = {  # minimum, maximum, default
    "dimensions": (1, 65_536, 0),
    "side": (16, 4096, 512),
    "top": (2, 20, 20),
    "timeout": (1, 3600, 120),
    "parallel": (1, 64, 4),
}
OPTION = re.compile(
    rf"(?P<flag>{'|'.join(FLAGS)})|template=(?P<template>[^+]+)|as=[^+]{{1,60}}|fingerprint=(?P<fingerprint>[^+]{{1,200}})|"
    rf"(?P<number>{'|'.join(BOUNDS)})=(?P<value>[0-9]{{1,5}})"
)
EXPECTED = (
    "chat, pictures, normalise, probability, dimensions=N, side=PIXELS, top=N, fingerprint=TEXT, "
    "timeout=SECONDS, parallel=N, template=TEXT or as=NAME"
)


@dataclass(frozen=True, slots=True)
class EndpointName:
    """The parsed name of a model on a server: http:URL#MODEL with options after plus signs."""

    name: str  # as it was typed
    address: Address
    is_chat: bool  # True for chat, False for embeddings
    sees_pictures: bool  # whether embeddings of pictures are requested
    normalise: bool  # whether embeddings may have any length
    gives_probability: bool  # whether scores are probabilities instead of log-odds
    template: str  # question with {} for the caption; "": the default
    fingerprint: str  # required model or fingerprint of every answer; "": same as the first answer
    dimensions: int  # dimension requested from the server; 0: the server's default
    side: int  # maximum of a picture's longer side in pixels
    top: int  # number of tokens whose probabilities are requested
    timeout: int  # seconds
    parallel: int  # concurrent requests

    @property
    def capabilities(self) -> Capabilities:
        """The capabilities of the model: it answers cases with chat, and otherwise looks up embeddings."""
        if self.is_chat:
            scale = "probability" if self.gives_probability else "logit"
            return Capabilities(answers_cases=True, asks_server=True, score_type=scale)
        return Capabilities(
            looks_up=True, asks_server=True, embeds_texts=True, embeds_images=self.sees_pictures
        )

    @property
    def picture_settings(self) -> str:
        """A description of how a picture is prepared before it is sent, which is part of the digest."""
        return f"upright RGB, longer side at most {self.side} (Lanczos), PNG"

    @property
    def picture_tokens(self) -> int:
        """A rough upper bound for the number of tokens in a picture."""
        return -(-self.side * self.side // PIXELS_PER_TOKEN)


def parse(name: str) -> EndpointName:
    """Parse the name of a model on a server. Raises InvalidInput if an option is unknown or has no effect."""
    base, *options = name.removeprefix(endpoints.PREFIX).split("+")
    address = endpoints.parse(base)
    if not address.model:
        raise InvalidInput(
            f"'{name}' does not name a model of the server. Expected {endpoints.FORM}."
        )
    flags: set[str] = set()
    numbers = {option: default for option, (_, _, default) in BOUNDS.items()}
    fingerprint = template = ""
    for option in options:
        match = OPTION.fullmatch(option)
        if not match:
            raise InvalidInput(
                f"'{option[:80]}' in '{name}' is not a valid option. Expected {EXPECTED}. "
                "In MODEL, write '+' as %2B."
            )
        flags |= {match["flag"]} - {None}
        fingerprint = match["fingerprint"] or fingerprint
        template = match["template"] or template
        if number := match["number"]:
            low, high, _ = BOUNDS[number]
            numbers[number] = int(match["value"])
            if not low <= numbers[number] <= high:
                raise InvalidInput(
                    f"'{option}' in '{name}' is out of range. Expected {number}={low} to {high}."
                )
    strays = flags & ({"pictures", "normalise"} if "chat" in flags else {"probability"})
    if template and "chat" not in flags:
        strays = {"template"}
    if strays:
        kind = (
            "+chat already uses pictures and has no embeddings"
            if "chat" in flags
            else "this option requires +chat"
        )
        raise InvalidInput(
            f"'+{min(strays)}' in '{name}' has no effect: {kind}. Remove the option."
        )
    return EndpointName(
        name,
        address,
        *(flag in flags for flag in FLAGS),
        template=template,
        fingerprint=fingerprint,
        **numbers,
    )


def data_url(image: Image.Image, side: int) -> str:
    """Encode an RGB picture as a PNG data URL, with its longer side scaled down to at most `side` pixels."""
    longest = max(image.size)
    if longest > side:
        width, height = (max(1, round(length * side / longest)) for length in image.size)
        image = image.resize((width, height), Image.Resampling.LANCZOS)
    buffer = io.BytesIO()
    image.save(buffer, "PNG")
    return f"data:image/png;base64,{base64.b64encode(buffer.getvalue()).decode()}"


def refuse_absent(picture: Picture, model: str) -> None:
    """Raise InvalidInput if a picture is missing, so that it cannot be sent to a server."""
    if picture.absent:
        raise InvalidInput(
            f"Picture '{picture.absent}' is missing, but '{model}' needs pictures. Use "
            "+available instead of +unpictured to test only the items with pictures."
        )


class Reporter(Protocol):
    """A receiver for messages to the user while requests are sent, such as `runs.request.Progress`."""

    def update(self, label: str, done: float, total: float) -> None:
        """Report that `done` of `total` requests are answered. It may raise to stop."""
        ...

    def tell(self, line: str) -> None:
        """Show a line that stays visible after the progress has moved on."""
        ...


@dataclass(frozen=True, slots=True)
class ServedQuestion:
    """A request to a server, with one or more questions."""

    names: tuple[str, ...]  # keys of its questions in the log
    payload: Callable[[], Mapping[str, object]]  # builds the body when the request is sent
    tokens: int  # estimated number of tokens that are sent
    label: str  # its name in error messages
    tokens_received: int = 1  # estimated number of tokens in the answer


class ServedModel(Model):
    """Base class for embedding and chat models behind a server.

    Args:
        parsed: The parsed name of the model.
        path: The path for requests, after the URL.
        how: The settings that answers depend on, apart from the questions: the prompt and the preparation of pictures.
        reading: How scores are computed from the answers; several models can share one log.
    """

    log_type: type[AnswerLog] = AnswerLog

    def __init__(self, parsed: EndpointName, path: str, how: object, reading: str = "") -> None:
        self.name, self.parsed, self._path, self._reading = parsed.name, parsed, path, reading
        # Empty until the model is opened, because it depends on which model answers
        self.digest = ""
        self.note = f"asked at {parsed.address.origin}"
        address, settings = parsed.address, (parsed.is_chat, parsed.dimensions, parsed.fingerprint)
        self._described = json.dumps([address.url, address.model, *settings, [VERSION, how]])
        self._log: AnswerLog | None = None
        self._identity: ServerIdentity | None = None

    @property
    def capabilities(self) -> Capabilities:
        """The capabilities of the model, which its name determines."""
        return self.parsed.capabilities

    def tokenize(self, texts: Sequence[str]) -> NoReturn:
        """Raise InvalidInput, because the server tokenizes texts itself and only receives texts in a run."""
        raise InvalidInput(
            f"'{self.name}' is only queried during runs, because requests may cost money. "
            "Choose another model here."
        )

    @abstractmethod
    def first_question(self) -> ServedQuestion:
        """Build the request whose answer identifies the model."""

    @abstractmethod
    def check(self, answer: Reply, question: ServedQuestion) -> None:
        """Raise InvalidInput if an answer does not match its request."""

    def learn(self, answer: Reply, question: ServedQuestion) -> None:
        """Store further facts about the model that the first answer shows."""

    def open(self, cache: Path, budget: Budget, reporter: Reporter) -> None:
        """Open the answer log, and find out which model answers.

        Args:
            cache: The cache folder.
            budget: The spending limit.
            reporter: The receiver for progress messages.

        Raises:
            InvalidInput: The server does not answer, or another model answers than the name requires.
        """
        folder = mine.path(cache, FOLDER) / pictures.digest(self._described.encode())
        log = self._log = self.log_type(folder)
        self._budget, self._reporter = budget, reporter
        question = self.first_question()
        if not any(True for _ in log):
            with self.locked():  # raises an error if the log cannot be written
                if not any(True for _ in log):
                    self._ask([question])
        oldest = next(iter(log), None)
        if oldest is None:
            raise InvalidInput(f"'{log.file}' differs from what was just written. Check the disk.")
        answer = reply.parse(oldest.body, f"the first request of '{self.name}'")
        self._identity = identity = answer.identity
        self.learn(answer, question)
        identified = [self._described, self._reading, identity.model, identity.fingerprint]
        self.digest = pictures.digest(f"server version 1 {json.dumps(identified)}".encode())
        self.note = f"asked at {self.parsed.address.origin}: {identity.words}"

    @property
    def log(self) -> AnswerLog:
        """The log of stored answers. Raises InvalidInput before `open` is called."""
        if self._log is None:
            raise InvalidInput(
                f"'{self.name}' is only queried during runs, because requests may cost "
                "money. Start a run with it."
            )
        return self._log

    def locked(self) -> AbstractContextManager[None]:
        """Return a lock that makes other processes with the same requests wait."""
        waiting = f"{self.name}: another process asks it"
        return self.log.locked(lambda: self._reporter.update(waiting, 0, 1))

    def facts(self) -> dict[str, str]:
        """Describe the model, as a dictionary from subject to text."""
        return {
            "architecture": "unknown: a server answers",
            "parameters": "unknown",
            "server": self.parsed.address.origin,
            "answered by": self._identity.words if self._identity else "",
        }

    def ask(self, questions: Sequence[ServedQuestion], n_kept: int) -> None:
        """Report the estimated cost of requests, send them, and append the answers to the log.

        Args:
            questions: The requests that have no answer in the log.
            n_kept: The number of questions that are already answered in the log.
        """
        if not questions:
            return
        sent = sum(question.tokens for question in questions)
        received = sum(question.tokens_received for question in questions)
        line = f"{self.name}: {len(questions):,} requests, about {sent:,} tokens"
        if self._budget.has_price:
            line += f", about {self._budget.cost(sent, received):.4g} by the price"
        self._reporter.tell(printable(f"{line}. {n_kept:,} answers are already stored."))
        self._ask(questions)

    def _ask(self, questions: Sequence[ServedQuestion]) -> None:
        try:
            from vlprobe.models.endpoint.client import Client
        except ModuleNotFoundError as error:
            if error.name != "urllib3":
                raise
            raise MissingDependency(f"'{self.name}'", "urllib3", "'vlprobe[api]'") from None
        parallel = self.parsed.parallel
        client = Client(self.parsed.address, self.parsed.timeout, parallel)
        n_done = 0
        self._reporter.update(f"Asking {self.name}", 0, len(questions))
        with ThreadPoolExecutor(parallel) as pool:  # the threads wait for the server in parallel
            under_way: set[Future[None]] = set()
            pending = list(reversed(questions))
            try:
                while pending or under_way:
                    if pending and len(under_way) < parallel:
                        question = pending.pop()
                        promised = self._budget.promise(question.tokens, question.tokens_received)
                        under_way.add(pool.submit(self._ask_one, client, question, promised))
                        continue
                    ended, _ = wait(under_way, LOOK_EVERY, FIRST_COMPLETED)
                    under_way -= ended
                    for request in ended:
                        request.result()
                    n_done += len(ended)
                    self._reporter.update(f"Asking {self.name}", n_done, len(questions))
            except BaseException:
                client.stop()  # requests in progress finish, and their answers are kept
                raise

    def _ask_one(self, client: "Client", question: ServedQuestion, promised: float) -> None:
        """Send one request, and append its answer to the log if it is complete and from the same model as before."""
        expected = self._budget.cost(question.tokens, question.tokens_received)
        with self._budget.settled(promised, expected) as bill:
            body = json.dumps(question.payload()).encode()
            text = client.post(self._path, body, question.label, bill)
            bill.is_answered = True
            answer = reply.parse(text, question.label)
            bill.tokens = answer.tokens
            identity, stated = answer.identity, self.parsed.fingerprint
            answered = f"{question.label[:1].upper()}{question.label[1:]} was answered by {identity.words}, but"
            if stated and stated not in (identity.model, identity.fingerprint):
                raise InvalidInput(
                    f"{answered} '{self.name}' requires a different fingerprint. Remove "
                    "+fingerprint, or set it to the fingerprint of this answer."
                )
            if self._identity and identity != self._identity:
                raise InvalidInput(
                    f"{answered} earlier requests were answered by {self._identity.words}. A run "
                    "can only use one model. Answers are stored; to start over with the new "
                    "model, use "
                    f"'{self.name}+fingerprint={identity.fingerprint or identity.model}'."
                )
            self.check(answer, question)
            self.log.append(question.names, text)
